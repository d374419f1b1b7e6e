//! Tokens that owners store themselves, for servers that no authorization server issues tokens for.

use http::HeaderValue;
use switchboard_model::{ConnectError, ConnectErrorKind, GrantId, OAuthGrant, Secret, ServerSpec};

use crate::failure::unkept;
use crate::grant::{Grant, STORED};
use crate::sign_in_state::wants_oauth;
use crate::token_store::TokenStore;

/// The maximum length of a token.
const LONGEST: usize = 16 * 1024;

/// Stores a token that was issued beforehand, for a server with `auth.bearer.per`.
pub async fn stored_token(
    spec: &ServerSpec,
    token: &Secret,
    tokens: &dyn TokenStore,
    id: &GrantId,
) -> Result<(), ConnectError> {
    let refuse = |message: String| Err(ConnectError::new(ConnectErrorKind::Protocol, message));
    let (url, settings) = wants_oauth(spec)?;
    if settings.grant != OAuthGrant::StoredToken {
        return refuse(format!("'{}' takes no stored token: sign in instead", spec.name));
    }
    let text = token.expose().trim();
    if text.is_empty() || text.len() > LONGEST || HeaderValue::try_from(text).is_err() {
        return refuse("this is not a token: it is empty, too long, or has characters that a header cannot carry".into());
    }
    let grant = Grant { access_token: text.to_owned(), ..Grant::without_tokens(url, STORED) };
    tokens.save(id, STORED, grant.write()).await.map_err(|error| unkept(&error))
}
