//! Requests that are forwarded for callers, as raw JSON, and the messages that a server sends while it works on them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use switchboard_model::{ConnectError, ConnectErrorKind, Era, JsonText};
use switchboard_protocol::{CheckedEntry, EntryKind, quoted};
use tokio::sync::{mpsc, oneshot};

use crate::bounds::KEPT_REASONS;
use crate::connection::Connection;
use crate::envelope::{ResponseError, ResponseResult};
use crate::events::EventSender;

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

impl Connection {
    /// Forwards a request and waits for its response. Dropping the future cancels the request: with
    /// `notifications/cancelled` in the session era and over stdio, by closing the stream over HTTP in the stateless
    /// era. If `events` is full, notifications are dropped and server requests refused.
    pub async fn ask(
        &self,
        ask: UpstreamRequest,
        events: Option<EventSender>,
    ) -> Result<RawResult, RequestFailure> {
        self.ask_with(&ask, events).await
    }

    /// Like [`Connection::ask`], with a borrowed request.
    pub async fn ask_with(
        &self,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
    ) -> Result<RawResult, RequestFailure> {
        match self.exchange(ask, events, RequestOrigin::Caller).await {
            Ok(result) => Ok(result),
            Err(ResponseError::Rpc(error)) => Err(RequestFailure::Rpc(error)),
            Err(ResponseError::Lost(error)) => Err(Box::pin(self.describe(error)).await),
        }
    }

    /// Sends a request of Switchboard itself.
    pub(crate) async fn ask_for_us(
        &self,
        method: &'static str,
        params: String,
    ) -> Result<RawResult, ResponseError> {
        let ask = UpstreamRequest { method, params, ..UpstreamRequest::default() };
        self.exchange(&ask, None, RequestOrigin::Us).await
    }

    async fn exchange(
        &self,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> ResponseResult {
        let outcome = self.pending().ask(ask, events, asker).await;
        outcome.map_err(|failure| failure.redacted(&self.redactor))
    }

    async fn describe(&self, error: ConnectError) -> RequestFailure {
        if let Some(child) = self.lost_child(&error).await {
            return RequestFailure::Unavailable(format!(
                "the connection closed: {}",
                child.reason()
            ));
        }
        match error.kind {
            ConnectErrorKind::Protocol => RequestFailure::BadAnswer(error.message),
            ConnectErrorKind::Unreachable
            | ConnectErrorKind::Overloaded
            | ConnectErrorKind::Unauthorized
            | ConnectErrorKind::SignIn
            | ConnectErrorKind::Timeout
            | ConnectErrorKind::Process
            | ConnectErrorKind::Forbidden => RequestFailure::Unavailable(error.message),
        }
    }

    /// The capabilities of the server besides tools.
    pub fn features(&self) -> &Features {
        self.known_features()
    }

    /// Reads the server's complete list of prompts.
    pub async fn list_prompts(&self) -> Result<ListedEntries, ConnectError> {
        self.list_raw("prompts/list", "prompts", EntryKind::Prompt).await
    }

    /// Reads the server's complete list of resources.
    pub async fn list_resources(&self) -> Result<ListedEntries, ConnectError> {
        self.list_raw("resources/list", "resources", EntryKind::Resource).await
    }

    /// Reads the server's complete list of resource templates.
    pub async fn list_templates(&self) -> Result<ListedEntries, ConnectError> {
        let kind = EntryKind::ResourceTemplate;
        self.list_raw("resources/templates/list", "resourceTemplates", kind).await
    }

    /// Subscribes to updates of exactly these resources, which arrive as [`UpstreamNews::ResourceUpdated`].
    pub async fn watch_resources(&self, uris: &BTreeSet<String>) -> Result<(), ConnectError> {
        match self.era() {
            Era::Modern => {
                let replaced = self.watch().replace(uris).await;
                replaced.map_err(|error| self.redactor.redact_error(error))
            }
            Era::Legacy => self.subscribe_to_exactly(uris).await,
        }
    }

    /// Subscribes to added resources and unsubscribes from removed ones. Completed changes stay when a later one fails.
    /// Resources in an unknown state are corrected by the next call, after all others.
    async fn subscribe_to_exactly(&self, wanted: &BTreeSet<String>) -> Result<(), ConnectError> {
        let pending = self.pending();
        let (added, gone) = pending.kept(|kept| {
            kept.refused.retain(|uri| wanted.contains(uri));
            let is_new = |uri: &&String| {
                !kept.refused.contains(*uri)
                    && (!kept.watched.contains(*uri) || kept.unsure.contains(*uri))
            };
            let added: Vec<_> = wanted.iter().filter(is_new).cloned().collect();
            let told = kept.watched.union(&kept.unsure);
            let gone: Vec<_> = told.filter(|uri| !wanted.contains(*uri)).cloned().collect();
            (added, gone)
        });
        let added = added.into_iter().map(|uri| ("resources/subscribe", uri));
        let gone = gone.into_iter().map(|uri| ("resources/unsubscribe", uri));
        let mut due: Vec<_> = added.chain(gone).collect();
        due.sort_by_key(|(_, uri)| pending.kept(|kept| kept.unsure.contains(uri)));
        let mut outcome = Ok(());
        for (method, uri) in due {
            pending.kept(|kept| kept.unsure.insert(uri.clone()));
            let answer = self.ask_for_us(method, format!(r#""uri":{}"#, quoted(&uri))).await;
            let is_refused = match &answer {
                Ok(_) => false,
                Err(ResponseError::Rpc(_)) => true,
                // An invalid response concerns only this resource.
                Err(ResponseError::Lost(error)) => error.kind == ConnectErrorKind::Protocol,
            };
            if let Err(failure) = answer {
                let what = format!("{method} {uri}");
                let is_busy = matches!(
                    &failure,
                    ResponseError::Lost(error) if error.kind == ConnectErrorKind::Overloaded
                );
                let refused = refused(failure, &what);
                if is_busy {
                    // Another resource may be accepted.
                    outcome = Err(refused);
                    continue;
                }
                if !is_refused {
                    return Err(refused);
                }
                // A failure that is worth repeating takes precedence.
                outcome = outcome.and(Err(refused));
            }
            pending.kept(|kept| {
                kept.unsure.remove(&uri);
                match (method, is_refused) {
                    ("resources/subscribe", false) => kept.watched.insert(uri),
                    ("resources/subscribe", true) => kept.refused.insert(uri),
                    _ => kept.watched.remove(&uri),
                }
            });
        }
        outcome
    }

    /// Sets the log level of a session-era server. In the stateless era the level is part of each request
    /// ([`UpstreamRequest::log_level`]), and nothing is sent here.
    pub async fn set_log_level(&self, level: &str) -> Result<(), ConnectError> {
        if self.era() == Era::Modern {
            return Ok(());
        }
        self.ask_for_us("logging/setLevel", format!(r#""level":{}"#, quoted(level)))
            .await
            .map_err(|failure| refused(failure, "logging/setLevel"))?;
        self.pending().kept(|kept| kept.log_level = Some(level.to_owned()));
        Ok(())
    }

    /// The receiver of notifications that belong to no request, oldest first. There is one receiver; later calls return
    /// `None`. Notifications beyond its capacity are dropped.
    pub fn take_news(&self) -> Option<mpsc::Receiver<UpstreamNews>> {
        self.pending().take_news()
    }
}

/// The origin of a request. Requests of Switchboard itself are ignored when server messages are attributed to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    Caller,
    Us,
}

fn refused(failure: ResponseError, what: &str) -> ConnectError {
    match failure {
        ResponseError::Lost(error) => error,
        ResponseError::Rpc(error) => {
            let message = format!("the server refused {what}: {}", error.message);
            ConnectError::new(ConnectErrorKind::Protocol, message)
        }
    }
}
