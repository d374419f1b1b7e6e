//! Requests that are forwarded for callers, as raw JSON, and the messages that a server sends while it works on them.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_model::JsonText;
use switchboard_protocol::CheckedEntry;
use tokio::sync::oneshot;

use crate::bounds::KEPT_REASONS;

/// Headers of one caller, which go with each HTTP request that is made for it.
pub type CallerHeaders = Arc<[(http::HeaderName, http::HeaderValue)]>;

/// A request that is forwarded for a caller.
#[derive(Debug, Default)]
pub struct UpstreamRequest {
    /// `tools/call`, `prompts/get`, `resources/read`, `completion/complete`, ...
    pub method: &'static str,
    /// The value of the `Mcp-Name` header: tool name, prompt name or URI.
    pub name: Option<String>,
    /// The members of `params` without `_meta`, as JSON text without braces; may be empty.
    pub params: String,
    /// Members of the caller's own `_meta` to forward: JSON text without braces, may be empty; never the reserved keys.
    pub meta: String,
    /// The caller's capabilities as a JSON object, for a server of the stateless era; `None` means `{}`.
    pub capabilities: Option<Arc<str>>,
    /// Only for a server of the stateless era (`io.modelcontextprotocol/logLevel`).
    pub log_level: Option<Arc<str>>,
    /// Whether a progress token is sent.
    pub wants_progress: bool,
    /// `Mcp-Param-*` headers, for an HTTP server of the stateless era.
    pub mirrored: Vec<(http::HeaderName, http::HeaderValue)>,
    /// Identifies the caller. Requests of a stdio or HTTP+SSE server do not say which call they belong to; they are
    /// forwarded to a caller only while all requests in flight on the connection have the same origin. Two requests
    /// without an origin do not have the same one.
    pub origin: Option<Arc<str>>,
    /// The headers of the caller, for an HTTP server that wants some. They replace those of the connection.
    pub caller_headers: Option<CallerHeaders>,
}

/// A message that a server sends while it works on a request.
#[derive(Debug)]
pub enum UpstreamEvent {
    /// `notifications/progress`: the whole `params`, with Switchboard's own token.
    Progress(JsonText),
    /// `notifications/message`: the whole `params`.
    Log(JsonText),
    /// `notifications/elicitation/complete`: the whole `params`.
    ElicitationComplete(JsonText),
    /// `elicitation/create`, `sampling/createMessage` or `roots/list` of a session-era server. Dropping the reply
    /// refuses the request; a closed reply channel means that the server has withdrawn it.
    Question {
        method: String,
        params: Option<JsonText>,
        reply: oneshot::Sender<Result<JsonText, RpcError>>,
    },
}

impl UpstreamEvent {
    /// The size of the event in the queue.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Progress(params) | Self::Log(params) | Self::ElicitationComplete(params) => {
                params.as_str().len()
            }
            Self::Question { params, .. } => params.as_ref().map_or(0, |it| it.as_str().len()),
        }
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (JSON-RPC error {code})")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<JsonText>,
}

impl RpcError {
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into(), data: None }
    }
}

/// The `result` member of a response, byte for byte: JSON in UTF-8, as a slice of the received data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResult(pub Bytes);

impl RawResult {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        // It was validated as UTF-8 when it was read.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// The server could not be reached, or disconnected during the request.
    #[error("{0}")]
    Unavailable(String),
    /// The owner of the connection's account must sign in before the request can be sent.
    #[error("{0}")]
    SignIn(String),
    /// The server answered with a JSON-RPC error.
    #[error("{0}")]
    Rpc(RpcError),
    /// The response is neither a valid result nor a valid error.
    #[error("{0}")]
    BadAnswer(String),
}

/// The capabilities of a server besides tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a list of independent capabilities")]
pub struct Features {
    pub prompts: bool,
    pub resources: bool,
    /// Whether updates of single resources can be subscribed to.
    pub subscribe: bool,
    pub completions: bool,
    pub logging: bool,
    pub instructions: Option<String>,
}

/// A prompt, a resource or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name of a prompt, the uri of a resource or the uriTemplate of a template.
    pub key: String,
    /// The whole object as the server wrote it, or repaired so that strict clients accept it.
    pub json: JsonText,
}

/// A complete list of prompts, resources or templates, without unusable entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedEntries {
    pub entries: Vec<Listed>,
    /// Why entries were left out; the last reason counts those beyond the limit.
    pub left_out: Vec<String>,
    /// Repairs of entries that strict clients would reject; bounded in the same way.
    pub repairs: Vec<String>,
    uncounted: usize,
}

impl ListedEntries {
    pub(crate) fn leave_out(&mut self, reason: String) {
        if self.left_out.len() < KEPT_REASONS {
            self.left_out.push(reason);
        } else {
            self.uncounted += 1;
            let more = format!("and {} more", self.uncounted);
            self.left_out.truncate(KEPT_REASONS);
            self.left_out.push(more);
        }
    }

    pub(crate) fn note_repairs(&mut self, entry: &CheckedEntry) {
        let room = KEPT_REASONS.saturating_sub(self.repairs.len());
        let repairs = entry.repairs.iter().take(room);
        self.repairs.extend(repairs.map(|repair| format!("{:?}: {repair}", entry.key)));
    }
}

/// A notification that belongs to no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamNews {
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated {
        uri: String,
        params: JsonText,
    },
    /// A log message that belongs to no request.
    Log(JsonText),
}

/// The origin of a request. Requests of Switchboard itself are ignored when server messages are attributed to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    Caller,
    Us,
}
