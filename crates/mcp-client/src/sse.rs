//! The HTTP+SSE transport of 2024-11-05, which rmcp no longer supports: a long GET first names the URL for POST
//! requests, and then carries all responses.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Future, FutureExt, StreamExt};
use http::header;
use reqwest::{RequestBuilder, Response};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::Sse;
use switchboard_model::{ConnectError, ConnectErrorKind};
use switchboard_oauth::Authorization;
use switchboard_outbound::describe_failure;
use url::Url;

use crate::bearer::BearerToken;
use crate::bounds::MAX_MESSAGE_BYTES;
use crate::http_client::{bounded_events, content_type, read_bounded};
use crate::http_faults::{CLOSED, HttpFault, describe_answer, with_oauth_hint};
use crate::message_sink::MessageSink;
use crate::pending_requests::PendingRequests;
use crate::request::CallerHeaders;

/// Builds and sends requests to URLs of the server, with its credentials.
pub(crate) struct RequestTo {
    pub(crate) make: Box<dyn Fn(http::Method, Url) -> RequestBuilder + Send + Sync>,
    /// The OAuth token, if the server uses OAuth.
    pub(crate) authorization: Option<Arc<Authorization>>,
    /// The bearer token, if it comes from a file.
    pub(crate) bearer: Option<Arc<BearerToken>>,
}

impl RequestTo {
    async fn send(&self, request: RequestBuilder) -> Result<Response, ConnectError> {
        match (&self.authorization, &self.bearer) {
            (Some(authorization), _) => Box::pin(authorization.send(request)).await,
            (None, Some(bearer)) => {
                bearer.send(request).await.map_err(|error| describe_failure(&error))
            }
            (None, None) => request.send().await.map_err(|error| describe_failure(&error)),
        }
    }
}

/// An open HTTP+SSE session.
pub(crate) struct SseTransport {
    posts: Posts,
    incoming: BoxStream<'static, RxJsonRpcMessage<RoleClient>>,
}

/// The URL that accepts messages.
#[derive(Clone)]
pub(crate) struct Posts {
    request: Arc<RequestTo>,
    messages: Url,
}

impl fmt::Debug for Posts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL is not shown, because it contains the session.
        f.debug_struct("Posts").finish_non_exhaustive()
    }
}

impl Posts {
    /// Sends one message; its response arrives on the stream.
    fn post(
        &self,
        text: String,
        callers: Option<CallerHeaders>,
    ) -> impl Future<Output = Result<(), ConnectError>> + Send + 'static {
        let sender = self.request.clone();
        let mut request = (sender.make)(http::Method::POST, self.messages.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .body(text);
        if let Some(callers) = callers {
            // Replaces the values for requests that no caller makes.
            request = request.headers(callers.iter().cloned().collect());
        }
        async move {
            let response = sender.send(request).await?;
            let (status, kind) = (response.status(), content_type(&response));
            if status.is_success() {
                return Ok(());
            }
            let body = read_bounded(response, 200).await.unwrap_or_else(|(_, head)| head);
            Err(describe_answer(status, &kind, &body))
        }
    }
}

impl MessageSink for Posts {
    fn send(
        &self,
        text: String,
        callers: Option<CallerHeaders>,
    ) -> BoxFuture<'_, Result<(), ConnectError>> {
        self.post(text, callers).boxed()
    }
}

impl SseTransport {
    /// Opens the stream and waits for its `endpoint` event.
    pub(crate) async fn open(
        url: &Url,
        request: RequestTo,
        pending: Arc<PendingRequests>,
    ) -> Result<Self, ConnectError> {
        let opening = (request.make)(http::Method::GET, url.clone());
        let opening = opening.header(header::ACCEPT, "text/event-stream");
        let response = request.send(opening).await?;
        let kind = content_type(&response);
        if !response.status().is_success() || !kind.starts_with("text/event-stream") {
            let (status, headers) = (response.status(), response.headers().clone());
            let body = read_bounded(response, 200).await.unwrap_or_else(|(_, head)| head);
            return Err(with_oauth_hint(describe_answer(status, &kind, &body), &headers));
        }
        let mut events = bounded_events(response.bytes_stream(), MAX_MESSAGE_BYTES);
        let messages = loop {
            match events.next().await {
                Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                    break resolve_endpoint(url, &event.data.unwrap_or_default())?;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(&error.to_string())),
                None => return Err(broken("the stream ended before it named its endpoint")),
            }
        };
        let ending = StreamEndGuard(pending.clone());
        let incoming = events
            .take_while(|event| std::future::ready(event.is_ok()))
            .filter_map(move |event| {
                let message = for_rmcp(&ending.0, event.ok());
                let read_on = ending.0.read_on();
                async move {
                    if let Some(at) = read_on {
                        tokio::time::sleep_until(at).await;
                    }
                    message
                }
            })
            .boxed();
        Ok(Self { posts: Posts { request: Arc::new(request), messages }, incoming })
    }

    pub(crate) fn posts(&self) -> &Posts {
        &self.posts
    }
}

/// The events that rmcp has to handle.
fn for_rmcp(
    pending: &Arc<PendingRequests>,
    event: Option<Sse>,
) -> Option<RxJsonRpcMessage<RoleClient>> {
    let data = Bytes::from(event?.data?);
    if pending.take(&data) { None } else { serde_json::from_slice(&data).ok() }
}

/// Fails all pending requests when the stream ends.
struct StreamEndGuard(Arc<PendingRequests>);

impl Drop for StreamEndGuard {
    fn drop(&mut self) {
        self.0.end(ConnectError::new(ConnectErrorKind::Unreachable, CLOSED));
    }
}

/// Resolves the path or URL of the `endpoint` event. Another origin would receive the credentials and is refused.
fn resolve_endpoint(base: &Url, named: &str) -> Result<Url, ConnectError> {
    let url = base.join(named.trim()).map_err(|error| broken(&format!("bad endpoint: {error}")))?;
    if url.origin() == base.origin() {
        Ok(url)
    } else {
        Err(broken("the stream names an endpoint on another host"))
    }
}

fn broken(message: &str) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

impl Transport<RoleClient> for SseTransport {
    type Error = HttpFault;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpFault>> + Send + 'static {
        let sending = serde_json::to_string(&message).map(|text| self.posts.post(text, None));
        async move {
            match sending {
                Ok(sending) => sending.await.map_err(HttpFault),
                Err(error) => Err(HttpFault(broken(&error.to_string()))),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.incoming.next().await
    }

    async fn close(&mut self) -> Result<(), HttpFault> {
        self.incoming = futures::stream::empty().boxed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_stays_on_the_server() {
        let base = Url::parse("http://127.0.0.1:1/sse").unwrap();
        let resolved = |named: &str| resolve_endpoint(&base, named).map(|url| url.to_string());
        assert_eq!(resolved("/messages?id=1").unwrap(), "http://127.0.0.1:1/messages?id=1");
        assert_eq!(resolved("http://127.0.0.1:1/m").unwrap(), "http://127.0.0.1:1/m");
        assert!(resolved("http://other:1/m").is_err());
        assert!(resolved("//other/m").is_err());
    }
}
