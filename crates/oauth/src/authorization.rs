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
    ConnectError, ConnectErrorKind, DEFAULT_CREDENTIAL, ExchangeClient, GrantId, GrantOwner,
    GrantPurpose, OAuthGrant, OAuthSettings, OwnClient, Secret,
};
use switchboard_outbound::{CurrentSecret, describe_failure};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::authorization_server::AuthorizationServer;
use crate::challenge::bearer_challenge;
use crate::discovery::discover;
use crate::failure::unkept;
use crate::grant::{Grant, RenewalUrgency, token_of, union, words};
use crate::sign_in_need::{SignInCause, SignInNeed};
use crate::subject_tokens::SubjectTokens;
use crate::token_source::TokenSource;
use crate::token_store::TokenStore;

/// How long tokens in memory are used without reading the store again: another process may sign in or out.
const BELIEVED: Duration = Duration::from_secs(5);

/// How long a failed renewal is not tried again while the old token is still valid.
const RETRY_PAUSE: Duration = Duration::from_secs(30);

/// The OAuth state of one server or provider for one owner.
#[derive(Debug)]
pub struct Authorization {
    pub(crate) id: GrantId,
    /// The address that the tokens are for.
    pub(crate) url: Url,
    pub(crate) source: TokenSource,
    pub(crate) tokens: Arc<dyn TokenStore>,
    memory: Mutex<TokenState>,
    /// Lets one task refresh the token; the others find it refreshed.
    pub(crate) renewing: Semaphore,
    pub(crate) tasks: TaskTracker,
    /// The tokens of callers, for a token exchange.
    subjects: Option<Arc<SubjectTokens>>,
}

#[derive(Debug, Default)]
pub(crate) struct TokenState {
    pub(crate) grant: Option<Arc<Grant>>,
    looked: Option<Instant>,
    /// The need for a sign-in that was last written to the store.
    needed: Option<SignInNeed>,
    /// The time and the error of the last failed renewal.
    pub(crate) failed: Option<(Instant, ConnectError)>,
    /// A renewed grant that the store did not take yet, with the version that it replaces.
    pub(crate) unsaved: Option<(i64, Arc<Grant>)>,
}

/// The inputs of a token request.
#[derive(Debug, Default)]
pub(crate) struct TokenRequest {
    /// The server's `WWW-Authenticate` challenge.
    pub(crate) challenge: Option<String>,
    /// Scopes in addition to those that the server names at first.
    pub(crate) more: Vec<String>,
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
        id: GrantId,
        url: &Url,
        source: TokenSource,
        tokens: Arc<dyn TokenStore>,
    ) -> Self {
        Self {
            id,
            url: url.clone(),
            source,
            tokens,
            memory: Mutex::default(),
            renewing: Semaphore::new(1),
            tasks: TaskTracker::new(),
            subjects: None,
        }
    }

    /// The same with the tokens of callers, for a token exchange.
    pub(crate) fn with_subjects(self, subjects: Arc<SubjectTokens>) -> Self {
        Self { subjects: Some(subjects), ..self }
    }

    /// The newest token of the owner, for a token exchange.
    pub(crate) fn subject(&self) -> Result<Secret, ConnectError> {
        let found = match (&self.id.owner, &self.subjects) {
            (GrantOwner::Person(person), Some(subjects)) => {
                subjects.of(person, self.tokens.now_ms())
            }
            _ => None,
        };
        found.ok_or_else(|| {
            let message = format!(
                "'{}' is called with the token of the caller, and there is no valid one",
                self.name()
            );
            ConnectError::new(ConnectErrorKind::Unauthorized, message)
                .with_hint("call with a token of the board's issuer instead of an API key")
        })
    }

    /// Whether it belongs to this URL and this source.
    pub(crate) fn is_for(&self, url: &Url, source: &TokenSource) -> bool {
        self.url == *url && self.source == *source
    }

    /// The authorization server that refreshes the tokens.
    pub(crate) async fn authorization_server(
        &self,
        challenge: Option<&str>,
    ) -> Result<AuthorizationServer, ConnectError> {
        match &self.source {
            TokenSource::Server(_) => discover(&self.url, challenge).await?.server().await,
            TokenSource::Described(issuer) => AuthorizationServer::described(issuer).await,
        }
    }

    /// The name of the server or provider.
    fn name(&self) -> &str {
        match &self.id.purpose {
            GrantPurpose::Server(name) => name.as_str(),
            GrantPurpose::Provider { provider, .. } => provider,
        }
    }

    /// The command that signs in.
    fn login_command(&self) -> String {
        let name = self.name();
        match &self.id.purpose {
            GrantPurpose::Provider { credential, .. } if **credential != *DEFAULT_CREDENTIAL => {
                format!("switchboard auth login {name} --credential {credential}")
            }
            GrantPurpose::Server(_) | GrantPurpose::Provider { .. } => {
                format!("switchboard auth login {name}")
            }
        }
    }

    /// The token for a request, if there is one. Without a token the server's challenge says what is required.
    ///
    /// A token that is due for renewal is used while a task renews it. The request waits for the renewal only if the
    /// token has expired or is about to. If the store or the authorization server cannot be reached, the old token is
    /// used until it expires.
    pub async fn token(self: &Arc<Self>) -> Result<Option<Arc<Grant>>, ConnectError> {
        let grant =
            if self.is_believed() { self.remembered() } else { self.look_or_remember().await? };
        let now = self.tokens.now_ms();
        let Some(grant) = grant else {
            // The first token of an exchange needs no challenge.
            let is_exchanged = self.exchange_client().is_some();
            let first = TokenRequest::default();
            return if is_exchanged { self.renew(None, first).await } else { Ok(None) };
        };
        let is_renewable = grant.is_own || grant.refresh_token.is_some();
        let urgency = if is_renewable { grant.urgency(now) } else { RenewalUrgency::NotYet };
        let again =
            || TokenRequest { challenge: None, more: self.kept_scopes(Some(&grant)).to_vec() };
        match urgency {
            RenewalUrgency::NotYet => return Ok(Some(grant)),
            RenewalUrgency::Due => {
                self.renew_in_background(&grant, again());
                return Ok(Some(grant));
            }
            RenewalUrgency::Now if !grant.is_over(now) && self.failed_lately() => {
                return Ok(Some(grant));
            }
            RenewalUrgency::Now => {}
        }
        match self.renew(Some(grant.clone()), again()).await {
            Ok(Some(renewed)) => Ok(Some(renewed)),
            // The old token is sent, so that the server's challenge says what is required.
            Ok(None) => Ok(Some(grant)),
            Err(_) if !grant.is_over(now) => Ok(Some(grant)),
            Err(error) => Err(error),
        }
    }

    /// The stored tokens or, if the store cannot be read, those in memory until they expire.
    async fn look_or_remember(&self) -> Result<Option<Arc<Grant>>, ConnectError> {
        let now = self.tokens.now_ms();
        match self.look().await {
            Ok(grant) => Ok(grant),
            Err(error) => match self.remembered().filter(|grant| !grant.is_over(now)) {
                Some(grant) => Ok(Some(grant)),
                None => Err(error),
            },
        }
    }

    /// Whether a renewal failed so lately that another attempt would only delay the request.
    pub(crate) fn failed_lately(&self) -> bool {
        self.memory().failed.as_ref().is_some_and(|(at, _)| at.elapsed() < RETRY_PAUSE)
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
        if let Some(client) = self.exchange_client() {
            let message = format!(
                "HTTP 401 Unauthorized: the server refuses the token that {} gave for the caller's",
                client.issuer
            );
            return Err(ConnectError::new(ConnectErrorKind::Unauthorized, message)
                .with_operator_hint("check `issuer` and `audience` in `auth.oauth`"));
        }
        let cause = self.cause(used);
        self.need(SignInNeed { challenge, scopes, cause }).await?;
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
                None if self.exchange_client().is_some() => {
                    "the caller lacks the rights at this server"
                }
                None => {
                    "the signed-in user lacks the rights; `switchboard auth login` signs in as another user"
                }
            };
            return Err(
                ConnectError::new(ConnectErrorKind::Unauthorized, message).with_operator_hint(hint)
            );
        }
        if self.own_client().is_some() || self.exchange_client().is_some() {
            // A second refusal is final.
            if attempt == RequestAttempt::Second {
                return Ok(TokenVerdict::Fine);
            }
            let again = TokenRequest { challenge, more: union(self.kept_scopes(used), &required) };
            let other = self.renew(used.cloned(), again).await?;
            return Ok(other.map_or(TokenVerdict::Fine, TokenVerdict::Again));
        }
        let (scopes, cause) = (union(asked, &required), SignInCause::MoreScopes);
        self.need(SignInNeed { challenge, scopes, cause }).await?;
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

    /// Why a sign-in is required after the server refused this token and it could not be renewed.
    fn cause(&self, used: Option<&Arc<Grant>>) -> SignInCause {
        let Some(used) = used else { return SignInCause::NotSignedIn };
        match &self.memory().needed {
            Some(need) if need.cause == SignInCause::IssuerChanged => SignInCause::IssuerChanged,
            _ if used.refresh_token.is_none() && used.is_over(self.tokens.now_ms()) => {
                SignInCause::Expired
            }
            _ => SignInCause::Refused,
        }
    }

    pub(crate) fn own_client(&self) -> Option<&OwnClient> {
        match &self.source {
            TokenSource::Server(OAuthSettings {
                grant: OAuthGrant::ClientCredentials(client),
                ..
            }) => Some(client),
            TokenSource::Server(_) | TokenSource::Described(_) => None,
        }
    }

    pub(crate) fn exchange_client(&self) -> Option<&ExchangeClient> {
        match &self.source {
            TokenSource::Server(OAuthSettings {
                grant: OAuthGrant::TokenExchange(client), ..
            }) => Some(client),
            TokenSource::Server(_) | TokenSource::Described(_) => None,
        }
    }

    /// Scopes of the last token that a new token of the client credentials grant must include. If the configuration
    /// names scopes, only those that the server requested in addition are kept, so that removed ones are not requested
    /// again. Otherwise all are kept, because a later challenge need not repeat them.
    fn kept_scopes<'a>(&self, used: Option<&'a Arc<Grant>>) -> &'a [String] {
        let Some(used) = used else { return &[] };
        let is_open =
            matches!(&self.source, TokenSource::Server(settings) if settings.scopes.is_empty());
        if is_open { &used.asked } else { &used.since }
    }

    /// Reads the stored tokens; those for another URL are ignored. A renewed grant that the store did not take before
    /// is written first.
    pub(crate) async fn look(&self) -> Result<Option<Arc<Grant>>, ConnectError> {
        self.save_unsaved().await?;
        let kept = self.tokens.load(&self.id, None).await.map_err(|error| unkept(&error))?;
        let grant = kept.as_ref().and_then(Grant::read);
        let grant = grant.filter(|grant| grant.fits(&self.url, &self.source)).map(Arc::new);
        let mut memory = self.memory();
        if token_of(grant.as_ref()) != token_of(memory.grant.as_ref()) {
            memory.needed = None;
        }
        (memory.grant, memory.looked) = (grant.clone(), Some(Instant::now()));
        Ok(grant)
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, TokenState> {
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
        memory.needed.is_none()
            && memory.grant.is_some()
            && memory.looked.is_some_and(|at| at.elapsed() < BELIEVED)
    }

    /// Notes that a sign-in is required, for `auth status` and for the next sign-in.
    pub(crate) async fn need(&self, need: SignInNeed) -> Result<(), ConnectError> {
        {
            let mut memory = self.memory();
            if memory.needed.as_ref() == Some(&need) {
                return Ok(());
            }
            memory.needed = Some(need.clone());
        }
        if self.id.owner == GrantOwner::Board {
            let scopes = need.scopes.join(" ");
            let (name, command) = (self.name(), self.login_command());
            match self.id.purpose {
                GrantPurpose::Server(_) => {
                    tracing::warn!(
                        server = name,
                        scopes,
                        "MCP server needs sign-in: run `{command}`"
                    );
                }
                GrantPurpose::Provider { .. } => {
                    tracing::warn!(
                        provider = name,
                        scopes,
                        "model provider needs sign-in: run `{command}`"
                    );
                }
            }
        } else {
            tracing::info!(
                server = self.name(),
                cause = need.cause.as_str(),
                "an owner needs to sign in"
            );
        }
        let noted = self.tokens.set_need(&self.id, need.write()).await;
        noted.map_err(|error| unkept(&error))
    }

    fn needs_sign_in(&self, scopes: &[String]) -> ConnectError {
        let message = match self.id.owner {
            GrantOwner::Board => {
                format!("needs sign-in: run `{}`", self.login_command())
            }
            GrantOwner::Person(_) | GrantOwner::Session(_) => {
                format!("needs sign-in: this account is not signed in at '{}'", self.name())
            }
        };
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
