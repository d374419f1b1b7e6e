//! Removes secrets from content before it is sent to be checked: what the patterns of the configuration match, and the
//! credentials in the configuration itself.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use switchboard_model::{ArgumentSource, Plan, ProviderAuth, Secret};
use switchboard_outbound::configured_secrets;

/// Stands in the place of what was removed.
const REDACTED: &str = "***";
/// Minimum length of a value that is treated as a secret: a shorter one is a word that occurs everywhere.
const SHORTEST: usize = 6;
/// Maximum size of the compiled secrets. A configuration with ten thousand servers stays far below it.
const MAX_COMPILED_BYTES: usize = 256 << 20;

/// Credentials that no configuration names: keys of this board, tokens in headers, JSON web tokens.
const CREDENTIALS: [&str; 3] = [
    r"sbk_[A-Za-z0-9_-]{20,}",
    r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
];

/// The redaction of one configuration.
#[derive(Debug)]
pub(crate) struct CheckRedaction {
    secrets: Option<Regex>,
    patterns: Vec<Regex>,
}

impl CheckRedaction {
    /// Compiles the secrets and the patterns. The error quotes neither.
    pub(crate) fn new(plan: &Plan) -> Result<Self, &'static str> {
        Self::with(plan, std::iter::empty())
    }

    /// The redaction of records: also what `records.redact` matches, and whatever looks like a credential.
    pub(crate) fn for_records(plan: &Plan) -> Result<Self, &'static str> {
        let own = plan.records.redact.iter().map(String::as_str);
        Self::with(plan, own.chain(CREDENTIALS))
    }

    fn with<'p>(plan: &'p Plan, more: impl Iterator<Item = &'p str>) -> Result<Self, &'static str> {
        let forms = forms(&secrets_of(plan));
        let secrets = (!forms.is_empty()).then(|| compile(&forms.join("|"))).transpose()?;
        let patterns = plan.threat_protection.redact.iter().map(String::as_str).chain(more);
        Ok(Self { secrets, patterns: patterns.map(compile).collect::<Result<_, _>>()? })
    }

    /// The text without secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        let all = self.secrets.iter().chain(&self.patterns);
        all.fold(text.to_owned(), |text, pattern| {
            if pattern.is_match(&text) {
                pattern.replace_all(&text, REDACTED).into_owned()
            } else {
                text
            }
        })
    }
}

fn compile(pattern: &str) -> Result<Regex, &'static str> {
    let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build();
    built.map_err(|_| "the redaction of secrets could not be prepared")
}

/// Every form in which a secret may be written, as patterns; longer ones first, because one may be part of another.
fn forms(secrets: &[Secret]) -> Vec<String> {
    let mut forms = BTreeSet::new();
    for secret in secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= SHORTEST) {
        forms.insert(secret.to_owned());
        forms.insert(url::form_urlencoded::byte_serialize(secret.as_bytes()).collect());
        let json = Value::from(secret).to_string();
        let unquoted = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        forms.extend(unquoted.map(str::to_owned));
    }
    let mut forms: Vec<_> = forms.iter().map(|form| regex::escape(form)).collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms
}

/// The credentials of servers, providers and the endpoint, and the fixed values of arguments.
fn secrets_of(plan: &Plan) -> Vec<Secret> {
    let mut secrets: Vec<_> =
        plan.servers.iter().flat_map(|server| configured_secrets(&server.spec)).collect();
    for provider in &plan.providers {
        for auth in std::iter::once(&provider.auth).chain(provider.credentials.values()) {
            match auth {
                // The token of a file or a sign-in is not part of the configuration.
                ProviderAuth::None | ProviderAuth::TokenFile(_) => {}
                ProviderAuth::ApiKey(secret) | ProviderAuth::Bearer(secret) => {
                    secrets.push(secret.clone());
                }
                ProviderAuth::OAuth(issuer) => secrets.extend(issuer.client_secret.clone()),
            }
        }
        secrets.extend(provider.headers.values().cloned());
    }
    secrets.extend(plan.threat_protection.token.clone());
    let arguments = plan.tools.iter().flat_map(|tool| tool.arguments.iter().flatten());
    secrets.extend(arguments.filter_map(|argument| match &argument.source {
        ArgumentSource::Fixed(value) | ArgumentSource::HiddenDefault(value) => {
            value.expose().as_str().map(Secret::new)
        }
        ArgumentSource::Caller | ArgumentSource::Withheld => None,
    }));
    secrets
}

#[cfg(test)]
mod tests {
    use switchboard_model::ThreatProtectionPlan;

    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], text: &str, expected: &str) {
        let plan = Plan {
            threat_protection: ThreatProtectionPlan {
                token: Some(Secret::new("tok/en \"1\"")),
                redact: patterns.iter().map(ToString::to_string).collect(),
                ..ThreatProtectionPlan::default()
            },
            ..Plan::default()
        };
        assert_eq!(CheckRedaction::new(&plan).unwrap().redact(text), expected);
    }

    #[test]
    fn secrets_are_removed_in_every_form() {
        check(&[], "a tok/en \"1\" b", "a *** b");
        check(&[], "a tok%2Fen+%221%22 b", "a *** b");
        check(&[], r#"{"a":"tok/en \"1\""}"#, r#"{"a":"***"}"#);
        check(&[], "tok/en", "tok/en");
    }

    #[test]
    fn records_have_nothing_that_looks_like_a_credential() {
        let mut plan = Plan::default();
        plan.records.redact = vec!["card-[0-9]+".into()];
        let redaction = CheckRedaction::for_records(&plan).unwrap();
        let check = |text: &str, expected: &str| assert_eq!(redaction.redact(text), expected);
        check("key sbk_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG.", "key ***.");
        check("Authorization: Bearer abc.def-ghi", "Authorization: ***");
        check("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln here", "*** here");
        check("the bearer of bad news, card-42", "the bearer of bad news, ***");
    }

    #[test]
    fn what_a_pattern_matches_is_removed() {
        check(&[r"\b\d{3}-\d{2}-\d{4}\b"], "my number is 123-45-6789.", "my number is ***.");
        check(&["(?i)secret", r"\$\{"], "SECRET $1 ${x}", "*** $1 ***x}");
    }
}
