//! Error responses of all providers: HTTP statuses, `Retry-After`, HTML pages in the place of JSON.

use switchboard_chat::{FaultKind, ModelFault};

use crate::Answer;
use crate::retry_after;
use crate::secrets::masked;

/// Maximum characters of an HTML page in a message.
const MAX_EXCERPT: usize = 200;
/// Maximum characters of a provider's error message.
const MAX_MESSAGE: usize = 2000;
/// Maximum characters of an error code or a request id.
const MAX_CODE: usize = 200;

/// The kind of fault for a status, if the body says nothing more specific.
pub(crate) fn kind_of(status: u16) -> FaultKind {
    match status {
        401 => FaultKind::Credentials,
        402 => FaultKind::Quota,
        403 => FaultKind::Forbidden,
        // A redirect or a rejected method means that the address is wrong.
        300..=399 | 404 | 405 | 410 => FaultKind::NotFound,
        408 | 504 => FaultKind::Timeout,
        413 => FaultKind::TooLong,
        429 => FaultKind::RateLimited,
        503 | 529 => FaultKind::Overloaded,
        409 | 425 | 500..=599 => FaultKind::Provider,
        400..=499 => FaultKind::BadRequest,
        _ => FaultKind::Unreadable,
    }
}

/// Makes a fault safe to show: bounded length, one line, keys masked. Providers repeat keys in their error messages, in
/// full or in part; such a key may belong to a further backend, so it is not one of the configured ones.
pub(crate) fn presentable(fault: ModelFault) -> ModelFault {
    ModelFault {
        message: shortened(&fault.message, MAX_MESSAGE),
        code: fault.code.map(|code| shortened(&code, MAX_CODE)),
        request_id: fault.request_id.map(|id| shortened(&id, MAX_CODE)),
        ..fault
    }
}

/// A fault with the status and the delay from the headers.
pub(crate) fn of(answer: &Answer<'_>, kind: FaultKind, message: &str) -> ModelFault {
    ModelFault {
        status: Some(answer.status),
        retry_after: retry_after::of_headers(answer),
        ..ModelFault::new(kind, message)
    }
}

/// A fault for a response whose body is an HTML page or empty.
pub(crate) fn unknown(answer: &Answer<'_>) -> ModelFault {
    let (status, text) = (answer.status, excerpt(answer.body));
    let message = match text.as_str() {
        "" => format!("the provider answered {status} with an empty body"),
        _ => format!("the provider answered {status}: {text}"),
    };
    of(answer, kind_of(status), &message)
}

/// The title of an HTML page, or its text without tags; other text as it is. Short and on one line.
fn excerpt(body: &[u8]) -> String {
    let head = body.get(..16 << 10).unwrap_or(body);
    let text = String::from_utf8_lossy(head);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").zip(lower.find("</title>"));
    let title = title.and_then(|(from, to)| text.get(from + "<title>".len()..to));
    match title.filter(|title| !title.trim().is_empty()) {
        Some(title) => shortened(title, MAX_EXCERPT),
        None if lower.contains("<html") || lower.trim_start().starts_with("<!doctype") => {
            shortened(&without_tags(&text), MAX_EXCERPT)
        }
        None => shortened(&text, MAX_EXCERPT),
    }
}

fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for c in page.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                text.push(' ');
            }
            _ if in_tag => {}
            _ => text.push(c),
        }
    }
    text
}

/// One line of at most `most` characters, with keys masked.
fn shortened(text: &str, most: usize) -> String {
    // Bounds the work for very long texts.
    let head: String = text.chars().take(most.saturating_mul(4)).collect();
    let masked = masked(&head);
    let is_gap = |c: char| c.is_whitespace() || c.is_control() || c == char::REPLACEMENT_CHARACTER;
    let words: Vec<_> = masked.split(is_gap).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    let mut chars = line.chars();
    let short: String = chars.by_ref().take(most).collect();
    let is_cut = chars.next().is_some() || head.len() < text.len();
    if is_cut { short + "..." } else { short }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(status: u16, headers: &[(&str, &str)], body: &str, kind: FaultKind, message: &str) {
        let header = |name: &str| {
            headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let answer = Answer { status, header: &header, body: body.as_bytes() };
        let fault = unknown(&answer);
        assert_eq!((fault.kind, fault.message.as_str()), (kind, message));
        assert_eq!(fault.status, Some(status));
    }

    #[test]
    fn a_page_becomes_a_short_line() {
        let page = "<html><head><title>502 Bad Gateway</title></head>\n<body>\u{7}<h1>nginx</h1></body></html>";
        check(502, &[], page, FaultKind::Provider, "the provider answered 502: 502 Bad Gateway");
        let untitled = "<html><body>\u{7}<h1>No</h1> luck</body></html>";
        check(502, &[], untitled, FaultKind::Provider, "the provider answered 502: No luck");
        check(502, &[], "a < b", FaultKind::Provider, "the provider answered 502: a < b");
        check(403, &[], "", FaultKind::Forbidden, "the provider answered 403 with an empty body");
        let long = "x".repeat(300);
        let short = format!("the provider answered 200: {}...", "x".repeat(200));
        check(200, &[], &long, FaultKind::Unreadable, &short);
    }
}
