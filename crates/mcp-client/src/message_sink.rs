//! The route of messages to a server, independent of the transport.

use std::fmt;

use futures::future::BoxFuture;
use switchboard_model::ConnectError;

use crate::request::CallerHeaders;

/// Sends messages whose responses, if any, arrive elsewhere.
pub(crate) trait MessageSink: fmt::Debug + Send + Sync {
    /// Sends one JSON-RPC message, with the headers of the caller that it is sent for.
    fn send(
        &self,
        text: String,
        callers: Option<CallerHeaders>,
    ) -> BoxFuture<'_, Result<(), ConnectError>>;
}
