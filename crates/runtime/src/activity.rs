//! The activity of the board, for those who watch it: calls that begin and end, and servers that change.
//!
//! Nothing is sent before the first subscription: a board that nobody watches pays one atomic load per call for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use switchboard_model::{CallRecord, ServerName};
use tokio::sync::broadcast;

use crate::board::Board;
use crate::running_calls::RunningCall;

/// How many activities a subscriber may be behind; it then loses the oldest and is told so.
const WAITING_ACTIVITIES: usize = 1024;

/// Something that happened on the board.
#[derive(Debug, Clone)]
pub enum BoardActivity {
    CallStarted(Arc<RunningCall>),
    CallEnded(Arc<CallRecord>),
    /// The state or the list of a configured server has changed.
    ServerChanged(ServerName),
}

/// The channel of all activities. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActivityFeed(Arc<FeedState>);

#[derive(Debug, Default)]
struct FeedState {
    sender: OnceLock<broadcast::Sender<BoardActivity>>,
    server_changes: AtomicU64,
}

impl ActivityFeed {
    fn subscribe(&self) -> broadcast::Receiver<BoardActivity> {
        self.0.sender.get_or_init(|| broadcast::Sender::new(WAITING_ACTIVITIES)).subscribe()
    }

    /// Sends an activity, if there ever was a subscriber.
    pub(crate) fn send(&self, activity: impl FnOnce() -> BoardActivity) {
        if let Some(sender) = self.0.sender.get() {
            // An error means that nobody listens now.
            let _unheard = sender.send(activity());
        }
    }

    /// Notes that the state or the list of a server has changed.
    pub(crate) fn server_changed(&self, server: &ServerName) {
        self.0.server_changes.fetch_add(1, Ordering::Release);
        self.send(|| BoardActivity::ServerChanged(server.clone()));
    }
}

impl Board {
    /// Subscribes to the activity of the board from now on.
    pub fn activity(&self) -> broadcast::Receiver<BoardActivity> {
        self.around.activity.subscribe()
    }

    /// How often a server has changed its state or its list. Equal numbers mean that nothing has changed in between.
    pub fn server_changes(&self) -> u64 {
        self.around.activity.0.server_changes.load(Ordering::Acquire)
    }
}
