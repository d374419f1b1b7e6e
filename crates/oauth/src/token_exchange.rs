//! Token exchange (RFC 8693): the token that a caller showed to the board becomes a token for one server.
//!
//! The caller's token is sent to the configured issuer and nowhere else: a server that names another authorization server
//! does not get it there.

use std::collections::BTreeMap;

use serde_json::Value;
use switchboard_model::{
    ConnectError, ConnectErrorKind, ExchangeClient, OAuthSettings, Secret, TokenRequestFormat,
};
use url::Url;

use crate::authorization_server::{AuthorizationServer, FlowClient, IssRule};
use crate::discovery::discover;
use crate::failure::unusable;
use crate::grant::{Grant, union};
use crate::issuer_metadata::IssuerMetadata;
use crate::token_client::TokenClient;
use crate::token_request::TokenFailure;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// How long a token without a lifetime is used.
const UNSTATED_LIFETIME_MS: i64 = 300_000;
/// Refusals of the caller's token rather than of the client.
const SUBJECT_REFUSED: [&str; 3] = ["invalid_grant", "invalid_request", "invalid_token"];

/// The inputs of an exchange.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    /// The server that the token is for.
    pub(crate) url: &'a Url,
    pub(crate) settings: &'a OAuthSettings,
    pub(crate) client: &'a ExchangeClient,
    /// The caller's token.
    pub(crate) subject: &'a Secret,
    /// Scopes in addition to those of the configuration.
    pub(crate) more: &'a [String],
}

/// Exchanges the caller's token for one that is meant for the server.
pub(crate) async fn exchange(wanted: Exchange<'_>, now_ms: i64) -> Result<Grant, ConnectError> {
    let Exchange { url, settings, client, subject, more } = wanted;
    let http = TokenClient::configured()?;
    let metadata = IssuerMetadata::fetch(&client.issuer, &http).await?;
    let resource = resource_of(url, &client.issuer).await?;
    let server = AuthorizationServer {
        issuer: client.issuer.clone(),
        iss: IssRule::Unknown,
        authorize_url: None,
        token_url: metadata.token_url,
        device_url: None,
        revoke_url: None,
        resource: None,
        extra_params: BTreeMap::new(),
        format: TokenRequestFormat::Form,
        client_auth: metadata.client_auth,
        http,
    };
    let scopes = union(&settings.scopes, more);
    let scope = scopes.join(" ");
    let mut params = vec![
        ("grant_type", GRANT_TYPE),
        ("subject_token", subject.expose()),
        ("subject_token_type", ACCESS_TOKEN),
        ("requested_token_type", ACCESS_TOKEN),
        ("resource", &resource),
    ];
    params.extend(client.audience.as_deref().map(|audience| ("audience", audience)));
    params.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
    let us = FlowClient { id: client.id.clone(), secret: client.secret.clone() };
    let answer = server.request_token(&us, &params).await;
    let mut answer = answer.map_err(|failure| refused(failure, &client.issuer))?;
    if answer.get("access_token").and_then(Value::as_str) == Some(subject.expose()) {
        let why = "the issuer returned the caller's own token, which is not sent to servers";
        return Err(unusable(why));
    }
    if let Some(members) = answer.as_object_mut() {
        // The caller's token is exchanged again instead.
        members.remove("refresh_token");
    }
    let mut grant = Grant {
        client_id: client.id.clone(),
        asked: scopes.clone(),
        granted: scopes,
        is_own: true,
        since: more.to_vec(),
        ..Grant::without_tokens(url, &client.issuer)
    };
    grant.take(&answer, now_ms).map_err(|why| unusable(&why))?;
    grant.expires_at_ms.get_or_insert(now_ms.saturating_add(UNSTATED_LIFETIME_MS));
    Ok(grant)
}

/// The identifier of the server as a resource: as its metadata has it, or else its address. A server whose metadata names
/// another authorization server does not accept tokens of this one.
async fn resource_of(url: &Url, issuer: &str) -> Result<String, ConnectError> {
    use ConnectErrorKind::{Overloaded, Timeout, Unreachable};
    match discover(url, None).await {
        Ok(mut found) if found.issuer == issuer => found.resource().await,
        Ok(found) => {
            let message = format!(
                "the server accepts tokens of {}, and the token of the caller is exchanged at {issuer}",
                found.issuer
            );
            Err(ConnectError::new(ConnectErrorKind::Protocol, message)
                .with_operator_hint("`issuer` in `auth.oauth` names the issuer of the exchange"))
        }
        Err(error) if matches!(error.kind, Unreachable | Timeout | Overloaded) => Err(error),
        // The server publishes no metadata, or its issuer may not be asked on its behalf.
        Err(_) => Ok(url.to_string()),
    }
}

fn refused(failure: TokenFailure, issuer: &str) -> ConnectError {
    let is_subject = matches!(
        &failure,
        TokenFailure::Refused { code, .. } if SUBJECT_REFUSED.contains(&code.as_str())
    );
    let is_client = matches!(&failure, TokenFailure::Refused { .. }) && !is_subject;
    let error = failure.into_error(issuer);
    let message = format!("the token of the caller was not exchanged: {}", error.message);
    let error = ConnectError { message, ..error };
    if is_subject {
        error.with_hint("call again with a fresh token of this issuer")
    } else if is_client {
        error.with_operator_hint(
            "check `client_id`, `client_secret`, `audience` and `scopes` in `auth.oauth`, and that the issuer lets this \
             client exchange tokens",
        )
    } else {
        error
    }
}
