//! The place of the board, which is empty until the board has started.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_inject::Injection;
use switchboard_runtime::{Board, LiveConfig};
use switchboard_sessions::SessionService;
use switchboard_turns::Turns;
use tokio::sync::watch;

/// Holds the board, which may still be starting. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct BoardPlace {
    parts: Arc<OnceLock<StartedParts>>,
    /// Becomes true when the start has ended, well or not.
    has_ended: Arc<watch::Sender<bool>>,
    config: Arc<OnceLock<Arc<LiveConfig>>>,
    is_stopping: Arc<AtomicBool>,
    preparation: Arc<Mutex<Option<Preparation>>>,
}

/// What is done with the board before it serves requests.
struct Preparation(Box<Prepare>);

type Prepare = dyn FnOnce(&Arc<Board>) + Send;

impl std::fmt::Debug for Preparation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Preparation")
    }
}

/// The board with its sessions and turns.
#[derive(Debug, Clone)]
pub(crate) struct StartedParts {
    pub(crate) board: Arc<Board>,
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) injection: Arc<Injection>,
}

impl BoardPlace {
    /// Sets the started board with its sessions and turns. Later calls have no effect.
    pub fn fill(&self, board: Arc<Board>, sessions: Arc<SessionService>, turns: Arc<Turns>) {
        let mut preparation = self.preparation.lock();
        if let Some(Preparation(prepare)) = preparation.take() {
            prepare(&board);
        }
        let injection = Injection::new(sessions.clone(), turns.providers().clone());
        let _there_is_one = self.parts.set(StartedParts { board, sessions, turns, injection });
        self.has_ended.send_replace(true);
    }

    /// Prepares the board before it serves the first request: now, if it has started already.
    pub(crate) fn before_requests(&self, prepare: impl FnOnce(&Arc<Board>) + Send + 'static) {
        let mut preparation = self.preparation.lock();
        match self.board() {
            Some(board) => prepare(board),
            None => *preparation = Some(Preparation(Box::new(prepare))),
        }
    }

    /// The start has failed: requests that wait for the board are answered.
    pub fn abandon(&self) {
        self.has_ended.send_replace(true);
    }

    /// The board will stop: from now on it is not ready, although it still answers.
    pub fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Sets the configuration that the API shows and edits. Later calls have no effect.
    pub fn set_config(&self, config: Arc<LiveConfig>) {
        let _there_is_one = self.config.set(config);
    }

    /// The configuration of the board, once it has started.
    pub fn config(&self) -> Option<&Arc<LiveConfig>> {
        self.config.get()
    }

    pub(crate) fn board(&self) -> Option<&Arc<Board>> {
        self.started().map(|parts| &parts.board)
    }

    pub(crate) fn started(&self) -> Option<&StartedParts> {
        self.parts.get()
    }

    /// The parts, once the start has ended, but not later than after `limit`.
    pub(crate) async fn started_within(&self, limit: Duration) -> Option<&StartedParts> {
        let mut has_ended = self.has_ended.subscribe();
        // An error is the end of the time; the sender lives as long as this.
        let _late = tokio::time::timeout(limit, has_ended.wait_for(|it| *it)).await;
        self.started()
    }
}
