//! What all answers that are no stream have in common: statuses, times to wait, pages instead of JSON.

use switchboard_chat::{FaultKind, ModelFault};

use crate::Answer;
use crate::retry_after;
use crate::secrets::masked;

/// As much of a page as helps to recognise it.
const EXCERPT: usize = 200;
/// As much of a provider's own words as is kept.
const WORDS: usize = 2000;
/// The same of a code or an id.
const WORD: usize = 200;

/// What a status means where nothing else says more.
pub(crate) fn kind_of(status: u16) -> FaultKind {
    match status {
        401 => FaultKind::Credentials,
        402 => FaultKind::Quota,
        403 => FaultKind::Forbidden,
        // A redirection or a method that is not allowed: nobody answers such requests at this address.
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

/// A fault in words that can be shown: of a bounded length, on one line, and without keys. A provider repeats a key, or
/// half of it, in its complaint about it; it may be the key of somebody behind it, which nobody here knows.
pub(crate) fn presentable(fault: ModelFault) -> ModelFault {
    ModelFault {
        message: shortened(&fault.message, WORDS),
        code: fault.code.map(|code| shortened(&code, WORD)),
        request_id: fault.request_id.map(|id| shortened(&id, WORD)),
        ..fault
    }
}

/// A fault with all that the status and the headers say.
pub(crate) fn of(answer: &Answer<'_>, kind: FaultKind, message: &str) -> ModelFault {
    ModelFault {
        status: Some(answer.status),
        retry_after: retry_after::of_headers(answer),
        ..ModelFault::new(kind, message)
    }
}

/// A fault of which only the status is known: the body is a page, or nothing.
pub(crate) fn unknown(answer: &Answer<'_>) -> ModelFault {
    let (status, text) = (answer.status, excerpt(answer.body));
    let message = match text.as_str() {
        "" => format!("the provider answered {status} and said nothing"),
        _ => format!("the provider answered {status}: {text}"),
    };
    of(answer, kind_of(status), &message)
}

/// The title of a page, or its text without tags; any other text as it is. Short and on one line.
fn excerpt(body: &[u8]) -> String {
    let head = body.get(..16 << 10).unwrap_or(body);
    let text = String::from_utf8_lossy(head);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").zip(lower.find("</title>"));
    let title = title.and_then(|(from, to)| text.get(from + "<title>".len()..to));
    match title.filter(|title| !title.trim().is_empty()) {
        Some(title) => shortened(title, EXCERPT),
        None if lower.contains("<html") || lower.trim_start().starts_with("<!doctype") => {
            shortened(&without_tags(&text), EXCERPT)
        }
        None => shortened(&text, EXCERPT),
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

/// One line of at most so many characters, without keys.
fn shortened(text: &str, most: usize) -> String {
    // Whatever is much too long is not looked at.
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
        check(403, &[], "", FaultKind::Forbidden, "the provider answered 403 and said nothing");
        let long = "x".repeat(300);
        let short = format!("the provider answered 200: {}...", "x".repeat(200));
        check(200, &[], &long, FaultKind::Unreadable, &short);
    }
}
