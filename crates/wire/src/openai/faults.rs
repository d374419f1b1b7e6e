//! Why OpenAI, or a server that speaks like it, did not answer.
//!
//! Errors look different at each of them: `{"error": {message, type, param, code}}`, `{"error": "text"}`,
//! `{"detail": ...}` of the ChatGPT backend, bare members of older servers, and pages of proxies. A code decides where it
//! says something, else the status does.

use std::time::Duration;

use serde_json::Value;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault};

use super::secrets::masked;
use crate::Answer;

/// The longest message that is passed on, in characters.
const MOST_CHARS: usize = 1000;
/// The same for what is no message at all.
const MOST_EXCERPT: usize = 200;
/// No provider means a longer wait than this.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// An answer that is no stream.
pub(crate) fn fault(answer: &Answer<'_>) -> ModelFault {
    let header = |name: &str| (answer.header)(name);
    let said = serde_json::from_slice::<Value>(answer.body).ok();
    let words = said.as_ref().map(Words::of).unwrap_or_default();
    let by_words = words.kind();
    let mut kind = match answer.status {
        401 => FaultKind::Credentials,
        status => by_words.unwrap_or_else(|| kind_of_status(status)),
    };
    match (header("x-should-retry").as_deref(), kind) {
        // The same request may pass later.
        (Some("true"), FaultKind::BadRequest) => kind = FaultKind::Provider,
        (Some("false"), FaultKind::RateLimited) => kind = FaultKind::Quota,
        _ => {}
    }
    let message = match words.message {
        Some(message) => shortened(message, MOST_CHARS),
        None => without_message(answer),
    };
    let milliseconds = header("retry-after-ms").and_then(|text| number(&text));
    let seconds = header("retry-after").and_then(|text| number(&text));
    let by_header = milliseconds.map(|wait| wait / 1000.0).or(seconds);
    let wait = by_header.or(words.resets_in).and_then(duration).or_else(|| wait_in(&message));
    ModelFault {
        status: Some(answer.status),
        code: words.code.or(words.kind),
        retry_after: wait.filter(|_| kind.may_pass() || kind == FaultKind::Quota),
        request_id: header("x-request-id"),
        ..ModelFault::new(kind, message)
    }
}

/// An error that came within a stream, whatever is around it.
pub(super) fn in_stream(data: &[u8]) -> ModelEvent {
    let said = serde_json::from_slice::<Value>(data).unwrap_or_default();
    let words = Words::of(&said);
    let word = words.code.as_deref().or(words.kind.as_deref()).unwrap_or_default();
    let is_invalid = ["invalid_", "unsupported_", "missing_"].iter().any(|s| word.starts_with(s));
    let unknown = if is_invalid { FaultKind::BadRequest } else { FaultKind::Provider };
    let kind = words.kind().unwrap_or(unknown);
    let message = words.message.map(|message| shortened(message, MOST_CHARS));
    let message = message.unwrap_or_else(|| "the provider broke off without a reason".to_owned());
    ModelEvent::Failed(Box::new(ModelFault {
        retry_after: wait_in(&message).filter(|_| kind.may_pass()),
        code: words.code.or(words.kind),
        ..ModelFault::new(kind, message)
    }))
}

/// The words that an error is told in.
#[derive(Debug, Default)]
struct Words<'a> {
    message: Option<&'a str>,
    code: Option<String>,
    kind: Option<String>,
    /// In how many seconds a plan is filled again.
    resets_in: Option<f64>,
}

impl<'a> Words<'a> {
    fn of(said: &'a Value) -> Self {
        let said = match said {
            Value::Array(list) => list.first().unwrap_or(said),
            said => said,
        };
        // The error of a response that failed is within the response.
        let said = said.get("response").unwrap_or(said);
        let holder = ["error", "detail"].iter().find_map(|key| said.get(*key));
        let holder = holder.filter(|holder| !holder.is_null()).unwrap_or(said);
        // A list of complaints about a body: the first says enough.
        let holder = match holder {
            Value::Array(list) => list.first().unwrap_or(holder),
            holder => holder,
        };
        let text = |key: &str| holder.get(key).and_then(Value::as_str);
        let word = |key: &str| match holder.get(key) {
            Some(Value::String(word)) if !word.is_empty() => Some(shortened(word, 100)),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let message = holder.as_str().or_else(|| text("message")).or_else(|| text("msg"));
        Self {
            message: message.filter(|message| !message.trim().is_empty()),
            code: word("code"),
            // The type of an event is no type of an error.
            kind: word("type").filter(|kind| kind != "error"),
            resets_in: holder.get("resets_in_seconds").and_then(Value::as_f64),
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

/// What a code or a type says by itself.
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

fn kind_of_status(status: u16) -> FaultKind {
    match status {
        401 => FaultKind::Credentials,
        402 => FaultKind::Quota,
        403 => FaultKind::Forbidden,
        // A redirection or a method that is not allowed: nobody answers such requests at this address.
        300..=399 | 404 | 405 | 410 => FaultKind::NotFound,
        408 => FaultKind::Timeout,
        409 | 425 => FaultKind::Provider,
        413 => FaultKind::TooLong,
        429 => FaultKind::RateLimited,
        503 | 529 => FaultKind::Overloaded,
        400..=499 => FaultKind::BadRequest,
        500.. => FaultKind::Provider,
        0..=299 => FaultKind::Unreadable,
    }
}

/// What can be said of an answer that says nothing itself.
fn without_message(answer: &Answer<'_>) -> String {
    let status = answer.status;
    let text = String::from_utf8_lossy(answer.body);
    let excerpt = shortened(&title_or_text(&text), MOST_EXCERPT);
    if excerpt.is_empty() {
        return format!("the provider answered {status} and nothing else");
    }
    format!("the provider answered {status} without a reason that can be read: {excerpt}")
}

/// The title of a page, or its text without tags; any other text as it is.
fn title_or_text(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("<html") && !lower.trim_start().starts_with("<!doctype") {
        return text.to_owned();
    }
    let title = lower.find("<title>").zip(lower.find("</title>"));
    let title = title.and_then(|(from, to)| text.get(from + "<title>".len()..to));
    if let Some(title) = title.filter(|title| !title.trim().is_empty()) {
        return title.to_owned();
    }
    let mut is_tag = false;
    let outside = |c: &char| match c {
        '<' => {
            is_tag = true;
            false
        }
        '>' => !std::mem::replace(&mut is_tag, false),
        _ => !is_tag,
    };
    text.chars().filter(outside).collect()
}

/// One line of a bounded length, without secrets.
fn shortened(text: &str, most: usize) -> String {
    let text = masked(text);
    let mut words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = String::new();
    let mut left = most;
    for word in words.by_ref().filter(|word| !word.is_empty()) {
        if left == 0 {
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let before = line.len();
        line.extend(word.chars().take(left));
        left = left.saturating_sub(line.len() - before + 1);
    }
    line
}

/// "Please try again in 1.5s", "in 20ms", "in 6m0s": how long that is.
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
    seconds.and_then(duration)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

fn duration(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
