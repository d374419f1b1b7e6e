//! Signs the person of a page in at the issuer of the board, to show that the call was theirs.
//!
//! A board that accepts tokens knows its callers by the issuer's subjects. The person gets a token of the same issuer for the
//! board, which is checked like that of any request and then forgotten.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use switchboard_model::{
    ConnectError, ConnectErrorKind, DescribedIssuer, GrantId, JwtPlan, LoopbackRedirect,
    PageClient, Secret, TokenRequestFormat,
};
use switchboard_oauth::{AuthorizationResponse, CodeFlow};
use switchboard_runtime::{Board, ConnectFlow};

use crate::connect_browser::{
    CALLBACK, PAGES, base_path, bind_cookie, browser_of, gone, open_flow,
};
use crate::connect_page;
use crate::extract::FromPath;
use crate::ready::Ready;
use crate::server_state::Shared;

/// The path of the identity check, below that of a page.
pub(crate) const IDENTIFY: &str = "identify";

/// The client of the board for identity checks, if the configuration has one.
pub(crate) fn page_client(board: &Board) -> Option<(JwtPlan, PageClient)> {
    let jwt = board.plan().security.jwt.clone()?;
    let client = jwt.page_client.clone()?;
    Some((jwt, client))
}

/// Sends the browser to the issuer of the board.
pub(crate) async fn identify(Ready(board): Ready, FromPath(id): FromPath<String>) -> Response {
    let Some(flow) = open_flow(&board, &id) else { return gone() };
    let begun = begin(&board).await;
    let (identity, browser) = match (begun, switchboard_runtime::random_text()) {
        (Ok(identity), Some(browser)) => (identity, browser),
        (Err(error), _) => {
            tracing::warn!(%error, "the issuer of the board cannot sign a person in");
            let text =
                "The issuer of this board cannot be reached. Go back and enter the code instead.";
            return connect_page::message(StatusCode::BAD_GATEWAY, "Not signed in", text);
        }
        (Ok(_), None) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let there = Redirect::to(identity.url()).into_response();
    flow.begin_identity(&browser, identity);
    match bind_cookie(&board, &browser) {
        Some(cookie) => {
            let mut there = there;
            there.headers_mut().append(header::SET_COOKIE, cookie);
            there
        }
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn begin(board: &Board) -> Result<CodeFlow, ConnectError> {
    let missing = || ConnectError::new(ConnectErrorKind::Protocol, "there are no sign-in pages");
    let (jwt, client) = page_client(board).ok_or_else(missing)?;
    let pages = board.accounts().pages().ok_or_else(missing)?;
    let redirect_uri = format!("{}{CALLBACK}", pages.base.as_str().trim_end_matches('/'));
    let issuer = DescribedIssuer {
        issuer: Some(jwt.issuer),
        authorize_url: None,
        token_url: None,
        device_url: None,
        revoke_url: None,
        client_id: client.id,
        client_secret: client.secret,
        scopes: client.scopes,
        extra_params: std::collections::BTreeMap::new(),
        token_auth: TokenRequestFormat::Form,
        redirect: LoopbackRedirect::default(),
    };
    let tokens = board.accounts().tokens().clone();
    let id = GrantId::of_provider("board", "identity");
    CodeFlow::identity(id, &issuer, &jwt.resource, &redirect_uri, tokens).await
}

/// Takes the answer of the board's issuer. The browser goes on only if the person is the one whose call asked.
pub(crate) async fn identified(
    shared: &Shared,
    board: &Board,
    flow: &Arc<ConnectFlow>,
    headers: &HeaderMap,
    response: AuthorizationResponse,
) -> Response {
    let browser = browser_of(board, headers);
    let taken = browser.as_deref().and_then(|browser| flow.take_identity(browser));
    let (Some(identity), Some(browser)) = (taken, browser) else {
        let text = "This sign-in was begun in another browser. Nothing was stored.";
        return connect_page::message(StatusCode::FORBIDDEN, "Another browser", text);
    };
    let token = match identity.finish_for_token(response).await {
        Ok(token) => token,
        Err(error) => {
            tracing::warn!(kind = ?error.kind, "the issuer of the board did not sign a person in");
            let text = "The issuer of this board did not sign you in. Go back and try again, or enter the code instead.";
            return connect_page::message(StatusCode::BAD_GATEWAY, "Not signed in", text);
        }
    };
    if !is_person(shared, flow, &token).await {
        // Counts as a wrong code.
        flow.check_code("");
        let text = "You are not the person whose call asked for this page. Nothing was stored.";
        return connect_page::message(StatusCode::FORBIDDEN, "Another person", text);
    }
    flow.bind(&browser);
    Redirect::to(&format!("{}{PAGES}{}", base_path(board), flow.id())).into_response()
}

/// Whether the token is one of the person whose call asked.
async fn is_person(shared: &Shared, flow: &ConnectFlow, token: &Secret) -> bool {
    let mut headers = HeaderMap::new();
    let Ok(value) = HeaderValue::try_from(format!("Bearer {}", token.expose())) else {
        return false;
    };
    headers.insert(header::AUTHORIZATION, value);
    let principal = Box::pin(shared.gatekeeper.admit(&headers)).await;
    principal.is_ok_and(|principal| principal.identity.person == *flow.person())
}
