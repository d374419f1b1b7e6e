//! Why a server could not be reached, in words that name the cause and the way out.

use std::error::Error;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// We may not go there (`security.egress`).
    Forbidden,
    /// Nobody listens there, the name does not resolve, the network is down.
    Unreachable,
    /// It answers, but does not want to serve just now (HTTP 429 or 5xx).
    Overloaded,
    /// The server wants other credentials.
    Unauthorized,
    /// Somebody has to sign in first.
    SignIn,
    /// It did not answer in time.
    Timeout,
    /// Something answered, but it does not speak MCP, or breaks it.
    Protocol,
    /// The child process could not be started, or ended.
    Process,
}

/// A server that could not be connected or listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    pub kind: ConnectErrorKind,
    /// The cause, without the server's name: the caller knows that.
    pub message: String,
    /// The way out, when there is one.
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

/// The messages of an error and its causes, each once, outermost first. Many crates of the field repeat the
/// cause in their own message; a message that the previous one already ends with is left out.
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
