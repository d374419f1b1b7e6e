//! The token of a request to one server, and the handling of a refusal.
//!
//! A request never waits for an interactive sign-in. It uses the token of the last sign-in, refreshed if possible, or a
//! token of the client credentials grant (`own_client`). Otherwise it fails with [`ConnectErrorKind::SignIn`], and the
//! server's challenge is stored for the next sign-in (`sign_in`), in this process or another. Concurrent requests
//! refresh an expired token only once. Tokens belong to one URL and one issuer: if either changes, they are not sent.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use parking_lot::{Mutex, MutexGuard};
use reqwest::{RequestBuilder, Response};
use rmcp::transport::auth::WWWAuthenticateParams;
use switchboard_model::{
    ConnectError, ConnectErrorKind, OAuthGrant, OAuthSettings, OwnClient, Secret, ServerName,
};
use switchboard_outbound::{CurrentSecret, describe_failure};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::challenge::bearer_challenge;
use crate::failure::unkept;
use crate::grant::{Grant, SignInReason, token_of, union, words};
use crate::own_client::{self, Asking};
use crate::refresh::{Refreshed, refresh};
use crate::token_store::TokenStore;

/// How long tokens in memory are used without reading the store again: another process may sign in or out.
const BELIEVED: Duration = Duration::from_secs(5);

/// The OAuth state of one server.
#[derive(Debug)]
pub struct Authorization {
    server: ServerName,
    url: Url,
    settings: OAuthSettings,
    tokens: Arc<dyn TokenStore>,
    memory: Mutex<TokenState>,
    /// Lets one task refresh the token; the others find it refreshed.
    renewing: Semaphore,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct TokenState {
    grant: Option<Arc<Grant>>,
    looked: Option<Instant>,
    /// The sign-in request that was last written to the store.
    wanted: Option<SignInReason>,
    /// The time and the error of the last failed refresh.
    failed: Option<(Instant, ConnectError)>,
}

/// The inputs of a token request.
#[derive(Debug)]
struct TokenRequest {
    /// The server's `WWW-Authenticate` challenge.
    challenge: Option<String>,
    /// Scopes in addition to those that the server names at first.
    more: Vec<String>,
}

/// Whether a request was already repeated after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestAttempt {
    First,
    Second,
}

/// The consequence of a response for the token of its request.
#[derive(Debug)]
pub enum TokenVerdict {
    /// The token was accepted, or the response does not concern it.
    Fine,
    /// The request is to be repeated with this token.
    Again(Arc<Grant>),
}

impl CurrentSecret for Authorization {
    fn current(&self) -> Option<Secret> {
        self.remembered().map(|grant| Secret::new(grant.access_token.as_str()))
    }
}

impl Authorization {
    pub(crate) fn new(
        server: &ServerName,
        url: &Url,
        settings: &OAuthSettings,
        tokens: Arc<dyn TokenStore>,
    ) -> Self {
        Self {
            server: server.clone(),
            url: url.clone(),
            settings: settings.clone(),
            tokens,
            memory: Mutex::default(),
            renewing: Semaphore::new(1),
            tasks: TaskTracker::new(),
        }
    }

    /// Whether it belongs to this URL and these settings.
    pub(crate) fn is_for(&self, url: &Url, settings: &OAuthSettings) -> bool {
        self.url == *url && self.settings == *settings
    }

    /// The token for a request, if there is one. Without a token the server's challenge says what is required.
    pub async fn token(self: &Arc<Self>) -> Result<Option<Arc<Grant>>, ConnectError> {
        let grant = if self.is_believed() { self.remembered() } else { self.look().await? };
        let now = self.tokens.now_ms();
        let Some(grant) = grant else { return Ok(None) };
        let is_renewable = grant.is_own || grant.refresh_token.is_some();
        if !grant.expires_shortly(now) || !is_renewable {
            return Ok(Some(grant));
        }
        let again = TokenRequest { challenge: None, more: self.kept_scopes(Some(&grant)).to_vec() };
        match self.renew(Some(grant.clone()), again).await {
            Ok(Some(renewed)) => Ok(Some(renewed)),
            // The old token is sent, so that the server's challenge says what is required.
            Ok(None) => Ok(Some(grant)),
            Err(_) if !grant.is_over(now) => Ok(Some(grant)),
            Err(error) => Err(error),
        }
    }

    /// Checks a response. An error is a refusal that repeating the request cannot resolve.
    pub async fn judge(
        self: &Arc<Self>,
        used: Option<&Arc<Grant>>,
        status: StatusCode,
        headers: &HeaderMap,
        attempt: RequestAttempt,
    ) -> Result<TokenVerdict, ConnectError> {
        match status {
            StatusCode::UNAUTHORIZED => self.unauthorized(used, headers, attempt).await,
            StatusCode::FORBIDDEN => self.forbidden(used, headers, attempt).await,
            _ => Ok(TokenVerdict::Fine),
        }
    }

    async fn unauthorized(
        self: &Arc<Self>,
        used: Option<&Arc<Grant>>,
        headers: &HeaderMap,
        attempt: RequestAttempt,
    ) -> Result<TokenVerdict, ConnectError> {
        let challenge = bearer_challenge(headers);
        let scopes = used.map(|used| used.asked.clone()).unwrap_or_default();
        if attempt == RequestAttempt::First {
            let more = self.kept_scopes(used).to_vec();
            let again = TokenRequest { challenge: challenge.clone(), more };
            if let Some(other) = self.renew(used.cloned(), again).await? {
                return Ok(TokenVerdict::Again(other));
            }
        }
        if let Some(client) = self.own_client() {
            let message =
                format!("HTTP 401 Unauthorized: the server refuses the token of '{}'", client.id);
            return Err(ConnectError::new(ConnectErrorKind::Unauthorized, message)
                .with_operator_hint(
                    "its authorization server issued that token; ask the operator of the two",
                ));
        }
        self.want(SignInReason { challenge, scopes }).await?;
        Err(self.needs_sign_in(&[]))
    }

    /// Handles a 403. Missing scopes are requested only once, so that a server that refuses the scopes it named is not
    /// asked forever.
    async fn forbidden(
        self: &Arc<Self>,
        used: Option<&Arc<Grant>>,
        headers: &HeaderMap,
        attempt: RequestAttempt,
    ) -> Result<TokenVerdict, ConnectError> {
        let challenge = bearer_challenge(headers);
        let said = challenge.as_deref().map(|text| WWWAuthenticateParams::parse(text, &self.url));
        let Some(said) = said.filter(WWWAuthenticateParams::is_insufficient_scope) else {
            return Ok(TokenVerdict::Fine);
        };
        let newest = self.look().await?;
        if let Some(newest) = newest.filter(|_| attempt == RequestAttempt::First)
            && token_of(Some(&newest)) != token_of(used)
        {
            return Ok(TokenVerdict::Again(newest));
        }
        let required = words(said.scope.as_deref().unwrap_or_default());
        let asked = used.map(|used| used.asked.as_slice()).unwrap_or_default();
        let missing: Vec<_> =
            required.iter().filter(|scope| !asked.contains(scope)).cloned().collect();
        if missing.is_empty() {
            let message = format!(
                "HTTP 403 Forbidden: the server demands the scopes {}, and refuses a token that has them",
                required.join(" ")
            );
            let hint = match self.own_client() {
                Some(_) => {
                    "the client lacks the rights; the owner of its registration can change that"
                }
                None => {
                    "the signed-in user lacks the rights; `switchboard auth login` signs in as another user"
                }
            };
            return Err(
                ConnectError::new(ConnectErrorKind::Unauthorized, message).with_operator_hint(hint)
            );
        }
        if self.own_client().is_some() {
            // A second refusal is final.
            if attempt == RequestAttempt::Second {
                return Ok(TokenVerdict::Fine);
            }
            let again = TokenRequest { challenge, more: union(self.kept_scopes(used), &required) };
            let other = self.renew(used.cloned(), again).await?;
            return Ok(other.map_or(TokenVerdict::Fine, TokenVerdict::Again));
        }
        self.want(SignInReason { challenge, scopes: union(asked, &required) }).await?;
        Err(self.needs_sign_in(&missing))
    }

    /// Sends a request with the token, and once more if there is another token after a refusal.
    pub async fn send(self: &Arc<Self>, request: RequestBuilder) -> Result<Response, ConnectError> {
        let token = self.token().await?;
        let again = request.try_clone();
        let response = send_with(request, token.as_ref()).await?;
        let (status, headers) = (response.status(), response.headers());
        let first = self.judge(token.as_ref(), status, headers, RequestAttempt::First).await?;
        let (TokenVerdict::Again(token), Some(again)) = (first, again) else { return Ok(response) };
        let response = send_with(again, Some(&token)).await?;
        let (status, headers) = (response.status(), response.headers());
        self.judge(Some(&token), status, headers, RequestAttempt::Second).await?;
        Ok(response)
    }

    fn own_client(&self) -> Option<&OwnClient> {
        match &self.settings.grant {
            OAuthGrant::SignIn(_) => None,
            OAuthGrant::ClientCredentials(client) => Some(client),
        }
    }

    /// Scopes of the last token that a new token of the client credentials grant must include. If the configuration
    /// names scopes, only those that the server requested in addition are kept, so that removed ones are not requested
    /// again. Otherwise all are kept, because a later challenge need not repeat them.
    fn kept_scopes<'a>(&self, used: Option<&'a Arc<Grant>>) -> &'a [String] {
        let Some(used) = used else { return &[] };
        if self.settings.scopes.is_empty() { &used.asked } else { &used.since }
    }

    /// Obtains another token than `used` without an interactive sign-in; `None` if that is not possible.
    async fn renew(
        self: &Arc<Self>,
        used: Option<Arc<Grant>>,
        again: TokenRequest,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        let (this, began) = (self.clone(), Instant::now());
        // Runs as its own task: if the caller goes away, the refreshed token must still be stored, or the sign-in would
        // be lost.
        let renewing =
            self.tasks.spawn(async move { this.renew_in_turn(used.as_ref(), &again, began).await });
        renewing.await.unwrap_or_else(|_| {
            Err(ConnectError::new(ConnectErrorKind::Unauthorized, "the token could not be renewed"))
        })
    }

    async fn renew_in_turn(
        &self,
        used: Option<&Arc<Grant>>,
        again: &TokenRequest,
        began: Instant,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        // The semaphore is never closed.
        let _turn = self.renewing.acquire().await;
        let kept = self.look().await?;
        if kept.is_some() && token_of(kept.as_ref()) != token_of(used) {
            return Ok(kept);
        }
        let failed = self.memory().failed.clone();
        if let Some((_, error)) = failed.filter(|(at, _)| *at >= began) {
            // The refresh failed while this task waited; it is not tried again.
            return Err(error);
        }
        let renewed = self.renew_now(kept, again).await;
        if let Err(error) = &renewed {
            self.memory().failed = Some((Instant::now(), error.clone()));
        }
        renewed
    }

    async fn renew_now(
        &self,
        kept: Option<Arc<Grant>>,
        again: &TokenRequest,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        let now_ms = self.tokens.now_ms();
        let challenge = again.challenge.as_deref();
        let renewed = match (self.own_client(), kept) {
            (Some(client), kept) => {
                let asking = Asking {
                    server: &self.url,
                    settings: &self.settings,
                    client,
                    challenge,
                    more: &again.more,
                    issuer: kept.as_ref().map(|kept| kept.issuer.as_str()),
                };
                own_client::obtain(asking, now_ms).await?
            }
            (None, None) => return Ok(None),
            (None, Some(kept)) => match refresh(&self.url, &kept, challenge, now_ms).await? {
                Refreshed::Renewed(renewed) => *renewed,
                // Another process may have used the same refresh token first.
                Refreshed::Refused => {
                    let newest = self.look().await?;
                    return Ok(newest.filter(|newest| newest.access_token != kept.access_token));
                }
            },
        };
        self.tokens
            .save(&self.server, &renewed.issuer, renewed.write())
            .await
            .map_err(|error| unkept(&error))?;
        tracing::debug!(server = %self.server, "token renewed");
        self.look().await
    }

    /// Reads the stored tokens; those for another URL are ignored.
    pub(crate) async fn look(&self) -> Result<Option<Arc<Grant>>, ConnectError> {
        let kept = self.tokens.load(&self.server, None).await.map_err(|error| unkept(&error))?;
        let grant = kept.as_ref().and_then(Grant::read);
        let grant = grant.filter(|grant| grant.is_for(&self.url, &self.settings)).map(Arc::new);
        let mut memory = self.memory();
        if token_of(grant.as_ref()) != token_of(memory.grant.as_ref()) {
            memory.wanted = None;
        }
        (memory.grant, memory.looked) = (grant.clone(), Some(Instant::now()));
        Ok(grant)
    }

    fn memory(&self) -> MutexGuard<'_, TokenState> {
        self.memory.lock()
    }

    /// The token of the last request, if it is in memory.
    pub(crate) fn remembered(&self) -> Option<Arc<Grant>> {
        self.memory().grant.clone()
    }

    /// Whether the tokens in memory are current. While a sign-in is awaited they are not, because it may happen at any
    /// time.
    fn is_believed(&self) -> bool {
        let memory = self.memory();
        memory.wanted.is_none() && memory.looked.is_some_and(|at| at.elapsed() < BELIEVED)
    }

    async fn want(&self, wanted: SignInReason) -> Result<(), ConnectError> {
        {
            let mut memory = self.memory();
            if memory.wanted.as_ref() == Some(&wanted) {
                return Ok(());
            }
            memory.wanted = Some(wanted.clone());
        }
        tracing::warn!(
            server = %self.server, scopes = wanted.scopes.join(" "),
            "MCP server needs sign-in: run `switchboard auth login {}`", self.server
        );
        let noted = self.tokens.want(&self.server, Some(wanted.write())).await;
        noted.map_err(|error| unkept(&error))
    }

    fn needs_sign_in(&self, scopes: &[String]) -> ConnectError {
        let message = format!("needs sign-in: run `switchboard auth login {}`", self.server);
        let error = ConnectError::new(ConnectErrorKind::SignIn, message);
        if scopes.is_empty() {
            return error.with_operator_hint("it opens the server's sign-in page in a browser");
        }
        error.with_operator_hint(format!("the server asks for more: {}", scopes.join(" ")))
    }
}

async fn send_with(
    request: RequestBuilder,
    token: Option<&Arc<Grant>>,
) -> Result<Response, ConnectError> {
    let request = match token.and_then(|token| token.header()) {
        Some(value) => request.header(header::AUTHORIZATION, value),
        None => request,
    };
    request.send().await.map_err(|error| describe_failure(&error))
}
