//! A client of the session era: its session, its event streams and the messages that wait for it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use switchboard_auth::Principal;
use switchboard_model::{ClientInfo, JsonText, LiveAccess};
use switchboard_protocol::{Capabilities, Members, notification};
use switchboard_runtime::{EventSender, RpcError};
use switchboard_sessions::Session;
use switchboard_view::Scope;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::list_changed::{ListChanges, SeenLists, TOOLS_CHANGED};
use crate::log_level::LogLevel;
use crate::relist::RelistHistory;

/// Messages that may wait for a slow reader before its stream is closed.
const STREAM_QUEUE: usize = 64;
/// Messages that are kept for a client without a stream. List changes are kept as flags and do not count.
const BACKLOG: usize = 16;
/// Requests of servers (elicitation, sampling, roots) that may wait for one client at a time.
const MAX_QUESTIONS: usize = 64;

pub(crate) type ClientReply = Result<JsonText, RpcError>;

/// A connected client of the session era. Its `scope` is without the access of its credential, which can change. The fields beside `state` never change after the handshake.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: Arc<str>,
    pub(crate) owner: Arc<str>,
    pub(crate) version: &'static str,
    pub(crate) info: ClientInfo,
    pub(crate) capabilities: Capabilities,
    pub(crate) capabilities_text: Arc<str>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) session: Arc<Session>,
    pub(crate) ended: CancellationToken,
    /// Receives events of this session's own server processes that belong to no call; created on first use.
    pub(crate) events: OnceLock<EventSender>,
    next_question: AtomicU64,
    pub(crate) relists: Arc<RelistHistory>,
    state: Mutex<ClientState>,
}

#[derive(Debug)]
struct ClientState {
    /// Open streams, the newest last. A message goes to the newest one that is still open.
    streams: Vec<mpsc::Sender<String>>,
    backlog: VecDeque<String>,
    owed: ListChanges,
    questions: HashMap<String, oneshot::Sender<ClientReply>>,
    takes_questions: bool,
    running: HashMap<String, CancellationToken>,
    log_level: Option<LogLevel>,
    subscriptions: BTreeSet<String>,
    /// What the credential of the last request grants.
    access: LiveAccess,
    seen_lists: SeenLists,
    /// Whether the client has received any list since it connected.
    has_listed: bool,
    /// Whether the client is known to be in the store.
    is_stored: bool,
    seen: Instant,
}

/// The state of a client that survives a restart.
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) subscriptions: BTreeSet<String>,
    pub(crate) owed: ListChanges,
}

impl Client {
    #[expect(clippy::too_many_arguments, reason = "each is a part of one handshake")]
    pub(crate) fn new(
        id: Arc<str>,
        principal: &Principal,
        version: &'static str,
        info: ClientInfo,
        capabilities: Arc<str>,
        scope: Arc<Scope>,
        session: Arc<Session>,
        seen_lists: SeenLists,
        remembered: Option<Remembered>,
    ) -> Arc<Self> {
        let is_stored = remembered.is_some();
        let remembered = remembered.unwrap_or_else(|| Remembered {
            log_level: None,
            subscriptions: BTreeSet::new(),
            owed: ListChanges::default(),
        });
        Arc::new(Self {
            id,
            owner: principal.id.clone(),
            version,
            info,
            capabilities: Capabilities::read(&capabilities),
            capabilities_text: capabilities,
            scope,
            session,
            ended: CancellationToken::new(),
            events: OnceLock::new(),
            next_question: AtomicU64::new(1),
            relists: Arc::default(),
            state: Mutex::new(ClientState {
                streams: Vec::new(),
                backlog: VecDeque::new(),
                owed: remembered.owed,
                questions: HashMap::new(),
                takes_questions: true,
                running: HashMap::new(),
                log_level: remembered.log_level,
                subscriptions: remembered.subscriptions,
                access: principal.access.clone(),
                seen_lists,
                has_listed: false,
                is_stored,
                seen: Instant::now(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock()
    }

    /// What the credential of the client grants.
    pub(crate) fn access(&self) -> LiveAccess {
        self.state().access.clone()
    }

    /// Notes the credential of a request.
    pub(crate) fn set_access(&self, access: &LiveAccess) {
        let mut state = self.state();
        if !state.access.is_same(access) {
            state.access = access.clone();
        }
    }

    pub(crate) fn touch(&self) {
        self.state().seen = Instant::now();
    }

    /// When the client was active last; `None` while it has an open stream or a running request.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let mut state = self.state();
        state.streams.retain(|stream| !stream.is_closed());
        if state.streams.is_empty() && state.running.is_empty() {
            return Some(state.seen);
        }
        // Idle time counts from the end of this activity.
        state.seen = Instant::now();
        None
    }

    /// Opens one more stream to the client. List changes and messages that came while none was open are sent on it first.
    pub(crate) fn open_stream(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
        let mut state = self.state();
        let owed = std::mem::take(&mut state.owed);
        let backlog = std::mem::take(&mut state.backlog);
        let owed = owed.methods().map(|method| notification(method, None));
        for message in owed.chain(backlog) {
            // Backlog and list changes together are fewer than `STREAM_QUEUE`.
            let _full = sender.try_send(message);
        }
        state.streams.retain(|stream| !stream.is_closed());
        state.streams.push(sender);
        receiver
    }

    pub(crate) fn has_stream(&self) -> bool {
        self.state().streams.iter().any(|stream| !stream.is_closed())
    }

    /// Sends to the newest open stream. Without one, the message is kept; the oldest is dropped beyond `BACKLOG`.
    pub(crate) fn send(&self, message: String) {
        let mut state = self.state();
        if let Some(unsent) = state.deliver(message) {
            if state.backlog.len() == BACKLOG {
                state.backlog.pop_front();
            }
            state.backlog.push_back(unsent);
        }
    }

    /// Compares the current lists with those the client saw last, and sends `list_changed` for each difference.
    pub(crate) fn tell_changes(&self, now: impl FnOnce() -> SeenLists) {
        let mut state = self.state();
        // Computed under the lock, so that a later comparison never uses older lists.
        let now = now();
        let changes = now.since(&state.seen_lists);
        state.seen_lists = now;
        for method in changes.methods() {
            if state.deliver(notification(method, None)).is_some() {
                state.owed.join(only(changes, method));
            } else if method == TOOLS_CHANGED {
                self.relists.note_told();
            }
        }
    }

    /// Takes the current lists as seen without a notification: the client has not received any list that changed.
    pub(crate) fn adopt(&self, now: impl FnOnce() -> SeenLists) {
        let mut state = self.state();
        if !state.has_listed {
            state.seen_lists = now();
        }
    }

    /// Notes that the client receives a list.
    pub(crate) fn note_list(&self) {
        self.state().has_listed = true;
    }

    /// Takes the list changes that wait for a stream. The caller must send them.
    pub(crate) fn take_owed(&self) -> ListChanges {
        std::mem::take(&mut self.state().owed)
    }

    /// Takes the waiting list changes to send them before the response to `method`; none if the client has a stream. A
    /// change of the list that `method` returns is dropped, because the response is current.
    pub(crate) fn take_owed_before(&self, method: &str, can_hear: bool) -> ListChanges {
        let mut state = self.state();
        if state.owed == ListChanges::default() {
            return ListChanges::default();
        }
        match method {
            "tools/list" => state.owed.tools = false,
            "prompts/list" => state.owed.prompts = false,
            _ => {}
        }
        state.streams.retain(|stream| !stream.is_closed());
        if can_hear && state.streams.is_empty() {
            std::mem::take(&mut state.owed)
        } else {
            ListChanges::default()
        }
    }

    /// Takes back a message that a closed stream did not deliver.
    pub(crate) fn take_back(&self, message: String) {
        let all = ListChanges { tools: true, prompts: true, resources: true };
        let told = all.methods().find(|method| notification(method, None) == message);
        match told {
            Some(method) => self.state().owed.join(only(all, method)),
            None => self.send(message),
        }
    }

    /// The fingerprint of the lists that the client knows. Lists with an unannounced change are left out.
    pub(crate) fn fingerprint(&self) -> String {
        let state = self.state();
        state.seen_lists.fingerprint_without(state.owed)
    }

    /// Allocates an id for a request to the client. Its response arrives in a later message of the client.
    pub(crate) fn ask(&self) -> Option<(String, oneshot::Receiver<ClientReply>)> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.questions.retain(|_, waiting| !waiting.is_closed());
        if !state.takes_questions || state.questions.len() >= MAX_QUESTIONS {
            return None;
        }
        let id = format!("\"switchboard-{}\"", self.next_question.fetch_add(1, Ordering::Relaxed));
        state.questions.insert(id.clone(), sender);
        Some((id, receiver))
    }

    /// Drops all pending requests to the client and refuses new ones.
    pub(crate) fn refuse_questions(&self) {
        let mut state = self.state();
        state.takes_questions = false;
        state.questions.clear();
    }

    /// Takes the client's response to a request of ours; `false` when no request has this id.
    pub(crate) fn take_answer(&self, id: &str, outcome: Result<&str, &str>) -> bool {
        let Some(waiting) = self.state().questions.remove(id) else { return false };
        let reply = match outcome {
            Ok(result) => JsonText::from_text(result).map_err(|_| unreadable()),
            Err(error) => Err(read_error(error)),
        };
        // The receiver may have timed out.
        let _gone = waiting.send(reply);
        true
    }

    /// Registers a request. Its token is cancelled by `notifications/cancelled` or when the client ends. `None` if a request
    /// with this id is still running.
    pub(crate) fn begin(&self, id: &str) -> Option<CancellationToken> {
        let token = self.ended.child_token();
        let mut state = self.state();
        state.seen = Instant::now();
        // A cancellation would be ambiguous if two running requests had one id.
        if state.running.contains_key(id) {
            return None;
        }
        state.running.insert(id.to_owned(), token.clone());
        Some(token)
    }

    pub(crate) fn finish(&self, id: &str) {
        let mut state = self.state();
        state.running.remove(id);
        state.seen = Instant::now();
    }

    pub(crate) fn cancel(&self, id: &str) {
        if let Some(token) = self.state().running.get(id) {
            token.cancel();
        }
    }

    /// Notes that the client is in the store.
    pub(crate) fn note_stored(&self) {
        self.state().is_stored = true;
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.state().is_stored
    }

    /// Takes what another board has stored. Returns whether the subscriptions are others than before.
    pub(crate) fn follow(
        &self,
        log_level: Option<LogLevel>,
        subscriptions: BTreeSet<String>,
    ) -> bool {
        let mut state = self.state();
        state.log_level = log_level.or(state.log_level);
        let has_changed = state.subscriptions != subscriptions;
        state.subscriptions = subscriptions;
        has_changed
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.state().log_level
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    /// Restores the previous log level after the new one could not be stored.
    pub(crate) fn restore_log_level(&self, level: Option<LogLevel>) {
        self.state().log_level = level;
    }

    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.state().subscriptions.clone()
    }

    /// Adds or removes a resource subscription; `false` beyond `MAX_SUBSCRIPTIONS`.
    pub(crate) fn subscribe(&self, uri: &str, is_wanted: bool) -> bool {
        const MAX_SUBSCRIPTIONS: usize = 256;
        let mut state = self.state();
        if !is_wanted {
            state.subscriptions.remove(uri);
            return true;
        }
        if state.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return false;
        }
        state.subscriptions.insert(uri.to_owned());
        true
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.state().subscriptions.contains(uri)
    }

    /// Closes the client's event streams.
    pub(crate) fn end_streams(&self) {
        self.state().streams.clear();
    }

    /// Ends the client: cancels its requests and closes its streams.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        let mut state = self.state();
        state.streams.clear();
        state.questions.clear();
    }
}

impl ClientState {
    /// Sends to the newest open stream; returns the message when no stream takes it.
    fn deliver(&mut self, message: String) -> Option<String> {
        let mut message = message;
        while let Some(stream) = self.streams.last() {
            match stream.try_send(message) {
                Ok(()) => return None,
                // The stream is closed, or its queue is full: drop it.
                Err(
                    mpsc::error::TrySendError::Closed(unsent)
                    | mpsc::error::TrySendError::Full(unsent),
                ) => {
                    message = unsent;
                    self.streams.pop();
                }
            }
        }
        Some(message)
    }
}

fn only(changes: ListChanges, method: &str) -> ListChanges {
    ListChanges {
        tools: changes.tools && method.contains("tools"),
        prompts: changes.prompts && method.contains("prompts"),
        resources: changes.resources && method.contains("resources"),
    }
}

fn unreadable() -> RpcError {
    RpcError { code: -32_603, message: "the client's response is invalid".into(), data: None }
}

fn read_error(json: &str) -> RpcError {
    let members = Members::read(json).unwrap_or_default();
    RpcError {
        code: members.get("code").and_then(|code| code.parse().ok()).unwrap_or(-32_603),
        message: members.string("message").unwrap_or_default().chars().take(4000).collect(),
        data: members.get("data").and_then(|data| JsonText::from_text(data).ok()),
    }
}
