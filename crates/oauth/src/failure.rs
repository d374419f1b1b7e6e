//! Errors that several OAuth flows have in common.

use switchboard_model::{ConnectError, ConnectErrorKind};

use crate::token_store::TokenStoreError;

/// The store does not take or return the tokens.
pub(crate) fn unkept(error: &TokenStoreError) -> ConnectError {
    let message = format!("the tokens cannot be kept: {}", error.message);
    let failed = ConnectError::new(ConnectErrorKind::Unauthorized, message);
    match &error.hint {
        Some(hint) => failed.with_operator_hint(hint.as_str()),
        None => failed,
    }
}

/// The response of the authorization server or of the browser cannot be used.
pub(crate) fn unusable(why: &str) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, why)
}
