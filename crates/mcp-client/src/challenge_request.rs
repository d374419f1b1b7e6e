//! The request without a token whose refusal says where to sign in.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::RequestBuilder;
use switchboard_model::{ConnectError, Endpoint, Secret, ServerSpec};
use switchboard_outbound::HttpPool;

use crate::probe::discover_request;

/// The request that a sign-in sends to get the server's OAuth challenge; `None` for a child process.
pub fn challenge_request(
    spec: &ServerSpec,
    http: &HttpPool,
) -> Result<Option<RequestBuilder>, ConnectError> {
    let (request, headers) = match &spec.endpoint {
        Endpoint::StreamableHttp { url, headers, .. } => {
            (discover_request(http.client_for(url)?.post(url.clone())), headers)
        }
        Endpoint::Sse { url, headers, .. } => {
            let request = http.client_for(url)?.get(url.clone());
            (request.header("accept", "text/event-stream"), headers)
        }
        Endpoint::Stdio { .. } => return Ok(None),
    };
    Ok(Some(request.headers(plain_headers(headers))))
}

/// The configured headers; those that a request cannot carry are left out.
fn plain_headers(headers: &BTreeMap<String, Secret>) -> HeaderMap {
    let legal = headers.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.as_str()).ok()?, value))
    });
    legal.collect()
}
