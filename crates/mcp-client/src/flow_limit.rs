//! Rate limits for unsolicited data of a server: notifications, SSE comments, standard error.
//!
//! Data above the rate is read later. The pipe or connection fills up in the meantime, and the server blocks. A flood
//! thus costs a bounded part of a CPU, and the time limits of calls and of the handshake end it like silence.

use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::time::Instant;

/// Messages per second, after an initial burst.
const MESSAGES: f64 = 2_000.0;
const MESSAGE_BURST: f64 = 5_000.0;

/// Bytes per second. The burst holds the largest message twice.
const BYTES: f64 = 32.0 * 1024.0 * 1024.0;
const BYTE_BURST: f64 = BYTES;

/// Bytes that count as one step of the task's cooperative budget.
const BYTES_PER_STEP: usize = 64 * 1024;

/// The rate limit of one source.
#[derive(Debug)]
pub(crate) struct FlowLimit {
    /// The time that one unit takes at the allowed rate.
    unit: Duration,
    burst: Duration,
    /// The time by which all units so far would have arrived at the allowed rate.
    paid_until: Option<Instant>,
}

impl FlowLimit {
    pub(crate) fn messages() -> Self {
        Self::new(MESSAGES, MESSAGE_BURST)
    }

    pub(crate) fn bytes() -> Self {
        Self::new(BYTES, BYTE_BURST)
    }

    fn new(rate: f64, burst: f64) -> Self {
        Self {
            unit: Duration::from_secs_f64(1.0 / rate),
            burst: Duration::from_secs_f64(burst / rate),
            paid_until: None,
        }
    }

    /// Counts `amount`. Returns when to read on, if that is later than now.
    pub(crate) fn take(&mut self, amount: usize) -> Option<Instant> {
        self.take_at(Instant::now(), amount)
    }

    fn take_at(&mut self, now: Instant, amount: usize) -> Option<Instant> {
        let amount = u32::try_from(amount).unwrap_or(u32::MAX);
        let paid = self.paid_until.map_or(now, |paid| paid.max(now));
        let paid = paid + self.unit.saturating_mul(amount);
        self.paid_until = Some(paid);
        (paid > now + self.burst).then(|| paid - self.burst)
    }

    /// Counts `amount` and waits until more may be read. Yields to other tasks from time to time.
    pub(crate) async fn pass(&mut self, amount: usize) {
        match self.take(amount) {
            Some(until) => tokio::time::sleep_until(until).await,
            None => tokio::task::coop::consume_budget().await,
        }
    }
}

/// Limits the rate of a byte stream.
pub(crate) fn slowed_bytes<B, E>(
    bytes: impl Stream<Item = Result<B, E>> + Send + 'static,
) -> impl Stream<Item = Result<B, E>> + Send + 'static
where
    B: AsRef<[u8]> + Send + 'static,
    E: Send + 'static,
{
    let start = (bytes.boxed(), FlowLimit::bytes());
    stream::unfold(start, |(mut bytes, mut limit)| async move {
        let chunk = bytes.next().await?;
        let length = chunk.as_ref().map_or(0, |chunk| chunk.as_ref().len());
        for _ in 0..length / BYTES_PER_STEP {
            tokio::task::coop::consume_budget().await;
        }
        limit.pass(length).await;
        Some((chunk, (bytes, limit)))
    })
}

/// Limits the rate of an event stream.
pub(crate) fn slowed_events<T: Send + 'static>(
    events: impl Stream<Item = T> + Send + 'static,
) -> BoxStream<'static, T> {
    let start = (events.boxed(), FlowLimit::messages());
    stream::unfold(start, |(mut events, mut limit)| async move {
        let event = events.next().await?;
        limit.pass(1).await;
        Some((event, (events, limit)))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_a_flood_comes_at_the_rate() {
        let mut limit = FlowLimit::new(100.0, 50.0);
        let start = Instant::now();
        // Reads whenever it may, and returns how long all of it took.
        let mut read = |mut now: Instant, count: usize| {
            for _ in 0..count {
                now = limit.take_at(now, 1).unwrap_or(now);
            }
            now
        };
        assert_eq!(read(start, 50), start);
        let end = read(start, 300);
        let seconds = (end - start).as_secs_f64();
        assert!((2.9..3.1).contains(&seconds), "300 more took {seconds} s");
        let later = end + Duration::from_secs(10);
        assert_eq!(read(later, 50), later, "after a pause there is room again");
    }

    #[tokio::test]
    async fn an_endless_stream_lets_a_time_limit_pass() {
        let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b':'; 1024]));
        let mut bytes = std::pin::pin!(slowed_bytes(endless));
        let flood = async { while let Some(Ok(_)) = bytes.next().await {} };
        assert!(tokio::time::timeout(Duration::from_millis(50), flood).await.is_err());
        let mut events = slowed_events(stream::repeat(1));
        let flood = async { while events.next().await.is_some() {} };
        assert!(tokio::time::timeout(Duration::from_millis(50), flood).await.is_err());
    }
}
