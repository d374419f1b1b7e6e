//! The interactive sign-in: a URL for the browser, a callback on a local port, and the exchange for tokens.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::RequestBuilder;
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use switchboard_model::{
    ConnectError, ConnectErrorKind, GrantId, OAuthGrant, ServerSpec, SignInClient,
};
use switchboard_outbound::{Redactor, describe_failure};
use tokio::net::TcpListener;
use url::Url;

use crate::callback::{CALLBACK, listen, no_port, query_value, wait_for_browser};
use crate::challenge::bearer_challenge;
use crate::discovery::{Discovered, describe, discover};
use crate::failure::{unkept, unusable};
use crate::grant::{Grant, union};
use crate::refresh::client_of;
use crate::sign_in_need::SignInNeed;
use crate::sign_in_state::wants_oauth;
use crate::token_store::TokenStore;

const OUR_NAME: &str = "Switchboard";
/// Maximum time for the request that asks for the challenge.
const LONGEST_QUESTION: Duration = Duration::from_secs(30);

/// The result of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub issuer: String,
    pub scopes: Vec<String>,
}

/// A sign-in that waits for the browser. Dropping it cancels it.
pub struct SignIn {
    id: GrantId,
    tokens: Arc<dyn TokenStore>,
    manager: AuthorizationManager,
    listener: TcpListener,
    url: String,
    /// The grant to be stored; without tokens yet.
    grant: Grant,
    redactor: Redactor,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SignIn {
    /// Discovers where to sign in, and with which client. `unsigned` is a request to the server without a token: the
    /// challenge of its refusal names the authorization server.
    pub async fn begin(
        spec: &ServerSpec,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let begun = Self::prepare(spec, unsigned, tokens).await;
        begun.map_err(|error| Redactor::of(spec).redact_error(error))
    }

    async fn prepare(
        spec: &ServerSpec,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let name = &spec.name;
        let OAuthGrant::SignIn(ours) = &settings.grant else {
            let message =
                format!("'{name}' needs no sign-in: it uses the client credentials grant");
            return Err(ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
                "its entry says `grant: client_credentials`; `switchboard server test` tries it",
            ));
        };
        let id = GrantId::of_server(name);
        let wanted = tokens.need(&id).await.map_err(|error| unkept(&error))?;
        let wanted = wanted.as_deref().and_then(SignInNeed::read).unwrap_or_default();
        let challenge = match unsigned {
            Some(request) => ask_for_challenge(request).await?,
            None => None,
        };
        let challenge = challenge.or(wanted.challenge);
        let mut found = discover(url, challenge.as_deref()).await?;
        let before = tokens.load(&id, Some(&found.issuer)).await.map_err(|error| unkept(&error))?;
        let before = before.as_ref().and_then(Grant::read);
        let before = before.filter(|grant| grant.is_for(url, settings));

        let listener = listen(ours.redirect_port).await?;
        let port = listener.local_addr().map_err(|error| no_port(None, &error))?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{CALLBACK}");
        let earlier = before.as_ref().map(|grant| grant.asked.as_slice()).unwrap_or_default();
        let mut scopes = found.scopes(settings, &union(earlier, &wanted.scopes)).await;
        ask_to_stay(&found, &mut scopes);
        let known = before.as_ref().filter(|grant| grant.redirect_uri == redirect_uri);
        let client = client(&mut found, ours, known, &redirect_uri, &scopes).await?;
        let grant = Grant {
            server_url: url.as_str().to_owned(),
            issuer: found.issuer,
            client_id: client.client_id.clone(),
            client_secret: client.client_secret.clone(),
            redirect_uri,
            access_token: String::new(),
            refresh_token: None,
            expires_at_ms: None,
            asked: scopes.clone(),
            granted: scopes.clone(),
            is_own: false,
            since: Vec::new(),
            renew_at_ms: None,
            version: 0,
        };
        let mut manager = found.manager;
        manager.configure_client(client).map_err(|error| describe(&error))?;
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let url = manager.get_authorization_url(&scopes).await.map_err(|error| describe(&error))?;
        let redactor = Redactor::of(spec);
        Ok(Self { id, tokens, manager, listener, url, grant, redactor })
    }

    /// The URL to open in a browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the callback, and stores the tokens.
    pub async fn finish(mut self) -> Result<SignedIn, ConnectError> {
        let redactor = std::mem::take(&mut self.redactor);
        self.take_tokens().await.map_err(|error| redactor.redact_error(error))
    }

    async fn take_tokens(self) -> Result<SignedIn, ConnectError> {
        let state = parameter(&self.url, "state");
        let callback = wait_for_browser(self.listener, &state).await?;
        let answer = self
            .manager
            .exchange_code_for_token_with_issuer(&callback.code, &state, callback.issuer.as_deref())
            .await
            .map_err(|error| describe(&error))?;
        let mut grant = self.grant;
        let answer = serde_json::to_value(&answer).unwrap_or_default();
        grant.take(&answer, self.tokens.now_ms()).map_err(|why| unusable(&why))?;
        let kept = self.tokens.save(&self.id, &grant.issuer, grant.write()).await;
        kept.map_err(|error| unkept(&error))?;
        Ok(SignedIn { issuer: grant.issuer, scopes: grant.granted })
    }
}

/// The server's challenge to a request without a token.
pub(crate) async fn ask_for_challenge(
    unsigned: RequestBuilder,
) -> Result<Option<String>, ConnectError> {
    let response = unsigned.timeout(LONGEST_QUESTION).send().await;
    let response = response.map_err(|error| describe_failure(&error))?;
    let is_refused = response.status() == StatusCode::UNAUTHORIZED;
    Ok(bearer_challenge(response.headers()).filter(|_| is_refused))
}

/// Requests `offline_access` where it is offered, to get a refresh token.
pub(crate) fn ask_to_stay(found: &Discovered, scopes: &mut Vec<String>) {
    let offline = "offline_access";
    let supported = found.metadata.scopes_supported.as_deref().unwrap_or_default();
    let is_offered = supported.iter().any(|scope| scope == offline);
    if is_offered && !scopes.is_empty() && !scopes.iter().any(|scope| scope == offline) {
        scopes.push(offline.to_owned());
    }
}

/// The OAuth client to use: the configured one, the client metadata document, the one of the last sign-in, or a newly
/// registered one.
pub(crate) async fn client(
    found: &mut Discovered,
    ours: &SignInClient,
    before: Option<&Grant>,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<OAuthClientConfig, ConnectError> {
    if let Some(id) = &ours.id {
        let config = OAuthClientConfig::new(id, redirect_uri);
        return Ok(match &ours.secret {
            Some(secret) => config.with_client_secret(secret.expose()),
            None => config,
        });
    }
    let reads_documents = found
        .metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|value| value == true);
    if let Some(document) = ours.metadata_url.as_ref().filter(|_| reads_documents) {
        return Ok(OAuthClientConfig::new(document.as_str(), redirect_uri));
    }
    if let Some(before) = before {
        return Ok(client_of(before));
    }
    let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    let registered = found.manager.register_client(OUR_NAME, redirect_uri, &scopes).await;
    registered.map_err(|error| {
        let hint = "register a client there by hand and give its `client_id` in `auth.oauth`";
        let described = describe(&error);
        if found.metadata.registration_endpoint.is_none() {
            let message = format!("{} does not support dynamic client registration", found.issuer);
            return ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(hint);
        }
        described.with_operator_hint(hint)
    })
}

/// A value in the query of a URL; empty without one.
pub(crate) fn parameter(url: &str, name: &str) -> String {
    let url = Url::parse(url).ok();
    let found = url.and_then(|url| query_value(url.query().unwrap_or_default(), name));
    found.unwrap_or_default()
}
