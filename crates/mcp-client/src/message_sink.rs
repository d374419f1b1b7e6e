//! The route of messages to a server, independent of the transport.

use std::fmt;

use futures::future::BoxFuture;
use switchboard_model::ConnectError;

/// Sends messages whose responses, if any, arrive elsewhere.
pub(crate) trait MessageSink: fmt::Debug + Send + Sync {
    /// Sends one JSON-RPC message.
    fn send(&self, text: String) -> BoxFuture<'_, Result<(), ConnectError>>;
}
