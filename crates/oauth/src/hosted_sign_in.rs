//! A sign-in whose callback arrives at a web page of the board instead of a port on this machine.

use std::sync::Arc;

use reqwest::RequestBuilder;
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use switchboard_model::{
    ConnectError, ConnectErrorKind, GrantId, GrantOwner, OAuthGrant, ServerSpec, SignInClient,
    is_on_this_machine,
};
use switchboard_outbound::Redactor;
use url::Url;

use crate::discovery::{describe, discover};
use crate::failure::{unkept, unusable};
use crate::grant::{Grant, union};
use crate::sign_in::{SignedIn, ask_for_challenge, ask_to_stay, client, parameter};
use crate::sign_in_need::SignInNeed;
use crate::sign_in_state::wants_oauth;
use crate::token_store::TokenStore;

/// A sign-in that waits for the callback. Dropping it cancels it.
pub struct HostedSignIn {
    id: GrantId,
    tokens: Arc<dyn TokenStore>,
    manager: AuthorizationManager,
    url: String,
    state: String,
    /// The grant to be stored; without tokens yet.
    grant: Grant,
    /// Whether the issuer announces that its answers name it.
    names_itself: bool,
    redactor: Redactor,
}

impl std::fmt::Debug for HostedSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostedSignIn").field("id", &self.id).finish_non_exhaustive()
    }
}

impl HostedSignIn {
    /// Discovers where this owner signs in. `document` is the address of the board's own client metadata document, which
    /// is used where the authorization server reads such documents. `unsigned` is a request to the server without a
    /// token: the challenge of its refusal names the authorization server.
    pub async fn begin(
        spec: &ServerSpec,
        owner: GrantOwner,
        redirect_uri: &Url,
        document: Option<&Url>,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let id = GrantId::of_server(&spec.name).with_owner(owner);
        let begun = Self::prepare(spec, id, redirect_uri, document, unsigned, tokens).await;
        begun.map_err(|error| Redactor::of(spec).redact_error(error))
    }

    async fn prepare(
        spec: &ServerSpec,
        id: GrantId,
        redirect_uri: &Url,
        document: Option<&Url>,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let OAuthGrant::SignIn(ours) = &settings.grant else {
            let message = format!("'{}' has no sign-in at an authorization server", spec.name);
            return Err(ConnectError::new(ConnectErrorKind::Protocol, message));
        };
        let need = tokens.need(&id).await.map_err(|error| unkept(&error))?;
        let need = need.as_deref().and_then(SignInNeed::read).unwrap_or_default();
        let challenge = match unsigned {
            Some(request) => ask_for_challenge(request).await?,
            None => None,
        };
        let mut found = discover(url, challenge.or(need.challenge).as_deref()).await?;
        let before = tokens.load(&id, Some(&found.issuer)).await.map_err(|error| unkept(&error))?;
        let before = before.as_ref().and_then(Grant::read);
        let before = before.filter(|grant| grant.is_for(url, settings));
        let earlier = before.as_ref().map(|grant| grant.asked.as_slice()).unwrap_or_default();
        let mut scopes = found.scopes(settings, &union(earlier, &need.scopes)).await;
        ask_to_stay(&found, &mut scopes);
        let known = registered(&id, &found.issuer, redirect_uri, &*tokens).await?;
        let metadata_url = ours.metadata_url.clone().or_else(|| document.cloned());
        let ours = SignInClient { metadata_url, ..ours.clone() };
        let kind = if is_on_this_machine(redirect_uri) { "native" } else { "web" };
        let unregistered = OAuthClientConfig::new("unregistered", redirect_uri.as_str());
        let configured = found.manager.configure_client(unregistered.with_application_type(kind));
        configured.map_err(|error| describe(&error))?;
        let client =
            client(&mut found, &ours, known.as_ref(), redirect_uri.as_str(), &scopes).await?;
        let grant = Grant {
            server_url: url.as_str().to_owned(),
            issuer: found.issuer,
            client_id: client.client_id.clone(),
            client_secret: client.client_secret.clone(),
            redirect_uri: redirect_uri.as_str().to_owned(),
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
        let supported = "authorization_response_iss_parameter_supported";
        let names_itself =
            found.metadata.additional_fields.get(supported).is_some_and(|value| value == true);
        let mut manager = found.manager;
        manager.configure_client(client).map_err(|error| describe(&error))?;
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let url = manager.get_authorization_url(&scopes).await.map_err(|error| describe(&error))?;
        let (state, redactor) = (parameter(&url, "state"), Redactor::of(spec));
        Ok(Self { id, tokens, manager, url, state, grant, names_itself, redactor })
    }

    /// The URL to open in a browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The `state` in that URL, which the callback repeats.
    pub fn state(&self) -> &str {
        &self.state
    }

    pub fn issuer(&self) -> &str {
        &self.grant.issuer
    }

    /// The scopes that are requested.
    pub fn scopes(&self) -> &[String] {
        &self.grant.asked
    }

    /// Whether an answer that names this issuer comes from the authorization server of this sign-in.
    pub fn accepts_issuer(&self, issuer: Option<&str>) -> bool {
        issuer.map_or(!self.names_itself, |issuer| issuer == self.grant.issuer)
    }

    /// Exchanges the code of the callback, and stores the tokens for the owner. The code is sent only if the callback
    /// names the issuer of this sign-in.
    pub async fn finish(self, code: &str, issuer: Option<&str>) -> Result<SignedIn, ConnectError> {
        let Self { id, tokens, manager, state, mut grant, redactor, .. } = self;
        let finished = async {
            let answer = manager.exchange_code_for_token_with_issuer(code, &state, issuer).await;
            let answer = answer.map_err(|error| describe(&error))?;
            let answer = serde_json::to_value(&answer).unwrap_or_default();
            grant.take(&answer, tokens.now_ms()).map_err(|why| unusable(&why))?;
            let kept = tokens.save(&id, &grant.issuer, grant.write()).await;
            kept.map_err(|error| unkept(&error))?;
            Ok(SignedIn { issuer: grant.issuer, scopes: grant.granted })
        };
        finished.await.map_err(|error| redactor.redact_error(error))
    }
}

/// A sign-in of any owner with the same client: one registration serves all.
async fn registered(
    id: &GrantId,
    issuer: &str,
    redirect_uri: &Url,
    tokens: &dyn TokenStore,
) -> Result<Option<Grant>, ConnectError> {
    let all = tokens.list().await.map_err(|error| unkept(&error))?;
    let of_server =
        all.iter().filter(|kept| kept.id.purpose == id.purpose && kept.issuer == issuer);
    let mut grants = of_server.filter_map(Grant::read);
    Ok(grants
        .find(|grant| grant.redirect_uri == redirect_uri.as_str() && !grant.client_id.is_empty()))
}
