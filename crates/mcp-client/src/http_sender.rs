//! Sends one HTTP request and streams its response: over the loopback client to servers on this machine, which costs a
//! fraction of the time, and over reqwest, with its proxies and certificates, to all others.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::{Client, Response};
use sse_stream::{Error as SseError, Sse};
use switchboard_loopback::{LoopbackBody, LoopbackPool, LoopbackRequest, RetryPolicy, target};
use switchboard_model::ConnectError;
use switchboard_outbound::{HttpPool, describe_failure, describe_loopback_failure};
use url::Url;

use crate::bounds::MAX_MESSAGE_BYTES;
use crate::flow_limit::slowed_events;
use crate::http_client::bounded_events;
use crate::http_faults::{HttpFault, too_large};
use crate::request::CallerHeaders;

/// The sender for one URL.
#[derive(Debug)]
pub(crate) struct HttpSender {
    plain: Option<Plain>,
    full: Client,
    url: Url,
}

/// The loopback client for a server on this machine.
#[derive(Debug)]
struct Plain {
    pool: Arc<LoopbackPool>,
    target: PathAndQuery,
}

impl Plain {
    fn new(url: &Url) -> Option<Self> {
        Some(Self { pool: LoopbackPool::to(url)?, target: target(url)? })
    }
}

impl HttpSender {
    /// The loopback client knows no egress check, so a guarded pool does not use it.
    pub(crate) fn new(pool: &HttpPool, url: &Url) -> Result<Self, ConnectError> {
        let plain = if pool.is_guarded() { None } else { Plain::new(url) };
        Ok(Self { plain, full: pool.client_for(url)?, url: url.clone() })
    }

    /// The loopback connections, if there are any; idle ones need closing from time to time.
    pub(crate) fn pool(&self) -> Option<Arc<LoopbackPool>> {
        self.plain.as_ref().map(|plain| plain.pool.clone())
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &RequestHeaders,
        body: Bytes,
        repeat: RetryPolicy,
    ) -> Result<UpstreamResponse, ConnectError> {
        if let Some(plain) = &self.plain {
            let request = LoopbackRequest {
                method: &method,
                target: &plain.target,
                headers: &headers.shared,
                more_headers: &headers.own,
                body: &body,
                repeat,
            };
            let sent = plain.pool.send(request).await;
            let (head, rest) = sent.map_err(|error| describe_loopback_failure(&error))?;
            // reqwest decides whether to follow a redirect. Only these two statuses guarantee that the request was not
            // processed and must be repeated unchanged.
            let is_sent_on = matches!(
                head.status,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if !is_sent_on {
                let (status, headers) = (head.status, head.headers);
                return Ok(UpstreamResponse {
                    status,
                    headers,
                    body: UpstreamResponseBody::Plain(rest),
                });
            }
        }
        // Boxed: the future is large, and loopback requests do not need it.
        Box::pin(self.send_in_full(method, headers.all(), body)).await
    }

    async fn send_in_full(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<UpstreamResponse, ConnectError> {
        let request = self.full.request(method, self.url.clone()).headers(headers).body(body);
        let mut response = request.send().await.map_err(|error| describe_failure(&error))?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        Ok(UpstreamResponse {
            status,
            headers,
            body: UpstreamResponseBody::Full(Box::new(response)),
        })
    }
}

/// The headers of a request: those of its session, which are built once, and its own. No header is in both parts.
#[derive(Debug, Default)]
pub(crate) struct RequestHeaders {
    pub(crate) shared: Arc<HeaderMap>,
    pub(crate) own: Vec<(HeaderName, HeaderValue)>,
}

impl RequestHeaders {
    /// The headers with those of the caller, which replace shared ones of the same name.
    pub(crate) fn for_caller(mut self, callers: Option<&CallerHeaders>) -> Self {
        let Some(callers) = callers else { return self };
        self.own.extend(callers.iter().cloned());
        let is_shared = callers.iter().any(|(name, _)| self.shared.contains_key(name));
        if is_shared { self.all().into() } else { self }
    }

    pub(crate) fn all(&self) -> HeaderMap {
        let mut all = HeaderMap::clone(&self.shared);
        for (name, value) in &self.own {
            // `extend` would append a second value instead of replacing the shared one.
            all.insert(name.clone(), value.clone());
        }
        all
    }
}

impl From<HeaderMap> for RequestHeaders {
    fn from(all: HeaderMap) -> Self {
        Self { shared: Arc::new(all), own: Vec::new() }
    }
}

/// A response whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct UpstreamResponse {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    body: UpstreamResponseBody,
}

#[derive(Debug)]
enum UpstreamResponseBody {
    Plain(LoopbackBody),
    Full(Box<Response>),
}

impl UpstreamResponseBody {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ConnectError> {
        match self {
            Self::Full(response) => {
                response.chunk().await.map_err(|error| describe_failure(&error))
            }
            Self::Plain(rest) => {
                rest.chunk().await.map_err(|error| describe_loopback_failure(&error))
            }
        }
    }
}

impl UpstreamResponse {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn content_type(&self) -> String {
        self.header(&header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase()
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        self.header(&header::CONTENT_TYPE)
            .is_some_and(|kind| starts_with(kind, "text/event-stream"))
    }

    pub(crate) fn is_json(&self) -> bool {
        self.header(&header::CONTENT_TYPE).is_some_and(|kind| starts_with(kind, "application/json"))
    }

    /// Reads the body. An error carries the reason and the beginning of the body. A body of one piece is not copied.
    pub(crate) async fn read(mut self, limit: usize) -> Result<Bytes, (ConnectError, Bytes)> {
        let mut whole: Option<Bytes> = None;
        let mut pieces = BytesMut::new();
        loop {
            let chunk = match self.body.chunk().await {
                Ok(Some(chunk)) if chunk.is_empty() => continue,
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(whole.unwrap_or_else(|| pieces.freeze())),
                Err(error) => return Err((error, whole.unwrap_or_else(|| pieces.freeze()))),
            };
            if let Some(first) = whole.take() {
                pieces.extend_from_slice(&first);
            }
            if pieces.len() + chunk.len() > limit {
                let room = limit.saturating_sub(pieces.len());
                pieces.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                return Err((too_large(limit), pieces.freeze()));
            }
            if pieces.is_empty() {
                whole = Some(chunk);
            } else {
                pieces.extend_from_slice(&chunk);
            }
        }
    }

    /// The body as server-sent events.
    pub(crate) fn events(self) -> BoxStream<'static, Result<Sse, SseError>> {
        let chunks = stream::unfold(self.body, |mut body| async move {
            let chunk = body.chunk().await.map_err(HttpFault).transpose()?;
            Some((chunk, body))
        });
        slowed_events(bounded_events(chunks, MAX_MESSAGE_BYTES))
    }
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_itself_stands_above_what_is_set_for_all() {
        let tenant = HeaderName::from_static("mcp-param-tenant");
        let other = HeaderName::from_static("x-other");
        let shared = HeaderMap::from_iter([
            (tenant.clone(), HeaderValue::from_static("acme")),
            (other.clone(), HeaderValue::from_static("kept")),
        ]);
        let own = vec![(tenant.clone(), HeaderValue::from_static("mirrored"))];
        let all = RequestHeaders { shared: Arc::new(shared), own }.all();
        let said: Vec<_> =
            all.get_all(&tenant).iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!((said, &all[other]), (vec!["mirrored"], &HeaderValue::from_static("kept")));
    }
}
