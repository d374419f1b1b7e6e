//! Errors of connecting to servers, with cause and hint.

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// The destination is not permitted (`security.egress`).
    Forbidden,
    /// Connection refused, name not resolved, or network down.
    Unreachable,
    /// The server answers that it is overloaded or failing (HTTP 429 or 5xx).
    Overloaded,
    /// The server rejects the credentials.
    Unauthorized,
    /// An interactive sign-in is required.
    SignIn,
    /// The server did not answer in time.
    Timeout,
    /// The response is not valid MCP.
    Protocol,
    /// The child process could not be started, or exited.
    Process,
}

/// A server that could not be connected or listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    pub kind: ConnectErrorKind,
    /// The cause, without the server's name, which the caller adds.
    pub message: String,
    /// What the operator can do about it.
    pub hint: Option<String>,
}

impl ConnectError {
    /// A failure without a hint.
    pub fn new(kind: ConnectErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
