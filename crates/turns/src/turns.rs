//! All turns: who begins one, who comes back to one, what is kept of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_chat::{
    History, Message, Overlay, Problem, Said, Turn, TurnEvent, TurnLimits, TurnStatus, Usage,
};
use switchboard_gateway::Gateway;
use switchboard_providers::Providers;
use switchboard_runtime::Board;
use switchboard_sessions::Session;
use switchboard_store::Store;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::TurnError;
use crate::conversation::{self, Conversation};
use crate::driver::{Driver, State};
use crate::live::{LiveTurn, TurnEnd};
use crate::new_turn::{NewTurn, Wanted, Words};
use crate::shown::Stretch;

/// How long, and how many of them, turns that have ended can be read again.
const REMEMBER: Duration = Duration::from_mins(10);
const REMEMBERED: usize = 256;
/// For how many sessions it is known what their model was shown before.
const STRETCHES: usize = 4096;
/// The longest name of a turn: the ids of its calls are made of it, and no provider takes longer ones than 64.
const LONGEST_NAME: usize = 48;

/// The turns of a board.
pub struct Turns {
    gateway: Arc<Gateway>,
    providers: Arc<Providers>,
    store: Store,
    book: Mutex<Book>,
    running: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct Book {
    /// By session.
    running: HashMap<String, Arc<LiveTurn>>,
    /// Oldest first, with the moment of their end.
    ended: VecDeque<(Instant, Arc<LiveTurn>)>,
    stretches: HashMap<String, Stretch>,
    /// The board is about to stop.
    is_closed: bool,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

impl Turns {
    /// Turns of the sessions of a gateway. `environment` knows variables by their names: some providers have their keys
    /// there. [`Turns::shutdown`] ends them.
    pub fn start(
        board: &Arc<Board>,
        gateway: Arc<Gateway>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Arc<Self> {
        let providers = Arc::new(Providers::new(&board.plan().providers, environment));
        let turns = Arc::new(Self {
            gateway,
            providers: providers.clone(),
            store: board.store().clone(),
            book: Mutex::default(),
            running: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let (board, stop) = (board.clone(), turns.stop.clone());
        turns.running.spawn(async move {
            let mut plans = board.plans();
            while let Some(Ok(())) = stop.run_until_cancelled(plans.changed()).await {
                providers.set(&board.plan().providers);
            }
        });
        turns
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    /// Begins a turn. It runs on whether anybody listens or not.
    pub async fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
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
        let live = Arc::new(LiveTurn::new(id, &session.id));
        if let Some(other) = self.running(&session.id) {
            other.has_let_go().await;
        }
        {
            let mut book = self.book();
            if book.is_closed {
                return Err(TurnError::Stopping);
            }
            match book.running.get(&*session.id) {
                Some(other) if other.id == live.id => return Ok(other.clone()),
                Some(other) => return Err(TurnError::Busy { turn: other.id.clone() }),
                None => book.running.insert(session.id.to_string(), live.clone()),
            };
        }
        match self.driver(session, live.clone(), wanted).await {
            Ok(driver) => {
                let turns = self.clone();
                self.running.spawn(async move {
                    let session = driver.session.id.to_string();
                    let stretch = driver.run().await;
                    turns.ended(&session, stretch);
                });
                Ok(live)
            }
            Err(error) => {
                // Who asked for the same turn a moment later is not left waiting.
                live.set_end(failed(&error));
                let (status, usage) = (TurnStatus::Failed, Usage::default());
                live.tell(&TurnEvent::Done { status, stop: None, usage, messages: 0 });
                self.book().running.remove(&*session.id);
                live.let_go();
                Err(error)
            }
        }
    }

    async fn driver(
        &self,
        session: &Arc<Session>,
        live: Arc<LiveTurn>,
        new: NewTurn,
    ) -> Result<Driver, TurnError> {
        // A message belongs to a session that is stored.
        self.gateway.sessions().keeper.flush().await;
        new.check()?;
        let wanted = Wanted::of(&new);
        // What cannot be asked at all is said before anything is kept.
        wanted.endpoint(&self.providers, session).map_err(TurnError::Provider)?;
        let (mut conversation, mut messages) = Conversation::read(&self.store, &session.id).await?;
        let mut before = messages.len();
        let content = new.message.map(Words::parts).unwrap_or_default();
        if !content.is_empty() {
            messages.push(Message::User(Said { content }));
        } else if !matches!(messages.last(), Some(Message::User(_) | Message::Tool(_))) {
            return Err(TurnError::NothingSaid);
        }
        let mut overlay = Overlay::new(&messages, new.edits)?;
        let mut stretch = self.book().stretches.remove(&*session.id);
        if new.persist && !overlay.is_empty() {
            messages = std::mem::take(&mut overlay).lay_over(&messages).messages;
            conversation.replace(&messages).await?;
            (before, stretch) = (messages.len().saturating_sub(1), None);
        }
        let limits = TurnLimits::default();
        let limits = TurnLimits {
            rounds: new.max_rounds.unwrap_or(limits.rounds),
            tokens: new.max_tokens_total,
            ..limits
        };
        Ok(Driver {
            gateway: self.gateway.clone(),
            providers: self.providers.clone(),
            session: session.clone(),
            turn: Turn::new(live.id.clone(), messages, limits),
            live,
            conversation,
            overlay,
            wanted,
            before,
            stretch,
            stop: self.stop.clone(),
            state: State::default(),
        })
    }

    fn ended(&self, session: &str, stretch: Option<Stretch>) {
        let mut book = self.book();
        if let Some(stretch) = stretch
            && book.stretches.len() < STRETCHES
        {
            book.stretches.insert(session.to_owned(), stretch);
        }
        if let Some(live) = book.running.remove(session) {
            live.let_go();
            book.ended.push_back((Instant::now(), live));
        }
        book.forget_old();
    }

    /// A turn of a session that runs, or ended a while ago.
    pub fn find(&self, session: &str, id: &str) -> Option<Arc<LiveTurn>> {
        self.of(session).into_iter().find(|turn| turn.id == id)
    }

    /// The turns of a session that are remembered, oldest first.
    pub fn of(&self, session: &str) -> Vec<Arc<LiveTurn>> {
        let mut book = self.book();
        book.forget_old();
        let ended = book.ended.iter().map(|(_, turn)| turn);
        let all = ended.chain(book.running.get(session));
        all.filter(|turn| turn.session == session).cloned().collect()
    }

    /// The turn of a session that runs.
    pub fn running(&self, session: &str) -> Option<Arc<LiveTurn>> {
        self.book().running.get(session).cloned()
    }

    /// The session has changed, and its model is to see that at once: a running turn is restarted from where it stands.
    pub fn apply_now(&self, session: &str) {
        if let Some(turn) = self.running(session) {
            turn.apply_now();
        }
    }

    /// The session has ended.
    pub fn forget(&self, session: &str) {
        if let Some(turn) = self.running(session) {
            turn.cancel();
        }
        let mut book = self.book();
        book.stretches.remove(session);
        book.ended.retain(|(_, turn)| turn.session != session);
    }

    /// What a session has said.
    pub async fn history(&self, session: &Session) -> Result<History, TurnError> {
        conversation::history(&self.store, &session.id).await
    }

    /// Puts a conversation in the place of the one that a session has.
    pub async fn set_history(&self, session: &Session, history: &History) -> Result<(), TurnError> {
        if let Some(turn) = self.running(&session.id) {
            return Err(TurnError::Busy { turn: turn.id.clone() });
        }
        self.gateway.sessions().keeper.flush().await;
        let (mut conversation, _) = Conversation::read(&self.store, &session.id).await?;
        conversation.replace(&history.messages).await?;
        self.book().stretches.remove(&*session.id);
        Ok(())
    }

    /// Lets running turns end for a while, then cancels them and waits until what they said is stored.
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

impl Book {
    fn forget_old(&mut self) {
        while let Some((ended, _)) = self.ended.front()
            && (self.ended.len() > REMEMBERED || ended.elapsed() > REMEMBER)
        {
            self.ended.pop_front();
        }
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

/// Why a turn ended that no model had to do with.
pub(crate) fn not_kept(error: &TurnError) -> Problem {
    Problem {
        kind: "not_kept",
        message: error.to_string(),
        blame: "switchboard",
        advice: "look at the log of the board and at the disk of its data directory",
        status: None,
        code: None,
        retry_after_ms: None,
        request_id: None,
    }
}
