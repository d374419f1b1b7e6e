//! Sends one HTTP request and reads its answer in pieces: straight over hyper to what is on this machine, which
//! costs a third of the time, and over reqwest, with its proxies and certificates, to everything else.

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Client, Response};
use sse_stream::{Error as SseError, Sse};
use url::Url;

use crate::bounds::MAX_MESSAGE_BYTES;
use crate::error::ConnectError;
use crate::http_client::{HttpFault, bounded_events, describe_failure, describe_plain, too_large};

pub(crate) type PlainClient = HyperClient<HttpConnector, Full<Bytes>>;

/// The way to one address.
#[derive(Debug, Clone)]
pub(crate) struct HttpSender {
    /// Only where no proxy, no certificate and no password in the address is needed.
    plain: Option<(PlainClient, Uri)>,
    full: Client,
    url: Url,
}

impl HttpSender {
    pub(crate) fn new(full: Client, plain: Option<PlainClient>, url: &Url) -> Self {
        let is_plain =
            url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        let plain = plain.filter(|_| is_plain).and_then(|client| {
            let mut address = url.clone();
            address.set_fragment(None);
            Some((client, address.as_str().parse().ok()?))
        });
        Self { plain, full, url: url.clone() }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, ConnectError> {
        let Some((client, uri)) = &self.plain else {
            return self.send_in_full(method, headers, body).await;
        };
        let mut request = http::Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers.clone();
        let response = client.request(request).await.map_err(|error| {
            describe_plain(&error, if error.is_connect() { "cannot connect" } else { "no answer" })
        })?;
        if response.status().is_redirection() {
            // Where it may lead is for the other client to judge.
            return self.send_in_full(method, headers, body).await;
        }
        let (parts, body) = response.into_parts();
        Ok(Answer { status: parts.status, headers: parts.headers, body: Body::Plain(body) })
    }

    async fn send_in_full(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, ConnectError> {
        let request = self.full.request(method, self.url.clone()).headers(headers).body(body);
        let mut response = request.send().await.map_err(|error| describe_failure(&error))?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        Ok(Answer { status, headers, body: Body::Full(Box::new(response)) })
    }
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Plain(Incoming),
    Full(Box<Response>),
}

impl Body {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ConnectError> {
        match self {
            Self::Full(response) => {
                response.chunk().await.map_err(|error| describe_failure(&error))
            }
            Self::Plain(body) => {
                while let Some(frame) = body.frame().await {
                    let frame =
                        frame.map_err(|error| describe_plain(&error, "the answer broke off"))?;
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Ok(None)
            }
        }
    }
}

impl Answer {
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

    /// The body, or what is wrong with it and how it begins. One piece is not copied.
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

    /// The body as events.
    pub(crate) fn events(self) -> BoxStream<'static, Result<Sse, SseError>> {
        let chunks = stream::unfold(self.body, |mut body| async move {
            let chunk = body.chunk().await.map_err(HttpFault).transpose()?;
            Some((chunk, body))
        });
        bounded_events(chunks.boxed(), MAX_MESSAGE_BYTES)
    }
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
