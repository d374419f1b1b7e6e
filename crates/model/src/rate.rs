//! Rates such as `60/min`, and the bucket that keeps a caller within one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How many calls may be made in a period. After a pause, as many may be made at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    calls: u32,
    period: RatePeriod,
}

/// The period of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RatePeriod {
    Second,
    Minute,
    Hour,
    Day,
}

impl RatePeriod {
    const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    fn word(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "day",
        }
    }

    fn length(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_mins(1),
            Self::Hour => Duration::from_hours(1),
            Self::Day => Duration::from_hours(24),
        }
    }
}

/// Why a text is not a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRate {
    #[error("is not a rate")]
    Shape,
    #[error("permits no call")]
    Zero,
    #[error("has a number that is not from 1 to 1000000")]
    Number,
    #[error("has an unknown period")]
    Period,
}

impl BadRate {
    /// How a rate is written.
    pub const HELP: &'static str =
        "write calls and a period: `10/s`, `60/min`, `1000/h` or `5000/day`";
}

impl Rate {
    const MAX_CALLS: u32 = 1_000_000;

    /// The number of calls that may be made at once after a pause.
    pub fn calls(self) -> u32 {
        self.calls
    }

    /// The time after which one more call may be made.
    pub fn interval(self) -> Duration {
        self.period.length() / self.calls.max(1)
    }

    /// How many calls to take at once where a bucket is shared: those of 50 ms, so that they are used soon.
    pub fn batch(self) -> u32 {
        let calls = Duration::from_millis(50).as_nanos() / self.interval().as_nanos().max(1);
        u32::try_from(calls).unwrap_or(u32::MAX).max(1)
    }

    /// The part of one of several boards.
    #[must_use]
    pub fn share(self, boards: u32) -> Self {
        Self { calls: (self.calls / boards.max(1)).max(1), ..self }
    }

    /// The one of two rates that permits more calls in the long run.
    #[must_use]
    pub fn faster(self, other: Self) -> Self {
        let is_faster =
            (self.interval(), u32::MAX - self.calls) <= (other.interval(), u32::MAX - other.calls);
        if is_faster { self } else { other }
    }
}

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        let (calls, period) = text.split_once('/').ok_or(BadRate::Shape)?;
        let (calls, period) = (calls.trim(), period.trim());
        if calls.is_empty() || !calls.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadRate::Number);
        }
        let calls: u32 = calls.parse().map_err(|_| BadRate::Number)?;
        let period = RatePeriod::ALL
            .into_iter()
            .find(|known| known.word() == period)
            .ok_or(BadRate::Period)?;
        match calls {
            0 => Err(BadRate::Zero),
            1..=Self::MAX_CALLS => Ok(Self { calls, period }),
            _ => Err(BadRate::Number),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.calls, self.period.word())
    }
}

/// Counts calls against a rate (the generic cell rate algorithm). Times are durations since an arbitrary beginning that
/// never decrease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateBucket {
    /// When the bucket is full again.
    full_at: Duration,
}

impl RateBucket {
    /// A bucket that is full again at a moment.
    pub fn full_at(full_at: Duration) -> Self {
        Self { full_at }
    }

    /// When it is full again.
    pub fn is_full_again_at(&self) -> Duration {
        self.full_at
    }

    /// Takes up to `wanted` calls out of the bucket and returns how many, or says how long to wait for the next one.
    pub fn take_up_to(&mut self, rate: Rate, now: Duration, wanted: u32) -> Result<u32, Duration> {
        self.take(rate, now)?;
        let more = (1..wanted).take_while(|_| self.take(rate, now).is_ok()).count();
        Ok(u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// Takes one call out of the bucket, or says how long to wait for the next one; then nothing is taken.
    pub fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.check(rate, now)?;
        self.full_at = self.full_at.max(now) + rate.interval();
        Ok(())
    }

    /// Whether a call may be made now; else how long to wait.
    pub fn check(&self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let after = self.full_at.max(now) + rate.interval();
        // The rate may have become slower since: then the bucket holds at most its present size.
        let burst = rate.interval() * rate.calls;
        match after.checked_sub(now + burst) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Whether the bucket is full, so that it need not be kept.
    pub fn is_full(&self, now: Duration) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read_as_they_are_written() {
        for (text, interval) in [
            ("1/s", Duration::from_secs(1)),
            ("60/min", Duration::from_secs(1)),
            ("3600/h", Duration::from_secs(1)),
            ("2/day", Duration::from_hours(12)),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.to_string().as_str(), rate.interval()), (text, interval));
        }
        assert_eq!("60 / min".parse::<Rate>().unwrap().to_string(), "60/min");
        for (text, expected) in [
            ("", BadRate::Shape),
            ("60", BadRate::Shape),
            ("60 per min", BadRate::Shape),
            ("0/min", BadRate::Zero),
            ("-1/min", BadRate::Number),
            ("+1/min", BadRate::Number),
            ("1.5/min", BadRate::Number),
            ("/min", BadRate::Number),
            ("1000001/s", BadRate::Number),
            ("99999999999/s", BadRate::Number),
            ("60/", BadRate::Period),
            ("60/fortnight", BadRate::Period),
            ("60/MIN", BadRate::Period),
            ("60/min/s", BadRate::Period),
        ] {
            assert_eq!(text.parse::<Rate>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_bucket_gives_its_calls_at_once_and_then_one_each_interval() {
        let rate: Rate = "3/min".parse().unwrap();
        let mut bucket = RateBucket::default();
        let at = Duration::from_secs;
        for _ in 0..3 {
            assert_eq!(bucket.take(rate, at(100)), Ok(()));
        }
        assert_eq!(bucket.take(rate, at(100)), Err(at(20)));
        assert_eq!(bucket.take(rate, at(115)), Err(at(5)), "a refusal costs nothing");
        assert_eq!(bucket.take(rate, at(120)), Ok(()));
        assert_eq!(bucket.take(rate, at(120)), Err(at(20)));
        assert!(!bucket.is_full(at(179)) && bucket.is_full(at(180)));
    }

    #[test]
    fn several_calls_are_taken_as_far_as_there_are_any() {
        let rate: Rate = "5/min".parse().unwrap();
        let mut bucket = RateBucket::default();
        let now = Duration::from_secs(7);
        assert_eq!(bucket.take_up_to(rate, now, 3), Ok(3));
        bucket = RateBucket::full_at(bucket.is_full_again_at());
        assert_eq!(bucket.take_up_to(rate, now, 9), Ok(2));
        assert_eq!(bucket.take_up_to(rate, now, 1), Err(Duration::from_secs(12)));
        let batch = |rate: &str| rate.parse::<Rate>().unwrap().batch();
        assert_eq!((batch("5/min"), batch("100/s"), batch("1000000/s")), (1, 5, 50_000));
        assert_eq!(
            (rate.share(2).calls(), rate.share(9).calls(), rate.share(0).calls()),
            (2, 1, 5)
        );
    }

    proptest! {
        #[test]
        fn no_period_ever_has_more_calls_than_twice_its_rate(
            calls in 1u32..50,
            pauses in prop::collection::vec(0u64..3_000, 1..300),
        ) {
            let rate = Rate { calls, period: RatePeriod::Minute };
            let (mut bucket, mut now, mut made) = (RateBucket::default(), 0, Vec::new());
            for pause in pauses {
                now += pause;
                let at = Duration::from_millis(now);
                match bucket.take(rate, at) {
                    Ok(()) => made.push(now),
                    // What the refusal says is true: after the wait the call may be made.
                    Err(wait) => prop_assert_eq!(bucket.check(rate, at + wait), Ok(())),
                }
            }
            for (first, from) in made.iter().enumerate() {
                let within = made.iter().skip(first).filter(|at| **at < from + 60_000).count();
                prop_assert!(within <= 2 * calls as usize);
            }
        }
    }
}
