//! A client as it is stored, so that it finds its session again after a restart.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_sessions::{SessionKind, now_ms};
use switchboard_store::StoredClient;

use crate::client::Client;
use crate::log_level::LogLevel;

/// The state of a client that is stored.
pub(crate) fn snapshot_of(client: &Client) -> StoredClient {
    let capabilities: Value = serde_json::from_str(&client.capabilities_text).unwrap_or_default();
    let state = json!({
        "version": client.version,
        "clientInfo": {"name": client.info.name, "version": client.info.version},
        "capabilities": capabilities,
        "scope": *client.scope,
        "logLevel": client.log_level().map(LogLevel::as_str),
        "subscriptions": client.subscriptions(),
        "seen": client.fingerprint(),
    });
    StoredClient {
        id: client.id.to_string(),
        kind: SessionKind::Client.as_str().into(),
        owner: client.owner.to_string(),
        session: Some(client.session.id.to_string()),
        state: state.to_string(),
        created_at_ms: client.session.created_at_ms,
        last_seen_at_ms: now_ms(),
    }
}

/// The log level and the subscriptions of a stored client; `None` if it cannot be read.
pub(crate) fn remembered(stored: &StoredClient) -> Option<(Option<LogLevel>, BTreeSet<String>)> {
    let state: Value = serde_json::from_str(&stored.state).ok()?;
    let level = state.get("logLevel").and_then(Value::as_str).and_then(LogLevel::read);
    let uris = state.get("subscriptions").and_then(Value::as_array).into_iter().flatten();
    Some((level, uris.filter_map(Value::as_str).map(str::to_owned).collect()))
}
