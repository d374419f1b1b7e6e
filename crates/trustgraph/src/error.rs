//! Errors in the form that TrustGraph's clients read.

use serde_json::{Value, json};

/// A refused or failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TrustGraphError {
    /// One of the error types that the clients know, such as `config-error`.
    pub kind: &'static str,
    pub message: String,
}

impl TrustGraphError {
    /// An error of a request for configuration values.
    pub fn config(message: impl Into<String>) -> Self {
        Self { kind: "config-error", message: message.into() }
    }

    /// An error of a request that cannot be read or is not permitted.
    pub fn request(message: impl Into<String>) -> Self {
        Self { kind: "request-error", message: message.into() }
    }

    /// An error of a tool call.
    pub fn tool(message: impl Into<String>) -> Self {
        Self { kind: "tool-error", message: message.into() }
    }

    /// An error of the agent.
    pub fn agent(message: impl Into<String>) -> Self {
        Self { kind: "agent-error", message: message.into() }
    }

    /// The body of the answer. Its HTTP status is 200: the clients show only the number of another status.
    pub fn to_json(&self) -> Value {
        json!({"error": {"type": self.kind, "message": self.message}})
    }
}
