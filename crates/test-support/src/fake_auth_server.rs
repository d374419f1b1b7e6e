//! An MCP server that requires OAuth, and its authorization server, on one port.
//!
//! Tokens are `access-1`, `access-2`, ...; each token of a sign-in has a refresh token of the same number that works
//! once. One client, [`OWN_CLIENT`], is registered for client credentials.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The authorization code. It must never appear in a log.
pub const CODE: &str = "s3cret-code";

/// The id and the secret of the client for client credentials.
pub const OWN_CLIENT: (&str, &str) = ("own-client", "s3cret-own-client");

/// Settings, and records of the received requests.
#[derive(Debug)]
struct Desk {
    base: String,
    issuer: Mutex<Option<String>>,
    callback_issuer: Mutex<Option<String>>,
    lifetime: Mutex<u64>,
    /// Access tokens that are accepted.
    valid: Mutex<BTreeSet<String>>,
    refreshable: Mutex<BTreeSet<String>>,
    /// The scope that `tools/call` needs.
    needs: Mutex<Option<String>>,
    /// The authorization server in the protected resource metadata.
    named: Mutex<Option<String>>,
    offers_to_stay: AtomicBool,
    refuses_own_client: AtomicBool,
    /// The response of the token endpoint, in place of tokens.
    token_response: Mutex<Option<(StatusCode, String)>>,
    /// The token endpoint in the metadata, in place of the real one.
    token_endpoint: Mutex<Option<String>>,
    scopes: Mutex<String>,
    pause: Mutex<Duration>,
    issued: AtomicUsize,
    signed_in: AtomicUsize,
    came_itself: AtomicUsize,
    refreshed: AtomicUsize,
    registered: AtomicUsize,
    asked: Mutex<Vec<String>>,
    tokens_seen: Mutex<Vec<String>>,
}

/// A running server.
#[derive(Debug)]
pub struct FakeAuthServer {
    desk: Arc<Desk>,
    stop: CancellationToken,
}

impl Drop for FakeAuthServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn locked<T>(value: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    value.lock()
}

impl FakeAuthServer {
    /// Starts the server on a free port.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let desk = Arc::new(Desk {
            base,
            issuer: Mutex::default(),
            callback_issuer: Mutex::default(),
            lifetime: Mutex::new(3600),
            valid: Mutex::default(),
            refreshable: Mutex::default(),
            needs: Mutex::default(),
            named: Mutex::default(),
            offers_to_stay: AtomicBool::new(false),
            refuses_own_client: AtomicBool::new(false),
            token_response: Mutex::default(),
            token_endpoint: Mutex::default(),
            scopes: Mutex::default(),
            pause: Mutex::default(),
            issued: AtomicUsize::new(0),
            signed_in: AtomicUsize::new(0),
            came_itself: AtomicUsize::new(0),
            refreshed: AtomicUsize::new(0),
            registered: AtomicUsize::new(0),
            asked: Mutex::default(),
            tokens_seen: Mutex::default(),
        });
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_metadata))
            .route("/.well-known/oauth-authorization-server", get(server_metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/mcp", post(mcp))
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

    /// Makes the metadata name another issuer.
    pub fn claim_issuer(&self, issuer: &str) {
        *locked(&self.desk.issuer) = Some(issuer.to_owned());
    }

    /// Makes the redirect carry another issuer (`iss`).
    pub fn return_issuer(&self, issuer: &str) {
        *locked(&self.desk.callback_issuer) = Some(issuer.to_owned());
    }

    /// Sets the `expires_in` of new tokens.
    pub fn set_lifetime(&self, seconds: u64) {
        *locked(&self.desk.lifetime) = seconds;
    }

    /// Delays token responses.
    pub fn set_pause(&self, pause: Duration) {
        *locked(&self.desk.pause) = pause;
    }

    /// Makes `tools/call` require a scope.
    pub fn need_scope(&self, scope: &str) {
        *locked(&self.desk.needs) = Some(scope.to_owned());
    }

    /// Makes the MCP server name another authorization server.
    pub fn name_issuer(&self, issuer: &str) {
        *locked(&self.desk.named) = Some(issuer.to_owned());
    }

    /// Offers the scope `offline_access`.
    pub fn offer_to_stay(&self) {
        self.desk.offers_to_stay.store(true, Ordering::SeqCst);
    }

    /// Rejects the client for client credentials from now on.
    pub fn refuse_own_client(&self) {
        self.desk.refuses_own_client.store(true, Ordering::SeqCst);
    }

    /// Makes the token endpoint respond with this status and body.
    pub fn answer_token_requests(&self, status: StatusCode, body: &str) {
        *locked(&self.desk.token_response) = Some((status, body.to_owned()));
    }

    /// Makes the metadata name another token endpoint.
    pub fn name_token_endpoint(&self, url: &str) {
        *locked(&self.desk.token_endpoint) = Some(url.to_owned());
    }

    /// Revokes all access tokens.
    pub fn revoke_access(&self) {
        locked(&self.desk.valid).clear();
    }

    /// Revokes all refresh tokens.
    pub fn revoke_refresh(&self) {
        locked(&self.desk.refreshable).clear();
    }

    /// Number of redeemed authorization codes.
    pub fn signed_in(&self) -> usize {
        self.desk.signed_in.load(Ordering::SeqCst)
    }

    /// Number of client credentials grants.
    pub fn came_itself(&self) -> usize {
        self.desk.came_itself.load(Ordering::SeqCst)
    }

    /// Number of attempted refreshes.
    pub fn refreshed(&self) -> usize {
        self.desk.refreshed.load(Ordering::SeqCst)
    }

    /// Number of client registrations.
    pub fn registered(&self) -> usize {
        self.desk.registered.load(Ordering::SeqCst)
    }

    /// The scopes of each opened sign-in page and of each client credentials request.
    pub fn asked(&self) -> Vec<String> {
        locked(&self.desk.asked).clone()
    }

    /// The bearer token of each request to the MCP server; empty if there was none.
    pub fn tokens_seen(&self) -> Vec<String> {
        locked(&self.desk.tokens_seen).clone()
    }
}

type Here = State<Arc<Desk>>;

async fn resource_metadata(State(desk): Here) -> Json<Value> {
    let issuer = locked(&desk.named).clone().unwrap_or_else(|| desk.base.clone());
    Json(json!({"resource": format!("{}/mcp", desk.base), "authorization_servers": [issuer]}))
}

async fn server_metadata(State(desk): Here) -> Json<Value> {
    let base = &desk.base;
    let issuer = locked(&desk.issuer).clone().unwrap_or_else(|| base.clone());
    let token_endpoint = locked(&desk.token_endpoint).clone();
    let token_endpoint = token_endpoint.unwrap_or_else(|| format!("{base}/token"));
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": token_endpoint,
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    if desk.offers_to_stay.load(Ordering::SeqCst) {
        document["scopes_supported"] = json!(["basic", "offline_access"]);
    }
    Json(document)
}

async fn register(State(desk): Here, Json(asked): Json<Value>) -> (StatusCode, Json<Value>) {
    let number = desk.registered.fetch_add(1, Ordering::SeqCst) + 1;
    let answer = json!({
        "client_id": format!("client-{number}"),
        "client_secret": "s3cret-client",
        "redirect_uris": asked["redirect_uris"],
    });
    (StatusCode::CREATED, Json(answer))
}

async fn authorize(State(desk): Here, RawQuery(query): RawQuery) -> Redirect {
    let query = query.unwrap_or_default();
    let scope = value(&query, "scope").unwrap_or_default();
    locked(&desk.asked).push(scope.clone());
    *locked(&desk.scopes) = scope;
    let issuer = locked(&desk.callback_issuer).clone().unwrap_or_else(|| desk.base.clone());
    let back = value(&query, "redirect_uri").unwrap_or_default();
    let state = value(&query, "state").unwrap_or_default();
    Redirect::to(&format!("{back}?code={CODE}&state={state}&iss={issuer}"))
}

async fn token(State(desk): Here, body: String) -> Response {
    let pause = *locked(&desk.pause);
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    if let Some(response) = locked(&desk.token_response).clone() {
        return response.into_response();
    }
    let grant_type = value(&body, "grant_type");
    let is_allowed = match grant_type.as_deref() {
        Some("authorization_code") => {
            desk.signed_in.fetch_add(1, Ordering::SeqCst);
            value(&body, "code").as_deref() == Some(CODE)
        }
        Some("refresh_token") => {
            desk.refreshed.fetch_add(1, Ordering::SeqCst);
            let used = value(&body, "refresh_token").unwrap_or_default();
            locked(&desk.refreshable).remove(&used)
        }
        Some("client_credentials") => {
            desk.came_itself.fetch_add(1, Ordering::SeqCst);
            let scope = value(&body, "scope").unwrap_or_default();
            locked(&desk.asked).push(scope.clone());
            *locked(&desk.scopes) = scope;
            let given = (value(&body, "client_id"), value(&body, "client_secret"));
            let is_meant_for_us = value(&body, "resource") == Some(format!("{}/mcp", desk.base));
            given == (Some(OWN_CLIENT.0.into()), Some(OWN_CLIENT.1.into()))
                && is_meant_for_us
                && !desk.refuses_own_client.load(Ordering::SeqCst)
        }
        _ => false,
    };
    if !is_allowed {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    }
    let number = desk.issued.fetch_add(1, Ordering::SeqCst) + 1;
    let (access, refresh) = (format!("access-{number}"), format!("refresh-{number}"));
    locked(&desk.valid).insert(access.clone());
    let mut answer = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": *locked(&desk.lifetime),
        "scope": *locked(&desk.scopes),
    });
    if grant_type.as_deref() != Some("client_credentials") {
        locked(&desk.refreshable).insert(refresh.clone());
        answer["refresh_token"] = refresh.into();
    }
    Json(answer).into_response()
}

async fn mcp(State(desk): Here, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    locked(&desk.tokens_seen).push(given.to_owned());
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", desk.base);
    if !locked(&desk.valid).contains(given) {
        let said = format!(r#"Bearer resource_metadata="{metadata}", scope="basic""#);
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, said)]).into_response();
    }
    let needs = locked(&desk.needs).clone().filter(|_| request["method"] == "tools/call");
    if let Some(scope) = needs
        && !locked(&desk.scopes).split(' ').any(|granted| granted == scope)
    {
        let said = format!(
            r#"Bearer error="insufficient_scope", resource_metadata="{metadata}", scope="{scope}""#
        );
        return (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, said)]).into_response();
    }
    let mut result = match request["method"].as_str() {
        Some("server/discover") => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "office", "version": "1"},
        }),
        Some("tools/list") => {
            json!({"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]})
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            return (StatusCode::NOT_FOUND, Json(answer)).into_response();
        }
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

/// A value of a form, decoding only the escapes that our own clients use.
fn value(form: &str, name: &str) -> Option<String> {
    let pair =
        form.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))?;
    let mut bytes = Vec::new();
    let mut rest = pair.1.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
