//! An MCP server that requires OAuth, and its authorization server, on one port.
//!
//! Tokens are `access-1`, `access-2`, ...; each token of a sign-in has a refresh token of the same number that works
//! once. All tokens that follow from one sign-in are a family; [`FakeAuthServer::revoke_families_on_reuse`] ends a family
//! when one of its refresh tokens is used twice. One client, [`OWN_CLIENT`], is registered for client credentials.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    /// The family of each token, whether it is still valid or not.
    families: Mutex<BTreeMap<String, usize>>,
    detects_reuse: AtomicBool,
    reused: AtomicUsize,
    /// The `code_challenge` of the pending sign-in.
    challenge: Mutex<Option<String>>,
    /// Answers of the token endpoint to device codes, before the tokens.
    device_answers: Mutex<VecDeque<String>>,
    device_polls: AtomicUsize,
    revocations: Mutex<Vec<String>>,
    registrations: Mutex<Vec<Value>>,
    token_requests: Mutex<Vec<BTreeMap<String, String>>>,
    /// Members of the metadata that replace the usual ones; `null` removes one.
    metadata: Mutex<Value>,
    omits_iss: AtomicBool,
    keeps_refresh_token: AtomicBool,
    /// The error and its description that the sign-in page returns with.
    page_error: Mutex<Option<(String, String)>>,
    reads_documents: AtomicBool,
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
    answer_pause: Mutex<Duration>,
    /// The address of the protected resource metadata in challenges, in place of the real one.
    resource_metadata: Mutex<Option<String>>,
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
            families: Mutex::default(),
            detects_reuse: AtomicBool::new(false),
            reused: AtomicUsize::new(0),
            challenge: Mutex::default(),
            device_answers: Mutex::default(),
            device_polls: AtomicUsize::new(0),
            revocations: Mutex::default(),
            registrations: Mutex::default(),
            token_requests: Mutex::default(),
            metadata: Mutex::new(json!({})),
            omits_iss: AtomicBool::new(false),
            keeps_refresh_token: AtomicBool::new(false),
            page_error: Mutex::default(),
            reads_documents: AtomicBool::new(false),
            needs: Mutex::default(),
            named: Mutex::default(),
            offers_to_stay: AtomicBool::new(false),
            refuses_own_client: AtomicBool::new(false),
            token_response: Mutex::default(),
            token_endpoint: Mutex::default(),
            scopes: Mutex::default(),
            pause: Mutex::default(),
            answer_pause: Mutex::default(),
            resource_metadata: Mutex::default(),
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
            .route("/device", post(device))
            .route("/revoke", post(revoke))
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

    /// Delays responses with tokens after the code or the refresh token was used up.
    pub fn set_answer_pause(&self, pause: Duration) {
        *locked(&self.desk.answer_pause) = pause;
    }

    /// Makes challenges of the MCP server name another address of the protected resource metadata.
    pub fn name_resource_metadata(&self, url: &str) {
        *locked(&self.desk.resource_metadata) = Some(url.to_owned());
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

    /// Ends all tokens of a sign-in when one of its refresh tokens is used a second time.
    pub fn revoke_families_on_reuse(&self) {
        self.desk.detects_reuse.store(true, Ordering::SeqCst);
    }

    /// Number of refresh tokens that were used a second time.
    pub fn reused(&self) -> usize {
        self.desk.reused.load(Ordering::SeqCst)
    }

    /// Answers refreshes without a refresh token: the present one stays valid.
    pub fn keep_refresh_token(&self) {
        self.desk.keeps_refresh_token.store(true, Ordering::SeqCst);
    }

    /// Answers questions for a device code with these errors first.
    pub fn answer_device(&self, errors: &[&str]) {
        *locked(&self.desk.device_answers) = errors.iter().map(|error| (*error).into()).collect();
    }

    /// Number of questions for a device code.
    pub fn device_polls(&self) -> usize {
        self.desk.device_polls.load(Ordering::SeqCst)
    }

    /// The tokens that were revoked by request.
    pub fn revocations(&self) -> Vec<String> {
        locked(&self.desk.revocations).clone()
    }

    /// The bodies of the client registrations.
    pub fn registrations(&self) -> Vec<Value> {
        locked(&self.desk.registrations).clone()
    }

    /// The parameters of the token requests.
    pub fn token_requests(&self) -> Vec<BTreeMap<String, String>> {
        locked(&self.desk.token_requests).clone()
    }

    /// Replaces members of the authorization server's metadata; `null` removes one.
    pub fn set_metadata(&self, members: Value) {
        *locked(&self.desk.metadata) = members;
    }

    /// Leaves `iss` out of the redirect.
    pub fn omit_iss(&self) {
        self.desk.omits_iss.store(true, Ordering::SeqCst);
    }

    /// Makes the sign-in page return with an error.
    pub fn refuse_at_page(&self, error: &str, description: &str) {
        *locked(&self.desk.page_error) = Some((error.into(), description.into()));
    }

    /// Announces client metadata documents, and fetches and checks them at the sign-in page.
    pub fn read_documents(&self) {
        self.desk.reads_documents.store(true, Ordering::SeqCst);
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
    document["device_authorization_endpoint"] = format!("{base}/device").into();
    document["revocation_endpoint"] = format!("{base}/revoke").into();
    if desk.offers_to_stay.load(Ordering::SeqCst) {
        document["scopes_supported"] = json!(["basic", "offline_access"]);
    }
    if desk.reads_documents.load(Ordering::SeqCst) {
        document["client_id_metadata_document_supported"] = true.into();
    }
    for (key, value) in locked(&desk.metadata).as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    if let Some(members) = document.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    Json(document)
}

async fn register(State(desk): Here, Json(asked): Json<Value>) -> (StatusCode, Json<Value>) {
    let number = desk.registered.fetch_add(1, Ordering::SeqCst) + 1;
    locked(&desk.registrations).push(asked.clone());
    let answer = json!({
        "client_id": format!("client-{number}"),
        "client_secret": "s3cret-client",
        "redirect_uris": asked["redirect_uris"],
    });
    (StatusCode::CREATED, Json(answer))
}

async fn authorize(State(desk): Here, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let client_id = value(&query, "client_id").unwrap_or_default();
    let back = value(&query, "redirect_uri").unwrap_or_default();
    let is_safe = value(&query, "code_challenge_method").as_deref() == Some("S256");
    if !is_safe || !is_known(&desk, &client_id, &back).await {
        return (StatusCode::BAD_REQUEST, "this client is not known here").into_response();
    }
    let scope = value(&query, "scope").unwrap_or_default();
    locked(&desk.asked).push(scope.clone());
    *locked(&desk.scopes) = scope;
    *locked(&desk.challenge) = value(&query, "code_challenge");
    let issuer = locked(&desk.callback_issuer).clone().unwrap_or_else(|| desk.base.clone());
    let state = value(&query, "state").unwrap_or_default();
    let outcome = match locked(&desk.page_error).clone() {
        Some((error, description)) => format!("error={error}&error_description={description}"),
        None => format!("code={CODE}"),
    };
    let iss = if desk.omits_iss.load(Ordering::SeqCst) {
        String::new()
    } else {
        format!("&iss={issuer}")
    };
    Redirect::to(&format!("{back}?{outcome}&state={state}{iss}")).into_response()
}

/// Whether a client may sign in. A client whose id is an address must publish a document there that names itself and the
/// redirect URI.
async fn is_known(desk: &Desk, client_id: &str, redirect_uri: &str) -> bool {
    if !client_id.starts_with("http") {
        return true;
    }
    if !desk.reads_documents.load(Ordering::SeqCst) {
        return false;
    }
    let Ok(answer) = reqwest::get(client_id).await else { return false };
    let document: Value = answer.json().await.unwrap_or_default();
    let uris = document["redirect_uris"].as_array().map(Vec::as_slice).unwrap_or_default();
    document["client_id"] == client_id
        && document["client_name"].is_string()
        && uris.iter().any(|uri| uri == redirect_uri)
}

async fn device(State(desk): Here, body: String) -> Json<Value> {
    let scope = value(&body, "scope").unwrap_or_default();
    locked(&desk.asked).push(scope.clone());
    *locked(&desk.scopes) = scope;
    Json(json!({
        "device_code": "s3cret-device", "user_code": "WDJB-MJHT", "interval": 1, "expires_in": 600,
        "verification_uri": format!("{}/verify", desk.base),
    }))
}

async fn revoke(State(desk): Here, body: String) -> StatusCode {
    let token = value(&body, "token").unwrap_or_default();
    locked(&desk.refreshable).remove(&token);
    locked(&desk.valid).remove(&token);
    locked(&desk.revocations).push(token);
    StatusCode::OK
}

/// The parameters of a token request, in a form or in JSON.
fn parameters(headers: &HeaderMap, body: &str) -> BTreeMap<String, String> {
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if is_json {
        return serde_json::from_str(body).unwrap_or_default();
    }
    let keys = body.split('&').filter_map(|pair| pair.split_once('=')).map(|(key, _)| key);
    keys.filter_map(|key| Some((key.to_owned(), value(body, key)?))).collect()
}

/// Whether the refresh token is valid. One that was used before ends its family, where that is switched on.
fn redeem(desk: &Desk, used: &str) -> bool {
    desk.refreshed.fetch_add(1, Ordering::SeqCst);
    if desk.keeps_refresh_token.load(Ordering::SeqCst) {
        return locked(&desk.refreshable).contains(used);
    }
    if locked(&desk.refreshable).remove(used) {
        return true;
    }
    let family = locked(&desk.families).get(used).copied();
    if let Some(family) = family {
        desk.reused.fetch_add(1, Ordering::SeqCst);
        if desk.detects_reuse.load(Ordering::SeqCst) {
            let families = locked(&desk.families);
            locked(&desk.refreshable).retain(|token| families.get(token) != Some(&family));
            locked(&desk.valid).retain(|token| families.get(token) != Some(&family));
        }
    }
    false
}

async fn token(State(desk): Here, headers: HeaderMap, body: String) -> Response {
    let given = parameters(&headers, &body);
    locked(&desk.token_requests).push(given.clone());
    let pause = *locked(&desk.pause);
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    if let Some(response) = locked(&desk.token_response).clone() {
        return response.into_response();
    }
    let value = |name: &str| given.get(name).cloned();
    let refused =
        |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    let grant_type = value("grant_type").unwrap_or_default();
    let used = value("refresh_token").unwrap_or_default();
    let is_allowed = match grant_type.as_str() {
        "authorization_code" => {
            desk.signed_in.fetch_add(1, Ordering::SeqCst);
            let verifier = value("code_verifier").unwrap_or_default();
            let challenge = locked(&desk.challenge).take();
            value("code").as_deref() == Some(CODE) && challenge == Some(challenge_of(&verifier))
        }
        "refresh_token" => redeem(&desk, &used),
        "urn:ietf:params:oauth:grant-type:device_code" => {
            desk.device_polls.fetch_add(1, Ordering::SeqCst);
            if let Some(error) = locked(&desk.device_answers).pop_front() {
                return refused(&error);
            }
            value("device_code").as_deref() == Some("s3cret-device")
        }
        "client_credentials" => {
            desk.came_itself.fetch_add(1, Ordering::SeqCst);
            let scope = value("scope").unwrap_or_default();
            locked(&desk.asked).push(scope.clone());
            *locked(&desk.scopes) = scope;
            let client = (value("client_id"), value("client_secret"));
            let is_meant_for_us = value("resource") == Some(format!("{}/mcp", desk.base));
            client == (Some(OWN_CLIENT.0.into()), Some(OWN_CLIENT.1.into()))
                && is_meant_for_us
                && !desk.refuses_own_client.load(Ordering::SeqCst)
        }
        _ => false,
    };
    if !is_allowed {
        return refused("invalid_grant");
    }
    let number = desk.issued.fetch_add(1, Ordering::SeqCst) + 1;
    let (access, refresh) = (format!("access-{number}"), format!("refresh-{number}"));
    let family = locked(&desk.families).get(&used).copied().unwrap_or(number);
    locked(&desk.families).extend([(access.clone(), family), (refresh.clone(), family)]);
    locked(&desk.valid).insert(access.clone());
    let mut answer = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": *locked(&desk.lifetime),
        "scope": *locked(&desk.scopes),
    });
    let keeps = grant_type == "refresh_token" && desk.keeps_refresh_token.load(Ordering::SeqCst);
    if grant_type != "client_credentials" && !keeps {
        locked(&desk.refreshable).insert(refresh.clone());
        answer["refresh_token"] = refresh.into();
    }
    let pause = *locked(&desk.answer_pause);
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    Json(answer).into_response()
}

fn challenge_of(verifier: &str) -> String {
    use base64::Engine;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}

async fn mcp(State(desk): Here, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    locked(&desk.tokens_seen).push(given.to_owned());
    let metadata = locked(&desk.resource_metadata).clone();
    let metadata = metadata
        .unwrap_or_else(|| format!("{}/.well-known/oauth-protected-resource/mcp", desk.base));
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
