//! Errors of discovery and of reports, in the words of the Python package where it has words for them.

use std::time::Duration;

/// Why servers could not be listed, or a chat message not be sent. No text holds a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolingError {
    /// The gateway was asked for an agent without an id.
    #[error("agentic_app_id cannot be empty or None")]
    EmptyAgentId,
    /// The gateway was asked without a token.
    #[error("auth_token cannot be empty or None")]
    EmptyToken,
    /// An id that has a meaning of its own in a path, such as `..`.
    #[error("agentic_app_id '{id}' cannot be part of a path")]
    InvalidAgentId {
        /// The id.
        id: String,
    },
    /// A name that has a meaning of its own in a path, such as `..`.
    #[error("mcpServerUniqueName '{name}' cannot be part of a path")]
    InvalidServerName {
        /// The name.
        name: String,
    },
    /// A token with characters that no header may have.
    #[error("auth_token holds a character that an HTTP header cannot have, such as a line break")]
    InvalidToken,
    /// An address in a variable is no absolute URL of HTTP.
    #[error("{variable} is no absolute http or https URL")]
    InvalidAddress {
        /// The variable.
        variable: &'static str,
    },
    /// The gateway answered with another status than 200.
    #[error("Failed to read MCP servers from endpoint: HTTP {status}: {body}")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// The gateway redirects to another origin. Nothing was sent there.
    #[error(
        "Failed to read MCP servers from endpoint: HTTP {status}: redirects to {target}, and the token is not for \
         another host; set the address of the gateway to the new one if it moved"
    )]
    Redirect {
        /// The status.
        status: u16,
        /// The host that it redirects to.
        target: String,
    },
    /// The gateway did not answer in time.
    #[error("Failed to read MCP servers from endpoint: no whole answer within {}", seconds(.after))]
    Timeout {
        /// The time that it had.
        after: Duration,
    },
    /// The gateway's answer has too many bytes.
    #[error("Failed to read MCP servers from endpoint: the answer has more than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: usize,
    },
    /// The gateway's answer is no JSON.
    #[error("Failed to parse MCP server configuration response: {reason}")]
    Unparsable {
        /// What the parser says, with the place.
        reason: String,
    },
    /// The gateway could not be reached.
    #[error("Failed to connect to MCP configuration endpoint: {reason}")]
    Connect {
        /// The cause.
        reason: String,
    },
    /// The manifest could not be read.
    #[error("Failed to read MCP servers from ToolingManifest.json: {reason}")]
    Manifest {
        /// What the parser or the system says.
        reason: String,
    },
    /// Servers with an audience of their own, and no way to get tokens for them.
    #[error(
        "MCP servers [{}] require per-audience token exchange (V2) but no authorization context was provided. Pass \
         authorization, auth_handler_name, and turn_context to list_tool_servers().",
        .servers.join(", ")
    )]
    AudienceTokensRequired {
        /// The servers' names.
        servers: Vec<String>,
    },
    /// The exchange gave no token.
    #[error("Failed to obtain token for MCP server '{server}' (scope: {scope})")]
    TokenExchange {
        /// The server's name.
        server: String,
        /// The scope that was asked for.
        scope: String,
    },
    /// Servers whose connections the user has not set up.
    #[error(
        "MCP servers [{}] require connection setup (connectivityStatus=Pending). Set up missing connections at: {url}",
        .servers.join(", ")
    )]
    ConnectionsRequired {
        /// The servers' names.
        servers: Vec<String>,
        /// The page on which the connections are set up.
        url: String,
    },
    /// The turn lacks what a report needs.
    #[error("{0}")]
    InvalidTurn(InvalidTurn),
    /// No threat-protection endpoint is configured.
    #[error(
        "no threat-protection endpoint is configured, and a conversation is sent to no other host; set MCP_PLATFORM_ENDPOINT"
    )]
    NoChatEndpoint,
    /// The threat-protection endpoint refused the report.
    #[error("{status}, message='{body}', url='{url}'")]
    ChatStatus {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
        /// The endpoint, without credentials.
        url: String,
    },
    /// The threat-protection endpoint redirects. Nothing was sent to the new address that would count as delivered.
    #[error("{url} redirects to {target}; configure that address if the endpoint moved")]
    ChatRedirect {
        /// The endpoint, without credentials.
        url: String,
        /// The address that it redirects to, without credentials.
        target: String,
    },
    /// The threat-protection endpoint did not answer in time.
    #[error("no whole answer from {url} within {}", seconds(.after))]
    ChatTimeout {
        /// The endpoint, without credentials.
        url: String,
        /// The time that it had.
        after: Duration,
    },
    /// The threat-protection endpoint's answer has too many bytes.
    #[error("the answer of {url} has more than {limit} bytes")]
    ChatTooLarge {
        /// The endpoint, without credentials.
        url: String,
        /// The most that is read.
        limit: usize,
    },
    /// The threat-protection endpoint could not be reached.
    #[error("{url}: {reason}")]
    ChatConnect {
        /// The endpoint, without credentials.
        url: String,
        /// The cause.
        reason: String,
    },
}

/// What a turn lacks for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTurn {
    /// No conversation.
    #[error("conversation_id cannot be empty or None (from turn_context.activity.conversation.id)")]
    ConversationId,
    /// No message id.
    #[error("message_id cannot be empty or None (from turn_context.activity.id)")]
    MessageId,
    /// No message.
    #[error("user_message cannot be empty or None (from turn_context.activity.text)")]
    UserMessage,
}

impl ToolingError {
    /// The way out, where the message does not name one that fits this program.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::AudienceTokensRequired { servers } => {
                let names: Vec<_> =
                    servers.iter().map(|name| format!("BEARER_TOKEN_{}", name.to_uppercase())).collect();
                Some(format!("set {}, or use a `TokenExchange`", names.join(", ")))
            }
            Self::Status { status: 401 | 403, .. } => {
                Some("the gateway does not take the token: it may have expired, or be for another audience".to_owned())
            }
            Self::Status { status: 404, .. } => {
                Some("check the agent id, and the template of the gateway's path".to_owned())
            }
            _ => None,
        }
    }
}

/// A duration as people read it.
fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
