//! HTTP requests and responses over either client: the loopback client for a model on this machine, whose connection
//! the turn itself reads, and reqwest, with its proxies, certificates and HTTP/2, for all others.

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use switchboard_chat::ModelFault;
use switchboard_loopback::{LoopbackBody, LoopbackPool, LoopbackRequest, RetryPolicy, target};
use url::Url;

use crate::http_client::{self, HttpClients};

/// One request.
#[derive(Debug)]
pub(crate) struct HttpQuestion {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The head of a response, and its body as a stream.
#[derive(Debug)]
pub(crate) struct ProviderResponse {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: ProviderResponseBody,
}

#[derive(Debug)]
enum ProviderResponseBody {
    Near(LoopbackBody),
    Far(Box<reqwest::Response>),
}

impl HttpQuestion {
    pub(crate) async fn send(
        self,
        pool: Option<&Arc<LoopbackPool>>,
        clients: &HttpClients,
    ) -> Result<ProviderResponse, ModelFault> {
        match (pool, target(&self.url)) {
            (Some(pool), Some(target)) => self.send_loopback(pool, &target).await,
            // Boxed: the future is large, and loopback requests do not need it.
            _ => Box::pin(self.send_remote(clients)).await,
        }
    }

    async fn send_loopback(
        self,
        pool: &Arc<LoopbackPool>,
        target: &PathAndQuery,
    ) -> Result<ProviderResponse, ModelFault> {
        let Self { method, url, mut headers, body } = self;
        let own = HeaderValue::from_static(http_client::USER_AGENT);
        headers.entry(USER_AGENT).or_insert(own);
        let request = LoopbackRequest {
            method: &method,
            target,
            headers: &headers,
            more_headers: &[],
            body: &body,
            // Retries are up to the caller.
            repeat: RetryPolicy::Never,
        };
        match pool.send(request).await {
            Ok((head, rest)) => {
                let (status, headers) = (head.status, head.headers);
                Ok(ProviderResponse {
                    url,
                    status,
                    headers,
                    body: ProviderResponseBody::Near(rest),
                })
            }
            Err(error) => Err(http_client::loopback_fault(&error, &url)),
        }
    }

    async fn send_remote(self, clients: &HttpClients) -> Result<ProviderResponse, ModelFault> {
        let Self { method, url, headers, body } = self;
        let client = clients.of(&url)?;
        match client.request(method, url.clone()).headers(headers).body(body).send().await {
            Ok(mut response) => {
                let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
                Ok(ProviderResponse {
                    url,
                    status,
                    headers,
                    body: ProviderResponseBody::Far(Box::new(response)),
                })
            }
            Err(error) => Err(http_client::transport_fault(&error, &url)),
        }
    }
}

impl ProviderResponse {
    /// The next piece of the body, `None` at its end, or the error. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match &mut self.body {
            ProviderResponseBody::Near(rest) => {
                rest.chunk().await.map_err(|error| http_client::innermost(&*error.cause))
            }
            ProviderResponseBody::Far(response) => {
                response.chunk().await.map_err(|error| http_client::innermost(&error))
            }
        }
    }
}
