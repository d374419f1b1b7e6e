//! Parses durations in several notations.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo, Unit};
use serde_json::Value;

/// Help text of every error about a duration.
pub(crate) const ACCEPTED: &str = "write a duration above zero, such as `30s`, `1m30s`, `250ms`, `2h`, `PT30S`, `00:00:30` or `30` (seconds)";

/// Parses `30s`, `1m30s`, ISO 8601, `00:00:30` or a number of seconds. The error completes the sentence "the value
/// ...".
pub(crate) fn parse(value: &Value) -> Result<Duration, &'static str> {
    let signed = match value {
        Value::Number(number) => seconds(number.as_f64().unwrap_or(f64::NAN))?,
        Value::String(text) => parse_text(text.trim())?,
        _ => return Err("is not a duration"),
    };
    if signed.is_zero() || signed.is_negative() {
        return Err("is not above zero");
    }
    Duration::try_from(signed).map_err(|_| "is not above zero")
}

fn parse_text(text: &str) -> Result<SignedDuration, &'static str> {
    let is_plain_number =
        text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-' || c == '+');
    if let (true, Ok(number)) = (is_plain_number, text.parse()) {
        return seconds(number);
    }
    if text.contains(':') {
        return parse_clock(text);
    }
    let span: Span = text.parse().map_err(|_| "is not a duration")?;
    // Years, months and weeks are rejected: months have no fixed length, and none of them is a plausible timeout.
    if span.get_years() != 0 || span.get_months() != 0 || span.get_weeks() != 0 {
        return Err("uses years, months or weeks; the longest unit is the day");
    }
    // A day counts as 24 hours. (`SignedDuration` parsing alone rejects `P0DT...`.)
    span.total((Unit::Second, SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| "is too long")
        .and_then(|_| {
            span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| "is too long")
        })
}

/// `HH:MM:SS` or `MM:SS`, the last with an optional fraction.
fn parse_clock(text: &str) -> Result<SignedDuration, &'static str> {
    const UNREADABLE: &str = "is not a duration";
    if text.starts_with('-') {
        return Err("is not above zero");
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, rest) = match parts.as_slice() {
        [hours, minutes, rest] => (*hours, *minutes, *rest),
        [minutes, rest] => ("0", *minutes, *rest),
        _ => return Err(UNREADABLE),
    };
    let whole = |part: &str, below: u64| {
        let digits = !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        part.parse::<u64>().ok().filter(|n| digits && *n < below).ok_or(UNREADABLE)
    };
    let numeric = rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    let rest: f64 = rest.parse().ok().filter(|n| numeric && *n < 60.0).ok_or(UNREADABLE)?;
    let minutes = whole(hours, 1_000_000)? * 60 + whole(minutes, 60)?;
    let minutes = i64::try_from(minutes * 60).map_err(|_| UNREADABLE)?;
    Ok(SignedDuration::from_secs(minutes) + seconds(rest)?)
}

fn seconds(number: f64) -> Result<SignedDuration, &'static str> {
    // The bound of jiff's seconds span, so that `1e300` and `999999999999h` fail with the same message.
    if number.is_nan() || number.abs() > 631_107_417_600.0 {
        return Err("is too long");
    }
    SignedDuration::try_from_secs_f64(number).map_err(|_| "is too long")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use switchboard_model::render_duration;

    use super::*;

    #[test]
    fn every_accepted_spelling() {
        let rows = [
            (json!("P0DT0H0M30S"), 30_000),
            (json!("PT30S"), 30_000),
            (json!("P1DT2H"), 93_600_000),
            (json!("30s"), 30_000),
            (json!("1m30s"), 90_000),
            (json!("250ms"), 250),
            (json!("2h"), 7_200_000),
            (json!("00:00:30"), 30_000),
            (json!("01:30"), 90_000),
            (json!("100:00:00.5"), 360_000_500),
            (json!(30), 30_000),
            (json!(0.25), 250),
            (json!("30"), 30_000),
            (json!(" 1.5 "), 1_500),
        ];
        for (written, millis) in rows {
            assert_eq!(parse(&written), Ok(Duration::from_millis(millis)), "{written}");
        }
    }

    #[test]
    fn what_is_refused() {
        let zero = "is not above zero";
        let long = "is too long";
        let unreadable = "is not a duration";
        let rows = [
            (json!(0), zero),
            (json!(-1), zero),
            (json!("0s"), zero),
            (json!("-30s"), zero),
            (json!("-PT30S"), zero),
            (json!("00:00:00"), zero),
            (json!("-00:00:30"), zero),
            (json!("P1M"), "uses years, months or weeks; the longest unit is the day"),
            (json!("1y"), "uses years, months or weeks; the longest unit is the day"),
            (json!("P1W"), "uses years, months or weeks; the longest unit is the day"),
            (json!(1e300), long),
            (json!("99999999999999999999"), long),
            (json!("soon"), unreadable),
            (json!(""), unreadable),
            (json!("1:2:3:4"), unreadable),
            (json!("00:61:00"), unreadable),
            (json!("00:00:6x"), unreadable),
            (json!("::"), unreadable),
            (json!(true), unreadable),
        ];
        for (written, why) in rows {
            assert_eq!(parse(&written), Err(why), "{written}");
        }
    }

    proptest! {
        #[test]
        fn what_is_rendered_is_read_back(millis in 1_u64..10_000_000_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&json!(render_duration(duration))), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}|[-+P0-9YMWDTHS:.smh]{0,20}") {
            let _outcome = parse(&json!(text));
        }
    }
}
