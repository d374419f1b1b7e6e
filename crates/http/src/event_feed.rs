//! Turns what happens on the board into events, in one task that runs while somebody has watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use switchboard_api::{
    BoardEvent, BoardRevisions, CallStart, CatalogChange, ConfigNews, ConfigOutcome, ServerChange,
    ServerLogEntry, SessionNews, SessionTransition, TurnNews,
};
use switchboard_model::{CallRecord, JsonText};
use switchboard_runtime::{Board, BoardActivity, LiveConfig, RunningCall, ServerNews, Snapshot};
use switchboard_sessions::{SessionNotice, SessionStage};
use switchboard_turns::{LiveTurn, TurnNotice};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board_place::{BoardPlace, StartedParts};
use crate::event_hub::{EventAudience, EventHub, Topic};
use crate::present;

/// The maximum length of a log message of a server in an event.
const MAX_LOG_TEXT: usize = 4096;

/// The events of the board, which are recorded from the first request for them on.
#[derive(Debug, Default)]
pub(crate) struct BoardEvents {
    hub: Mutex<Option<Arc<EventHub>>>,
    tasks: TaskTracker,
}

impl BoardEvents {
    /// The hub; starts to record at the first call.
    pub(crate) fn hub(&self, place: &BoardPlace, parts: &StartedParts) -> Arc<EventHub> {
        let mut hub = self.hub.lock();
        if let Some(hub) = &*hub {
            return hub.clone();
        }
        let new = Arc::new(EventHub::new(now_ms()));
        let feed = EventFeed::new(new.clone(), place, parts);
        self.tasks.spawn(feed.run());
        *hub = Some(new.clone());
        new
    }
}

/// What the board shows now.
pub(crate) fn revisions(board: &Board, config: Option<&LiveConfig>) -> BoardRevisions {
    BoardRevisions {
        catalog_revision: board.catalog().revision(),
        config_revision: config.map_or(1, |config| config.state().revision),
        at_ms: now_ms(),
    }
}

struct EventFeed {
    hub: Arc<EventHub>,
    board: Arc<Board>,
    config: Option<Arc<LiveConfig>>,
    stop: CancellationToken,
    activity: broadcast::Receiver<BoardActivity>,
    news: broadcast::Receiver<ServerNews>,
    sessions: broadcast::Receiver<SessionNotice>,
    turns: broadcast::Receiver<TurnNotice>,
    versions: watch::Receiver<u64>,
    outcomes: Option<watch::Receiver<u64>>,
    /// The snapshot of the last event about the catalog.
    snapshot: Arc<Snapshot>,
    /// The servers as they were told last.
    servers: BTreeMap<String, ServerChange>,
}

impl EventFeed {
    /// Subscribes to everything, so that nothing is missed from now on.
    fn new(hub: Arc<EventHub>, place: &BoardPlace, parts: &StartedParts) -> Self {
        let board = parts.board.clone();
        let config = place.config().cloned();
        let mut feed = Self {
            hub,
            stop: parts.sessions.stop_token().clone(),
            activity: board.activity(),
            news: board.news(),
            sessions: parts.sessions.sessions().notices(),
            turns: parts.turns.notices(),
            versions: board.versions(),
            outcomes: config.as_ref().map(|config| config.outcomes()),
            snapshot: board.snapshot(),
            servers: BTreeMap::new(),
            board,
            config,
        };
        feed.servers = feed.present_servers();
        feed
    }

    async fn run(mut self) {
        loop {
            let heard = tokio::select! {
                () = self.stop.cancelled() => return,
                activity = self.activity.recv() => activity.map(|it| self.active(it)),
                notice = self.sessions.recv() => notice.map(|it| self.session(&it)),
                notice = self.turns.recv() => notice.map(|TurnNotice(turn)| self.turn(&turn)),
                news = self.news.recv() => news.map(|it| self.server_said(it)),
                changed = self.versions.changed() => closed(changed).map(|()| self.catalog()),
                changed = outcome(&mut self.outcomes) => closed(changed).map(|()| self.configured()),
            };
            match heard {
                Ok(()) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => self.hub.lose(),
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    fn active(&mut self, activity: BoardActivity) {
        match activity {
            BoardActivity::CallStarted(call) => self.call_started(&call),
            BoardActivity::CallEnded(record) => self.call_ended(&record),
            BoardActivity::ServerChanged(_) => self.tell_servers(),
        }
    }

    fn call_started(&self, call: &RunningCall) {
        let event = BoardEvent::CallStarted(CallStart {
            id: call.id.to_string(),
            tool: call.tool.to_string(),
            session: call.caller.session.as_deref().map(str::to_owned),
            face: call.caller.face.as_str().into(),
            at_ms: call.started_at_ms,
        });
        let (principal, owner) = (call.caller.principal.clone(), call.caller.owner.clone());
        self.hub.publish(Topic::Call, event, EventAudience::Caller { principal, owner });
    }

    fn call_ended(&self, record: &CallRecord) {
        let audience = match (&record.caller.principal, &record.caller.owner) {
            (Some(principal), owner) => EventAudience::Caller {
                principal: principal.clone(),
                owner: owner.as_ref().unwrap_or(principal).clone(),
            },
            (None, _) => EventAudience::Operators,
        };
        let event = BoardEvent::CallEnded(Box::new(present::record(record)));
        self.hub.publish(Topic::Call, event, audience);
    }

    fn session(&self, notice: &SessionNotice) {
        let event = BoardEvent::Session(SessionNews {
            id: notice.id.to_string(),
            change: match notice.stage {
                SessionStage::Created => SessionTransition::Created,
                SessionStage::Changed => SessionTransition::Changed,
                SessionStage::Ended => SessionTransition::Ended,
            },
            tools_revision: notice.tools_revision,
        });
        self.hub.publish(Topic::Session, event, EventAudience::Owner(notice.owner.clone()));
    }

    fn turn(&self, turn: &LiveTurn) {
        let event = BoardEvent::Turn(TurnNews {
            session: turn.session.clone(),
            id: turn.id.clone(),
            status: turn.end().map_or("running", |end| end.status.as_str()).into(),
        });
        self.hub.publish(Topic::Turn, event, EventAudience::Owner(turn.owner.clone()));
    }

    fn server_said(&self, news: ServerNews) {
        match news {
            ServerNews::Log { server, params } => {
                let (level, text) = log_text(&params);
                let entry = ServerLogEntry { server: server.to_string(), level, text };
                let event = BoardEvent::ServerLog(entry);
                self.hub.publish(Topic::ServerLog, event, EventAudience::Operators);
            }
            ServerNews::ResourceUpdated { .. } => {}
        }
    }

    /// Tells what has changed in the catalog, and the servers whose number of tools did.
    fn catalog(&mut self) {
        let now = self.board.snapshot();
        let before = std::mem::replace(&mut self.snapshot, now.clone());
        let has_other_policy = !Arc::ptr_eq(before.plan(), now.plan());
        if before.catalog().revision() != now.catalog().revision() || has_other_policy {
            let (change, removed_for_clients) = difference(&before, &now);
            let audience = EventAudience::Catalog { removed_for_clients };
            self.hub.publish(Topic::Catalog, BoardEvent::Catalog(change), audience);
        }
        self.tell_servers();
    }

    fn configured(&self) {
        let Some(config) = &self.config else { return };
        let state = config.state();
        let refused = state.refused.as_ref();
        let event = BoardEvent::Config(ConfigNews {
            revision: state.revision,
            outcome: match refused {
                Some(_) => ConfigOutcome::Refused,
                None => ConfigOutcome::Applied,
            },
            error: refused.map(|refused| refused.reason.to_string()),
            at_ms: refused.map_or(state.loaded_at_ms, |refused| refused.at_ms),
        });
        self.hub.publish(Topic::Config, event, EventAudience::Operators);
    }

    fn present_servers(&self) -> BTreeMap<String, ServerChange> {
        let servers = present::servers(&self.board).servers.into_iter();
        let changes = servers.map(|server| {
            let change = ServerChange {
                name: server.name.clone(),
                state: server.state,
                error: server.error,
                hint: server.hint,
                tools: server.tools,
                offered_tools: server.offered_tools,
                since_ms: server.since_ms,
            };
            (server.name, change)
        });
        changes.collect()
    }

    /// Tells the servers that differ from what was told last.
    fn tell_servers(&mut self) {
        let now = self.present_servers();
        let before = std::mem::replace(&mut self.servers, now);
        let gone = before.values().filter(|server| !self.servers.contains_key(&server.name));
        let gone = gone.map(|server| ServerChange {
            state: "removed".into(),
            error: None,
            hint: None,
            tools: 0,
            offered_tools: 0,
            since_ms: now_ms(),
            ..server.clone()
        });
        let changed = self.servers.iter().filter(|(name, now)| before.get(*name) != Some(now));
        let changed = changed.map(|(_, server)| server.clone());
        for server in gone.chain(changed) {
            let audience = EventAudience::Server(server.name.clone());
            self.hub.publish(Topic::Server, BoardEvent::Server(server), audience);
        }
    }
}

/// The difference between two catalogs, and which of the removed tools clients could see.
fn difference(before: &Snapshot, now: &Snapshot) -> (CatalogChange, Vec<String>) {
    let by_name = |snapshot: &Snapshot| -> BTreeMap<String, _> {
        let tools = snapshot.catalog().tools().iter();
        tools.map(|tool| (tool.name.to_string(), tool.clone())).collect()
    };
    let (old, new) = (by_name(before), by_name(now));
    let is_other = |name: &String| match (old.get(name), new.get(name)) {
        (Some(one), Some(other)) => !Arc::ptr_eq(one, other) && one != other,
        _ => false,
    };
    let removed: Vec<String> =
        old.keys().filter(|name| !new.contains_key(*name)).cloned().collect();
    let was_visible = |name: &&String| before.index().permits(name);
    let removed_for_clients = removed.iter().filter(was_visible).cloned().collect();
    let change = CatalogChange {
        revision: now.catalog().revision(),
        added: new.keys().filter(|name| !old.contains_key(*name)).cloned().collect(),
        changed: new.keys().filter(|name| is_other(name)).cloned().collect(),
        removed,
        at_ms: now_ms(),
    };
    (change, removed_for_clients)
}

/// The level and the text of an MCP log notification.
pub(crate) fn log_text(params: &JsonText) -> (String, String) {
    let params = params.parse();
    let level = params["level"].as_str().unwrap_or("info").chars().take(16).collect();
    let said = match &params["data"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let text = match params["logger"].as_str() {
        Some(logger) => format!("{logger}: {said}"),
        None => said,
    };
    (level, text.chars().take(MAX_LOG_TEXT).collect())
}

async fn outcome(
    outcomes: &mut Option<watch::Receiver<u64>>,
) -> Result<(), watch::error::RecvError> {
    match outcomes {
        Some(outcomes) => outcomes.changed().await,
        None => std::future::pending().await,
    }
}

fn closed(changed: Result<(), watch::error::RecvError>) -> Result<(), broadcast::error::RecvError> {
    changed.map_err(|_| broadcast::error::RecvError::Closed)
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
