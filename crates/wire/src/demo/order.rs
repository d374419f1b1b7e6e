//! The commands of the demo model.

use std::time::Duration;

use switchboard_chat::FaultKind;

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order<'a> {
    Say(&'a str),
    Think(&'a str),
    Call {
        tool: &'a str,
        arguments: &'a str,
    },
    /// Calls the tool again after each result.
    Loop {
        tool: &'a str,
        arguments: &'a str,
    },
    Tools,
    Help,
    Slow(u32),
    Error {
        kind: FaultKind,
        retry_after: Option<Duration>,
    },
    Flaky(u32),
    /// An invalid command, and the reason.
    Wrong(String),
}

/// Maximum duration of `/slow` in seconds, because every word is stored.
const MAX_SLOW_SECONDS: u32 = 3600;

const KINDS: [FaultKind; 18] = [
    FaultKind::Credentials,
    FaultKind::Forbidden,
    FaultKind::Quota,
    FaultKind::RateLimited,
    FaultKind::Overloaded,
    FaultKind::NotFound,
    FaultKind::TooLong,
    FaultKind::BadRequest,
    FaultKind::NoNativeTools,
    FaultKind::Refused,
    FaultKind::Provider,
    FaultKind::Unreachable,
    FaultKind::Timeout,
    FaultKind::Interrupted,
    FaultKind::Unreadable,
    FaultKind::TooLarge,
    FaultKind::MalformedCall,
    FaultKind::UnexpectedCall,
];

/// Parses the commands: all lines that begin with `/`. Other lines are ignored.
pub(super) fn orders(text: &str) -> Vec<Order<'_>> {
    text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(order).collect()
}

/// The help text.
pub(super) fn known() -> String {
    let kinds: Vec<_> = KINDS.into_iter().map(FaultKind::as_str).collect();
    let kinds = kinds.join(", ");
    format!(
        "I know these, one in each line:
- `/call TOOL {{json}}`: I call the tool; several lines are calls at the same time.
- `/loop TOOL {{json}}`: I call it again whenever it has answered.
- `/tools`: I list the tools that I see.
- `/say TEXT`, `/think TEXT`: I say it, or think it.
- `/slow SECONDS`: I talk for that long.
- `/error KIND [SECONDS]`: I fail, and want to be asked again after that time. KIND is one of {kinds}.
- `/flaky N`: I fail N times, and then I answer."
    )
}

fn order(line: &str) -> Order<'_> {
    let (word, rest) = split(line);
    match word {
        "/say" => Order::Say(rest),
        "/think" => Order::Think(rest),
        "/tools" => Order::Tools,
        "/help" => Order::Help,
        "/call" | "/loop" => {
            let (tool, arguments) = split(rest);
            match (word, tool) {
                (_, "") => Order::Wrong(format!("`{word}` needs the name of a tool.")),
                ("/loop", _) => Order::Loop { tool, arguments },
                _ => Order::Call { tool, arguments },
            }
        }
        "/slow" => number(word, rest, |seconds| Order::Slow(seconds.min(MAX_SLOW_SECONDS))),
        "/flaky" => number(word, rest, Order::Flaky),
        "/error" => error(rest),
        _ => Order::Wrong(format!("I do not know `{word}`.")),
    }
}

fn number<'a>(word: &str, text: &str, make: impl FnOnce(u32) -> Order<'a>) -> Order<'a> {
    match text.parse() {
        Ok(number) => make(number),
        Err(_) => Order::Wrong(format!("`{word}` needs a whole number, such as `{word} 3`.")),
    }
}

fn error(text: &str) -> Order<'_> {
    let (word, seconds) = split(text);
    match KINDS.into_iter().find(|kind| kind.as_str() == word) {
        Some(kind) => {
            let retry_after = seconds.parse().ok().map(Duration::from_secs);
            Order::Error { kind, retry_after }
        }
        None => Order::Wrong(format!("There is no error `{word}`.")),
    }
}

/// The first word and the rest.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Order<'_>) {
        assert_eq!(orders(line), [expected], "{line}");
    }

    #[test]
    fn lines_are_read_with_or_without_arguments() {
        check("/say hello  you ", Order::Say("hello  you"));
        check("  /call a__b", Order::Call { tool: "a__b", arguments: "" });
        check("/call t\t{\"a\": 1}", Order::Call { tool: "t", arguments: "{\"a\": 1}" });
        check("/loop t {}", Order::Loop { tool: "t", arguments: "{}" });
        check("/slow 99999", Order::Slow(MAX_SLOW_SECONDS));
        check("/flaky 2", Order::Flaky(2));
        let retry_after = Some(Duration::from_secs(7));
        check("/error rate_limited 7", Order::Error { kind: FaultKind::RateLimited, retry_after });
        for kind in KINDS {
            check(&format!("/error {kind}"), Order::Error { kind, retry_after: None });
        }
    }

    #[test]
    fn what_cannot_be_followed_says_why() {
        for line in ["/call", "/loop ", "/slow", "/slow soon", "/flaky -1", "/error x", "/x", "/"] {
            assert!(matches!(orders(line).as_slice(), [Order::Wrong(_)]), "{line}");
        }
        assert_eq!(orders("hello\nno / order"), []);
    }
}
