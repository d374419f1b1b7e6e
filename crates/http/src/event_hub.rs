//! The events of the board: kept for those who come back, and shown to each caller as far as it may see them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_api::{BoardEvent, CatalogChange};
use switchboard_auth::{Principal, Role};
use switchboard_sessions::SessionService;
use tokio::sync::watch;

use crate::inspect::may_reach;

/// How many events are kept, and how large they are together. Older ones are forgotten: a client that has not got them is
/// told to read everything again.
const KEPT_EVENTS: usize = 2048;
const KEPT_BYTES: usize = 4 << 20;
/// The ids of a run begin at its start in milliseconds times this, so that ids also rise over restarts. The result is exact in
/// JSON.
const IDS_PER_MS: u64 = 4096;

/// A subject of events, by which a client selects them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Catalog,
    Server,
    Call,
    Session,
    Turn,
    Config,
    ServerLog,
}

impl Topic {
    pub(crate) const ALL: [Self; 7] = [
        Self::Catalog,
        Self::Server,
        Self::Call,
        Self::Session,
        Self::Turn,
        Self::Config,
        Self::ServerLog,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Server => "server",
            Self::Call => "call",
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Config => "config",
            Self::ServerLog => "server_log",
        }
    }
}

/// Who may see an event.
#[derive(Debug, Clone)]
pub(crate) enum EventAudience {
    /// Callers with the role operator.
    Operators,
    /// Callers that may see something of this server.
    Server(String),
    /// Each caller sees its own tools. The tools that clients could see before they were removed.
    Catalog { removed_for_clients: Vec<String> },
    /// The principal of a call, and the owner of its session.
    Caller { principal: Arc<str>, owner: Arc<str> },
    /// The owner of a session.
    Owner(Arc<str>),
}

/// An event that is kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptEvent {
    pub(crate) id: u64,
    pub(crate) topic: Topic,
    pub(crate) name: &'static str,
    event: Arc<BoardEvent>,
    json: Arc<str>,
    audience: Arc<EventAudience>,
}

impl KeptEvent {
    /// The JSON of the event for a caller; `None` if it may not see the event.
    pub(crate) fn json_for(
        &self,
        principal: &Principal,
        sessions: &SessionService,
    ) -> Option<Arc<str>> {
        let is_own = |owner: &Arc<str>| principal.id == *owner;
        let may_see = match &*self.audience {
            EventAudience::Operators => principal.effective_role() >= Role::Operator,
            _ if principal.oversees() => true,
            EventAudience::Server(name) => sessions.permits_server(name, &principal.access),
            EventAudience::Caller { principal, owner } => is_own(principal) || is_own(owner),
            EventAudience::Owner(owner) => is_own(owner),
            EventAudience::Catalog { removed_for_clients } => {
                return narrowed_catalog(&self.event, removed_for_clients, principal, sessions);
            }
        };
        may_see.then(|| self.json.clone())
    }
}

/// The change of the catalog for a caller that does not see all tools.
fn narrowed_catalog(
    event: &BoardEvent,
    removed: &[String],
    principal: &Principal,
    sessions: &SessionService,
) -> Option<Arc<str>> {
    let BoardEvent::Catalog(change) = event else { return None };
    let visible = |names: &[String]| -> Vec<String> {
        names.iter().filter(|name| may_reach(sessions, principal, name)).cloned().collect()
    };
    // What a narrowed caller could see of the removed tools is no longer known.
    let is_narrowed = principal.access.tools().is_some();
    let shown = BoardEvent::Catalog(CatalogChange {
        added: visible(&change.added),
        changed: visible(&change.changed),
        removed: if is_narrowed { Vec::new() } else { removed.to_vec() },
        revision: change.revision,
        at_ms: change.at_ms,
    });
    serde_json::to_string(&shown).ok().map(Into::into)
}

/// The events of the board. Clones of the `Arc` share it.
#[derive(Debug)]
pub(crate) struct EventHub {
    kept: Mutex<KeptEvents>,
    last: watch::Sender<u64>,
}

#[derive(Debug)]
struct KeptEvents {
    events: VecDeque<KeptEvent>,
    bytes: usize,
    last: u64,
    /// The id of the newest event that is no longer kept.
    forgotten: u64,
}

impl EventHub {
    pub(crate) fn new(now_ms: i64) -> Self {
        let first = u64::try_from(now_ms).unwrap_or_default().saturating_mul(IDS_PER_MS);
        let kept = KeptEvents { events: VecDeque::new(), bytes: 0, last: first, forgotten: first };
        Self { kept: Mutex::new(kept), last: watch::Sender::new(first) }
    }

    /// Keeps an event and wakes the streams.
    pub(crate) fn publish(&self, topic: Topic, event: BoardEvent, audience: EventAudience) {
        let Ok(json) = serde_json::to_string(&event) else { return };
        let mut kept = self.kept.lock();
        kept.last += 1;
        let kept_event = KeptEvent {
            id: kept.last,
            topic,
            name: event.name(),
            event: Arc::new(event),
            json: json.into(),
            audience: Arc::new(audience),
        };
        kept.bytes += kept_event.json.len();
        kept.events.push_back(kept_event);
        while kept.events.len() > KEPT_EVENTS || kept.bytes > KEPT_BYTES {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.json.len();
            kept.forgotten = oldest.id;
        }
        self.last.send_replace(kept.last);
    }

    /// Notes that events were lost: every stream is told to read everything again.
    pub(crate) fn lose(&self) {
        let mut kept = self.kept.lock();
        kept.last += 1;
        kept.forgotten = kept.last;
        kept.bytes = 0;
        kept.events.clear();
        self.last.send_replace(kept.last);
    }

    /// The id of the newest event.
    pub(crate) fn last(&self) -> u64 {
        self.kept.lock().last
    }

    /// Announces the id of the newest event.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The events after this id, oldest first; `None` if some of them are no longer kept, or the id is of the future.
    pub(crate) fn after(&self, id: u64) -> Option<Vec<KeptEvent>> {
        let kept = self.kept.lock();
        if id < kept.forgotten || id > kept.last {
            return None;
        }
        let from = kept.events.partition_point(|event| event.id <= id);
        Some(kept.events.range(from..).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use switchboard_api::ServerLogEntry;

    use super::*;

    fn log(hub: &EventHub, text: &str) {
        let (server, level) = ("demo".to_owned(), "info".to_owned());
        let event = BoardEvent::ServerLog(ServerLogEntry { server, level, text: text.into() });
        hub.publish(Topic::ServerLog, event, EventAudience::Operators);
    }

    #[track_caller]
    fn check(hub: &EventHub, after: u64, expected: Option<&[u64]>) {
        let found = hub.after(after);
        let ids = found.map(|events| events.iter().map(|event| event.id).collect::<Vec<_>>());
        assert_eq!(ids.as_deref(), expected, "after {after}");
    }

    #[test]
    fn events_are_kept_until_there_are_too_many_or_they_are_too_large() {
        let hub = EventHub::new(0);
        check(&hub, 0, Some(&[]));
        check(&hub, 1, None);
        log(&hub, "one");
        log(&hub, "two");
        check(&hub, 0, Some(&[1, 2]));
        check(&hub, 1, Some(&[2]));
        check(&hub, 2, Some(&[]));
        check(&hub, 3, None);
        for _ in 0..KEPT_EVENTS {
            log(&hub, "more");
        }
        check(&hub, 1, None);
        assert_eq!(hub.after(2).map(|events| events.len()), Some(KEPT_EVENTS));
        log(&hub, &"x".repeat(KEPT_BYTES));
        let last = hub.last();
        check(&hub, last - 1, None);
        check(&hub, last, Some(&[]));
    }

    #[test]
    fn a_loss_is_told_to_everybody_who_came_before() {
        let hub = EventHub::new(0);
        log(&hub, "one");
        hub.lose();
        check(&hub, 1, None);
        check(&hub, 2, Some(&[]));
        log(&hub, "two");
        check(&hub, 2, Some(&[3]));
    }

    #[test]
    fn ids_rise_over_restarts_and_are_exact_in_json() {
        let (before, after) = (EventHub::new(1_800_000_000_000), EventHub::new(1_800_000_000_001));
        log(&before, "one");
        assert!(before.last() < after.last());
        assert!(after.last() < 1 << 53);
    }
}
