//! The authorization code flow with PKCE, without the way that the answer takes: a loopback page, the board's own
//! callback, and a pasted answer all end in [`CodeFlow::finish`].

use std::sync::Arc;

use serde_json::Value;
use switchboard_model::{ConnectError, ConnectErrorKind, DescribedIssuer, GrantId, Secret};
use switchboard_outbound::Redactor;
use url::Url;

use crate::authorization_response::AuthorizationResponse;
use crate::authorization_server::{AuthorizationServer, FlowClient};
use crate::failure::{unkept, unusable};
use crate::grant::Grant;
use crate::random::{challenge_of, random_text};
use crate::token_request::printable;
use crate::token_store::TokenStore;

/// The result of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub issuer: String,
    pub scopes: Vec<String>,
}

/// A sign-in that waits for the authorization response. Dropping it cancels it. Single use: finishing consumes it.
pub struct CodeFlow {
    id: GrantId,
    tokens: Arc<dyn TokenStore>,
    server: AuthorizationServer,
    client: FlowClient,
    state: String,
    verifier: Secret,
    url: String,
    /// The grant to be stored; without tokens yet.
    grant: Grant,
    redactor: Redactor,
}

/// What a flow signs in for.
pub(crate) struct FlowTarget {
    pub(crate) id: GrantId,
    pub(crate) tokens: Arc<dyn TokenStore>,
    pub(crate) server: AuthorizationServer,
    pub(crate) client: FlowClient,
    /// The address that the tokens are for.
    pub(crate) url: Url,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) redactor: Redactor,
}

impl std::fmt::Debug for CodeFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeFlow").field("id", &self.id).finish_non_exhaustive()
    }
}

impl CodeFlow {
    /// A sign-in at an issuer that the configuration describes. `url` is the address that the tokens are for.
    pub async fn described(
        id: GrantId,
        url: &Url,
        issuer: &DescribedIssuer,
        redirect_uri: &str,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let client =
            FlowClient { id: issuer.client_id.clone(), secret: issuer.client_secret.clone() };
        Self::new(FlowTarget {
            id,
            tokens,
            server: AuthorizationServer::described(issuer).await?,
            client,
            url: url.clone(),
            redirect_uri: redirect_uri.to_owned(),
            scopes: issuer.scopes.clone(),
            redactor: Redactor::default(),
        })
    }

    /// A sign-in that only shows who a person is: it asks the issuer for a token for `resource`, which is not stored.
    pub async fn identity(
        id: GrantId,
        issuer: &DescribedIssuer,
        resource: &Url,
        redirect_uri: &str,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let mut server = AuthorizationServer::described(issuer).await?;
        server.resource = Some(resource.to_string());
        let client =
            FlowClient { id: issuer.client_id.clone(), secret: issuer.client_secret.clone() };
        Self::new(FlowTarget {
            id,
            tokens,
            server,
            client,
            url: resource.clone(),
            redirect_uri: redirect_uri.to_owned(),
            scopes: issuer.scopes.clone(),
            redactor: Redactor::default(),
        })
    }

    pub(crate) fn new(target: FlowTarget) -> Result<Self, ConnectError> {
        let FlowTarget { id, tokens, server, client, url, redirect_uri, scopes, redactor } = target;
        let (state, verifier) = (random_text::<16>()?, random_text::<32>()?);
        let Some(mut page) = server.authorize_url.clone() else {
            let message = format!("{} has no page to sign in with a browser", server.issuer);
            return Err(ConnectError::new(ConnectErrorKind::Protocol, message)
                .with_operator_hint("configure `authorize_url`, or sign in with `--device`"));
        };
        let scope = scopes.join(" ");
        {
            let mut query = page.query_pairs_mut();
            for (key, value) in &server.extra_params {
                query.append_pair(key, value);
            }
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &redirect_uri)
                .append_pair("state", &state)
                .append_pair("code_challenge", &challenge_of(&verifier))
                .append_pair("code_challenge_method", "S256");
            if !scope.is_empty() {
                query.append_pair("scope", &scope);
            }
            if let Some(resource) = &server.resource {
                query.append_pair("resource", resource);
            }
        }
        let grant =
            Grant { redirect_uri, ..Grant::requested(&url, &server.issuer, &client, scopes) };
        let verifier = Secret::new(verifier);
        Ok(Self {
            id,
            tokens,
            server,
            client,
            state,
            verifier,
            url: page.to_string(),
            grant,
            redactor,
        })
    }

    /// The page to open in a browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The `state` that the answer must have.
    pub fn state(&self) -> &str {
        &self.state
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.server.issuer
    }

    /// The scopes that are requested.
    pub(crate) fn scopes(&self) -> &[String] {
        &self.grant.asked
    }

    /// Whether an answer with this `iss` comes from the authorization server that was asked.
    pub(crate) fn accepts_issuer(&self, iss: Option<&str>) -> bool {
        self.server.iss.check(iss).is_ok()
    }

    /// Checks the answer, exchanges the code, and stores the tokens.
    pub async fn finish(
        mut self,
        response: AuthorizationResponse,
    ) -> Result<SignedIn, ConnectError> {
        let (redactor, id, tokens) =
            (std::mem::take(&mut self.redactor), self.id.clone(), self.tokens.clone());
        let exchanged = self.exchange(response).await;
        let (grant, answer) = exchanged.map_err(|error| redactor.redact_error(error))?;
        let stored = store(&id, &*tokens, grant, &answer).await;
        stored.map_err(|error| redactor.redact_error(error))
    }

    /// Checks the answer, exchanges the code, and returns the access token without storing it.
    pub async fn finish_for_token(
        self,
        response: AuthorizationResponse,
    ) -> Result<Secret, ConnectError> {
        let now_ms = self.tokens.now_ms();
        let (mut grant, answer) = self.exchange(response).await?;
        grant.take(&answer, now_ms).map_err(|why| unusable(&why))?;
        Ok(grant.access_token())
    }

    /// Exchanges the code. Returns the requested grant, and the answer of the token endpoint.
    async fn exchange(
        self,
        response: AuthorizationResponse,
    ) -> Result<(Grant, Value), ConnectError> {
        if response.state.as_ref().is_some_and(|state| *state != self.state) {
            return Err(unusable("the answer belongs to another sign-in"));
        }
        // Before anything of the answer is sent or shown.
        if response.state.is_some() || response.iss.is_some() {
            self.server.iss.check(response.iss.as_deref())?;
        }
        if let Some(error) = response.error {
            let why = response.description.map(|why| format!(": {why}")).unwrap_or_default();
            let message =
                printable(&format!("the authorization server refused the sign-in: {error}{why}"));
            return Err(ConnectError::new(ConnectErrorKind::Unauthorized, message));
        }
        let code = response.code.filter(|code| !code.is_empty());
        let code =
            code.ok_or_else(|| unusable("the browser returned without an authorization code"))?;
        let mut params = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", self.grant.redirect_uri.as_str()),
            ("code_verifier", self.verifier.expose()),
        ];
        if self.server.format == switchboard_model::TokenRequestFormat::Json {
            params.push(("state", &self.state));
        }
        params.extend(self.server.resource.as_deref().map(|resource| ("resource", resource)));
        let answer = self.server.request_token(&self.client, &params).await;
        let answer = answer.map_err(|failure| failure.into_error(&self.server.issuer))?;
        Ok((self.grant, answer))
    }
}

/// Stores the tokens of a finished sign-in: those of the token endpoint's answer, for the requested grant.
pub(crate) async fn store(
    id: &GrantId,
    tokens: &dyn TokenStore,
    mut grant: Grant,
    answer: &Value,
) -> Result<SignedIn, ConnectError> {
    grant.take(answer, tokens.now_ms()).map_err(|why| unusable(&why))?;
    let kept = tokens.save(id, &grant.issuer, grant.write()).await;
    kept.map_err(|error| unkept(&error))?;
    Ok(SignedIn { issuer: grant.issuer, scopes: grant.granted })
}
