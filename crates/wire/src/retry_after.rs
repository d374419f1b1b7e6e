//! `Retry-After` and `retry-after-ms`: when a provider wants a request again.

use std::time::Duration;

use crate::Answer;

/// The longest wait that is passed on. A longer one means the same to every caller, and could overflow a clock.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_hours(24 * 31);

/// The wait that the headers of a response ask for, in seconds or milliseconds.
pub(crate) fn of_headers(answer: &Answer<'_>) -> Option<Duration> {
    let number = |name: &str| (answer.header)(name)?.trim().parse::<f64>().ok();
    let milliseconds = number("retry-after-ms").map(|wait| wait / 1000.0);
    from_seconds(milliseconds.or_else(|| number("retry-after"))?)
}

/// A wait of this many seconds; `None` for a number that is no time.
pub(crate) fn from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(MAX_RETRY_AFTER))
}

/// The seconds since 1970 of a date in a header, such as `Tue, 17 Nov 2026 10:00:00 GMT`.
pub(crate) fn seconds_of(date: &str) -> Option<f64> {
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date.trim()).ok()?;
    Some(date.as_duration().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn times_to_wait_are_read_from_both_headers_and_nonsense_is_not_believed() {
        let wait = |name: &'static str, value: &'static str| {
            let header = move |asked: &str| (asked == name).then(|| value.to_owned());
            of_headers(&Answer { status: 429, header: &header, body: b"" })
        };
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(wait("retry-after", "1e300"), None);
        assert_eq!(wait("retry-after", "1e12"), Some(MAX_RETRY_AFTER));
        for nonsense in ["-1", "NaN", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(wait("retry-after", nonsense), None, "{nonsense}");
        }
    }
}
