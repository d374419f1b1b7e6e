//! Keeps what credentials grant in step with the keys, the configuration and the sessions.

use std::time::Duration;

use switchboard_auth::Gatekeeper;
use switchboard_sessions::SessionService;
use switchboard_store::{HintNotice, HintTopic};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::board_place::StartedParts;
use crate::server_state::Shared;

/// How often API keys are read from the store.
const READ_KEYS_EVERY: Duration = Duration::from_secs(2);

/// Reads the keys at intervals and when another board has changed one, so that a revoked key stops working within seconds and
/// its event streams end. Sessions follow each change of what their owners may use.
pub(crate) async fn watch_access(shared: Shared) {
    let (gatekeeper, leases) = (shared.gatekeeper.clone(), shared.leases.clone());
    let mut interval = tokio::time::interval(READ_KEYS_EVERY);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval.reset();
    let mut versions = gatekeeper.access_versions();
    let mut plans: Option<watch::Receiver<u64>> = None;
    let mut notices = gatekeeper.notices();
    let mut is_outage = false;
    loop {
        tokio::select! {
            () = key_changed(&mut notices) => {
                is_outage = !read_keys(&gatekeeper, is_outage).await;
                leases.check(&gatekeeper).await;
            }
            _ = interval.tick() => {
                is_outage = !read_keys(&gatekeeper, is_outage).await;
                leases.check(&gatekeeper).await;
                if let Some(board) = shared.board.board() {
                    board.close_gone_owners();
                }
                if let (None, Some(parts)) = (&plans, shared.board.started()) {
                    plans = Some(parts.board.versions());
                    note_keys(&gatekeeper, &parts.sessions);
                }
            }
            Ok(()) = versions.changed() => {
                if let Some(StartedParts { sessions, .. }) = shared.board.started() {
                    note_keys(&gatekeeper, sessions);
                    sessions.access_changed();
                }
            }
            () = changed(&mut plans) => shared.grants.apply(&shared.board, &gatekeeper),
        }
    }
}

/// Reads the keys, and returns whether that was possible. An outage is told once, when it begins.
async fn read_keys(gatekeeper: &Gatekeeper, is_outage: bool) -> bool {
    let read = gatekeeper.refresh().await;
    if let (Err(error), false) = (&read, is_outage) {
        tracing::error!(%error, "the API keys could not be read; those that were read before remain valid");
    }
    read.is_ok()
}

/// Completes when another board says that it changed a key. What it does not say, or says in vain, the interval notices.
async fn key_changed(notices: &mut broadcast::Receiver<HintNotice>) {
    loop {
        match notices.recv().await {
            Ok(HintNotice::Hint(hint)) if hint.topic == HintTopic::Keys => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn note_keys(gatekeeper: &Gatekeeper, sessions: &SessionService) {
    for (principal, access) in gatekeeper.key_access() {
        sessions.note_access(&principal, &access);
    }
}

/// Completes when a snapshot was published; never while the board starts.
async fn changed(versions: &mut Option<watch::Receiver<u64>>) {
    let ended = match versions {
        Some(versions) => versions.changed().await.is_err(),
        None => true,
    };
    if ended {
        std::future::pending::<()>().await;
    }
}
