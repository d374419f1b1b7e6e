//! The interactive sign-in: a URL for the browser, a callback on a local port, and the exchange for tokens.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Html;
use axum::routing::get;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use switchboard_model::{
    Endpoint, OAuthGrant, OAuthSettings, Secret, ServerName, ServerSpec, SignInClient,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::discovery::{Discovered, describe, discover};
use super::grant::{Grant, SignInReason, TokenStore, union};
use super::{bearer_challenge, scopes, unkept, unusable};
use crate::error::{ConnectError, ConnectErrorKind};
use crate::http_pool::HttpPool;
use crate::probe::discover_request;
use crate::redaction::Redactor;

const CALLBACK: &str = "/callback";
const OUR_NAME: &str = "Switchboard";
/// How long the browser may take to load the final page.
const LAST_PAGE: Duration = Duration::from_secs(2);
/// Maximum time for discovering where to sign in.
const LONGEST_QUESTION: Duration = Duration::from_secs(30);

/// The stored state of the sign-in to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInState {
    /// There is a sign-in for this URL.
    pub is_signed_in: bool,
    /// The server has required a sign-in since.
    pub is_wanted: bool,
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// Scopes that the server has required since.
    pub wanted_scopes: Vec<String>,
    pub expires_at_ms: Option<i64>,
    pub renewal: Renewal,
}

/// The source of the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// An interactive sign-in.
    SignIn,
    /// The refresh token of the last sign-in.
    Refresh,
    /// The client credentials grant; no user is needed.
    OwnClient,
}

impl SignInState {
    /// Reads the stored state.
    pub async fn read(spec: &ServerSpec, tokens: &dyn TokenStore) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let kept = tokens.load(&spec.name, None).await.map_err(|error| unkept(&error))?;
        let grant = kept.as_ref().and_then(Grant::read);
        let grant = grant.filter(|grant| grant.is_for(url, settings));
        let wanted = tokens.wanted(&spec.name).await.map_err(|error| unkept(&error))?;
        let scopes = wanted.as_deref().and_then(SignInReason::read).unwrap_or_default().scopes;
        let refreshes = grant.as_ref().is_some_and(|grant| grant.refresh_token.is_some());
        let renewal = match &settings.grant {
            OAuthGrant::ClientCredentials(_) => Renewal::OwnClient,
            OAuthGrant::SignIn(_) if refreshes => Renewal::Refresh,
            OAuthGrant::SignIn(_) => Renewal::SignIn,
        };
        Ok(Self {
            is_signed_in: grant.is_some(),
            is_wanted: wanted.is_some(),
            issuer: grant.as_ref().map(|grant| grant.issuer.clone()),
            scopes: grant.as_ref().map(|grant| grant.granted.clone()).unwrap_or_default(),
            wanted_scopes: scopes,
            expires_at_ms: grant.as_ref().and_then(|grant| grant.expires_at_ms),
            renewal,
        })
    }
}

/// The result of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub issuer: String,
    pub scopes: Vec<String>,
}

/// A sign-in that waits for the browser. Dropping it cancels it.
pub struct SignIn {
    server: ServerName,
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
        f.debug_struct("SignIn").field("server", &self.server).finish_non_exhaustive()
    }
}

impl SignIn {
    /// Discovers where to sign in, and with which client.
    pub async fn begin(
        spec: &ServerSpec,
        http: &HttpPool,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let begun = Self::prepare(spec, http, tokens).await;
        begun.map_err(|error| Redactor::of(spec, None).redact_error(error))
    }

    async fn prepare(
        spec: &ServerSpec,
        http: &HttpPool,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let name = &spec.name;
        let OAuthGrant::SignIn(ours) = &settings.grant else {
            let message =
                format!("'{name}' needs no sign-in: it uses the client credentials grant");
            return Err(ConnectError::new(ConnectErrorKind::Protocol, message).with_hint(
                "its entry says `grant: client_credentials`; `switchboard server test` tries it",
            ));
        };
        let wanted = tokens.wanted(name).await.map_err(|error| unkept(&error))?;
        let wanted = wanted.as_deref().and_then(SignInReason::read).unwrap_or_default();
        let challenge = ask_for_challenge(&spec.endpoint, url, http).await?;
        let challenge = challenge.or(wanted.challenge);
        let mut found = discover(url, challenge.as_deref()).await?;
        let before =
            tokens.load(name, Some(&found.issuer)).await.map_err(|error| unkept(&error))?;
        let before = before.as_ref().and_then(Grant::read);
        let before = before.filter(|grant| grant.is_for(url, settings));

        let listener = listen(ours.redirect_port).await?;
        let port = listener.local_addr().map_err(|error| no_port(None, &error))?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{CALLBACK}");
        let earlier = before.as_ref().map(|grant| grant.asked.as_slice()).unwrap_or_default();
        let mut scopes = scopes(&found, settings, &union(earlier, &wanted.scopes)).await;
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
        };
        let mut manager = found.manager;
        manager.configure_client(client).map_err(|error| describe(&error))?;
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let url = manager.get_authorization_url(&scopes).await.map_err(|error| describe(&error))?;
        let redactor = Redactor::of(spec, None);
        Ok(Self { server: name.clone(), tokens, manager, listener, url, grant, redactor })
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
        let kept = self.tokens.save(&self.server, &grant.issuer, grant.write()).await;
        kept.map_err(|error| unkept(&error))?;
        let noted = self.tokens.want(&self.server, None).await;
        noted.map_err(|error| unkept(&error))?;
        Ok(SignedIn { issuer: grant.issuer, scopes: grant.granted })
    }
}

fn wants_oauth(spec: &ServerSpec) -> Result<(&Url, &OAuthSettings), ConnectError> {
    spec.endpoint.oauth().ok_or_else(|| {
        let message = format!("the server '{}' is not configured to sign in", spec.name);
        ConnectError::new(ConnectErrorKind::Protocol, message)
            .with_hint("add `auth: {oauth: {}}` to its entry")
    })
}

/// The server's challenge to a request without a token.
async fn ask_for_challenge(
    endpoint: &Endpoint,
    url: &Url,
    http: &HttpPool,
) -> Result<Option<String>, ConnectError> {
    let (Endpoint::StreamableHttp { headers, .. } | Endpoint::Sse { headers, .. }) = endpoint
    else {
        return Ok(None);
    };
    let client = http.client_for(url)?;
    let request = match endpoint {
        Endpoint::Sse { .. } => client.get(url.clone()).header("accept", "text/event-stream"),
        Endpoint::StreamableHttp { .. } | Endpoint::Stdio { .. } => {
            discover_request(client.post(url.clone()))
        }
    };
    let request = request.headers(plain_headers(headers)).timeout(LONGEST_QUESTION);
    let response =
        request.send().await.map_err(|error| crate::http_faults::describe_failure(&error))?;
    let is_refused = response.status() == StatusCode::UNAUTHORIZED;
    Ok(bearer_challenge(response.headers()).filter(|_| is_refused))
}

fn plain_headers(headers: &BTreeMap<String, Secret>) -> HeaderMap {
    let legal = headers.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.as_str()).ok()?, value))
    });
    legal.collect()
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

/// The OAuth client to use: the configured one, the client metadata document, the one of the last sign-in, or a newly
/// registered one.
async fn client(
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
        return Ok(super::client(before));
    }
    let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    let registered = found.manager.register_client(OUR_NAME, redirect_uri, &scopes).await;
    registered.map_err(|error| {
        let hint = "register a client there by hand and give its `client_id` in `auth.oauth`";
        let described = describe(&error);
        if found.metadata.registration_endpoint.is_none() {
            let message = format!("{} does not support dynamic client registration", found.issuer);
            return ConnectError::new(ConnectErrorKind::Protocol, message).with_hint(hint);
        }
        described.with_hint(hint)
    })
}

async fn listen(port: Option<u16>) -> Result<TcpListener, ConnectError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
    TcpListener::bind(address).await.map_err(|error| no_port(port, &error))
}

fn no_port(port: Option<u16>, error: &std::io::Error) -> ConnectError {
    let port = port.map(|port| format!(" {port}")).unwrap_or_default();
    let message =
        format!("cannot listen for the browser's callback: port{port} of 127.0.0.1: {error}");
    ConnectError::new(ConnectErrorKind::Process, message)
        .with_hint("end what uses the port, or choose another `redirect_port`")
}

fn parameter(url: &str, name: &str) -> String {
    let url = Url::parse(url).ok();
    let found = url.and_then(|url| query_value(url.query().unwrap_or_default(), name));
    found.unwrap_or_default()
}

fn query_value(query: &str, name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The query parameters of the callback.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Callback {
    code: String,
    issuer: Option<String>,
}

type Brought = Result<Callback, ConnectError>;

#[derive(Debug, Clone)]
struct Door {
    state: Arc<str>,
    /// Holds one callback; later ones are ignored.
    brought: mpsc::Sender<Brought>,
}

/// Serves the callback page. Requests without the `state` of this sign-in are refused.
async fn wait_for_browser(listener: TcpListener, state: &str) -> Brought {
    let (brought, mut answers) = mpsc::channel(1);
    let done = CancellationToken::new();
    let door = Door { state: state.into(), brought };
    let router = Router::new().route(CALLBACK, get(come_back)).with_state(door);
    let serving = axum::serve(listener, router)
        .with_graceful_shutdown(done.clone().cancelled_owned())
        .into_future();
    let mut serving = std::pin::pin!(serving);
    let answer = tokio::select! {
        answer = answers.recv() => answer,
        _ended = &mut serving => None,
    };
    done.cancel();
    let _undelivered = tokio::time::timeout(LAST_PAGE, serving).await;
    answer.unwrap_or_else(|| Err(unusable("the browser did not return to the callback")))
}

async fn come_back(
    State(door): State<Door>,
    RawQuery(query): RawQuery,
) -> (StatusCode, Html<&'static str>) {
    let query = query.unwrap_or_default();
    if query_value(&query, "state").as_deref() != Some(&*door.state) {
        let page = "<!doctype html><title>Switchboard</title>This is not the response to a pending sign-in.";
        return (StatusCode::BAD_REQUEST, Html(page));
    }
    // A second callback changes nothing.
    let _second = door.brought.try_send(read_callback(&query));
    let page = "<!doctype html><title>Switchboard</title>Switchboard has received the response. You can close \
                this page; the terminal shows the result.";
    (StatusCode::OK, Html(page))
}

fn read_callback(query: &str) -> Brought {
    let value = |name: &str| query_value(query, name);
    if let Some(error) = value("error") {
        let why = value("error_description").map(|why| format!(": {why}")).unwrap_or_default();
        let message: String = format!("the authorization server refused the sign-in: {error}{why}")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(500)
            .collect();
        return Err(ConnectError::new(ConnectErrorKind::Unauthorized, message));
    }
    let code = value("code").filter(|code| !code.is_empty());
    let code =
        code.ok_or_else(|| unusable("the browser returned without an authorization code"))?;
    Ok(Callback { code, issuer: value("iss") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_read_with_its_issuer_and_its_refusal() {
        let read = read_callback("code=a%20b&state=s&iss=https%3A%2F%2Fas").unwrap();
        assert_eq!(read, Callback { code: "a b".into(), issuer: Some("https://as".into()) });
        let refused = read_callback("error=access_denied&error_description=no%0Away&state=s");
        assert_eq!(
            refused.unwrap_err().message,
            "the authorization server refused the sign-in: access_denied: no way"
        );
        assert!(read_callback("state=s").is_err());
    }

    #[tokio::test]
    async fn only_the_answer_with_our_word_counts() {
        let listener = listen(None).await.unwrap();
        let address = format!("http://{}{CALLBACK}", listener.local_addr().unwrap());
        let browser = async {
            for query in ["", "?code=forged", "?code=forged&state=guess"] {
                let page = reqwest::get(format!("{address}{query}")).await.unwrap();
                assert_eq!(page.status(), 400, "{query}");
            }
            reqwest::get(format!("{address}?code=real&state=word")).await.unwrap().status()
        };
        let (brought, status) = tokio::join!(wait_for_browser(listener, "word"), browser);
        assert_eq!((brought.unwrap().code.as_str(), status.as_u16()), ("real", 200));
    }
}
