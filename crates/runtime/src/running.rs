//! Waits for a response within time limits.

use std::pin::Pin;
use std::time::Duration;

use switchboard_mcp_client::{Activity, EventSender};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

/// The time limit that a request has exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The request reported no progress within its time limit.
    Total,
    /// The request reported progress and exceeded its maximum time.
    Longest,
    /// The request reported progress, and then none for its whole time limit.
    Stalled,
    /// The server sent no message at all for this long.
    Silent(Duration),
}

/// The time limits of one running request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    /// Limit since the start, or since the last progress.
    pub(crate) total: Duration,
    /// Limit since the start, for a request that reports progress.
    pub(crate) longest: Duration,
    pub(crate) silence: Option<Duration>,
}

impl Running {
    /// Waits for the response. The time during which the client answers a request of the server does not count.
    pub(crate) async fn watch<F: Future>(
        self,
        mut answering: Pin<&mut F>,
        event_channel: &EventSender,
    ) -> Result<F::Output, Overdue> {
        let start = Instant::now();
        // One timer serves all limits and checks the activity when it fires. Resetting it for each message would cost
        // every call, and hardly any call runs that long.
        let first = self.silence.map_or(self.total, |silence| silence.min(self.total));
        let mut timer = std::pin::pin!(tokio::time::sleep_until(start + first));
        loop {
            tokio::select! {
                biased;
                answer = &mut answering => return Ok(answer),
                // Unconstrained: a flood of messages may exhaust the task's cooperative budget, and the timer must fire
                // all the same.
                () = unconstrained(timer.as_mut()) => {
                    let next = self.next_look(start, Instant::now(), event_channel.signs())?;
                    timer.as_mut().reset(next);
                }
            }
        }
    }

    /// The earliest time at which a limit can be exceeded, or the limit that is exceeded already.
    fn next_look(&self, start: Instant, now: Instant, signs: Activity) -> Result<Instant, Overdue> {
        let waits = signs.waits_since.map_or(Duration::ZERO, |since| now - since);
        let may_go_on = self.longest > self.total && signs.progressed.is_some();
        let (limit, overdue) =
            if may_go_on { (self.longest, Overdue::Longest) } else { (self.total, Overdue::Total) };
        let mut end = start + limit + signs.waited + waits;
        if end <= now {
            return Err(overdue);
        }
        if let Some(progressed) = signs.progressed.filter(|_| may_go_on) {
            let last = if signs.waits_since.is_some() { now } else { progressed };
            if last + self.total <= now {
                return Err(Overdue::Stalled);
            }
            end = end.min(last + self.total);
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

    /// A limit of 60 seconds, and of 10 seconds without any message.
    const QUIET: Running = Running {
        total: Duration::from_mins(1),
        longest: Duration::from_mins(2),
        silence: Some(Duration::from_secs(10)),
    };
    /// A limit of 30 seconds, and of 100 with progress.
    const PROLONGED: Running = Running {
        total: Duration::from_secs(30),
        longest: Duration::from_secs(100),
        silence: None,
    };

    /// The last activity of a request, in seconds since its start.
    #[derive(Clone, Copy)]
    enum Sign {
        Message(u64),
        Progress(u64),
    }

    use Sign::{Message, Progress};

    /// Checks the next deadline of a request at `now`, in seconds since its start.
    #[track_caller]
    fn check(
        running: Running,
        now: u64,
        last: Option<Sign>,
        waited: u64,
        waits_since: Option<u64>,
        expected: Result<u64, Overdue>,
    ) {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (last, progressed) = match last {
            None => (None, None),
            Some(Message(last)) => (Some(last), None),
            Some(Progress(last)) => (Some(last), Some(last)),
        };
        let signs = Activity {
            last: last.map(at),
            waited: Duration::from_secs(waited),
            waits_since: waits_since.map(at),
            progressed: progressed.map(at),
        };
        assert_eq!(running.next_look(start, at(now), signs), expected.map(at));
        if running.silence.is_none() {
            let off = Running { longest: running.total, ..running };
            let waits = waits_since.map_or(0, |since| now - since);
            let end = running.total.as_secs() + waited + waits;
            let expected = if end <= now { Err(Overdue::Total) } else { Ok(at(end)) };
            assert_eq!(off.next_look(start, at(now), signs), expected, "switched off");
        }
    }

    #[test]
    fn no_limit_is_reached_too_early_and_none_is_missed() {
        check(QUIET, 9, None, 0, None, Ok(10));
        check(QUIET, 10, None, 0, None, SILENT);
        check(QUIET, 10, Some(Message(4)), 0, None, Ok(14));
        check(QUIET, 14, Some(Message(4)), 0, None, SILENT);
        check(QUIET, 58, Some(Message(57)), 0, None, Ok(60));
        check(QUIET, 60, Some(Message(60)), 0, None, Err(Overdue::Total));
        // The time in which the server waits for the client does not count.
        check(QUIET, 20, Some(Message(5)), 0, Some(5), Ok(30));
        check(QUIET, 100, Some(Message(5)), 0, Some(5), Ok(110));
        check(QUIET, 100, Some(Message(95)), 90, None, Ok(105));
        check(QUIET, 149, Some(Message(148)), 90, None, Ok(150));
        check(QUIET, 150, Some(Message(150)), 90, None, Err(Overdue::Total));
    }

    #[test]
    fn progress_prolongs_a_request_up_to_its_longest_time() {
        check(PROLONGED, 29, None, 0, None, Ok(30));
        check(PROLONGED, 30, None, 0, None, Err(Overdue::Total));
        check(PROLONGED, 30, Some(Progress(10)), 0, None, Ok(40));
        check(PROLONGED, 40, Some(Progress(10)), 0, None, Err(Overdue::Stalled));
        check(PROLONGED, 40, Some(Progress(39)), 0, None, Ok(69));
        check(PROLONGED, 99, Some(Progress(98)), 0, None, Ok(100));
        check(PROLONGED, 100, Some(Progress(99)), 0, None, Err(Overdue::Longest));
        // The time in which the client answers a request of the server does not count.
        check(PROLONGED, 90, Some(Progress(10)), 0, Some(20), Ok(120));
        check(PROLONGED, 110, Some(Progress(105)), 40, None, Ok(135));
        check(PROLONGED, 140, Some(Progress(139)), 40, None, Err(Overdue::Longest));
    }

    #[tokio::test]
    async fn time_passes_for_a_request_that_never_stops_talking() {
        // Its data are always ready, so it yields only when it has exhausted the task's cooperative budget.
        let flood = std::pin::pin!(async {
            for _ in 0..u64::MAX {
                tokio::task::coop::consume_budget().await;
            }
        });
        let limit = Duration::from_millis(100);
        let running = Running { total: limit, longest: limit, silence: None };
        assert_eq!(running.watch(flood, &EventSender::deaf()).await, Err(Overdue::Total));
    }

    #[tokio::test]
    async fn an_answer_in_time_is_an_answer() {
        let (short, long) = (Duration::from_millis(10), Duration::from_mins(1));
        let event_channel = EventSender::deaf();
        let answering = std::pin::pin!(tokio::time::sleep(short));
        let running = Running { total: long, longest: long, silence: Some(long) };
        assert_eq!(running.watch(answering, &event_channel).await, Ok(()));
        for (total, silence, expected) in [
            (short, None, Overdue::Total),
            (long, Some(short), Overdue::Silent(short)),
            (short, Some(long), Overdue::Total),
        ] {
            let answering = std::pin::pin!(tokio::time::sleep(long));
            let running = Running { total, longest: long, silence };
            assert_eq!(running.watch(answering, &event_channel).await, Err(expected));
        }
    }
}
