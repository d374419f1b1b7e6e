//! A channel for the messages that a server sends while it works on a request.
//!
//! It combines a queue with the times of the last activity in one small allocation. Nearly all requests are answered
//! without any such message, and a general-purpose channel would cost more than the rest of the request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use switchboard_model::JsonText;
use tokio::time::Instant;

use crate::request::UpstreamEvent;

/// Maximum total size of queued events; only the last one may exceed it.
const MOST_BYTES: usize = 1024 * 1024;

/// The sending half. Clones send to the same channel.
#[derive(Debug)]
pub struct EventSender(Arc<EventChannel>);

/// The receiving half.
#[derive(Debug)]
pub struct EventReceiver(Arc<EventChannel>);

#[derive(Debug)]
struct EventChannel {
    state: Mutex<EventQueue>,
    /// Maximum number of queued events. When it is reached, the oldest progress is dropped; if there is none, further
    /// events are dropped and further requests of the server are refused.
    room: usize,
    waker: AtomicWaker,
    senders: AtomicUsize,
}

#[derive(Debug, Default)]
struct EventQueue {
    events: VecDeque<UpstreamEvent>,
    /// The total size of the queued events.
    bytes: usize,
    is_left: bool,
    signs: Activity,
    /// The largest reported progress value.
    progress: Option<f64>,
    questions: usize,
}

impl EventQueue {
    /// Progress that does not increase counts only as activity.
    fn note_progress(&mut self, params: &JsonText, now: Instant) {
        #[derive(Deserialize)]
        struct Reported {
            progress: f64,
        }
        let Ok(Reported { progress }) = serde_json::from_str(params.as_str()) else { return };
        if self.progress.is_none_or(|before| progress > before) {
            (self.progress, self.signs.progressed) = (Some(progress), Some(now));
        }
    }

    /// Makes room for one more event, if necessary by dropping old progress. Returns whether there is room.
    fn makes_room(&mut self, room: usize) -> bool {
        let is_progress = |event: &UpstreamEvent| matches!(event, UpstreamEvent::Progress(_));
        if self.events.len() >= room || self.bytes >= MOST_BYTES {
            let lasting = self.events.iter().filter(|event| !is_progress(event));
            let (count, bytes) =
                lasting.fold((0, 0), |(count, bytes), event| (count + 1, bytes + event.size()));
            if count >= room || bytes >= MOST_BYTES {
                return false;
            }
        }
        while self.events.len() >= room || self.bytes >= MOST_BYTES {
            let old = self.events.iter().position(is_progress);
            let Some(old) = old.and_then(|at| self.events.remove(at)) else { return false };
            self.bytes -= old.size();
        }
        true
    }
}

/// The activity of a server during a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// When it last sent a message, or received a response.
    pub last: Option<Instant>,
    /// The total time for which it waited for responses to its requests.
    pub waited: Duration,
    /// Since when it has been waiting for a response.
    pub waits_since: Option<Instant>,
    /// When its progress last increased.
    pub progressed: Option<Instant>,
}

/// Creates a channel for at most `room` queued events.
pub fn event_channel(room: usize) -> (EventSender, EventReceiver) {
    let shared = Arc::new(EventChannel {
        state: Mutex::default(),
        room,
        waker: AtomicWaker::new(),
        senders: AtomicUsize::new(1),
    });
    (EventSender(shared.clone()), EventReceiver(shared))
}

impl EventChannel {
    fn state(&self) -> MutexGuard<'_, EventQueue> {
        self.state.lock()
    }
}

impl EventSender {
    /// A sender without a receiver, which only records activity.
    pub fn deaf() -> Self {
        event_channel(0).0
    }

    /// The activity so far.
    pub fn signs(&self) -> Activity {
        self.0.state().signs
    }

    /// Queues an event. Returns `false` if there is no receiver or no room.
    pub(crate) fn tell(&self, event: UpstreamEvent) -> bool {
        let mut state = self.0.state();
        let now = Instant::now();
        state.signs.last = Some(now);
        if let UpstreamEvent::Progress(params) = &event {
            state.note_progress(params, now);
        }
        if state.is_left || !state.makes_room(self.0.room) {
            return false;
        }
        state.bytes += event.size();
        state.events.push_back(event);
        drop(state);
        self.0.waker.wake();
        true
    }

    /// Records that the server waits for a response, until the returned guard is dropped.
    pub(crate) fn waits(&self) -> Waits {
        let mut state = self.0.state();
        state.questions += 1;
        state.signs.waits_since.get_or_insert_with(Instant::now);
        drop(state);
        Waits(self.clone())
    }
}

impl Clone for EventSender {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.waker.wake();
        }
    }
}

/// A request of the server without a response yet.
#[derive(Debug)]
pub(crate) struct Waits(EventSender);

impl Drop for Waits {
    fn drop(&mut self) {
        let mut state = self.0.0.state();
        state.questions -= 1;
        if state.questions == 0
            && let Some(since) = state.signs.waits_since.take()
        {
            let now = Instant::now();
            state.signs.waited += now - since;
            state.signs.last = Some(now);
            // The server could not report progress while it waited, so the progress limit starts again.
            state.signs.progressed = state.signs.progressed.map(|_| now);
        }
    }
}

impl EventReceiver {
    /// The next event; `None` when no more can come. Cancel-safe.
    pub async fn next(&mut self) -> Option<UpstreamEvent> {
        std::future::poll_fn(|context| {
            // Uses the cooperative budget, so that a flood of messages does not starve the rest of the task.
            let budget = std::task::ready!(tokio::task::coop::poll_proceed(context));
            if let Some(event) = self.next_now() {
                budget.made_progress();
                return Poll::Ready(Some(event));
            }
            self.0.waker.register(context.waker());
            // Checked again after the registration, so that no event in between is missed.
            let is_last = self.0.senders.load(Ordering::Acquire) == 0;
            match self.next_now() {
                Some(event) => Poll::Ready(Some(event)),
                None if is_last => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The next event, if one is queued.
    pub fn next_now(&mut self) -> Option<UpstreamEvent> {
        let mut state = self.0.state();
        let event = state.events.pop_front()?;
        state.bytes -= event.size();
        Some(event)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let unheard = {
            let mut state = self.0.state();
            state.is_left = true;
            std::mem::take(&mut state.events)
        };
        // Dropped outside of the lock: this refuses queued requests of the server, and wakes their waiters.
        drop(unheard);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn sign(number: u64) -> UpstreamEvent {
        UpstreamEvent::Progress(JsonText::from(&serde_json::json!(number)))
    }

    #[track_caller]
    fn number(event: Option<UpstreamEvent>) -> Option<String> {
        event.map(|event| match event {
            UpstreamEvent::Progress(params) => params.as_str().to_owned(),
            other => panic!("{other:?}"),
        })
    }

    #[tokio::test]
    async fn events_come_in_order_and_end_with_the_last_ear() {
        let (event_channel, mut heard) = event_channel(2);
        let other = event_channel.clone();
        assert!(event_channel.tell(sign(1)) && other.tell(sign(2)));
        assert_eq!(number(heard.next().await).as_deref(), Some("1"));
        drop(event_channel);
        assert_eq!(number(heard.next().await).as_deref(), Some("2"));
        assert!(heard.next().now_or_never().is_none(), "somebody may still speak");
        let (last, ()) = tokio::join!(heard.next(), async { drop(other) });
        assert!(last.is_none());
    }

    #[tokio::test]
    async fn old_progress_gives_way_and_nothing_else_does() {
        let log = |text: &str| UpstreamEvent::Log(JsonText::from(&serde_json::json!(text)));
        let (event_channel, mut heard) = event_channel(2);
        for number in 1..=4 {
            assert!(event_channel.tell(sign(number)));
        }
        assert!(event_channel.tell(log("a")), "instead of 3");
        assert_eq!(number(heard.next_now()).as_deref(), Some("4"));
        assert!(event_channel.tell(log("b")));
        assert!(!event_channel.tell(log("c")), "there is room for two");
        assert!(!event_channel.tell(sign(5)));
        assert!(matches!(heard.next_now(), Some(UpstreamEvent::Log(_))));

        let (event_channel, mut heard) = super::event_channel(100);
        let long = "x".repeat(MOST_BYTES);
        assert!(event_channel.tell(log(&long)));
        assert!(!event_channel.tell(log("d")), "too much waits already");
        assert!(heard.next_now().is_some() && event_channel.tell(log("e")));
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let (event_channel, mut heard) = event_channel(1);
        let telling = async {
            tokio::task::yield_now().await;
            assert!(event_channel.tell(sign(7)));
        };
        let (event, ()) = tokio::join!(heard.next(), telling);
        assert_eq!(number(event).as_deref(), Some("7"));
        drop(heard);
        assert!(!event_channel.tell(sign(8)), "nobody is left");
        assert!(!EventSender::deaf().tell(sign(9)));
    }

    #[test]
    fn only_progress_that_grows_counts_as_progress() {
        let (mut state, start) = (EventQueue::default(), Instant::now());
        for (at, text, expected) in [
            (1, r#"{"message": "none"}"#, None),
            (2, r#"{"progress": 0}"#, Some(2)),
            (3, r#"{"progress": 0}"#, Some(2)),
            (4, r#"{"progress": 0.5}"#, Some(4)),
            (5, r#"{"progress": 0.2}"#, Some(4)),
            (6, r#"{"progress": "7"}"#, Some(4)),
            (7, r#"{"progress": 7}"#, Some(7)),
        ] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            state.note_progress(&JsonText::from(&value), start + Duration::from_secs(at));
            let progressed = state.signs.progressed.map(|at| (at - start).as_secs());
            assert_eq!(progressed, expected, "{text}");
        }
    }

    #[tokio::test]
    async fn the_time_of_open_questions_is_counted_once() {
        let (event_channel, _heard) = event_channel(1);
        assert_eq!(event_channel.signs(), Activity::default());
        let (start, moment) = (Instant::now(), Duration::from_millis(10));
        let first = event_channel.waits();
        let since = event_channel.signs().waits_since;
        assert!(since.is_some_and(|since| since >= start));
        tokio::time::sleep(moment).await;
        let other = event_channel.waits();
        drop(first);
        assert_eq!(event_channel.signs().waits_since, since, "one is still open");
        tokio::time::sleep(moment).await;
        drop(other);
        let signs = event_channel.signs();
        assert_eq!(signs.waits_since, None);
        assert_eq!(signs.last, since.map(|since| since + signs.waited));
        assert!(signs.waited >= 2 * moment);
        event_channel.tell(sign(1));
        assert_eq!(event_channel.signs().waited, signs.waited);
        assert!(event_channel.signs().last >= signs.last);
    }
}
