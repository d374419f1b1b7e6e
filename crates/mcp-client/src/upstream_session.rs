//! The session of a streamable HTTP server, as rmcp's HTTP client has learned it.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;

/// The header of the negotiated protocol version.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// rmcp's current session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UpstreamSession {
    pub(crate) id: Option<HeaderValue>,
    pub(crate) version: Option<HeaderValue>,
}

/// Holds the session that rmcp's HTTP client has seen last.
#[derive(Debug, Default)]
pub(crate) struct SessionSlot(Mutex<Arc<UpstreamSession>>);

impl SessionSlot {
    pub(crate) fn set(&self, session: UpstreamSession) {
        *self.0.lock() = Arc::new(session);
    }

    pub(crate) fn get(&self) -> Arc<UpstreamSession> {
        self.0.lock().clone()
    }
}
