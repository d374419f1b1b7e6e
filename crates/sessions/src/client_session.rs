//! Sessions of session-era MCP clients: their ids, and finding them by the client's `Mcp-Session-Id`.

use base64::Engine;
use switchboard_store::{Store, StoreError};

/// The prefix of ids of sessions that belong to one client.
pub(crate) const CLIENT_PREFIX: &str = "mcp-";

/// The id of the session that belongs to one client. The client's own id is a credential; the id of its session is a hash
/// of it and may be shown.
pub(crate) fn client_session_id(client: &str) -> String {
    let hash = blake3::derive_key("switchboard session of a client", client.as_bytes());
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash);
    format!("{CLIENT_PREFIX}{}", hash.chars().take(24).collect::<String>())
}

/// The session ids under which calls are recorded, for a session that is named by its id or by the `Mcp-Session-Id` of one
/// of its clients. The latter is a credential: only hashes of it are stored.
pub async fn recorded_session_ids(store: &Store, named: &str) -> Result<Vec<String>, StoreError> {
    let mut ids = vec![named.to_owned(), client_session_id(named)];
    // The client may belong to a session that it did not create.
    ids.extend(store.client(named).await?.and_then(|client| client.session));
    Ok(ids)
}
