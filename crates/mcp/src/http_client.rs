//! The HTTP client under rmcp's streamable transport, with every body bounded.
//!
//! rmcp's own implementation for reqwest reads a JSON answer whole, however large it is; this one stops at
//! [`MAX_MESSAGE_BYTES`]. It also keeps the last failure in plain words, because rmcp's worker reports a failed
//! handshake only as a closed connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};
use tokio::sync::Notify;

use crate::bounds::{MAX_MESSAGE_BYTES, QUOTED_BYTES};
use crate::error::{ConnectError, ConnectErrorKind, error_chain};

const ACCEPTED: &str = "application/json, text/event-stream";
const EVENT_STREAM: &str = "text/event-stream";

/// What went wrong with one HTTP exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct HttpFault(pub(crate) ConnectError);

type PostResult = Result<StreamableHttpPostResponse, StreamableHttpError<HttpFault>>;

/// A client for one server. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct BoundedClient {
    http: Client,
    last_fault: Arc<Mutex<Option<ConnectError>>>,
    handshaken: Arc<AtomicBool>,
    handshaken_again: Arc<Notify>,
}

impl BoundedClient {
    /// `handshaken_again` is notified when rmcp replaces a lost session: its list must be read anew.
    pub(crate) fn new(handshaken_again: Arc<Notify>) -> Result<Self, ConnectError> {
        Ok(Self {
            http: build_http()?,
            last_fault: Arc::default(),
            handshaken: Arc::default(),
            handshaken_again,
        })
    }

    pub(crate) fn http(&self) -> &Client {
        &self.http
    }

    /// The newest failure, once.
    pub(crate) fn take_fault(&self) -> Option<ConnectError> {
        self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn fault(&self, error: ConnectError) -> StreamableHttpError<HttpFault> {
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        StreamableHttpError::Client(HttpFault(error))
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_event: usize,
    ) -> PostResult {
        let wants_answer = matches!(message, JsonRpcMessage::Request(_));
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::InitializeRequest(_))
            && self.handshaken.swap(true, Ordering::Relaxed)
        {
            self.handshaken_again.notify_one();
        }
        let has_session = session.is_some();
        let request = self.http.post(&*uri).header(header::ACCEPT, ACCEPTED).json(&message);
        let request = with_headers(request, session, bearer, headers);
        let response =
            request.send().await.map_err(|error| self.fault(describe_failure(&error)))?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header_text(&response, HEADER_SESSION_ID);
        if status.is_success() && content_type(&response).starts_with(EVENT_STREAM) {
            let events = bounded_events(response.bytes_stream(), max_event);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        match self.read_answer(response, wants_answer).await? {
            Some(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            None => Ok(StreamableHttpPostResponse::Accepted),
        }
    }

    /// The JSON-RPC message of an answer; `None` where nobody waits for one and there is none.
    async fn read_answer(
        &self,
        response: Response,
        wants_answer: bool,
    ) -> Result<Option<ServerJsonRpcMessage>, StreamableHttpError<HttpFault>> {
        let (status, kind) = (response.status(), content_type(&response));
        let is_json = kind.starts_with("application/json");
        let is_credential_fault =
            matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if !wants_answer && status.is_success() && !is_json {
            return Ok(None);
        }
        if is_credential_fault || !is_json {
            let body = read_bounded(response, QUOTED_BYTES).await.unwrap_or_else(|(_, head)| head);
            return Err(self.fault(describe_answer(status, &kind, &body)));
        }
        let body = read_bounded(response, MAX_MESSAGE_BYTES)
            .await
            .map_err(|(error, _)| self.fault(error))?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message @ JsonRpcMessage::Error(_)) => Ok(Some(message)),
            Ok(message) if status.is_success() => Ok(Some(message)),
            Ok(_) => Err(self.fault(describe_answer(status, &kind, &body))),
            Err(_) if !wants_answer && status.is_success() => Ok(None),
            Err(error) if status.is_success() => Err(self.fault(describe_non_rpc(&error, &body))),
            Err(_) => Err(self.fault(describe_answer(status, &kind, &body))),
        }
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> PostResult {
        self.post(uri, message, session, bearer, headers, MAX_MESSAGE_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_event: usize,
    ) -> PostResult {
        self.post(uri, message, session, bearer, headers, max_event).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<HttpFault>> {
        // A server that is gone or keeps no sessions has nothing left to delete.
        let request = with_headers(self.http.delete(&*uri), Some(session), bearer, headers);
        request.send().await.map(drop).map_err(|error| self.fault(describe_failure(&error)))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<HttpFault>> {
        let mut request = self.http.get(&*uri).header(header::ACCEPT, EVENT_STREAM);
        if let Some(last_event) = last_event {
            request = request.header(HEADER_LAST_EVENT_ID, last_event);
        }
        let response = with_headers(request, session, bearer, headers)
            .send()
            .await
            .map_err(|error| self.fault(describe_failure(&error)))?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::NOT_FOUND => Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => {
                Err(self.fault(describe_answer(status, &content_type(&response), b"")))
            }
            _ if !content_type(&response).starts_with(EVENT_STREAM) => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            _ => Ok(bounded_events(response.bytes_stream(), MAX_MESSAGE_BYTES)),
        }
    }
}

/// One pool for one server: no proxying of credentials to another origin, no waiting for a dead host.
fn build_http() -> Result<Client, ConnectError> {
    Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .tcp_nodelay(true)
        .redirect(Policy::custom(same_origin_only))
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| ConnectError::new(ConnectErrorKind::Unreachable, error_chain(&error)))
}

fn same_origin_only(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same =
        attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
}

fn with_headers(
    mut request: RequestBuilder,
    session: Option<Arc<str>>,
    bearer: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    if let Some(session) = session {
        request = request.header(HEADER_SESSION_ID, &*session);
    }
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    request.headers(headers.into_iter().collect())
}

/// The body, or what is wrong with it and how it begins.
pub(crate) async fn read_bounded(
    response: Response,
    limit: usize,
) -> Result<Vec<u8>, (ConnectError, Vec<u8>)> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) if body.len() + chunk.len() <= limit => body.extend_from_slice(&chunk),
            Ok(chunk) => {
                body.extend(chunk.iter().take(limit.saturating_sub(body.len())));
                let message = format!("the answer is larger than {limit} bytes");
                return Err((ConnectError::new(ConnectErrorKind::Protocol, message), body));
            }
            Err(error) => return Err((describe_failure(&error), body)),
        }
    }
    Ok(body)
}

/// Server-sent events, none of which may be larger than `limit`.
pub(crate) fn bounded_events<S, B, E>(
    bytes: S,
    limit: usize,
) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<B, E>> + Send + 'static,
    B: AsRef<[u8]> + Into<tokio_util::bytes::Bytes> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut since_event = 0usize;
    let mut last_was_newline = false;
    let bounded = bytes.map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        for byte in chunk.as_ref() {
            since_event += 1;
            // An empty line ends an event; a carriage return before it does not count as content.
            match byte {
                b'\n' if last_was_newline => since_event = 0,
                b'\n' => last_was_newline = true,
                b'\r' => {}
                _ => last_was_newline = false,
            }
        }
        if since_event > limit {
            return Err(std::io::Error::other(format!("an event is larger than {limit} bytes")));
        }
        Ok(chunk.into())
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

pub(crate) fn content_type(response: &Response) -> String {
    header_text(response, header::CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase()
}

fn header_text(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A request that got no answer at all.
pub(crate) fn describe_failure(error: &reqwest::Error) -> ConnectError {
    let kind =
        if error.is_timeout() { ConnectErrorKind::Timeout } else { ConnectErrorKind::Unreachable };
    // The URL is left out: it may hold credentials, and the caller names the place anyway.
    let mut chain = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let message = inner.to_string();
        if !chain.contains(&message) {
            let separator = if chain.is_empty() { "" } else { ": " };
            chain = format!("{chain}{separator}{message}");
        }
        cause = inner.source();
    }
    if chain.is_empty() {
        chain = if error.is_timeout() { "timed out".into() } else { "the request failed".into() };
    }
    ConnectError::new(kind, chain)
}

/// An answer whose status or type says that it is no MCP message.
pub(crate) fn describe_answer(status: StatusCode, content_type: &str, body: &[u8]) -> ConnectError {
    use ConnectErrorKind::{Protocol, Unauthorized, Unreachable};
    let said = format!("HTTP {status}{}", quote(body, content_type));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ConnectError::new(Unauthorized, said)
            .with_hint("give the server's credentials in `auth.bearer` or `headers`"),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => ConnectError::new(Protocol, said)
            .with_hint("check the path of `url`; many servers answer at /mcp, older ones at /sse with `transport: sse`"),
        status if status.is_redirection() => ConnectError::new(Protocol, said)
            .with_hint("the server redirects elsewhere; put the final address into `url`"),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            ConnectError::new(Unreachable, said)
        }
        status if status.is_success() && content_type.starts_with("text/html") => {
            let message = format!("{said}: a web page instead of an MCP answer");
            ConnectError::new(Protocol, message)
                .with_hint("this looks like a login or start page; check `url` and the credentials")
        }
        _ => ConnectError::new(Protocol, format!("{said}, not an MCP answer (content type {content_type:?})")),
    }
}

fn describe_non_rpc(error: &serde_json::Error, body: &[u8]) -> ConnectError {
    let message = format!("the answer is not a JSON-RPC message: {error}{}", quote(body, ""));
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

/// The beginning of a body for an error message; a web page says nothing that helps.
fn quote(body: &[u8], content_type: &str) -> String {
    let head: String = String::from_utf8_lossy(body.get(..QUOTED_BYTES).unwrap_or(body))
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let head = head.trim();
    if head.is_empty() || content_type.starts_with("text/html") {
        return String::new();
    }
    format!(": {head}")
}
