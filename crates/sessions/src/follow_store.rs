//! Keeps the sessions of this board in step with what other boards store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use switchboard_model::ServerName;
use switchboard_store::{ChangeHint, HintNotice, HintTopic};
use tokio::sync::broadcast::error::RecvError;

use crate::error::SessionError;
use crate::service::SessionService;
use crate::session::{OwnServer, Session};
use crate::stored_sessions::{Compared, RECENT};

/// How often a change is applied again that other boards were quicker than.
const ATTEMPTS: usize = 3;

impl SessionService {
    /// Brings a session to its newest state, for lists and for everything that is refused. [`SessionError::Unknown`] if
    /// it has ended at another board. While the store cannot be read, the state in memory counts.
    pub async fn newest(&self, session: &Arc<Session>) -> Result<(), SessionError> {
        self.compared_within(session, Duration::ZERO).await
    }

    /// Brings a session to a state that is at most a second old, for calls.
    pub async fn recent(&self, session: &Arc<Session>) -> Result<(), SessionError> {
        self.compared_within(session, RECENT).await
    }

    async fn compared_within(
        &self,
        session: &Arc<Session>,
        at_most: Duration,
    ) -> Result<(), SessionError> {
        if !self.board.store().is_shared() || session.unseen_for() < at_most {
            return Ok(());
        }
        Box::pin(async {
            let compared = self.sessions.compare(session, at_most).await;
            self.after_comparison(session, compared).await
        })
        .await
    }

    /// Does what a comparison asks for: attaches and detaches servers, tells observers, releases what has ended.
    async fn after_comparison(
        &self,
        session: &Arc<Session>,
        compared: Result<Compared, SessionError>,
    ) -> Result<(), SessionError> {
        match compared {
            Ok(Compared::Same) => Ok(()),
            Ok(Compared::Changed { servers_before }) => {
                self.follow_servers(session, &servers_before).await;
                self.session_changed(session);
                self.session_followed(session);
                Ok(())
            }
            Ok(Compared::Ended) => {
                self.release_session(session).await;
                Err(SessionError::Unknown(session.id.to_string()))
            }
            Err(error) => {
                tracing::debug!(session = %session.id, %error, "a session could not be compared with the store");
                Ok(())
            }
        }
    }

    /// Attaches and detaches servers as another board did.
    async fn follow_servers(&self, session: &Arc<Session>, before: &BTreeMap<String, OwnServer>) {
        let now = session.now().draft.servers;
        if now == *before {
            return;
        }
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            self.board.detach_server(&session.id, &ServerName::new(name.as_str())).await;
        }
        let new = now.into_iter().filter(|(name, own)| before.get(name) != Some(own));
        let new: BTreeMap<_, _> = new.map(|(name, own)| (name, Some(own))).collect();
        if let Err(error) = self.attach(&session.id, &new).await {
            tracing::warn!("a server of a session could not be connected: {error}");
        }
        if !new.is_empty() {
            self.wait_for_servers(&session.id).await;
        }
        self.sessions.view_of(session);
    }

    /// After a change that another board was quicker than: brings the session to the newest row, so that the change can be
    /// applied again; `false` when that was done often enough.
    pub(crate) async fn may_try_again(
        &self,
        session: &Arc<Session>,
        attempts: &mut usize,
    ) -> Result<bool, SessionError> {
        *attempts += 1;
        if *attempts >= ATTEMPTS {
            return Ok(false);
        }
        let compared = self.sessions.follow_row(session).await;
        self.after_comparison(session, compared).await?;
        Ok(true)
    }

    async fn follow_outdated(&self) {
        match self.sessions.outdated().await {
            Ok(outdated) => {
                for session in outdated {
                    self.follow_one(&session).await;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the sessions could not be compared with the store");
            }
        }
    }

    async fn follow_one(&self, session: &Arc<Session>) {
        let compared = self.sessions.follow_row(session).await;
        // An error means that the session has ended.
        let _ended = self.after_comparison(session, compared).await;
    }

    /// Brings sessions to what other boards store: by their hints and, since hints may be lost, at intervals.
    pub(crate) async fn follow_store(self: Arc<Self>) {
        let Some(mut superseded) = self.sessions.superseded.lock().take() else { return };
        let mut notices = self.board.store().hints().subscribe();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                Some(session) = superseded.recv() => self.follow_one(&session).await,
                notice = notices.recv() => match notice {
                    Ok(HintNotice::Hint(hint)) => self.follow_hint(&hint).await,
                    Ok(HintNotice::PollAll) | Err(RecvError::Lagged(_)) => {
                        self.follow_outdated().await;
                    }
                    // The store is closed.
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    async fn follow_hint(&self, hint: &ChangeHint) {
        if hint.topic != HintTopic::Session {
            return;
        }
        let is_news = |session: &Arc<Session>| {
            u64::try_from(hint.version).is_ok_and(|version| version > session.version())
        };
        if let Some(session) = self.sessions.in_memory(&hint.key).filter(is_news) {
            self.follow_one(&session).await;
        }
    }
}
