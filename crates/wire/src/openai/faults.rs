//! Error responses of OpenAI and compatible servers.
//!
//! Their formats differ: `{"error": {message, type, param, code}}`, `{"error": "text"}`, `{"detail": ...}` of the
//! ChatGPT backend, top-level members of older servers, and HTML pages of proxies. A known code decides the kind, else
//! the status does.

use std::time::Duration;

use serde_json::Value;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault};

use crate::{Answer, refusal, retry_after};

/// Parses an error response.
pub(crate) fn fault(answer: &Answer<'_>) -> ModelFault {
    let header = |name: &str| (answer.header)(name);
    let said = serde_json::from_slice::<Value>(answer.body).ok();
    let words = said.as_ref().map(ErrorText::of).unwrap_or_default();
    let mut kind = match answer.status {
        401 => FaultKind::Credentials,
        status => words.kind().unwrap_or_else(|| refusal::kind_of(status)),
    };
    match (header("x-should-retry").as_deref(), kind) {
        // The header says that the request can be repeated.
        (Some("true"), FaultKind::BadRequest) => kind = FaultKind::Provider,
        (Some("false"), FaultKind::RateLimited) => kind = FaultKind::Quota,
        _ => {}
    }
    let fault = match words.message {
        Some(message) => refusal::of(answer, kind, message),
        None => ModelFault { kind, ..refusal::unknown(answer) },
    };
    // A time of the backend's clock, which its `Date` header shows.
    let resets_at =
        words.resets_at.zip(header("date").as_deref().and_then(retry_after::seconds_of));
    let resets_in = words.resets_in.or_else(|| resets_at.map(|(at, now)| at - now));
    let resets_in = resets_in.and_then(retry_after::from_seconds);
    let wait = fault.retry_after.or(resets_in).or_else(|| wait_in(&fault.message));
    ModelFault {
        code: words.code.or(words.kind),
        retry_after: wait.filter(|_| kind.may_pass() || kind == FaultKind::Quota),
        request_id: header("x-request-id"),
        ..fault
    }
}

/// Parses an error event of a stream.
pub(super) fn in_stream(data: &[u8]) -> ModelEvent {
    let said = serde_json::from_slice::<Value>(data).unwrap_or_default();
    let words = ErrorText::of(&said);
    let word = words.code.as_deref().or(words.kind.as_deref()).unwrap_or_default();
    let is_invalid = ["invalid_", "unsupported_", "missing_"].iter().any(|s| word.starts_with(s));
    let unknown = if is_invalid { FaultKind::BadRequest } else { FaultKind::Provider };
    let kind = words.kind().unwrap_or(unknown);
    let message = words.message.unwrap_or("the provider aborted the stream without a reason");
    ModelEvent::Failed(Box::new(ModelFault {
        retry_after: wait_in(message).filter(|_| kind.may_pass()),
        code: words.code.or(words.kind),
        ..ModelFault::new(kind, message)
    }))
}

/// The members of an error.
#[derive(Debug, Default)]
struct ErrorText<'a> {
    message: Option<&'a str>,
    code: Option<String>,
    kind: Option<String>,
    /// Seconds until the plan's limit resets.
    resets_in: Option<f64>,
    /// When it resets, in seconds since 1970.
    resets_at: Option<f64>,
}

impl<'a> ErrorText<'a> {
    fn of(said: &'a Value) -> Self {
        let said = match said {
            Value::Array(list) => list.first().unwrap_or(said),
            said => said,
        };
        // For a failed response, the error is inside of `response`.
        let said = said.get("response").unwrap_or(said);
        let holder = ["error", "detail"].iter().find_map(|key| said.get(*key));
        let holder = holder.filter(|holder| !holder.is_null()).unwrap_or(said);
        // A list of validation errors: the first one is enough.
        let holder = match holder {
            Value::Array(list) => list.first().unwrap_or(holder),
            holder => holder,
        };
        let text = |key: &str| holder.get(key).and_then(Value::as_str);
        let word = |key: &str| match holder.get(key) {
            Some(Value::String(word)) if !word.is_empty() => Some(word.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let message = holder.as_str().or_else(|| text("message")).or_else(|| text("msg"));
        Self {
            message: message.filter(|message| !message.trim().is_empty()),
            code: word("code"),
            // `error` is the type of the event and not of the error.
            kind: word("type").filter(|kind| kind != "error"),
            resets_in: holder.get("resets_in_seconds").and_then(Value::as_f64),
            resets_at: holder.get("resets_at").and_then(Value::as_f64),
        }
    }

    fn kind(&self) -> Option<FaultKind> {
        let known = |word: &Option<String>| word.as_deref().and_then(kind_of_word);
        known(&self.code).or_else(|| known(&self.kind)).or_else(|| {
            let message = self.message?.to_ascii_lowercase();
            let is_about_length = ["context length", "context window", "context size"];
            is_about_length.iter().any(|s| message.contains(s)).then_some(FaultKind::TooLong)
        })
    }
}

/// The kind of a known error code or type.
fn kind_of_word(word: &str) -> Option<FaultKind> {
    Some(match word {
        "context_length_exceeded" | "exceed_context_size_error" | "context_window_exceeded" => {
            FaultKind::TooLong
        }
        "insufficient_quota"
        | "usage_limit_reached"
        | "usage_not_included"
        | "billing_hard_limit_reached"
        | "billing_not_active" => FaultKind::Quota,
        "rate_limit_exceeded" | "rate_limit_error" => FaultKind::RateLimited,
        "server_is_overloaded" | "slow_down" | "overloaded_error" | "unavailable_error" => {
            FaultKind::Overloaded
        }
        "invalid_prompt" | "content_filter" | "content_policy_violation" | "moderation_blocked" => {
            FaultKind::Refused
        }
        word if word.ends_with("_policy") || word.ends_with("_policy_violation") => {
            FaultKind::Refused
        }
        "invalid_api_key" | "authentication_error" | "token_expired" | "token_invalidated" => {
            FaultKind::Credentials
        }
        "unsupported_country_region_territory"
        | "permission_error"
        | "insufficient_permissions" => FaultKind::Forbidden,
        "model_not_found" | "not_found_error" => FaultKind::NotFound,
        "server_error" | "internal_server_error" => FaultKind::Provider,
        _ => return None,
    })
}

/// Parses the delay in "Please try again in 1.5s", "in 20ms" or "in 6m0s".
fn wait_in(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    let (_, mut rest) = lower.split_once("try again in ")?;
    let mut seconds = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(digits)?;
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let factor = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * factor);
        rest = after;
    }
    seconds.and_then(retry_after::from_seconds)
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
