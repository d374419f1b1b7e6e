//! Sessions that several boards share: what this board holds of one is compared with its row in the store.
//!
//! The row is the truth. It is compared before anything is listed and before anything is refused; a call of a tool that the
//! view has may use a view of up to [`RECENT`]. Hints of other boards, and polls at intervals, bring open event streams up
//! to date. On `SQLite`, where no other board writes, nothing is compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::SessionError;
use crate::session::{OwnServer, RowNews, Session};
use crate::session_notice::SessionStage;
use crate::sessions::Sessions;

/// The age of a view that a call may use without a look at the store.
pub(crate) const RECENT: Duration = Duration::from_secs(1);

/// What a comparison with the store brought.
#[derive(Debug)]
pub enum Compared {
    /// Nothing new.
    Same,
    /// The session was brought to a newer row, or clients of it have changed. It had these servers of its own before.
    Changed { servers_before: BTreeMap<String, OwnServer> },
    /// The session has ended at another board, and is no longer in the table.
    Ended,
}

impl Sessions {
    /// The session of this id if it is in memory.
    pub(crate) fn in_memory(&self, id: &str) -> Option<Arc<Session>> {
        self.present().get(id).cloned()
    }

    /// Compares a session with the store, unless that was done within `at_most`, and brings it to a newer row.
    pub async fn compare(
        &self,
        session: &Arc<Session>,
        at_most: Duration,
    ) -> Result<Compared, SessionError> {
        if !self.writes.store.is_shared() || session.unseen_for() < at_most {
            return Ok(Compared::Same);
        }
        let at = Instant::now();
        let versions = self.writes.store.session_versions(&[&session.id]).await?;
        if session.is_as_stored(versions.get(&*session.id)) {
            session.note_compared(at);
            return Ok(Compared::Same);
        }
        self.follow_row(session).await
    }

    /// Brings a session to its row in the store.
    pub(crate) async fn follow_row(
        &self,
        session: &Arc<Session>,
    ) -> Result<Compared, SessionError> {
        let at = Instant::now();
        let Some(stored) = self.writes.store.session(&session.id).await? else {
            if session.version() == 0 {
                return Ok(Compared::Same);
            }
            return Ok(self.ended_elsewhere(session));
        };
        let servers_before = session.now().draft.servers;
        let row = self.beginning_of(&stored).await?;
        match session.follow_row(&self.published, row) {
            RowNews::Known => {
                session.note_compared(at);
                Ok(Compared::Same)
            }
            RowNews::Replaced => Ok(self.ended_elsewhere(session)),
            RowNews::Newer { is_changed, is_ahead } => {
                session.note_compared(at);
                if is_ahead {
                    self.writes.note_session(session);
                }
                if is_changed {
                    self.notify(session, SessionStage::Changed);
                }
                Ok(Compared::Changed { servers_before })
            }
        }
    }

    fn ended_elsewhere(&self, session: &Arc<Session>) -> Compared {
        if session.is_ended() {
            return Compared::Same;
        }
        let mut present = self.present();
        if present.get(&session.id).is_some_and(|other| Arc::ptr_eq(other, session)) {
            present.remove(&session.id);
        }
        drop(present);
        session.end();
        self.notify(session, SessionStage::Ended);
        Compared::Ended
    }

    /// The sessions in memory that are not as the store has them.
    pub(crate) async fn outdated(&self) -> Result<Vec<Arc<Session>>, SessionError> {
        let at = Instant::now();
        let mut present: Vec<_> = self.present().values().cloned().collect();
        let ids: Vec<&str> = present.iter().map(|session| &*session.id).collect();
        let versions = self.writes.store.session_versions(&ids).await?;
        present.retain(|session| {
            let is_outdated = !session.is_as_stored(versions.get(&*session.id));
            if !is_outdated {
                session.note_compared(at);
            }
            is_outdated
        });
        Ok(present)
    }
}
