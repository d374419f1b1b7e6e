//! A turn as its listeners see it: its events from any position, and a way to cancel it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use switchboard_chat::{Message, Stop, TurnEvent, TurnProblem, TurnStatus, Usage};
use switchboard_sessions::{Session, now_ms};
use tokio::sync::watch;

/// Size of an event besides its text.
const BYTES_PER_EVENT: usize = 96;

/// A published event, serialized once for all listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Counted from 1.
    pub id: u64,
    pub name: &'static str,
    pub json: Bytes,
}

/// Requests to the driver from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TurnWishes {
    pub(crate) cancel: bool,
    /// How often new tools were requested to take effect at once.
    pub(crate) apply_now: u64,
}

/// A turn that is running or has ended.
#[derive(Debug)]
pub struct LiveTurn {
    pub id: String,
    pub session: String,
    /// The owner of the session.
    pub owner: Arc<str>,
    pub started_at_ms: i64,
    request: Mutex<Option<TurnRequest>>,
    events: Mutex<Vec<Recorded>>,
    bytes: AtomicUsize,
    end: OnceLock<TurnEnd>,
    /// The number of events.
    told: watch::Sender<u64>,
    wishes: watch::Sender<TurnWishes>,
}

/// The last request of a turn to its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRequest {
    pub provider: String,
    pub model: String,
    /// The revision of the tools that the model was given.
    pub tools_revision: u64,
}

/// The result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    pub status: TurnStatus,
    pub stop: Option<Stop>,
    pub usage: Usage,
    /// The error, if there was one.
    pub error: Option<TurnProblem>,
    /// The messages that it added, the user's first.
    pub messages: Vec<Message>,
}

impl TurnEnd {
    /// The text of the last reply.
    pub fn text(&self) -> String {
        match self.messages.last() {
            Some(Message::Assistant(reply)) => reply.text(),
            _ => String::new(),
        }
    }
}

impl LiveTurn {
    pub(crate) fn new(id: String, session: &Session) -> Self {
        Self {
            id,
            session: session.id.to_string(),
            owner: session.owner.clone(),
            started_at_ms: now_ms(),
            request: Mutex::default(),
            events: Mutex::default(),
            bytes: AtomicUsize::new(0),
            end: OnceLock::new(),
            told: watch::Sender::new(0),
            wishes: watch::Sender::new(TurnWishes::default()),
        }
    }

    fn events(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.events.lock()
    }

    /// Ends the turn with its result and last event. A reader that sees the result also finds the last event; waiting
    /// tasks are woken after both are set.
    pub(crate) fn close(&self, end: TurnEnd, last: &TurnEvent) {
        let id = self.write(last);
        let _is_set_once = self.end.set(end);
        self.told.send_replace(id);
    }

    pub(crate) fn tell(&self, event: &TurnEvent) {
        let id = self.write(event);
        self.told.send_replace(id);
    }

    fn write(&self, event: &TurnEvent) -> u64 {
        if let TurnEvent::Started { provider, model, tools_revision, .. } = event {
            let (provider, model) = (provider.clone(), model.clone());
            let tools_revision = *tools_revision;
            *self.request.lock() = Some(TurnRequest { provider, model, tools_revision });
        }
        let json = serde_json::to_vec(event).unwrap_or_default();
        self.bytes.fetch_add(json.len() + BYTES_PER_EVENT, Ordering::Relaxed);
        let mut events = self.events();
        let id = u64::try_from(events.len()).unwrap_or(u64::MAX).saturating_add(1);
        events.push(Recorded { id, name: event.name(), json: json.into() });
        id
    }

    /// The last request to the model, once there was one.
    pub fn request(&self) -> Option<TurnRequest> {
        self.request.lock().clone()
    }

    /// The approximate size of its events.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The events after the one with this id.
    pub fn events_after(&self, id: u64) -> Vec<Recorded> {
        let from = usize::try_from(id).unwrap_or(usize::MAX);
        self.events().get(from..).unwrap_or_default().to_vec()
    }

    /// Announces the number of events.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// The result, once the turn has ended.
    pub fn end(&self) -> Option<&TurnEnd> {
        self.end.get()
    }

    /// Waits until the turn has ended and every event is published.
    pub async fn ended(&self) -> Option<&TurnEnd> {
        let mut told = self.follow();
        while self.end.get().is_none() && told.changed().await.is_ok() {}
        self.end.get()
    }

    /// Requests the end of the turn. Messages so far are kept.
    pub fn cancel(&self) {
        self.wishes.send_modify(|wishes| wishes.cancel = true);
    }

    /// Requests that new tools take effect at once.
    pub(crate) fn apply_now(&self) {
        self.wishes.send_modify(|wishes| wishes.apply_now += 1);
    }

    /// The requests to the driver, including those made before the subscription.
    pub(crate) fn wishes(&self) -> watch::Receiver<TurnWishes> {
        let mut wishes = self.wishes.subscribe();
        wishes.mark_changed();
        wishes
    }
}
