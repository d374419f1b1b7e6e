//! An MCP server at which each person has an account, with its authorization server, on one port.
//!
//! A browser signs in as the person whose name is entered at the authorization page, or is in its query parameter `user`. Tokens
//! belong to that person, and the tool `whoami` answers with the person of the request's token. A session of the session era belongs to
//! the person who opened it: a request of another one in it is a violation, which tests look for at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The era that the MCP server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountEra {
    Session,
    Stateless,
}

#[derive(Debug)]
struct Desk {
    base: String,
    era: AccountEra,
    issued: AtomicUsize,
    /// Token to person.
    valid: Mutex<BTreeMap<String, String>>,
    refreshable: Mutex<BTreeMap<String, String>>,
    codes: Mutex<BTreeMap<String, String>>,
    /// Session to person.
    sessions: Mutex<BTreeMap<String, String>>,
    scopes: Mutex<BTreeMap<String, String>>,
    needs: Mutex<Option<String>>,
    /// The `iss` of callbacks, in place of the real one.
    callback_issuer: Mutex<Option<String>>,
    registrations: Mutex<Vec<Value>>,
    revocations: Mutex<Vec<String>>,
    /// Number of exchanged tokens.
    exchanges: AtomicUsize,
    /// The error of exchanges, in place of a token.
    exchange_error: Mutex<Option<String>>,
    echoes_exchanges: AtomicBool,
    /// The bearer token of each request.
    bearers: Mutex<Vec<String>>,
    pages_opened: AtomicUsize,
    refused: AtomicUsize,
    reads_documents: AtomicBool,
    pause: Mutex<Duration>,
    running: AtomicUsize,
    calls: Mutex<Vec<String>>,
    violations: Mutex<BTreeSet<String>>,
}

/// A running server.
#[derive(Debug)]
pub struct AccountServer {
    desk: Arc<Desk>,
    stop: CancellationToken,
}

impl Drop for AccountServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl AccountServer {
    /// Starts the server on a free port.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn open(era: AccountEra) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let desk = Arc::new(Desk {
            base,
            era,
            issued: AtomicUsize::new(0),
            valid: Mutex::default(),
            refreshable: Mutex::default(),
            codes: Mutex::default(),
            sessions: Mutex::default(),
            scopes: Mutex::default(),
            needs: Mutex::default(),
            callback_issuer: Mutex::default(),
            registrations: Mutex::default(),
            revocations: Mutex::default(),
            exchanges: AtomicUsize::new(0),
            exchange_error: Mutex::default(),
            echoes_exchanges: AtomicBool::new(false),
            bearers: Mutex::default(),
            pages_opened: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            reads_documents: AtomicBool::new(false),
            pause: Mutex::default(),
            running: AtomicUsize::new(0),
            calls: Mutex::default(),
            violations: Mutex::default(),
        });
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_metadata))
            .route("/.well-known/oauth-authorization-server", get(server_metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .route("/mcp", post(mcp).get(no_stream).delete(no_stream))
            .with_state(desk.clone());
        let stop = CancellationToken::new();
        let serving =
            axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        TaskTracker::new().spawn(serving.into_future());
        Self { desk, stop }
    }

    /// The address of the MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.desk.base)
    }

    /// The issuer of the authorization server.
    pub fn issuer(&self) -> String {
        self.desk.base.clone()
    }

    /// Opens an authorization page as a person. Returns the address that the browser is sent back to.
    ///
    /// # Panics
    ///
    /// If the page does not send the browser back.
    pub async fn visit(&self, page: &str, person: &str) -> String {
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let browser = browser.no_proxy().build().expect("a browser");
        let answer = browser.get(format!("{page}&user={person}")).send().await.expect("a page");
        let back = answer.headers().get(header::LOCATION).expect("a way back");
        back.to_str().expect("an address").to_owned()
    }

    /// Number of tokens that were exchanged for tokens of callers (RFC 8693).
    pub fn exchanges(&self) -> usize {
        self.desk.exchanges.load(Ordering::SeqCst)
    }

    /// Refuses exchanges with this error.
    pub fn refuse_exchanges(&self, error: &str) {
        *self.desk.exchange_error.lock() = Some(error.to_owned());
    }

    /// Answers exchanges with the token of the caller itself.
    pub fn echo_exchanges(&self) {
        self.desk.echoes_exchanges.store(true, Ordering::SeqCst);
    }

    /// The bearer token of each request to the MCP server.
    pub fn bearers(&self) -> Vec<String> {
        self.desk.bearers.lock().clone()
    }

    /// Ends all access tokens; refresh tokens stay.
    pub fn revoke_access(&self) {
        self.desk.valid.lock().clear();
    }

    /// Ends all tokens.
    pub fn revoke_all(&self) {
        self.revoke_access();
        self.desk.refreshable.lock().clear();
    }

    /// Forgets all sessions.
    pub fn drop_sessions(&self) {
        self.desk.sessions.lock().clear();
    }

    /// Makes `tools/call` require a scope.
    pub fn need_scope(&self, scope: &str) {
        *self.desk.needs.lock() = Some(scope.to_owned());
    }

    /// Makes callbacks name another issuer.
    pub fn return_issuer(&self, issuer: &str) {
        *self.desk.callback_issuer.lock() = Some(issuer.to_owned());
    }

    /// Reads client metadata documents.
    pub fn read_documents(&self) {
        self.desk.reads_documents.store(true, Ordering::SeqCst);
    }

    /// Makes every call take this long.
    pub fn set_pause(&self, pause: Duration) {
        *self.desk.pause.lock() = pause;
    }

    /// How many calls run now.
    pub fn running(&self) -> usize {
        self.desk.running.load(Ordering::SeqCst)
    }

    /// The registrations of clients.
    pub fn registrations(&self) -> Vec<Value> {
        self.desk.registrations.lock().clone()
    }

    /// The tokens that were revoked by request.
    pub fn revocations(&self) -> Vec<String> {
        self.desk.revocations.lock().clone()
    }

    /// How often an authorization page was opened.
    pub fn pages_opened(&self) -> usize {
        self.desk.pages_opened.load(Ordering::SeqCst)
    }

    /// How many requests had no valid token.
    pub fn refused(&self) -> usize {
        self.desk.refused.load(Ordering::SeqCst)
    }

    /// The person of each call.
    pub fn calls(&self) -> Vec<String> {
        self.desk.calls.lock().clone()
    }

    /// Every token that was issued, for tests that look for them where they must not be.
    pub fn tokens(&self) -> Vec<String> {
        let valid = self.desk.valid.lock().keys().cloned().collect::<Vec<_>>();
        valid.into_iter().chain(self.desk.refreshable.lock().keys().cloned()).collect()
    }

    /// What must never happen and did.
    pub fn violations(&self) -> Vec<String> {
        self.desk.violations.lock().iter().cloned().collect()
    }
}

type Here = State<Arc<Desk>>;
type Values = BTreeMap<String, String>;

async fn resource_metadata(State(desk): Here) -> Json<Value> {
    Json(json!({"resource": format!("{}/mcp", desk.base), "authorization_servers": [desk.base]}))
}

async fn server_metadata(State(desk): Here) -> Json<Value> {
    let base = &desk.base;
    Json(json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "revocation_endpoint": format!("{base}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": desk.reads_documents.load(Ordering::SeqCst),
    }))
}

async fn register(State(desk): Here, Json(asked): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut registrations = desk.registrations.lock();
    registrations.push(asked.clone());
    let answer = json!({
        "client_id": format!("client-{}", registrations.len()),
        "redirect_uris": asked["redirect_uris"],
    });
    (StatusCode::CREATED, Json(answer))
}

async fn authorize(State(desk): Here, Query(query): Query<Values>) -> Response {
    desk.pages_opened.fetch_add(1, Ordering::SeqCst);
    if !query.contains_key("user") {
        return Html(sign_in_page(&query)).into_response();
    }
    let given = |name: &str| query.get(name).cloned().unwrap_or_default();
    let (person, number) = (given("user"), desk.issued.fetch_add(1, Ordering::SeqCst));
    let code = format!("s3cret-code-{person}-{number}");
    desk.codes.lock().insert(code.clone(), person.clone());
    desk.scopes.lock().insert(person, given("scope"));
    let issuer = desk.callback_issuer.lock().clone().unwrap_or_else(|| desk.base.clone());
    let (back, state) = (given("redirect_uri"), given("state"));
    Redirect::to(&format!("{back}?code={code}&state={state}&iss={issuer}")).into_response()
}

/// Asks a browser for the person's name, and sends it back here with the same parameters.
fn sign_in_page(query: &Values) -> String {
    let escaped =
        |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let kept: Vec<String> = query
        .iter()
        .map(|(name, value)| {
            format!("<input type=hidden name=\"{}\" value=\"{}\">", escaped(name), escaped(value))
        })
        .collect();
    let kept = kept.concat();
    format!(
        "<!doctype html><title>Tracker</title><form>{kept}<label>Name <input name=user required></label>\
         <button>Sign in</button></form>"
    )
}

async fn revoke(State(desk): Here, Form(form): Form<Values>) -> StatusCode {
    let token = form.get("token").cloned().unwrap_or_default();
    desk.valid.lock().remove(&token);
    desk.refreshable.lock().remove(&token);
    desk.revocations.lock().push(token);
    StatusCode::OK
}

async fn token(State(desk): Here, Form(form): Form<Values>) -> Response {
    let given = |name: &str| form.get(name).cloned().unwrap_or_default();
    let grant_type = given("grant_type");
    let is_exchange = grant_type == "urn:ietf:params:oauth:grant-type:token-exchange";
    if is_exchange && let Some(error) = desk.exchange_error.lock().clone() {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    }
    if is_exchange && desk.echoes_exchanges.load(Ordering::SeqCst) {
        let answer = json!({"access_token": given("subject_token"), "token_type": "Bearer"});
        return Json(answer).into_response();
    }
    let person = match grant_type.as_str() {
        _ if is_exchange => {
            desk.exchanges.fetch_add(1, Ordering::SeqCst);
            desk.scopes.lock().insert(subject(&form).unwrap_or_default(), given("scope"));
            let is_ours = given("client_id") == "exchanger"
                && given("client_secret") == "s3cret-exchanger"
                && given("resource") == format!("{}/mcp", desk.base);
            subject(&form).filter(|_| is_ours)
        }
        "authorization_code" => desk.codes.lock().remove(&given("code")),
        "refresh_token" => desk.refreshable.lock().remove(&given("refresh_token")),
        _ => None,
    };
    let Some(person) = person else {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    };
    let number = desk.issued.fetch_add(1, Ordering::SeqCst);
    let (access, refresh) =
        (format!("s3cret-access-{person}-{number}"), format!("s3cret-refresh-{person}-{number}"));
    desk.valid.lock().insert(access.clone(), person.clone());
    desk.refreshable.lock().insert(refresh.clone(), person.clone());
    let scope = desk.scopes.lock().get(&person).cloned().unwrap_or_default();
    Json(json!({
        "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600,
        "scope": scope,
    }))
    .into_response()
}

/// The subject of the token that is to be exchanged. Its signature is not checked here.
fn subject(form: &Values) -> Option<String> {
    use base64::Engine as _;
    let claims = form.get("subject_token")?.split('.').nth(1)?;
    let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(claims["sub"].as_str()?.to_owned())
}

async fn no_stream() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

async fn mcp(State(desk): Here, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    desk.bearers.lock().push(given.to_owned());
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", desk.base);
    let Some(person) = desk.valid.lock().get(given).cloned() else {
        desk.refused.fetch_add(1, Ordering::SeqCst);
        let said = format!(r#"Bearer resource_metadata="{metadata}", scope="basic""#);
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, said)]).into_response();
    };
    let method = request["method"].as_str().unwrap_or_default();
    let needs = desk.needs.lock().clone().filter(|_| method == "tools/call");
    let granted = desk.scopes.lock().get(&person).cloned().unwrap_or_default();
    if let Some(scope) = needs
        && !granted.split(' ').any(|granted| granted == scope)
    {
        let said = format!(
            r#"Bearer error="insufficient_scope", resource_metadata="{metadata}", scope="{scope}""#
        );
        return (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, said)]).into_response();
    }
    match desk.era {
        AccountEra::Stateless => stateless(&desk, &person, &request).await,
        AccountEra::Session => session(&desk, &person, &headers, &request).await,
    }
}

async fn stateless(desk: &Desk, person: &str, request: &Value) -> Response {
    let mut result = match request["method"].as_str() {
        Some("server/discover") => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "accounts", "version": "1"},
        }),
        Some(method) => match answer(desk, person, method, request).await {
            Some(result) => result,
            None => return unknown(request),
        },
        None => return unknown(request),
    };
    for (key, value) in [
        ("resultType", json!("complete")),
        ("ttlMs", json!(60_000)),
        ("cacheScope", json!("private")),
    ] {
        result[key] = value;
    }
    Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
}

async fn session(desk: &Desk, person: &str, headers: &HeaderMap, request: &Value) -> Response {
    if request["method"] == "initialize" {
        let id = format!("session-{}", desk.issued.fetch_add(1, Ordering::SeqCst));
        desk.sessions.lock().insert(id.clone(), person.to_owned());
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "accounts", "version": "1"},
        });
        let answer = Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        return ([("mcp-session-id", id)], answer).into_response();
    }
    let id = headers.get("mcp-session-id").and_then(|value| value.to_str().ok());
    let Some(id) = id else { return unknown(request) };
    let owner = desk.sessions.lock().get(id).cloned();
    match owner {
        None => return StatusCode::NOT_FOUND.into_response(),
        Some(owner) if owner != person => {
            let violation = format!("a request of {person} in a session of {owner}");
            desk.violations.lock().insert(violation);
            return StatusCode::FORBIDDEN.into_response();
        }
        Some(_) => {}
    }
    if request.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let method = request["method"].as_str().unwrap_or_default();
    match answer(desk, person, method, request).await {
        Some(result) => {
            Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
        }
        None => unknown(request),
    }
}

async fn answer(desk: &Desk, person: &str, method: &str, request: &Value) -> Option<Value> {
    match method {
        "ping" => Some(json!({})),
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"expect": {"type": "string"}}});
            Some(json!({"tools": [{"name": "whoami", "inputSchema": schema}]}))
        }
        "tools/call" => {
            desk.calls.lock().push(person.to_owned());
            let expected = request["params"]["arguments"]["expect"].as_str();
            if let Some(expected) = expected.filter(|expected| *expected != person) {
                let violation = format!("a call of {expected} came with a token of {person}");
                desk.violations.lock().insert(violation);
            }
            desk.running.fetch_add(1, Ordering::SeqCst);
            let pause = *desk.pause.lock();
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            desk.running.fetch_sub(1, Ordering::SeqCst);
            Some(json!({"content": [{"type": "text", "text": person}]}))
        }
        _ => None,
    }
}

fn unknown(request: &Value) -> Response {
    let error = json!({"code": -32601, "message": "Method not found"});
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
    (StatusCode::NOT_FOUND, Json(answer)).into_response()
}
