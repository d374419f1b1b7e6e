//! All turns: begins them, finds them, and keeps ended ones readable for a while.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use switchboard_chat::{
    History, Message, Overlay, Said, Turn, TurnEvent, TurnLimits, TurnStatus, Usage,
};
use switchboard_model::Caller;
use switchboard_providers::Providers;
use switchboard_runtime::Board;
use switchboard_sessions::{Session, SessionService};
use switchboard_store::Store;
use tokio::sync::{broadcast, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::TurnError;
use crate::conversation::{self, StoredConversation};
use crate::driver::{Driver, DriverState};
use crate::live::{LiveTurn, TurnEnd};
use crate::new_turn::{NewTurn, Wanted};
use crate::react_prompt::ReactPrompts;
use crate::tool_epoch::ToolEpoch;
use crate::turn_problem::not_kept;
use crate::words::Words;

/// How long, and how many, ended turns stay readable.
const REMEMBER: Duration = Duration::from_mins(10);
const REMEMBERED: usize = 2048;
/// Maximum size of the events of all ended turns.
const REMEMBERED_BYTES: usize = 64 << 20;
/// The id that marks the import of a conversation; it is not a valid turn id.
const IMPORT: &str = "(import)";
/// Maximum number of sessions whose tool epoch is kept.
const MAX_EPOCHS: usize = 4096;
/// Maximum length of a turn id: the ids of its calls contain it, and providers limit those to 64 characters.
const LONGEST_NAME: usize = 48;

/// How many notices a receiver may be behind; it then loses the oldest and is told so.
const WAITING_NOTICES: usize = 256;

/// A turn that has begun or ended: [`LiveTurn::end`] says which.
#[derive(Debug, Clone)]
pub struct TurnNotice(pub Arc<LiveTurn>);

/// The turns of a board.
pub struct Turns {
    sessions: Arc<SessionService>,
    providers: Arc<Providers>,
    store: Store,
    prompts: Arc<ReactPrompts>,
    book: Mutex<Book>,
    /// Announces turns that begin and end. A slow receiver loses the oldest notices.
    notices: broadcast::Sender<TurnNotice>,
    running: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct Book {
    /// By session.
    running: HashMap<String, Arc<LiveTurn>>,
    /// Oldest first, with the time of their end.
    ended: VecDeque<(Instant, Arc<LiveTurn>)>,
    epochs: HashMap<String, ToolEpoch>,
    /// Whether the board is shutting down.
    is_closed: bool,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

impl Turns {
    /// Creates the turns of all sessions. `environment` looks up variables by name, such as the API keys of providers.
    /// [`Turns::shutdown`] ends them.
    pub fn start(
        board: &Arc<Board>,
        sessions: Arc<SessionService>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Arc<Self> {
        // Subscribed before the plan is read, so that no reload in between is missed.
        let mut versions = board.versions();
        let mut plan = board.plan();
        let sign_ins = board.sign_ins().cloned();
        let providers = Providers::with_sign_ins(&plan.providers, environment, sign_ins);
        let providers = Arc::new(providers);
        let turns = Arc::new(Self {
            sessions,
            providers: providers.clone(),
            store: board.store().clone(),
            prompts: Arc::default(),
            book: Mutex::default(),
            notices: broadcast::Sender::new(WAITING_NOTICES),
            running: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let (tidied, stop) = (providers.clone(), turns.stop.clone());
        turns.running.spawn(async move {
            stop.run_until_cancelled(tidied.tidy()).await;
        });
        let (board, stop) = (board.clone(), turns.stop.clone());
        turns.running.spawn(async move {
            while let Some(Ok(())) = stop.run_until_cancelled(versions.changed()).await {
                let now = board.plan();
                if !Arc::ptr_eq(&plan, &now) {
                    providers.set(&now.providers);
                    plan = now;
                }
            }
        });
        turns
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    pub fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    /// Begins a turn for this caller: its model acts for the caller's person. It runs whether or not anything listens to
    /// its events.
    pub async fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
        caller: Caller,
        wanted: NewTurn,
    ) -> Result<Arc<LiveTurn>, TurnError> {
        let id = match &wanted.id {
            Some(id) if is_name(id) => id.clone(),
            Some(id) => return Err(TurnError::BadName(id.clone())),
            None => Uuid::now_v7().simple().to_string(),
        };
        if let Some(known) = self.find(&session.id, &id) {
            return Ok(known);
        }
        let live = Arc::new(LiveTurn::new(id, session));
        let slot = match self.take_slot(&live) {
            Ok(slot) => slot,
            Err(TurnError::Busy { turn }) if turn == live.id => {
                return self.running(&session.id).ok_or(TurnError::Busy { turn });
            }
            Err(error) => return Err(error),
        };
        // The whole beginning runs in a task of its own, so that a caller that goes away does not interrupt it.
        let (tell, begun) = oneshot::channel();
        let (turns, session, caller) = (self.clone(), session.clone(), Arc::new(caller));
        self.running.spawn(async move { turns.run(slot, session, caller, wanted, tell).await });
        begun.await.unwrap_or(Err(TurnError::Stopping)).map(|()| live)
    }

    /// Takes the slot of a session: while it is held, no other turn runs and nothing else changes the conversation.
    fn take_slot(self: &Arc<Self>, live: &Arc<LiveTurn>) -> Result<TurnSlot, TurnError> {
        let mut book = self.book();
        if book.is_closed {
            return Err(TurnError::Stopping);
        }
        match book.running.entry(live.session.clone()) {
            Entry::Occupied(other) => Err(TurnError::Busy { turn: other.get().id.clone() }),
            Entry::Vacant(free) => {
                free.insert(live.clone());
                let (turns, live) = (self.clone(), live.clone());
                Ok(TurnSlot { turns, live, is_remembered: false, is_import: false })
            }
        }
    }

    async fn run(
        &self,
        mut slot: TurnSlot,
        session: Arc<Session>,
        caller: Arc<Caller>,
        wanted: NewTurn,
        tell: oneshot::Sender<Result<(), TurnError>>,
    ) {
        let driver = match self.driver(&session, caller, slot.live.clone(), wanted).await {
            Ok(driver) => driver,
            Err(error) => {
                let end = failed(&error);
                // A concurrent request for the same turn must not wait forever.
                let live = slot.live.clone();
                drop(slot);
                live.close(end, &done_without_messages());
                let _caller_went_away = tell.send(Err(error));
                return;
            }
        };
        let _caller_went_away = tell.send(Ok(()));
        slot.is_remembered = true;
        self.notify(&slot.live);
        let over = driver.run().await;
        if let Some(epoch) = over.epoch {
            self.book().keep_stretch(&session.id, epoch);
        }
        let live = slot.live.clone();
        drop(slot);
        if let Some((end, last)) = over.end {
            live.close(end, &last);
        }
        self.notify(&live);
    }

    /// Announces the state of a turn.
    fn notify(&self, live: &Arc<LiveTurn>) {
        // An error means that nobody listens.
        let _unheard = self.notices.send(TurnNotice(live.clone()));
    }

    /// Announces turns that begin and end from now on.
    pub fn notices(&self) -> broadcast::Receiver<TurnNotice> {
        self.notices.subscribe()
    }

    async fn driver(
        &self,
        session: &Arc<Session>,
        caller: Arc<Caller>,
        live: Arc<LiveTurn>,
        new: NewTurn,
    ) -> Result<Driver, TurnError> {
        new.check()?;
        let (wanted, groups) = (Wanted::of(&new), new.tool_groups());
        // A provider that cannot be used is reported before anything is stored.
        wanted.endpoint(&self.providers, session).map_err(TurnError::Provider)?;
        let (mut conversation, mut messages) =
            StoredConversation::read(&self.store, &session.id).await?;
        if new.id.is_some() && has_run(&messages, &live.id) {
            return Err(TurnError::HasRun(live.id.clone()));
        }
        let mut before = messages.len();
        let content = new.message.map(Words::parts).unwrap_or_default();
        let said = usize::from(!content.is_empty());
        if !content.is_empty() {
            messages.push(Message::User(Said { content }));
        } else if !matches!(messages.last(), Some(Message::User(_) | Message::Tool(_))) {
            return Err(TurnError::NothingSaid);
        }
        let mut overlay = Overlay::new(&messages, new.edits)?;
        let mut epoch = self.book().epochs.remove(&*session.id);
        if new.persist && !overlay.is_empty() {
            messages = std::mem::take(&mut overlay).lay_over(&messages);
            conversation.replace(&messages).await?;
            (before, epoch) = (messages.len().saturating_sub(said), None);
        }
        // The user's message is stored before the start of the turn is announced.
        conversation.keep(&messages).await?;
        let limits = TurnLimits::default();
        let limits = TurnLimits {
            rounds: new.max_rounds.unwrap_or(limits.rounds),
            tokens: new.max_tokens_total,
            ..limits
        };
        Ok(Driver {
            sessions: self.sessions.clone(),
            providers: self.providers.clone(),
            prompts: self.prompts.clone(),
            session: session.clone(),
            caller,
            turn: Turn::new(live.id.clone(), messages, limits),
            live,
            conversation,
            overlay,
            wanted,
            groups,
            before,
            began: Instant::now(),
            epoch,
            stop: self.stop.clone(),
            state: DriverState::default(),
        })
    }

    /// A turn of a session that is running, or has ended and is still readable.
    pub fn find(&self, session: &str, id: &str) -> Option<Arc<LiveTurn>> {
        self.of(session).into_iter().find(|turn| turn.id == id)
    }

    /// The readable turns of a session, oldest first.
    pub fn of(&self, session: &str) -> Vec<Arc<LiveTurn>> {
        let mut book = self.book();
        book.forget_old();
        let ended = book.ended.iter().map(|(_, turn)| turn);
        let all = ended.chain(book.running.get(session));
        all.filter(|turn| turn.session == session).cloned().collect()
    }

    /// The running turn of a session.
    pub fn running(&self, session: &str) -> Option<Arc<LiveTurn>> {
        self.book().running.get(session).cloned()
    }

    /// All turns that run.
    pub fn all_running(&self) -> Vec<Arc<LiveTurn>> {
        self.book().running.values().cloned().collect()
    }

    /// Makes a change of the session visible to its model at once: a running turn sends its current request again with
    /// the new tools.
    pub fn apply_now(&self, session: &str) {
        if let Some(turn) = self.running(session) {
            turn.apply_now();
        }
    }

    /// Ends the turn of a session that is about to be deleted, so that nothing is stored for a session that no longer
    /// exists, or for another one with the same id. While the store accepts no writes, the session cannot be deleted,
    /// and its turn goes on.
    pub async fn end_of(&self, session: &str) -> Result<(), TurnError> {
        if let Some(turn) = self.running(session) {
            self.store.check_writable().await?;
            turn.cancel();
            turn.ended().await;
        }
        Ok(())
    }

    /// Forgets the turns of a deleted session.
    pub fn forget(&self, session: &str) {
        let mut book = self.book();
        book.epochs.remove(session);
        book.ended.retain(|(_, turn)| turn.session != session);
    }

    /// The conversation of a session.
    pub async fn history(&self, session: &Session) -> Result<History, TurnError> {
        conversation::history(&self.store, &session.id).await
    }

    /// Replaces the conversation of a session.
    pub async fn set_history(
        self: &Arc<Self>,
        session: &Session,
        history: &History,
    ) -> Result<(), TurnError> {
        // Takes the slot of a turn, so that none begins while the conversation is replaced.
        let import = Arc::new(LiveTurn::new(IMPORT.to_owned(), session));
        let mut slot = self.take_slot(&import)?;
        slot.is_import = true;
        let mut conversation = StoredConversation::unread(&self.store, &session.id).await?;
        conversation.replace(&history.messages).await?;
        self.book().epochs.remove(&*session.id);
        Ok(())
    }

    /// Waits for running turns up to `patience`, then cancels them and waits until their messages are stored.
    pub async fn shutdown(&self, patience: Duration) {
        self.book().is_closed = true;
        let running: Vec<_> = self.book().running.values().cloned().collect();
        let all_end = async {
            for turn in running {
                turn.ended().await;
            }
        };
        if tokio::time::timeout(patience, all_end).await.is_err() {
            tracing::warn!("turns that still run are cancelled");
        }
        self.stop.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

/// The exclusive right to continue a conversation. Dropping it releases it, also in a panic.
struct TurnSlot {
    turns: Arc<Turns>,
    live: Arc<LiveTurn>,
    /// Whether the turn stays readable when it is over.
    is_remembered: bool,
    /// Whether it belongs to an import rather than to a turn.
    is_import: bool,
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        let mut book = self.turns.book();
        book.running.remove(&self.live.session);
        if self.is_remembered {
            book.ended.push_back((Instant::now(), self.live.clone()));
            book.forget_old();
        }
        drop(book);
        // Otherwise the turn would never end for those who wait for it.
        if self.is_import || std::thread::panicking() {
            let end = failed(&TurnError::Store("the turn ended by an internal error".into()));
            self.live.close(end, &done_without_messages());
        }
        if std::thread::panicking() {
            self.turns.notify(&self.live);
        }
    }
}

fn done_without_messages() -> TurnEvent {
    let (status, usage) = (TurnStatus::Failed, Usage::default());
    TurnEvent::Done { status, stop: None, usage, messages: 0 }
}

/// Whether a model has already answered in this turn, possibly before a restart.
fn has_run(messages: &[Message], turn: &str) -> bool {
    messages.iter().any(|message| match message {
        Message::Assistant(reply) => reply.turn.as_deref() == Some(turn),
        Message::System(_) | Message::User(_) | Message::Tool(_) => false,
    })
}

impl Book {
    fn forget_old(&mut self) {
        let mut bytes: usize = self.ended.iter().map(|(_, turn)| turn.bytes()).sum();
        while let Some((ended, turn)) = self.ended.front()
            && (self.ended.len() > REMEMBERED
                || bytes > REMEMBERED_BYTES
                || ended.elapsed() > REMEMBER)
        {
            bytes -= turn.bytes();
            self.ended.pop_front();
        }
    }

    fn keep_stretch(&mut self, session: &str, epoch: ToolEpoch) {
        if self.epochs.len() >= MAX_EPOCHS {
            // Any one: its session begins a new epoch and only loses the model's earlier thinking.
            let some = self.epochs.keys().next().cloned();
            some.and_then(|some| self.epochs.remove(&some));
        }
        self.epochs.insert(session.to_owned(), epoch);
    }
}

fn is_name(id: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST_NAME).contains(&id.len()) && id.bytes().all(is_legal)
}

fn failed(error: &TurnError) -> TurnEnd {
    TurnEnd {
        status: TurnStatus::Failed,
        stop: None,
        usage: Usage::default(),
        error: Some(not_kept(error)),
        messages: Vec::new(),
    }
}
