//! Checks that a response is the requested stream, and reads the error if it is not.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use jiff::Timestamp;
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{ProviderPlan, redact_url};
use switchboard_wire::{Answer, fault};
use tokio::time::timeout_at;
use url::Url;

use crate::http_answer::ProviderResponse;
use crate::request_headers;
use crate::stream::Clock;

/// Maximum number of bytes that are read of a response that is not a stream.
pub(crate) const MOST_READ: usize = 64 << 10;
/// Maximum number of its characters in an error message.
const MOST_SHOWN: usize = 200;
/// The accepted media types of a stream; some servers send none.
const STREAMS: [&str; 4] = ["text/event-stream", "text/plain", "application/octet-stream", ""];

/// The response, if it is a stream.
pub(crate) async fn expect_stream(
    answer: ProviderResponse,
    plan: &ProviderPlan,
    clock: &Clock,
) -> Result<ProviderResponse, ModelFault> {
    let fault = if answer.status.is_redirection() {
        redirected(&answer, plan)
    } else if !answer.status.is_success() {
        refused(answer, plan, clock).await
    } else {
        let kind = media_type(&answer);
        if STREAMS.contains(&kind.as_str()) {
            return Ok(answer);
        }
        no_stream(answer, &kind, plan, clock).await
    };
    Err(request_headers::scrubbed(plan, fault))
}

fn redirected(answer: &ProviderResponse, plan: &ProviderPlan) -> ModelFault {
    let status = answer.status.as_u16();
    let place = answer.headers.get(LOCATION).and_then(|place| place.to_str().ok());
    let place =
        place.and_then(|place| Url::options().base_url(Some(&answer.url)).parse(place).ok());
    let place = place.map(|url| format!(" to {}", redact_url(&url))).unwrap_or_default();
    let text = format!(
        "the provider `{}` answered with a redirect ({status}){place}, which is not followed: set `base_url` to the final \
         address",
        plan.name
    );
    ModelFault { status: Some(status), ..ModelFault::new(FaultKind::NotFound, text) }
}

async fn refused(answer: ProviderResponse, plan: &ProviderPlan, clock: &Clock) -> ModelFault {
    let status = answer.status.as_u16();
    let headers = answer.headers.clone();
    let body = beginning(answer, MOST_READ, clock).await;
    let header = |name: &str| header(&headers, name);
    fault(plan.kind, &Answer { status, header: &header, body: &body })
}

/// A header as text. A `Retry-After` date becomes seconds from now, by the provider's own clock if it sends one.
pub(crate) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    let value = text(name)?;
    let until = date(value).filter(|_| name == RETRY_AFTER.as_str());
    Some(until.map_or_else(
        || value.to_owned(),
        |until| {
            let now = text(DATE.as_str()).and_then(date).unwrap_or_else(Timestamp::now);
            until.duration_since(now).as_secs().max(0).to_string()
        },
    ))
}

async fn no_stream(
    answer: ProviderResponse,
    kind: &str,
    plan: &ProviderPlan,
    clock: &Clock,
) -> ModelFault {
    let status = answer.status.as_u16();
    let body = beginning(answer, MOST_READ, clock).await;
    let text = format!(
        "the provider `{}` answered with {kind} instead of a stream: {}",
        plan.name,
        excerpt(&body)
    );
    ModelFault { status: Some(status), ..ModelFault::new(FaultKind::Unreadable, text) }
}

/// The media type in lower case and without parameters.
fn media_type(answer: &ProviderResponse) -> String {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// The beginning of a body, as far as it arrives in time.
pub(crate) async fn beginning(mut answer: ProviderResponse, most: usize, clock: &Clock) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < most {
        match timeout_at(clock.next_deadline(), answer.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                let room = most - body.len();
                body.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            }
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    body
}

/// The beginning of a body, on one line.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<_> = text.split_whitespace().take(MOST_SHOWN).collect();
    let line: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    let shown: String = line.chars().take(MOST_SHOWN).collect();
    match shown.as_str() {
        "" => "nothing".into(),
        _ if shown.len() < line.len() => format!("{shown}..."),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_date_to_come_back_becomes_seconds() {
        let check = |date: Option<&'static str>, until: &'static str, expected: &str| {
            let date = date.map(|date| (DATE, HeaderValue::from_static(date)));
            let until = (RETRY_AFTER, HeaderValue::from_static(until));
            let headers: HeaderMap = date.into_iter().chain([until]).collect();
            assert_eq!(header(&headers, "retry-after").as_deref(), Some(expected));
        };
        let date = Some("Wed, 21 Oct 2026 07:28:00 GMT");
        check(date, "Wed, 21 Oct 2026 07:29:30 GMT", "90");
        check(date, "Wed, 21 Oct 2026 07:00:00 GMT", "0");
        check(date, "7", "7");
        check(date, "soon", "soon");
        check(None, "Thu, 01 Jan 1970 00:00:00 GMT", "0");
        let headers: HeaderMap = [(DATE, HeaderValue::from_static("x"))].into_iter().collect();
        assert_eq!(
            (header(&headers, "date").as_deref(), header(&headers, "age")),
            (Some("x"), None)
        );
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b""), "nothing");
        assert_eq!(excerpt(b"<html>\n  <b>no</b>\x07\n"), "<html> <b>no</b>");
        assert_eq!(excerpt("ä".repeat(300).as_bytes()).chars().count(), MOST_SHOWN + 3);
        assert_eq!(excerpt(b"a\xffb"), "a\u{fffd}b");
    }
}
