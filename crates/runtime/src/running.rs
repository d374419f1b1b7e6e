//! Waits for an answer within limits.

use std::pin::Pin;
use std::time::Duration;

use switchboard_mcp::{Ear, Signs};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

/// An answer did not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    Total,
    /// Not even a sign of life, for this long.
    Silent(Duration),
}

/// The limits of one running request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(crate) total: Duration,
    pub(crate) silence: Option<Duration>,
}

impl Running {
    /// Waits for the answer. While the caller thinks about a question of the server no time passes for the server.
    pub(crate) async fn watch<F: Future>(
        self,
        mut answering: Pin<&mut F>,
        ear: &Ear,
    ) -> Result<F::Output, Overdue> {
        let start = Instant::now();
        // One timer for both limits, which looks for signs of life when it rings: to set it anew at each would cost
        // every call, and hardly any comes that far.
        let first = self.silence.map_or(self.total, |silence| silence.min(self.total));
        let mut timer = std::pin::pin!(tokio::time::sleep_until(start + first));
        loop {
            tokio::select! {
                biased;
                answer = &mut answering => return Ok(answer),
                // A flood of messages uses up what the task may do at once; the time passes all the same.
                () = unconstrained(timer.as_mut()) => {
                    let next = self.next_look(start, Instant::now(), ear.signs())?;
                    timer.as_mut().reset(next);
                }
            }
        }
    }

    /// When a limit may be reached at the earliest, if none is.
    fn next_look(&self, start: Instant, now: Instant, signs: Signs) -> Result<Instant, Overdue> {
        let waits = signs.waits_since.map_or(Duration::ZERO, |since| now - since);
        let end = start + self.total + signs.waited + waits;
        if end <= now {
            return Err(Overdue::Total);
        }
        let Some(silence) = self.silence else { return Ok(end) };
        let heard = if signs.waits_since.is_some() { now } else { signs.last.unwrap_or(start) };
        if heard + silence <= now {
            return Err(Overdue::Silent(silence));
        }
        Ok(end.min(heard + silence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Result<u64, Overdue> = Err(Overdue::Silent(Duration::from_secs(10)));

    /// What is known at `now` of a request that may take 60 seconds and be silent for 10, in seconds since its start.
    #[track_caller]
    fn check(
        now: u64,
        last: Option<u64>,
        waited: u64,
        waits_since: Option<u64>,
        expected: Result<u64, Overdue>,
    ) {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let signs = Signs {
            last: last.map(at),
            waited: Duration::from_secs(waited),
            waits_since: waits_since.map(at),
        };
        let seconds = Duration::from_secs;
        let running = Running { total: seconds(60), silence: Some(seconds(10)) };
        assert_eq!(running.next_look(start, at(now), signs), expected.map(at));
    }

    #[test]
    fn no_limit_is_reached_too_early_and_none_is_missed() {
        check(9, None, 0, None, Ok(10));
        check(10, None, 0, None, SILENT);
        check(10, Some(4), 0, None, Ok(14));
        check(14, Some(4), 0, None, SILENT);
        check(58, Some(57), 0, None, Ok(60));
        check(60, Some(60), 0, None, Err(Overdue::Total));
        // While the server waits for an answer, no time passes for it.
        check(20, Some(5), 0, Some(5), Ok(30));
        check(100, Some(5), 0, Some(5), Ok(110));
        check(100, Some(95), 90, None, Ok(105));
        check(149, Some(148), 90, None, Ok(150));
        check(150, Some(150), 90, None, Err(Overdue::Total));
    }

    #[tokio::test]
    async fn an_answer_in_time_is_an_answer() {
        let (short, long) = (Duration::from_millis(10), Duration::from_mins(1));
        let ear = Ear::deaf();
        let answering = std::pin::pin!(tokio::time::sleep(short));
        let running = Running { total: long, silence: Some(long) };
        assert_eq!(running.watch(answering, &ear).await, Ok(()));
        for (total, silence, expected) in [
            (short, None, Overdue::Total),
            (long, Some(short), Overdue::Silent(short)),
            (short, Some(long), Overdue::Total),
        ] {
            let answering = std::pin::pin!(tokio::time::sleep(long));
            let running = Running { total, silence };
            assert_eq!(running.watch(answering, &ear).await, Err(expected));
        }
    }
}
