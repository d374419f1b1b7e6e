//! The sessions of MCP clients of the session era: their ids, and how a client's own id leads to them.

use base64::Engine;
use switchboard_store::{Store, StoreError};

/// Ids of sessions of clients begin so.
pub(crate) const CLIENT_PREFIX: &str = "mcp-";

/// The id of the session that belongs to a client alone. The id of a client is a secret that lets its holder in; the id
/// of its session may be shown.
pub(crate) fn client_session_id(client: &str) -> String {
    let hash = blake3::derive_key("switchboard session of a client", client.as_bytes());
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash);
    format!("{CLIENT_PREFIX}{}", hash.chars().take(24).collect::<String>())
}

/// The ids under which records have a session that is named by its id, or by the `Mcp-Session-Id` of one of its clients.
/// The latter is a secret: it is looked up by its hashes, and kept nowhere.
pub async fn recorded_session_ids(store: &Store, named: &str) -> Result<Vec<String>, StoreError> {
    let mut ids = vec![named.to_owned(), client_session_id(named)];
    // A client may also be one of several of a session that was made before it.
    ids.extend(store.client(named).await?.and_then(|client| client.session));
    Ok(ids)
}
