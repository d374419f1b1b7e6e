//! Error responses of Anthropic.

use serde::Deserialize;
use switchboard_chat::{FaultKind, ModelFault};

use crate::{Answer, refusal};

#[derive(Debug, Deserialize)]
struct RawAnswer {
    error: RawError,
    request_id: Option<String>,
}

/// The `error` of a response, or of an event in a stream that began successfully.
#[derive(Debug, Deserialize)]
pub(super) struct RawError {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

impl RawError {
    pub(super) fn into_fault(self) -> ModelFault {
        let kind = self.kind(FaultKind::Provider);
        let message = match self.message.as_str() {
            "" => format!("the provider failed: {}", self.kind),
            _ => self.message,
        };
        ModelFault { code: Some(self.kind), ..ModelFault::new(kind, message) }
    }

    fn kind(&self, otherwise: FaultKind) -> FaultKind {
        match self.kind.as_str() {
            "invalid_request_error" if is_too_long(&self.message) => FaultKind::TooLong,
            // Anthropic reports missing credit as an ordinary bad request.
            "invalid_request_error" if self.message.contains("credit balance") => FaultKind::Quota,
            "invalid_request_error" => FaultKind::BadRequest,
            "authentication_error" => FaultKind::Credentials,
            "permission_error" => FaultKind::Forbidden,
            "billing_error" => FaultKind::Quota,
            "not_found_error" => FaultKind::NotFound,
            "request_too_large" => FaultKind::TooLong,
            "rate_limit_error" => FaultKind::RateLimited,
            "api_error" => FaultKind::Provider,
            "timeout_error" => FaultKind::Timeout,
            "overloaded_error" => FaultKind::Overloaded,
            _ => otherwise,
        }
    }
}

fn is_too_long(message: &str) -> bool {
    ["prompt is too long", "exceed context limit", "context window"]
        .iter()
        .any(|words| message.contains(words))
}

/// Parses an error response.
pub(crate) fn fault(answer: &Answer<'_>) -> ModelFault {
    let in_header = (answer.header)("request-id");
    let Ok(RawAnswer { error, request_id }) = serde_json::from_slice(answer.body) else {
        return ModelFault { request_id: in_header, ..refusal::unknown(answer) };
    };
    let kind = error.kind(refusal::kind_of(answer.status));
    let said = error.into_fault();
    ModelFault {
        code: said.code,
        request_id: request_id.or(in_header),
        ..refusal::of(answer, kind, &said.message)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(status: u16, kind: &str, message: &str, expected: FaultKind) {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
        );
        let header = |name: &str| (name == "retry-after").then(|| "3".to_owned());
        let fault = fault(&Answer { status, header: &header, body: body.as_bytes() });
        let known = ModelFault {
            kind: expected,
            message: message.into(),
            status: Some(status),
            code: Some(kind.into()),
            retry_after: Some(Duration::from_secs(3)),
            request_id: Some("req_1".into()),
        };
        assert_eq!(fault, known);
    }

    #[test]
    fn every_type_of_error_is_told_apart() {
        check(400, "invalid_request_error", "max_tokens: required", FaultKind::BadRequest);
        let long = "prompt is too long: 210000 tokens > 200000 maximum";
        check(400, "invalid_request_error", long, FaultKind::TooLong);
        let both = "input length and `max_tokens` exceed context limit: 1 + 2 > 2";
        check(400, "invalid_request_error", both, FaultKind::TooLong);
        let credit = "Your credit balance is too low to access the API";
        check(400, "invalid_request_error", credit, FaultKind::Quota);
        check(401, "authentication_error", "invalid x-api-key", FaultKind::Credentials);
        check(403, "permission_error", "no", FaultKind::Forbidden);
        check(403, "billing_error", "no", FaultKind::Quota);
        check(404, "not_found_error", "model: x", FaultKind::NotFound);
        check(413, "request_too_large", "too big", FaultKind::TooLong);
        check(429, "rate_limit_error", "slow", FaultKind::RateLimited);
        check(500, "api_error", "oops", FaultKind::Provider);
        check(504, "timeout_error", "late", FaultKind::Timeout);
        check(529, "overloaded_error", "Overloaded", FaultKind::Overloaded);
        check(529, "a_new_error", "what", FaultKind::Overloaded);
    }

    #[test]
    fn what_is_no_error_of_theirs_is_shown_in_short_with_the_id_of_the_request() {
        let header = |name: &str| (name == "request-id").then(|| "req_2".to_owned());
        let body = b"<html><h1>Service Unavailable</h1>";
        let fault = fault(&Answer { status: 503, header: &header, body });
        assert_eq!(fault.kind, FaultKind::Overloaded);
        assert_eq!(fault.message, "the provider answered 503: Service Unavailable");
        assert_eq!(fault.request_id.as_deref(), Some("req_2"));
    }
}
