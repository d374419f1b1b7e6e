//! Refreshing the tokens of a sign-in.

use switchboard_model::{ConnectError, Secret};

use crate::authorization_server::{AuthorizationServer, FlowClient};
use crate::failure::unusable;
use crate::grant::Grant;

/// The result of a refresh.
pub(crate) enum Refreshed {
    Renewed(Box<Grant>),
    /// The refresh token is no longer valid.
    Refused,
}

/// Exchanges the refresh token for another access token. An answer without a refresh token leaves the present one valid.
pub(crate) async fn refresh(
    server: &AuthorizationServer,
    used: &Grant,
    now_ms: i64,
) -> Result<Refreshed, ConnectError> {
    let Some(refresh_token) = &used.refresh_token else { return Ok(Refreshed::Refused) };
    let mut params =
        vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.as_str())];
    params.extend(server.resource.as_deref().map(|resource| ("resource", resource)));
    match server.request_token(&client_of(used), &params).await {
        Ok(answer) => {
            let mut renewed = used.clone();
            renewed.take(&answer, now_ms).map_err(|why| unusable(&why))?;
            Ok(Refreshed::Renewed(Box::new(renewed)))
        }
        Err(failure) if failure.is_terminal() => Ok(Refreshed::Refused),
        Err(failure) => Err(failure.into_error(&server.issuer)),
    }
}

/// The OAuth client that a grant belongs to.
pub(crate) fn client_of(grant: &Grant) -> FlowClient {
    let secret = grant.client_secret.as_deref().map(Secret::new);
    FlowClient { id: grant.client_id.clone(), secret }
}
