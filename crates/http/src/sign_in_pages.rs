//! Tells the board where its sign-in pages are, and which owners are gone.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use switchboard_auth::Gatekeeper;
use switchboard_runtime::{Board, SignInPages};
use url::Url;

use crate::server_state::Shared;

/// Makes the board know its pages before it serves the first request: `gateway.public_url`, else the address on this
/// machine. A board that other machines reach, and that does not know its address, has no pages.
pub(crate) fn serve_sign_in_pages(shared: &Shared, listener: Option<SocketAddr>) {
    let scheme = shared.scheme();
    let local = listener.filter(|address| address.ip().to_canonical().is_loopback());
    let local = local.and_then(|address| Url::parse(&format!("{scheme}://{address}")).ok());
    let gatekeeper = shared.gatekeeper.clone();
    shared.board.before_requests(move |board| {
        let known = gatekeeper.clone();
        board.know_owners(move |person| known.is_gone(person));
        // The board keeps this function, which must not keep the board.
        let (weak, gatekeeper) = (Arc::downgrade(board), gatekeeper.clone());
        board.accounts().serve_pages(move || pages(&weak, &gatekeeper, local.as_ref()));
    });
}

fn pages(board: &Weak<Board>, gatekeeper: &Gatekeeper, local: Option<&Url>) -> Option<SignInPages> {
    let public = board.upgrade()?.plan().gateway.public_url.clone();
    let base = public.or_else(|| local.cloned())?;
    Some(SignInPages { base, needs_proof: !gatekeeper.is_open() })
}
