//! Tells the board where its sign-in pages are, and which owners are gone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_auth::Gatekeeper;
use switchboard_runtime::SignInPages;
use url::Url;

use crate::board_place::BoardPlace;

/// How often it is checked whether the board has started.
const STARTED: Duration = Duration::from_millis(100);

/// The board, and the address that it listens on.
#[derive(Debug)]
pub(crate) struct PagesOf {
    pub(crate) board: BoardPlace,
    pub(crate) listener: Option<SocketAddr>,
}

impl PagesOf {
    /// Returns when the board has started and knows which owners are gone.
    pub(crate) async fn started(&self, gatekeeper: &Arc<Gatekeeper>) {
        loop {
            if let Some(board) = self.board.board() {
                let gatekeeper = gatekeeper.clone();
                return board.know_owners(move |person| gatekeeper.is_gone(person));
            }
            tokio::time::sleep(STARTED).await;
        }
    }

    /// Sets the address of the pages: `gateway.public_url`, else the address on this machine. A board that other machines
    /// reach, and that does not know its address, has no pages.
    pub(crate) fn announce(&self, gatekeeper: &Gatekeeper) {
        let Some(board) = self.board.board() else { return };
        let local = || {
            let address = self.listener.filter(|it| it.ip().to_canonical().is_loopback())?;
            Url::parse(&format!("http://{address}")).ok()
        };
        if let Some(base) = board.plan().gateway.public_url.clone().or_else(local) {
            let pages = SignInPages { base, needs_proof: !gatekeeper.is_open() };
            if board.accounts().pages().as_deref() != Some(&pages) {
                board.accounts().serve_pages(pages);
            }
        }
    }

    /// Closes the connections of owners whose keys were revoked or have expired.
    pub(crate) fn close_gone_owners(&self) {
        if let Some(board) = self.board.board() {
            board.close_gone_owners();
        }
    }
}
