//! Servers that a session attaches: validation, attaching and detaching.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::join_all;
use http::{HeaderName, HeaderValue, header};
use switchboard_model::{AttachedServer, EgressPolicy, ServerName};
use tokio::sync::oneshot;

use crate::attach_error::AttachError;
use crate::board::Board;
use crate::catalog_reconciler::{Attach, Detach, ReconcilerOrder};
use crate::server::ServerStatus;

/// Maximum number of servers that one session may attach. `gateway.max_session_servers` bounds the number over all
/// sessions.
pub const MAX_SERVERS_PER_OWNER: usize = 16;

const LONGEST_URL: usize = 4096;
const MOST_HEADERS: usize = 32;
const MOST_HEADER_BYTES: usize = 16 * 1024;

/// Headers that the connection or the protocol sets; an attached server may not configure them.
const RESERVED: [&str; 15] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

impl Board {
    /// Attaches a server to a session. Returns once the server is registered; connecting and reconnecting happen in the
    /// background, and its tools appear with the next revision. Attaching an identical server again changes nothing;
    /// another URL or other credentials under the same name replace the server. Returns the process-wide name of the
    /// server. If the future is dropped, the server may or may not be attached.
    pub async fn attach_server(
        &self,
        owner: &str,
        spec: AttachedServer,
    ) -> Result<ServerName, AttachError> {
        check(&spec, &self.plan().security.egress)?;
        let (reply, answer) = oneshot::channel();
        let order = ReconcilerOrder::Attach(Attach { owner: owner.into(), spec, reply });
        let place = self.orders.reserve().await.map_err(|_| AttachError::ShuttingDown)?;
        place.send(order);
        answer.await.unwrap_or(Err(AttachError::ShuttingDown))
    }

    /// Detaches a server from the session that attached it, by the session's own name for it. On return its tools are
    /// gone, in one revision; running calls may finish. Returns whether there was such a server.
    pub async fn detach_server(&self, owner: &str, name: &ServerName) -> bool {
        self.detach(owner, Some(name.clone())).await > 0
    }

    /// Detaches all servers of a session in one revision. Returns how many there were.
    pub async fn detach_all(&self, owner: &str) -> usize {
        self.detach(owner, None).await
    }

    /// The servers that a session attached, in the order of attaching, with their status.
    pub fn attached(&self, owner: &str) -> Vec<(AttachedServer, ServerStatus)> {
        let published = self.published.load();
        let own = published.attached.iter().filter(|attached| &*attached.owner == owner);
        own.map(|attached| (attached.spec.clone(), attached.server.status())).collect()
    }

    /// Waits until the first attempt to connect each of these servers of a session has succeeded or failed, and its
    /// tools are in the published catalog. Other servers of the session are not waited for.
    pub async fn attached_settled(&self, owner: &str, is_meant: impl Fn(&ServerName) -> bool) {
        let snapshot = self.snapshot();
        let own = snapshot
            .attached
            .iter()
            .filter(|attached| &*attached.owner == owner && is_meant(&attached.spec.name));
        join_all(own.map(|attached| attached.server.attempted())).await;
        let (reply, answer) = oneshot::channel();
        // An error, here and below, means that the board is shutting down and publishes no more tools.
        let Ok(place) = self.orders.reserve().await else { return };
        place.send(ReconcilerOrder::Reconcile(reply));
        let _shutting_down = answer.await;
    }

    async fn detach(&self, owner: &str, name: Option<ServerName>) -> usize {
        let (reply, answer) = oneshot::channel();
        // An error, here and below, means that the board is shutting down and detaches everything.
        let Ok(place) = self.orders.reserve().await else { return 0 };
        place.send(ReconcilerOrder::Detach(Detach { owner: Arc::from(owner), name, reply }));
        answer.await.unwrap_or(0)
    }
}

/// The checks that need neither network nor other servers.
pub(crate) fn check(spec: &AttachedServer, egress: &EgressPolicy) -> Result<(), AttachError> {
    let name = &spec.name;
    if !ServerName::is_valid(name.as_str()) || name.is_local() {
        let shown = name.as_str().chars().take(64).flat_map(char::escape_debug).collect();
        return Err(AttachError::Name { name: shown });
    }
    let bad_url = |why| Err(AttachError::Url { name: name.clone(), why });
    if !matches!(spec.url.scheme(), "http" | "https") {
        return bad_url("is not an http or https address");
    }
    if spec.url.as_str().len() > LONGEST_URL {
        return bad_url("is too long");
    }
    let Some(host) = spec.url.host() else { return bad_url("names no host") };
    egress.judge_host(&host).map_err(|refusal| {
        let (name, host) = (name.clone(), host.to_string());
        AttachError::Refused { name, host, refusal }
    })?;
    check_headers(spec)
}

fn check_headers(spec: &AttachedServer) -> Result<(), AttachError> {
    let bad = |header: &str, why| {
        let header = header.chars().take(64).flat_map(char::escape_debug).collect();
        Err(AttachError::Header { name: spec.name.clone(), header, why })
    };
    let mut names = HashSet::new();
    let mut bytes = 0;
    for (written, value) in &spec.headers {
        let Ok(name) = HeaderName::from_bytes(written.as_bytes()) else {
            return bad(written, "has a name that no header can have");
        };
        if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return bad(written, "belongs to the connection");
        }
        if HeaderValue::from_str(value.expose()).is_err() {
            return bad(written, "has a value with characters that a header cannot carry");
        }
        if name == header::AUTHORIZATION && spec.bearer.is_some() {
            return bad(written, "repeats the credentials that the bearer token sets");
        }
        bytes += written.len() + value.expose().len();
        if !names.insert(name) {
            return bad(written, "is written twice; header names ignore case");
        }
        if names.len() > MOST_HEADERS || bytes > MOST_HEADER_BYTES {
            return bad(written, "exceeds the limit on the number or the size of headers");
        }
    }
    let is_bad_bearer = |text: &str| {
        text.trim().is_empty()
            || text.len() > MOST_HEADER_BYTES
            || HeaderValue::from_str(text).is_err()
    };
    if spec.bearer.as_ref().is_some_and(|bearer| is_bad_bearer(bearer.expose())) {
        return bad("authorization", "has a bearer token that a header cannot carry");
    }
    Ok(())
}

#[cfg(test)]
#[path = "attach_tests.rs"]
mod tests;
