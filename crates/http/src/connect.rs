//! The pages on which a person connects an account of their own at a server, and the callback of authorization servers.
//!
//! The pages need no credentials. Before the person has shown that the call was theirs they show nothing about it. What a
//! browser begins, only this browser can finish: a cookie holds a random value, and the sign-in is bound to it.

use axum::Json;
use axum::extract::{Form, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_auth::KEY_PREFIX;
use switchboard_model::{Secret, ServerName};
use switchboard_oauth::AuthorizationResponse;
use switchboard_runtime::{Board, ConnectFlow, FlowEnd};

use crate::connect_browser::{
    CALLBACK, PAGES, base_path, bind_cookie, browser_of, gone, open_flow,
};
use crate::connect_identity;
use crate::connect_page::{self, Consent};
use crate::extract::{FromPath, FromQuery};
use crate::problem::ProblemResponse;
use crate::ready::Ready;
use crate::server_state::Shared;

/// The maximum length of the text of an authorization server that is shown.
const LONGEST_TEXT: usize = 300;

/// Whether people open this address from pages of other sites.
pub(crate) fn is_page(method: &Method, path: &str) -> bool {
    method == Method::GET && (path.starts_with(PAGES) || path == CALLBACK)
}

/// What a person sends from a page.
#[derive(Deserialize)]
pub(crate) struct Submitted {
    proof: Option<String>,
    token: Option<String>,
}

/// What an authorization server sends with the browser.
#[derive(Deserialize)]
pub(crate) struct CallbackQuery {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

pub(crate) async fn show(
    State(shared): State<Shared>,
    Ready(board): Ready,
    FromPath(id): FromPath<String>,
    headers: HeaderMap,
) -> Response {
    let Some(flow) = open_flow(&board, &id) else { return gone() };
    let browser = browser_of(&board, &headers);
    if flow.is_bound_to(browser.as_deref()) {
        return offer(&flow).await;
    }
    if !shared.gatekeeper.is_open() {
        return ask_for_proof(&board, &flow, false);
    }
    match bind(&board, &flow, browser) {
        Some(cookie) => with_cookie(offer(&flow).await, cookie),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(crate) async fn submit(
    State(shared): State<Shared>,
    Ready(board): Ready,
    FromPath(id): FromPath<String>,
    headers: HeaderMap,
    Form(submitted): Form<Submitted>,
) -> Response {
    let Some(flow) = open_flow(&board, &id) else { return gone() };
    let browser = browser_of(&board, &headers);
    if flow.is_bound_to(browser.as_deref()) {
        return match submitted.token {
            Some(token) => store_token(&board, &flow, &Secret::new(token)).await,
            None => offer(&flow).await,
        };
    }
    let proof = submitted.proof.unwrap_or_default();
    if !shared.gatekeeper.is_open() && !is_proven(&shared, &flow, proof.trim()).await {
        return if flow.end() == FlowEnd::Open {
            ask_for_proof(&board, &flow, true)
        } else {
            gone()
        };
    }
    // A fresh value, so that nobody else can have set it in this browser before.
    match bind(&board, &flow, None) {
        Some(cookie) => {
            let again = Redirect::to(&format!("{}{PAGES}{}", base_path(&board), flow.id()));
            with_cookie(again.into_response(), cookie)
        }
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Whether the person who sends this is the one whose call asked: by the code that only the caller was shown, or by an
/// API key of the same person.
async fn is_proven(shared: &Shared, flow: &ConnectFlow, proof: &str) -> bool {
    if !proof.starts_with(KEY_PREFIX) {
        return flow.check_code(proof);
    }
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::try_from(format!("Bearer {proof}")) {
        headers.insert(header::AUTHORIZATION, value);
    }
    let principal = Box::pin(shared.gatekeeper.admit(&headers)).await;
    let is_theirs = principal.is_ok_and(|it| it.identity.person == *flow.person());
    // A wrong key counts as a wrong code.
    is_theirs || flow.check_code("")
}

async fn offer(flow: &ConnectFlow) -> Response {
    let (server, owner) = (flow.server().as_str(), flow.owner().to_string());
    if flow.takes_token() {
        return connect_page::token(server, &owner, None);
    }
    match flow.offer().await {
        Ok(offer) => connect_page::consent(Consent {
            server,
            owner: &owner,
            client: flow.client(),
            issuer: &offer.issuer,
            scopes: &offer.scopes,
            url: &offer.url,
        }),
        Err(error) => {
            tracing::warn!(server, %error, "a sign-in cannot begin");
            let text = "The server does not say where to sign in, or its authorization server cannot be reached. \
                        Try again later, or ask the operator of this board: the log says why.";
            connect_page::message(StatusCode::BAD_GATEWAY, "The sign-in cannot begin", text)
        }
    }
}

async fn store_token(board: &Board, flow: &ConnectFlow, token: &Secret) -> Response {
    match flow.take_token(token).await {
        Ok(()) => done(board, flow),
        Err(error) => {
            let owner = flow.owner().to_string();
            connect_page::token(flow.server().as_str(), &owner, Some(&error.message))
        }
    }
}

pub(crate) async fn callback(
    State(shared): State<Shared>,
    Ready(board): Ready,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    FromQuery(answer): FromQuery<CallbackQuery>,
) -> Response {
    let identified = answer.state.as_deref().and_then(|it| board.accounts().flow_of_identity(it));
    if let Some(flow) = identified.filter(|flow| flow.end() == FlowEnd::Open) {
        let response = AuthorizationResponse::from_query(&query.unwrap_or_default());
        return connect_identity::identified(&shared, &board, &flow, &headers, response).await;
    }
    let flow = answer.state.as_deref().and_then(|state| board.accounts().flow_of_state(state));
    let Some(flow) = flow.filter(|flow| flow.end() == FlowEnd::Open) else {
        let text = "This is not the answer to a sign-in that is open. It may have been used already, or have expired.";
        return connect_page::message(StatusCode::BAD_REQUEST, "No such sign-in", text);
    };
    if !flow.is_bound_to(browser_of(&board, &headers).as_deref()) {
        let text = "This sign-in was begun in another browser. Nothing was stored.";
        return connect_page::message(StatusCode::FORBIDDEN, "Another browser", text);
    }
    if let Some(error) = answer.error {
        let is_genuine = flow.is_issuer(answer.iss.as_deref());
        flow.give_up();
        let text = if is_genuine {
            let more = answer.error_description.map(|text| format!(": {text}")).unwrap_or_default();
            let said = format!("The authorization server refused the sign-in: {error}{more}");
            said.chars().take(LONGEST_TEXT).collect()
        } else {
            "The answer does not come from the authorization server of this sign-in.".to_owned()
        };
        return connect_page::message(StatusCode::FORBIDDEN, "Not signed in", &text);
    }
    let code = answer.code.unwrap_or_default();
    match flow.finish(&code, answer.iss.as_deref()).await {
        Ok(_) => done(&board, &flow),
        Err(error) => {
            tracing::warn!(server = %flow.server(), kind = ?error.kind, "a sign-in failed");
            let text = "The answer of the authorization server could not be used. Nothing was stored. Make the call \
                        again to get a new page.";
            connect_page::message(StatusCode::BAD_GATEWAY, "Not signed in", text)
        }
    }
}

/// The board's own client metadata document, which names it to authorization servers. Any name has one, so that the
/// address tells nothing about the servers of the board.
pub(crate) async fn client_document(
    Ready(board): Ready,
    FromPath(document): FromPath<String>,
) -> Result<Json<Value>, ProblemResponse> {
    let unknown = || {
        let detail = "there is no such document; it needs an https `gateway.public_url`";
        ProblemResponse::new("not_found", StatusCode::NOT_FOUND, detail)
    };
    let name = document.strip_suffix(".json").filter(|name| ServerName::is_valid(name));
    let pages = board.accounts().pages().filter(|pages| pages.base.scheme() == "https");
    let (Some(name), Some(pages)) = (name, pages) else { return Err(unknown()) };
    let base = pages.base.as_str().trim_end_matches('/');
    Ok(Json(json!({
        "client_id": format!("{base}/.well-known/oauth-client/{name}.json"),
        "client_name": "Switchboard",
        "client_uri": base,
        "redirect_uris": [format!("{base}{CALLBACK}")],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    })))
}

/// Asks for the proof that the call was the person's.
fn ask_for_proof(board: &Board, flow: &ConnectFlow, is_wrong: bool) -> Response {
    let identify = connect_identity::page_client(board).map(|_| {
        format!("{}{PAGES}{}/{}", base_path(board), flow.id(), connect_identity::IDENTIFY)
    });
    connect_page::proof(is_wrong, identify.as_deref())
}

fn done(board: &Board, flow: &ConnectFlow) -> Response {
    board.account_changed(flow.server(), flow.owner());
    tracing::info!(server = %flow.server(), owner = %flow.owner(), "an account was connected");
    let text = format!(
        "Your account at {} is connected. You can close this page; the program can make its call now.",
        flow.server()
    );
    connect_page::message(StatusCode::OK, "Signed in", &text)
}

/// Lets the browser take part. Returns the cookie that it must keep; `None` if the system has no randomness.
fn bind(board: &Board, flow: &ConnectFlow, browser: Option<String>) -> Option<HeaderValue> {
    let value = browser.or_else(switchboard_runtime::random_text)?;
    flow.bind(&value);
    bind_cookie(board, &value)
}

fn with_cookie(mut response: Response, cookie: HeaderValue) -> Response {
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}
