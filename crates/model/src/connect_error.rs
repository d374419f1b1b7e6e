//! Errors of connecting to servers, with cause and hints.

use crate::call::{Hint, HintAudience, all_texts};

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
    /// The ways out, each for those who can take it.
    pub hints: Vec<Hint>,
}

impl ConnectError {
    /// A failure without a hint.
    pub fn new(kind: ConnectErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Adds a way out that the caller itself can take.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        self.and_hint(HintAudience::Caller, text.into())
    }

    /// Adds a way out that only the operator of the board can take.
    #[must_use]
    pub fn with_operator_hint(self, text: impl Into<String>) -> Self {
        self.and_hint(HintAudience::Operator, text.into())
    }

    fn and_hint(mut self, audience: HintAudience, text: String) -> Self {
        self.hints.push(Hint { audience, text });
        self
    }

    /// What can be done about the error: all hints as one text, for the operator. `None` without hints.
    pub fn hint(&self) -> Option<String> {
        all_texts(&self.hints)
    }
}
