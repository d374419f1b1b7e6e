//! Errors of connecting to servers, with cause and hint.

use std::error::Error;

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
    pub(crate) fn new(kind: ConnectErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// The messages of an error and its causes, each once, outermost first. Many crates repeat the cause in their own
/// message, so a message that the previous one already ends with is left out.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_cause_that_was_already_told_is_not_told_again() {
        let root = || Some(Box::new(Layer("refused", None)));
        assert_eq!(error_chain(&Layer("cannot send: refused", root())), "cannot send: refused");
        assert_eq!(error_chain(&Layer("cannot send", root())), "cannot send: refused");
    }
}
