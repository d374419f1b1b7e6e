//! Notices of sessions that are created, changed or ended, for those who watch all of them.

use std::sync::Arc;

use crate::session::Session;

/// How many notices a receiver may be behind; it then loses the oldest and is told so.
pub(crate) const WAITING_NOTICES: usize = 1024;

/// A session that was created, changed or ended.
#[derive(Debug, Clone)]
pub struct SessionNotice {
    pub id: Arc<str>,
    pub owner: Arc<str>,
    pub stage: SessionStage,
    pub tools_revision: u64,
}

/// What happened to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStage {
    Created,
    Changed,
    Ended,
}

impl SessionNotice {
    pub(crate) fn of(session: &Session, stage: SessionStage) -> Self {
        let (id, owner) = (session.id.clone(), session.owner.clone());
        Self { id, owner, stage, tools_revision: session.revision() }
    }
}
