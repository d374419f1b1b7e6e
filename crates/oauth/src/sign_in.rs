//! The sign-in to an MCP server: where it is, with which client, and what it requests. The answer comes to a page on this
//! machine, to the board's callback, or is pasted.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::RequestBuilder;
use switchboard_model::{
    ConnectError, ConnectErrorKind, DescribedIssuer, GrantId, GrantOwner, OAuthGrant, ServerSpec,
};
use switchboard_outbound::{Redactor, describe_failure};
use url::Url;

use crate::authorization_response::AuthorizationResponse;
use crate::callback::CallbackListener;
use crate::challenge::bearer_challenge;
use crate::client_choice::{DEVICE_REDIRECT, choose_client};
use crate::code_flow::{CodeFlow, FlowTarget, SignedIn};
use crate::device_flow::DeviceFlow;
use crate::discovery::{Discovered, discover};
use crate::failure::unkept;
use crate::grant::{Grant, union};
use crate::sign_in_need::SignInNeed;
use crate::sign_in_state::wants_oauth;
use crate::token_store::TokenStore;

/// Maximum time for the request that asks for the challenge.
const LONGEST_QUESTION: Duration = Duration::from_secs(30);

/// A sign-in that waits for the browser on this machine. Dropping it cancels it.
#[derive(Debug)]
pub struct SignIn {
    flow: CodeFlow,
    listener: CallbackListener,
}

impl SignIn {
    /// Discovers where to sign in, and with which client. `unsigned` is a request to the server without a token: the
    /// challenge of its refusal names the authorization server.
    pub async fn begin(
        spec: &ServerSpec,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let begun = async {
            let prepared = PreparedSignIn::new(spec, GrantOwner::Board, unsigned, tokens).await?;
            let redirect = prepared.client.redirect.clone();
            let listener = CallbackListener::bind(&redirect).await?;
            let flow = prepared.into_flow(spec, &listener.redirect_uri, None).await?;
            Ok(Self { flow, listener })
        };
        begun.await.map_err(|error| Redactor::of(spec).redact_error(error))
    }

    /// Signs in at an issuer that the configuration describes. `url` is the address that the tokens are for.
    pub async fn described(
        id: GrantId,
        url: &Url,
        issuer: &DescribedIssuer,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let listener = CallbackListener::bind(&issuer.redirect).await?;
        let flow = CodeFlow::described(id, url, issuer, &listener.redirect_uri, tokens).await?;
        Ok(Self { flow, listener })
    }

    /// The URL to open in a browser.
    pub fn url(&self) -> &str {
        self.flow.url()
    }

    /// Waits for the callback, and stores the tokens.
    pub async fn finish(self) -> Result<SignedIn, ConnectError> {
        let response = self.listener.wait(self.flow.state()).await?;
        self.flow.finish(response).await
    }

    /// Waits for the callback or for an answer that a person pastes, whichever comes first.
    pub async fn finish_or_pasted(
        self,
        pasted: impl Future<Output = AuthorizationResponse>,
    ) -> Result<SignedIn, ConnectError> {
        let state = self.flow.state().to_owned();
        let response = tokio::select! {
            response = self.listener.wait(&state) => response?,
            response = pasted => response,
        };
        self.flow.finish(response).await
    }
}

impl DeviceFlow {
    /// A sign-in to a server on another device.
    pub async fn server(
        spec: &ServerSpec,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let begun = async {
            let mut prepared =
                PreparedSignIn::new(spec, GrantOwner::Board, unsigned, tokens).await?;
            let issuer = &prepared.found.issuer;
            let known =
                registered(&prepared.id, issuer, DEVICE_REDIRECT, &*prepared.tokens).await?;
            let client = choose_client(
                &prepared.found,
                &prepared.client,
                known.as_ref(),
                DEVICE_REDIRECT,
                None,
                &prepared.scopes,
            );
            let client = client.await?;
            let scopes = std::mem::take(&mut prepared.scopes);
            let PreparedSignIn { id, url, tokens, found, .. } = prepared;
            let server = found.server().await?;
            Self::begin(id, &url, server, client, DEVICE_REDIRECT, scopes, tokens).await
        };
        begun.await.map_err(|error| Redactor::of(spec).redact_error(error))
    }
}

/// What is known before the redirect URI is chosen.
pub(crate) struct PreparedSignIn {
    id: GrantId,
    url: Url,
    client: switchboard_model::SignInClient,
    tokens: Arc<dyn TokenStore>,
    found: Discovered,
    scopes: Vec<String>,
}

impl PreparedSignIn {
    pub(crate) async fn new(
        spec: &ServerSpec,
        owner: GrantOwner,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let name = &spec.name;
        let client = match &settings.grant {
            OAuthGrant::SignIn(client) => client,
            OAuthGrant::ClientCredentials(_) => {
                let message =
                    format!("'{name}' needs no sign-in: it uses the client credentials grant");
                let hint = "its entry says `grant: client_credentials`; `switchboard server test` tries it";
                return Err(
                    ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(hint)
                );
            }
            OAuthGrant::TokenExchange(_) => {
                let message =
                    format!("'{name}' needs no sign-in: it uses the tokens that callers show");
                let hint = "its entry says `grant: token_exchange`";
                return Err(
                    ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(hint)
                );
            }
            OAuthGrant::StoredToken => {
                let message = format!("'{name}' has no sign-in at an authorization server");
                return Err(ConnectError::new(ConnectErrorKind::Protocol, message));
            }
        };
        let id = GrantId::of_server(name).with_owner(owner);
        let need = tokens.need(&id).await.map_err(|error| unkept(&error))?;
        let need = need.as_deref().and_then(SignInNeed::read).unwrap_or_default();
        let challenge = match unsigned {
            Some(request) => ask_for_challenge(request).await?,
            None => None,
        };
        let challenge = challenge.or(need.challenge);
        let found = discover(url, challenge.as_deref()).await?;
        let before = tokens.load(&id, Some(&found.issuer)).await.map_err(|error| unkept(&error))?;
        let before = before.as_ref().and_then(Grant::read);
        let before = before.filter(|grant| grant.is_for(url, settings));
        let earlier = before.as_ref().map(|grant| grant.asked.as_slice()).unwrap_or_default();
        let mut scopes = found.scopes(settings, &union(earlier, &need.scopes)).await;
        ask_to_stay(&found, &mut scopes);
        let (url, client) = (url.clone(), client.clone());
        Ok(Self { id, url, client, tokens, found, scopes })
    }

    pub(crate) async fn into_flow(
        self,
        spec: &ServerSpec,
        redirect_uri: &str,
        document: Option<&Url>,
    ) -> Result<CodeFlow, ConnectError> {
        let Self { id, url, client, tokens, found, scopes } = self;
        let known = registered(&id, &found.issuer, redirect_uri, &*tokens).await?;
        let client =
            choose_client(&found, &client, known.as_ref(), redirect_uri, document, &scopes).await?;
        let server = found.server().await?;
        let (redirect_uri, redactor) = (redirect_uri.to_owned(), Redactor::of(spec));
        CodeFlow::new(FlowTarget {
            id,
            tokens,
            server,
            client,
            url,
            redirect_uri,
            scopes,
            redactor,
        })
    }
}

/// A sign-in of any owner with the same redirect URI: one registration serves all.
async fn registered(
    id: &GrantId,
    issuer: &str,
    redirect_uri: &str,
    tokens: &dyn TokenStore,
) -> Result<Option<Grant>, ConnectError> {
    let all = tokens.list().await.map_err(|error| unkept(&error))?;
    let of_server =
        all.iter().filter(|kept| kept.id.purpose == id.purpose && kept.issuer == issuer);
    let mut grants = of_server.filter_map(Grant::read);
    Ok(grants.find(|grant| grant.redirect_uri == redirect_uri && !grant.client_id.is_empty()))
}

/// The server's challenge to a request without a token.
async fn ask_for_challenge(unsigned: RequestBuilder) -> Result<Option<String>, ConnectError> {
    let response = unsigned.timeout(LONGEST_QUESTION).send().await;
    let response = response.map_err(|error| describe_failure(&error))?;
    let is_refused = response.status() == StatusCode::UNAUTHORIZED;
    Ok(bearer_challenge(response.headers()).filter(|_| is_refused))
}

/// Requests `offline_access` where it is offered, to get a refresh token.
fn ask_to_stay(found: &Discovered, scopes: &mut Vec<String>) {
    let offline = "offline_access";
    let supported = found.metadata.scopes_supported.as_deref().unwrap_or_default();
    let is_offered = supported.iter().any(|scope| scope == offline);
    if is_offered && !scopes.is_empty() && !scopes.iter().any(|scope| scope == offline) {
        scopes.push(offline.to_owned());
    }
}
