//! Asks a threat-protection endpoint for its verdict, with the chat message of the Microsoft Agent 365 SDK.
//!
//! A 2xx response allows the content, unless its body is a JSON object with `"blockAction": true`, the member that
//! Microsoft's external threat detection uses. 403 refuses the content. Any other response is no verdict.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use switchboard_agent365::{ChatHistoryMessage, ChatMessageRequest, ChatRole};
use switchboard_model::{ContentVerdict, Secret};
use switchboard_outbound::{HttpPool, describe_failure};
use url::Url;

use crate::check_redaction::CheckRedaction;
use crate::content_check::{CheckInput, CheckedMessage, CheckedRole, ContentCheck};

/// Larger responses are no verdict.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Maximum number of characters of a reason.
const MAX_REASON: usize = 500;
/// Stands for a message of the user without text, such as an image.
const NO_TEXT: &str = "(no text)";
/// Tells the endpoint where the content is checked. The body has no member for it.
pub const HOOK_HEADER: &str = "x-switchboard-hook";

/// A threat-protection endpoint. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct HttpContentCheck(Arc<CheckEndpoint>);

#[derive(Debug)]
struct CheckEndpoint {
    http: HttpPool,
    url: Url,
    token: Option<Secret>,
    redaction: CheckRedaction,
}

impl HttpContentCheck {
    pub(crate) fn new(
        http: HttpPool,
        url: Url,
        token: Option<Secret>,
        redaction: CheckRedaction,
    ) -> Self {
        Self(Arc::new(CheckEndpoint { http, url, token, redaction }))
    }
}

impl ContentCheck for HttpContentCheck {
    fn check(&self, input: CheckInput) -> BoxFuture<'static, ContentVerdict> {
        let endpoint = self.0.clone();
        async move {
            let verdict = endpoint.ask(&input).await;
            verdict
                .unwrap_or_else(|reason| ContentVerdict::Failed { reason: endpoint.shown(&reason) })
        }
        .boxed()
    }
}

impl CheckEndpoint {
    /// The verdict; the error says why there is none.
    async fn ask(&self, input: &CheckInput) -> Result<ContentVerdict, String> {
        let body = self.body(input)?;
        let http = self.http.client_for(&self.url).map_err(|error| error.message)?;
        let mut request = http
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header(HOOK_HEADER, input.hook.as_str())
            .body(body);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose());
        }
        let mut response =
            request.send().await.map_err(|error| describe_failure(&error).message)?;
        let status = response.status();
        let mut answer = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| describe_failure(&error).message)?
        {
            if answer.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(format!("the response is larger than {MAX_RESPONSE_BYTES} bytes"));
            }
            answer.extend_from_slice(&chunk);
        }
        verdict_of(status.as_u16(), &answer).map(|verdict| match verdict {
            ContentVerdict::Refused { reason } => {
                ContentVerdict::Refused { reason: self.shown(&reason) }
            }
            verdict => verdict,
        })
    }

    fn body(&self, input: &CheckInput) -> Result<String, String> {
        let redact = |text: &str| self.redaction.redact(text);
        let messages = input.context.iter().chain(&input.content);
        let history = messages.filter_map(|CheckedMessage { role, text }| {
            let role = match role {
                CheckedRole::User => ChatRole::User,
                CheckedRole::Assistant => ChatRole::Assistant,
                CheckedRole::System => ChatRole::System,
            };
            // A message without text says nothing, and the format has no place for it.
            ChatHistoryMessage::new(role, redact(text)).ok()
        });
        let user_message = redact(&input.user_message);
        let user_message =
            if user_message.trim().is_empty() { NO_TEXT.to_owned() } else { user_message };
        let request = ChatMessageRequest::new(
            input.conversation.clone(),
            input.message.clone(),
            user_message,
            history.collect(),
        );
        request.map(|request| request.to_json().to_string()).map_err(|error| error.to_string())
    }

    /// A text of the endpoint for people: one line, bounded, without secrets.
    fn shown(&self, text: &str) -> String {
        let words = text.split(|c: char| c.is_whitespace() || c.is_control());
        let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        self.redaction.redact(&line).chars().take(MAX_REASON).collect()
    }
}

/// The meaning of a response; the error says why it has none.
fn verdict_of(status: u16, body: &[u8]) -> Result<ContentVerdict, String> {
    let read = || serde_json::from_slice::<Value>(body);
    let refused = |answer: &Value| {
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default();
        let code = answer.get("reasonCode").filter(|code| code.is_number() || code.is_string());
        let code = code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned));
        let reason = match (reason, code) {
            (reason, None) => reason.to_owned(),
            ("", Some(code)) => format!("code {code}"),
            (reason, Some(code)) => format!("{reason} (code {code})"),
        };
        ContentVerdict::Refused { reason }
    };
    match status {
        200..=299 if body.iter().all(u8::is_ascii_whitespace) => Ok(ContentVerdict::Allowed),
        200..=299 => {
            let answer = read().map_err(|_| "the response is not JSON".to_owned())?;
            match answer.get("blockAction") {
                Some(Value::Bool(true)) => Ok(refused(&answer)),
                None | Some(Value::Bool(false) | Value::Null) => Ok(ContentVerdict::Allowed),
                Some(_) => Err("`blockAction` of the response is not a boolean".into()),
            }
        }
        403 => Ok(refused(&read().unwrap_or_default())),
        status => Err(format!("the endpoint responded with HTTP {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_response_is_a_verdict() {
        #[track_caller]
        fn check(status: u16, body: &str, expected: Result<Option<&str>, &str>) {
            let verdict = verdict_of(status, body.as_bytes());
            let verdict = verdict.map(|verdict| verdict.reason().map(str::to_owned));
            let expected = expected.map(|reason| reason.map(str::to_owned));
            assert_eq!(verdict, expected.map_err(str::to_owned), "{status} {body}");
        }
        check(200, "", Ok(None));
        check(204, "", Ok(None));
        check(202, " \n", Ok(None));
        check(200, "{}", Ok(None));
        check(200, r#"{"blockAction": false, "reason": "x"}"#, Ok(None));
        check(200, r#"{"blockAction": null}"#, Ok(None));
        check(200, "[1]", Ok(None));
        check(200, r#""fine""#, Ok(None));
        check(200, r#"{"blockAction": true}"#, Ok(Some("")));
        check(
            200,
            r#"{"blockAction": true, "reason": "injection", "reasonCode": 112}"#,
            Ok(Some("injection (code 112)")),
        );
        check(201, r#"{"blockAction": true, "reasonCode": "P1"}"#, Ok(Some("code P1")));
        check(
            200,
            r#"{"blockAction": "true"}"#,
            Err("`blockAction` of the response is not a boolean"),
        );
        check(200, "<html>", Err("the response is not JSON"));
        check(403, "", Ok(Some("")));
        check(403, "<html>", Ok(Some("")));
        check(403, r#"{"reason": "no"}"#, Ok(Some("no")));
        for status in [302, 400, 401, 404, 429, 500, 503] {
            let text = format!("the endpoint responded with HTTP {status}");
            check(status, r#"{"blockAction": true}"#, Err(&text));
        }
    }
}
