//! The HTTP client under rmcp's streamable transport, with bounded bodies.
//!
//! rmcp's own implementation for reqwest reads a JSON response of any size; this one stops at [`MAX_MESSAGE_BYTES`]. It
//! also keeps the last failure, because rmcp's worker reports a failed handshake only as a closed connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};
use switchboard_model::{ConnectError, ConnectErrorKind};
use switchboard_oauth::Authorization;
use switchboard_outbound::{HttpPool, describe_failure};
use switchboard_protocol::is_too_deep;
use url::Url;

use crate::bearer::BearerToken;
use crate::bounds::{MAX_MESSAGE_BYTES, QUOTED_BYTES};
use crate::envelope::too_deep;
use crate::flow_limit::{slowed_bytes, slowed_events};
use crate::http_faults::{
    EventFault, HttpFault, describe_answer, describe_non_rpc, too_large, with_oauth_hint,
};
use crate::pending_requests::PendingRequests;
use crate::upstream_session::{SessionSlot, UpstreamSession, VERSION};

pub(crate) const ACCEPTED: &str = "application/json, text/event-stream";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The code of the error that replaces an unreadable event. JSON-RPC does not reserve it.
const UNREADABLE: ErrorCode = ErrorCode(5_963_777);

type PostResult = Result<StreamableHttpPostResponse, StreamableHttpError<HttpFault>>;

/// A client for one server. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct BoundedClient {
    http: Client,
    last_fault: Arc<Mutex<Option<ConnectError>>>,
    handshaken: Arc<AtomicBool>,
    pending: Arc<PendingRequests>,
    session: Arc<SessionSlot>,
    authorization: Option<Arc<Authorization>>,
    bearer: Option<Arc<BearerToken>>,
}

impl BoundedClient {
    /// `pending` is notified when rmcp replaces a lost session, because the lists must be read again then.
    pub(crate) fn new(
        pool: &HttpPool,
        url: &Url,
        pending: Arc<PendingRequests>,
        authorization: Option<Arc<Authorization>>,
        bearer: Option<Arc<BearerToken>>,
    ) -> Result<Self, ConnectError> {
        Ok(Self {
            authorization,
            bearer,
            http: pool.client_for(url)?,
            last_fault: Arc::default(),
            handshaken: Arc::default(),
            pending,
            session: Arc::default(),
        })
    }

    /// The holder of rmcp's current session.
    pub(crate) fn session(&self) -> &Arc<SessionSlot> {
        &self.session
    }

    /// Records the session that rmcp uses from now on. If it replaces a lost one, the lists are read again.
    fn learn_session(
        &self,
        session: Option<&Arc<str>>,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) {
        let id = session.and_then(|id| HeaderValue::from_str(id).ok());
        let version = headers.get(&VERSION).cloned();
        self.session.set(UpstreamSession { id, version });
        if self.handshaken.swap(true, Ordering::Relaxed) {
            self.pending.suspect_lists();
        }
    }

    pub(crate) fn http(&self) -> &Client {
        &self.http
    }

    /// Takes the last failure.
    pub(crate) fn take_fault(&self) -> Option<ConnectError> {
        self.last_fault.lock().take()
    }

    fn fault(&self, error: ConnectError) -> StreamableHttpError<HttpFault> {
        *self.last_fault.lock() = Some(error.clone());
        StreamableHttpError::Client(HttpFault(error))
    }

    /// Sends a request with the current token, if the server uses OAuth or a token file.
    async fn send(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, StreamableHttpError<HttpFault>> {
        let sent = match (&self.authorization, &self.bearer) {
            // Boxed: the future is large, and few servers need it.
            (Some(authorization), _) => Box::pin(authorization.send(request)).await,
            (None, Some(bearer)) => {
                bearer.send(request).await.map_err(|error| describe_failure(&error))
            }
            (None, None) => request.send().await.map_err(|error| describe_failure(&error)),
        };
        sent.map_err(|error| self.fault(error))
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
        let awaited = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let is_handshaken = matches!(&message, JsonRpcMessage::Notification(notification)
            if matches!(notification.notification, ClientNotification::InitializedNotification(_)));
        let learned = is_handshaken.then(|| (session.clone(), headers.clone()));
        let has_session = session.is_some();
        let request = self.http.post(&*uri).header(header::ACCEPT, ACCEPTED).json(&message);
        let request = with_headers(request, session, bearer, headers);
        let response = self.send(request).await?;
        let status = response.status();
        if let Some((session, headers)) = learned.filter(|_| status.is_success()) {
            self.learn_session(session.as_ref(), &headers);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header_text(&response, HEADER_SESSION_ID);
        if status.is_success() && content_type(&response).starts_with(EVENT_STREAM) {
            let events = slowed_events(bounded_events(response.bytes_stream(), max_event));
            let events = events.map(move |event| readable(event, awaited.as_ref())).boxed();
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        match self.read_answer(response, awaited.is_some()).await? {
            Some(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            None => Ok(StreamableHttpPostResponse::Accepted),
        }
    }

    /// Reads the JSON-RPC message of a response; `None` if none is expected and the body is empty.
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
            let headers = response.headers().clone();
            let body = read_bounded(response, QUOTED_BYTES).await.unwrap_or_else(|(_, head)| head);
            let described = describe_answer(status, &kind, &body);
            return Err(self.fault(with_oauth_hint(described, &headers)));
        }
        let body = read_bounded(response, MAX_MESSAGE_BYTES)
            .await
            .map_err(|(error, _)| self.fault(error))?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            // rmcp would drop an error without a request id, and the caller would wait forever.
            Ok(JsonRpcMessage::Error(error)) if error.id.is_none() && wants_answer => {
                let message =
                    format!("the server refused: {} (HTTP {status})", error.error.message);
                Err(self.fault(ConnectError::new(ConnectErrorKind::Protocol, message)))
            }
            Ok(message @ JsonRpcMessage::Error(_)) => Ok(Some(message)),
            Ok(message) if status.is_success() => Ok(Some(message)),
            Err(_) if !wants_answer && status.is_success() => Ok(None),
            Err(error) if status.is_success() => Err(self.fault(describe_non_rpc(&error, &body))),
            Ok(_) | Err(_) => Err(self.fault(describe_answer(status, &kind, &body))),
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
        // A server that is gone, or keeps no sessions, has nothing to delete.
        let request = with_headers(self.http.delete(&*uri), Some(session), bearer, headers);
        self.send(request).await.map(drop)
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
        let response = self.send(with_headers(request, session, bearer, headers)).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::NOT_FOUND => {
                // rmcp only retries with the same session. Reading the lists again makes it open a new session and its
                // notification stream, so that notifications are missed only for a short time.
                self.pending.suspect_lists();
                Err(StreamableHttpError::SessionExpired)
            }
            status if !status.is_success() => {
                Err(self.fault(describe_answer(status, &content_type(&response), b"")))
            }
            _ if !content_type(&response).starts_with(EVENT_STREAM) => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            _ => {
                let (events, pending) = (
                    bounded_events(response.bytes_stream(), MAX_MESSAGE_BYTES),
                    self.pending.clone(),
                );
                Ok(slowed_events(events)
                    .map(move |event| Ok(without_ours(&pending, event?)))
                    .boxed())
            }
        }
    }
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

/// Reads a body up to a limit. An error carries the reason and the beginning of the body.
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
                return Err((too_large(limit), body));
            }
            Err(error) => return Err((describe_failure(&error), body)),
        }
    }
    Ok(body)
}

/// Replaces an unreadable event with an error for the waiting request. rmcp would skip the event, or fetch it again
/// forever.
fn readable(event: Result<Sse, SseError>, awaited: Option<&RequestId>) -> Result<Sse, SseError> {
    let reason = match &event {
        Err(SseError::Body(fault)) => fault
            .downcast_ref::<EventFault<reqwest::Error>>()
            .filter(|fault| matches!(fault, EventFault::TooLarge(_)))
            .map(ToString::to_string),
        Ok(event) => event
            .data
            .as_deref()
            .filter(|data| is_too_deep(data.as_bytes()))
            .map(|_| too_deep().message),
        Err(_) => None,
    };
    let (Some(reason), Some(id)) = (reason, awaited) else { return event };
    let error = ErrorData::new(UNREADABLE, reason, None);
    let message = ServerJsonRpcMessage::error(error, Some(id.clone()));
    Ok(Sse::default().data(serde_json::to_string(&message).unwrap_or_default()))
}

/// Removes messages for callers from rmcp's stream; the event id stays.
fn without_ours(pending: &Arc<PendingRequests>, mut event: Sse) -> Sse {
    if let Some(data) = event.data.take() {
        let data = Bytes::from(data);
        if !pending.take(&data) {
            // It was valid UTF-8 before.
            event.data = String::from_utf8(data.into()).ok();
        }
    }
    event
}

/// Server-sent events of at most `limit` bytes each.
pub(crate) fn bounded_events<S, B, E>(
    bytes: S,
    limit: usize,
) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<B, E>> + Send + 'static,
    B: AsRef<[u8]> + Into<Bytes> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut since_event = 0usize;
    let mut last_was_newline = false;
    let bounded = slowed_bytes(bytes).map(move |chunk| {
        let chunk = chunk.map_err(EventFault::Lost)?;
        for byte in chunk.as_ref() {
            since_event += 1;
            // An empty line ends an event; a carriage return before it does not count.
            match byte {
                b'\n' if last_was_newline => since_event = 0,
                b'\n' => last_was_newline = true,
                b'\r' => {}
                _ => last_was_newline = false,
            }
        }
        if since_event > limit {
            return Err(EventFault::TooLarge(limit));
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn events(chunks: &[&str], limit: usize) -> Vec<Result<String, String>> {
        let chunks: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok::<_, std::io::Error>((*chunk).to_owned().into_bytes()))
            .collect();
        bounded_events(futures::stream::iter(chunks), limit)
            .map(|event| match event {
                Ok(event) => Ok(event.data.unwrap_or_default()),
                Err(error) => Err(error.to_string()),
            })
            .collect()
            .await
    }

    #[tokio::test]
    async fn the_bound_is_for_one_event_and_not_for_the_stream() {
        let small = ["data: 1234\n\n", "data: 12", "34\r\n\r\ndata: 1234\n", "\n"];
        assert_eq!(events(&small, 20).await, vec![Ok("1234".to_owned()); 3]);
        let large = ["data: 1\n\n", "data: 0123456789", "0123456789"];
        let read = events(&large, 20).await;
        assert_eq!(read.first(), Some(&Ok("1".to_owned())));
        let error = read.get(1).and_then(|event| event.as_ref().err()).unwrap();
        assert!(error.ends_with("the answer is larger than 20 bytes"), "{error}");
    }

    #[test]
    fn an_unreadable_event_fails_the_request_that_waits_and_no_other() {
        let deep = || Sse::default().data("[".repeat(500));
        let replaced = readable(Ok(deep()), Some(&RequestId::Number(7))).unwrap();
        let message: serde_json::Value =
            serde_json::from_str(&replaced.data.unwrap_or_default()).unwrap();
        assert_eq!((&message["id"], &message["error"]["code"]), (&7.into(), &UNREADABLE.0.into()));
        assert_eq!(readable(Ok(deep()), None).unwrap(), deep());
    }
}
