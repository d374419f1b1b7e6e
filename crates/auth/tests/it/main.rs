//! The gatekeeper with real keys, a real store and a JWKS over a real socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod issuer;
mod keys;
mod tokens;

use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_auth::Refusal;

/// Headers with these values, repeated names included.
fn headers(values: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        headers.append(name.parse::<HeaderName>().unwrap(), value);
    }
    headers
}

fn bearer(token: &str) -> HeaderMap {
    headers(&[("authorization", &format!("Bearer {token}"))])
}

/// Status and message.
fn told(refusal: &Refusal) -> (u16, &str) {
    (refusal.status(), refusal.message())
}
