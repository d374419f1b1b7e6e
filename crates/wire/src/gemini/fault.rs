//! Error responses of Google.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use switchboard_chat::{FaultKind, ModelFault};

use crate::{Answer, refusal, retry_after};

#[derive(Debug, Deserialize)]
struct RawAnswer {
    error: RawError,
}

/// The `error` of a response or of a stream event.
#[derive(Debug, Deserialize)]
pub(super) struct RawError {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    details: Vec<Value>,
}

impl RawError {
    pub(super) fn into_fault(self) -> ModelFault {
        let kind = self.kind(self.code);
        let retry_after = self.retry_after(kind);
        let reason = self.reason().map(str::to_owned);
        let Self { code, message, status, .. } = self;
        let message = match message.as_str() {
            "" => format!("the provider failed: {code} {status}"),
            _ => message,
        };
        ModelFault {
            status: (code != 0).then_some(code),
            code: reason.or(Some(status).filter(|status| !status.is_empty())),
            retry_after,
            ..ModelFault::new(kind, message)
        }
    }

    fn kind(&self, status: u16) -> FaultKind {
        match self.reason() {
            Some("API_KEY_INVALID" | "ACCESS_TOKEN_EXPIRED" | "API_KEY_SERVICE_BLOCKED") => {
                return FaultKind::Credentials;
            }
            Some("QUOTA_EXHAUSTED" | "INSUFFICIENT_G1_CREDITS_BALANCE") => return FaultKind::Quota,
            Some("MODEL_CAPACITY_EXHAUSTED") => return FaultKind::Overloaded,
            Some("VALIDATION_REQUIRED" | "TOS_VIOLATION") => return FaultKind::Forbidden,
            Some(_) | None => {}
        }
        match self.status.as_str() {
            "RESOURCE_EXHAUSTED" if self.is_quota("PerDay") => FaultKind::Quota,
            "RESOURCE_EXHAUSTED" => FaultKind::RateLimited,
            "INVALID_ARGUMENT" if is_too_long(&self.message) => FaultKind::TooLong,
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" => FaultKind::BadRequest,
            // Usually a country that is not supported, or an account without billing.
            "FAILED_PRECONDITION" | "PERMISSION_DENIED" => FaultKind::Forbidden,
            "UNAUTHENTICATED" => FaultKind::Credentials,
            "NOT_FOUND" => FaultKind::NotFound,
            "UNAVAILABLE" => FaultKind::Overloaded,
            "DEADLINE_EXCEEDED" => FaultKind::Timeout,
            "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => FaultKind::Provider,
            _ if status == 0 => FaultKind::Provider,
            _ => refusal::kind_of(status),
        }
    }

    fn reason(&self) -> Option<&str> {
        self.details.iter().find_map(|detail| detail.get("reason")?.as_str())
    }

    /// Whether a quota of this kind is exceeded.
    fn is_quota(&self, kind: &str) -> bool {
        let violations =
            self.details.iter().filter_map(|detail| detail.get("violations")?.as_array());
        let ids = violations.flatten().filter_map(|violation| violation.get("quotaId")?.as_str());
        ids.into_iter().any(|id| id.contains(kind))
    }

    fn retry_after(&self, kind: FaultKind) -> Option<Duration> {
        let delay = self.details.iter().find_map(|detail| detail.get("retryDelay")?.as_str());
        let seconds = delay.and_then(|delay| delay.strip_suffix('s')?.parse().ok());
        let minute = kind == FaultKind::RateLimited && self.is_quota("PerMinute");
        seconds
            .and_then(retry_after::from_seconds)
            .or_else(|| minute.then_some(Duration::from_mins(1)))
    }
}

fn is_too_long(message: &str) -> bool {
    message.contains("token count") && message.contains("exceeds")
}

/// Whether a backend rejected the request because of `parametersJsonSchema`: it does not know this newer field, or
/// cannot parse its content. Error messages use either spelling of the field.
pub(crate) fn refuses_json_schema(fault: &ModelFault) -> bool {
    let names_field = ["parametersJsonSchema", "parameters_json_schema"]
        .iter()
        .any(|field| fault.message.contains(field));
    fault.kind == FaultKind::BadRequest && names_field
}

/// Parses an error response. Code Assist wraps it in an array.
pub(crate) fn fault(answer: &Answer<'_>) -> ModelFault {
    // The array is tried first, because serde would also deserialise the struct from an array.
    let many = serde_json::from_slice::<Vec<RawAnswer>>(answer.body).ok();
    let first = many.and_then(|many| many.into_iter().next());
    let Some(RawAnswer { error }) = first.or_else(|| serde_json::from_slice(answer.body).ok())
    else {
        return refusal::unknown(answer);
    };
    let kind = error.kind(answer.status);
    let said = error.into_fault();
    let fault = refusal::of(answer, kind, &said.message);
    ModelFault { code: said.code, retry_after: said.retry_after.or(fault.retry_after), ..fault }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: u16, word: &str, details: &Value, kind: FaultKind, wait: Option<f64>) {
        let error =
            json!({"error": {"code": status, "message": "M", "status": word, "details": details}});
        for body in [error.to_string(), json!([error]).to_string()] {
            let answer = Answer { status, header: &|_| None, body: body.as_bytes() };
            let fault = fault(&answer);
            assert_eq!((fault.kind, fault.message.as_str()), (kind, "M"), "{body}");
            assert_eq!(fault.retry_after, wait.map(Duration::from_secs_f64), "{body}");
            assert_eq!(fault.status, Some(status));
        }
    }

    #[test]
    fn statuses_reasons_and_quotas_tell_whose_fault_it_is() {
        let none = json!([]);
        check(400, "INVALID_ARGUMENT", &none, FaultKind::BadRequest, None);
        check(401, "UNAUTHENTICATED", &none, FaultKind::Credentials, None);
        check(403, "PERMISSION_DENIED", &none, FaultKind::Forbidden, None);
        check(404, "NOT_FOUND", &none, FaultKind::NotFound, None);
        check(503, "UNAVAILABLE", &none, FaultKind::Overloaded, None);
        check(500, "INTERNAL", &none, FaultKind::Provider, None);
        check(429, "RESOURCE_EXHAUSTED", &none, FaultKind::RateLimited, None);
        let reason = |reason: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
        check(400, "INVALID_ARGUMENT", &reason("API_KEY_INVALID"), FaultKind::Credentials, None);
        check(429, "RESOURCE_EXHAUSTED", &reason("QUOTA_EXHAUSTED"), FaultKind::Quota, None);
        check(
            429,
            "RESOURCE_EXHAUSTED",
            &reason("RATE_LIMIT_EXCEEDED"),
            FaultKind::RateLimited,
            None,
        );
        check(403, "PERMISSION_DENIED", &reason("TOS_VIOLATION"), FaultKind::Forbidden, None);
        let credits = reason("INSUFFICIENT_G1_CREDITS_BALANCE");
        check(429, "RESOURCE_EXHAUSTED", &credits, FaultKind::Quota, None);
        let quota = |id: &str| json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]});
        let retry =
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"});
        let minute = quota("GenerateRequestsPerMinutePerProjectPerModel");
        check(429, "RESOURCE_EXHAUSTED", &json!([minute]), FaultKind::RateLimited, Some(60.0));
        check(
            429,
            "RESOURCE_EXHAUSTED",
            &json!([minute, retry]),
            FaultKind::RateLimited,
            Some(3.5),
        );
        let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
        check(429, "RESOURCE_EXHAUSTED", &json!([day]), FaultKind::Quota, None);
    }

    #[test]
    fn a_refusal_of_the_newer_field_for_schemas_is_recognised() {
        let said = |status: u16, text: &str| {
            let body =
                json!({"error": {"code": status, "message": text, "status": ""}}).to_string();
            refuses_json_schema(&fault(&Answer {
                status,
                header: &|_| None,
                body: body.as_bytes(),
            }))
        };
        let unknown = "Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at \
                       'tools[0].function_declarations[0]': Cannot find field.";
        assert!(said(400, unknown));
        assert!(said(400, "tools[0].function_declarations[0].parameters_json_schema: bad"));
        assert!(!said(500, unknown), "not what the request says is at fault");
        assert!(!said(400, "Unknown name \"parameters\""));
    }

    #[test]
    fn a_conversation_that_is_too_long_and_a_page_are_recognised() {
        let text = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).";
        let body = json!({"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}})
            .to_string();
        let read = |status, body: &str| {
            fault(&Answer { status, header: &|_| None, body: body.as_bytes() })
        };
        assert_eq!(read(400, &body).kind, FaultKind::TooLong);
        assert_eq!(read(400, &body).code.as_deref(), Some("INVALID_ARGUMENT"));
        let page = read(502, "<title>Error 502</title>");
        assert_eq!(
            (page.kind, page.message.as_str()),
            (FaultKind::Provider, "the provider answered 502: Error 502")
        );
    }
}
