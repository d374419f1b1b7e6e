//! OAuth flows against an authorization server on a real socket.
#![expect(clippy::unwrap_used, reason = "tests")]

mod client_credentials;
