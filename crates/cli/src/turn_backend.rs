//! Turns, conversations and providers, from a running instance or an embedded board.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{StreamExt, stream};
use serde_json::Value;
use switchboard_api::{Problem, ProviderList};
use switchboard_chat::History;
use switchboard_http::present;
use switchboard_turns::{LiveTurn, NewTurn, Recorded, TurnError};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::remote_turn;
use crate::session_backend::{SessionBackend, found, local_caller};
use crate::turn_news::{FollowedTurn, News, Told};

impl SessionBackend {
    pub(crate) async fn providers(&self) -> Result<ProviderList, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["providers"], &[]).await,
            Self::Embedded(_, _, turns) => Ok(present::providers(turns.providers())),
        }
    }

    /// Starts a turn with the given id.
    pub(crate) async fn begin_turn(
        &self,
        session: &str,
        id: &str,
        wanted: NewTurn,
    ) -> Result<FollowedTurn<'_>, Failure> {
        let wanted = NewTurn { id: Some(id.to_owned()), ..wanted };
        match self {
            Self::Remote(remote) => remote_turn::begin(remote, session, id, wanted).await,
            Self::Embedded(_, sessions, turns) => {
                let session = found(sessions, session).await?;
                Ok(news(turns.begin(&session, local_caller(), wanted).await?))
            }
        }
    }

    /// Cancels a turn, and returns when it has ended.
    pub(crate) async fn cancel_turn(&self, session: &str, id: &str) -> Result<(), Failure> {
        match self {
            Self::Remote(remote) => {
                let path = ["sessions", session, "turns", id, "cancel"];
                remote.post::<Value>(&path, &serde_json::json!({})).await.map(drop)
            }
            Self::Embedded(_, _, turns) => {
                if let Some(turn) = turns.find(session, id) {
                    turn.cancel();
                    turn.ended().await;
                }
                Ok(())
            }
        }
    }

    pub(crate) async fn history(&self, session: &str) -> Result<History, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["sessions", session, "history"], &[]).await,
            Self::Embedded(_, sessions, turns) => {
                Ok(turns.history(&*found(sessions, session).await?).await?)
            }
        }
    }
}

/// Reads the events of a turn in this process.
struct TurnListener {
    turn: Arc<LiveTurn>,
    told: watch::Receiver<u64>,
    heard: u64,
    waiting: VecDeque<Recorded>,
}

fn news(turn: Arc<LiveTurn>) -> FollowedTurn<'static> {
    let listening =
        TurnListener { told: turn.follow(), turn, heard: 0, waiting: VecDeque::default() };
    let events = stream::unfold(listening, |mut listening| async move {
        let event = listening.next().await?;
        let json = String::from_utf8_lossy(&event.json).into_owned();
        Some((Ok(News::Told(Told::of(json))), listening))
    });
    events.boxed()
}

impl TurnListener {
    /// The next event; `None` after the end.
    async fn next(&mut self) -> Option<Recorded> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.heard = event.id;
                return Some(event);
            }
            self.told.borrow_and_update();
            // Checked before the events are read: if the turn is over, its last event is among them.
            let is_over = self.turn.end().is_some();
            self.waiting.extend(self.turn.events_after(self.heard));
            if self.waiting.is_empty() && (is_over || self.told.changed().await.is_err()) {
                return None;
            }
        }
    }
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        Problem::new(error.kind(), 0, error.to_string()).into()
    }
}
