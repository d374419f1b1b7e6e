//! OAuth flows against an authorization server on a real socket.
#![expect(clippy::unwrap_used, reason = "tests")]

mod attacks;
mod client_credentials;
mod flows;
mod renewal;
mod support;
