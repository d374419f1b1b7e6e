//! The headers that authenticate a request to a provider.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{ProviderAuth, ProviderKind, ProviderPlan, Secret};

const BETA: &str = "anthropic-beta";
/// Anthropic accepts bearer tokens only with this beta.
const BEARER_BETA: &str = "oauth-2025-04-20";
const ACCOUNT: &str = "chatgpt-account-id";
const SHORTEST_SECRET: usize = 4;
/// Stands for the id of the session in a configured header.
const SESSION: &str = "${session}";

/// Whether a header value may be printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
}

/// All headers of a request: those of the format, the credentials, and those of the configuration, which override the
/// others.
pub(crate) fn headers(
    plan: &ProviderPlan,
    wire: &[(&'static str, String)],
    session: &str,
) -> Result<HeaderMap, ModelFault> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    for (name, value) in wire {
        put(&mut headers, name, value)?;
    }
    authorize(&mut headers, plan)?;
    if plan.kind == ProviderKind::ChatGpt {
        put(&mut headers, "originator", "switchboard")?;
    }
    configure(&mut headers, plan, session)?;
    Ok(headers)
}

/// Adds the headers of the configuration, with the id of the session where they name it.
pub(crate) fn configure(
    headers: &mut HeaderMap,
    plan: &ProviderPlan,
    session: &str,
) -> Result<(), ModelFault> {
    plan.headers.iter().try_for_each(|(name, value)| {
        put_secret(headers, name, &value.expose().replace(SESSION, session))
    })
}

/// Adds the credentials.
pub(crate) fn authorize(headers: &mut HeaderMap, plan: &ProviderPlan) -> Result<(), ModelFault> {
    match (&plan.auth, plan.kind) {
        // The last two are replaced by their tokens before a request is made.
        (ProviderAuth::None | ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_), _) => {}
        (ProviderAuth::ApiKey(key), ProviderKind::Anthropic) => {
            put_secret(headers, "x-api-key", key.expose())?;
        }
        (ProviderAuth::ApiKey(key), ProviderKind::Gemini) => {
            put_secret(headers, "x-goog-api-key", key.expose())?;
        }
        (ProviderAuth::ApiKey(secret) | ProviderAuth::Bearer(secret), kind) => {
            put_secret(headers, AUTHORIZATION.as_str(), &format!("Bearer {}", secret.expose()))?;
            match kind {
                ProviderKind::Anthropic => put(headers, BETA, BEARER_BETA)?,
                ProviderKind::ChatGpt => {
                    if let Some(account) = plan.account.clone().or_else(|| account_of(secret)) {
                        put(headers, ACCOUNT, &account)?;
                    }
                }
                ProviderKind::OpenAi
                | ProviderKind::OpenAiChat
                | ProviderKind::Gemini
                | ProviderKind::CodeAssist
                | ProviderKind::Demo => {}
            }
        }
    }
    Ok(())
}

/// Joins several headers with beta flags into one, so that flags of other sources can be added.
pub(crate) fn join_betas(headers: &mut HeaderMap) -> Result<(), ModelFault> {
    let values = headers.get_all(BETA).iter().filter_map(|value| value.to_str().ok());
    let all = values.fold(String::new(), |all, value| joined(&all, value));
    if all.is_empty() { Ok(()) } else { insert(headers, BETA, &all, Shown::Yes) }
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ModelFault> {
    // Beta flags of several sources are combined.
    let known = headers.get(BETA).filter(|_| name.eq_ignore_ascii_case(BETA));
    let value = match known.and_then(|known| known.to_str().ok()) {
        Some(known) => joined(known, value),
        None => value.to_owned(),
    };
    insert(headers, name, &value, Shown::Yes)
}

fn put_secret(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ModelFault> {
    if name.eq_ignore_ascii_case(BETA) {
        return put(headers, BETA, value);
    }
    insert(headers, name, value, Shown::No)
}

fn insert(
    headers: &mut HeaderMap,
    name: &str,
    value: &str,
    shown: Shown,
) -> Result<(), ModelFault> {
    // The value is not shown: it may be a key.
    let unfit = |_| {
        let text = format!("the header `{name}` cannot be sent: it holds forbidden characters");
        ModelFault::new(FaultKind::Credentials, text)
    };
    let mut value = HeaderValue::from_str(value).map_err(|error| unfit(error.to_string()))?;
    value.set_sensitive(shown == Shown::No);
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| unfit(error.to_string()))?;
    headers.insert(name, value);
    Ok(())
}

/// The union of both lists.
fn joined(first: &str, second: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in first.split(',').chain(second.split(',')).map(str::trim) {
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(",")
}

/// The account id in a ChatGPT token. The token is not verified here; its issuer does that.
fn account_of(token: &Secret) -> Option<String> {
    let claims = token.expose().split('.').nth(1)?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let account = &claims["https://api.openai.com/auth"]["chatgpt_account_id"];
    account.as_str().filter(|account| !account.is_empty()).map(str::to_owned)
}

/// Whether there are credentials, as a key or as a header of the configuration.
pub(crate) fn are_given(plan: &ProviderPlan) -> bool {
    let names = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
    let is_known = |name: &String| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    plan.auth != ProviderAuth::None || plan.headers.keys().any(is_known)
}

/// Removes secrets from all members of a fault: a provider may quote them.
pub(crate) fn scrubbed(plan: &ProviderPlan, fault: ModelFault) -> ModelFault {
    ModelFault {
        message: scrub(plan, &fault.message),
        code: fault.code.map(|code| scrub(plan, &code)),
        request_id: fault.request_id.map(|id| scrub(plan, &id)),
        ..fault
    }
}

/// Removes secrets from a text: a provider may quote what it was sent.
pub(crate) fn scrub(plan: &ProviderPlan, text: &str) -> String {
    let key = match &plan.auth {
        ProviderAuth::None | ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_) => None,
        ProviderAuth::ApiKey(secret) | ProviderAuth::Bearer(secret) => Some(secret),
    };
    let secrets = key.into_iter().chain(plan.headers.values()).map(Secret::expose);
    // Shorter values are not treated as secrets, because removing them would break up words.
    let secrets = secrets.filter(|secret| secret.len() >= SHORTEST_SECRET);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn plan(kind: ProviderKind, auth: ProviderAuth) -> ProviderPlan {
        ProviderPlan { auth, ..ProviderPlan::new("p", kind) }
    }

    fn key() -> ProviderAuth {
        ProviderAuth::ApiKey(Secret::new("the-key"))
    }

    fn bearer(token: &str) -> ProviderAuth {
        ProviderAuth::Bearer(Secret::new(token))
    }

    #[track_caller]
    fn check(plan: &ProviderPlan, wire: &[(&'static str, String)], expected: &[&str]) {
        let headers = headers(plan, wire, "s-1").unwrap();
        let mut shown: Vec<_> = headers
            .iter()
            .filter(|(name, _)| !["content-type", "accept"].contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        shown.sort();
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_kind_is_let_in_its_own_way() {
        check(&plan(ProviderKind::OpenAi, key()), &[], &["authorization: Bearer the-key"]);
        check(&plan(ProviderKind::OpenAiChat, key()), &[], &["authorization: Bearer the-key"]);
        check(&plan(ProviderKind::Anthropic, key()), &[], &["x-api-key: the-key"]);
        check(&plan(ProviderKind::Gemini, key()), &[], &["x-goog-api-key: the-key"]);
        check(&plan(ProviderKind::CodeAssist, bearer("t")), &[], &["authorization: Bearer t"]);
        check(&plan(ProviderKind::OpenAiChat, ProviderAuth::None), &[], &[]);
    }

    #[test]
    fn betas_of_all_sides_are_asked_for_once() {
        let mut plan = plan(ProviderKind::Anthropic, bearer("t"));
        plan.headers.insert("Anthropic-Beta".into(), Secret::new("b, mine"));
        let wire = [(BETA, "a,b".to_owned()), ("anthropic-version", "2023-06-01".to_owned())];
        let expected = [
            "anthropic-beta: a,b,oauth-2025-04-20,mine",
            "anthropic-version: 2023-06-01",
            "authorization: Bearer t",
        ];
        check(&plan, &wire, &expected);
    }

    #[test]
    fn a_chatgpt_token_names_its_account_unless_the_configuration_does() {
        let claims = r#"{"https://api.openai.com/auth": {"chatgpt_account_id": "acc_1"}}"#;
        let token = format!("e30.{}.sig", BASE64_URL_SAFE_NO_PAD.encode(claims));
        let mut plan = plan(ProviderKind::ChatGpt, bearer(&token));
        let own = ["originator: switchboard"];
        let expect = |account: &[&str]| {
            let authorization = format!("authorization: Bearer {token}");
            let all = [authorization.as_str()].into_iter().chain(account.iter().copied());
            all.chain(own).map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = expect(&["chatgpt-account-id: acc_1"]);
        check(&plan, &[], &expected.iter().map(String::as_str).collect::<Vec<_>>());
        plan.account = Some("acc_2".into());
        let expected = expect(&["chatgpt-account-id: acc_2"]);
        check(&plan, &[], &expected.iter().map(String::as_str).collect::<Vec<_>>());
        for odd in ["plain", "a.b.c", "e30.e30.x", ""] {
            assert_eq!(account_of(&Secret::new(odd)), None, "{odd}");
        }
    }

    #[test]
    fn headers_of_the_configuration_have_the_last_word_and_secrets_do_not_print() {
        let mut plan = plan(ProviderKind::OpenAi, key());
        plan.headers.insert("Accept".into(), Secret::new("x-s3cret"));
        let headers = headers(&plan, &[], "").unwrap();
        assert_eq!(headers["accept"], "x-s3cret");
        let printed = format!("{headers:?}");
        assert!(!printed.contains("the-key") && !printed.contains("s3cret"), "{printed}");
        plan.auth = bearer("a\nb-s3cret");
        let fault = super::headers(&plan, &[], "").unwrap_err();
        assert_eq!(fault.kind, FaultKind::Credentials);
        assert!(!fault.to_string().contains("s3cret"), "{fault}");
    }

    #[test]
    fn a_configured_header_can_name_the_session() {
        let mut plan = plan(ProviderKind::ChatGpt, bearer("t"));
        plan.account = Some("acc".into());
        plan.headers.insert("session_id".into(), Secret::new("${session}"));
        plan.headers.insert("OpenAI-Beta".into(), Secret::new("responses=experimental"));
        plan.headers.insert("originator".into(), Secret::new("mine/${session}"));
        let expected = [
            "authorization: Bearer t",
            "chatgpt-account-id: acc",
            "openai-beta: responses=experimental",
            "originator: mine/s-1",
            "session_id: s-1",
        ];
        check(&plan, &[], &expected);
    }

    #[test]
    fn what_a_provider_repeats_is_taken_out() {
        let mut plan = plan(ProviderKind::OpenAi, key());
        plan.headers.insert("X-Team".into(), Secret::new("blue-team"));
        plan.headers.insert("X-N".into(), Secret::new("1"));
        let fault = ModelFault {
            code: Some("the-key".into()),
            request_id: Some("req-blue-team".into()),
            ..ModelFault::new(FaultKind::Credentials, "key the-key of blue-team is 1 wrong")
        };
        let fault = scrubbed(&plan, fault);
        assert_eq!(fault.message, "key *** of *** is 1 wrong");
        assert_eq!(
            (fault.code.as_deref(), fault.request_id.as_deref()),
            (Some("***"), Some("req-***"))
        );
    }
}
