//! Errors that several OAuth flows have in common.

use switchboard_model::{ConnectError, ConnectErrorKind};

/// The store does not take or return the tokens.
pub(crate) fn unkept(error: &str) -> ConnectError {
    let message = format!("the tokens cannot be kept: {error}");
    ConnectError::new(ConnectErrorKind::Unauthorized, message)
}

/// The response of the authorization server or of the browser cannot be used.
pub(crate) fn unusable(why: &str) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, why)
}
