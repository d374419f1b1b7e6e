//! The browser at a sign-in page: the paths of the pages, the flow of a page, and the cookie that a browser keeps.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use switchboard_runtime::{Board, ConnectFlow, FLOW_LIFETIME, FlowEnd};

use crate::connect_page;

/// Below this path are the pages.
pub(crate) const PAGES: &str = "/connect/";
/// The callback of all authorization servers.
pub(crate) const CALLBACK: &str = "/oauth/callback";

const COOKIE: &str = "switchboard-connect";
/// The flow of a page, while it is open.
pub(crate) fn open_flow(board: &Board, id: &str) -> Option<Arc<ConnectFlow>> {
    board.accounts().flow(id).filter(|flow| flow.end() == FlowEnd::Open)
}

/// The answer for a page that is not open.
pub(crate) fn gone() -> Response {
    let text = "This page was used already, has expired, or never existed. Make the call again to get a new one.";
    connect_page::message(StatusCode::NOT_FOUND, "Nothing to sign in for", text)
}

/// The cookie with this value.
pub(crate) fn bind_cookie(board: &Board, value: &str) -> Option<HeaderValue> {
    let (name, secure) = if is_https(board) {
        (format!("__Host-{COOKIE}"), "; Secure")
    } else {
        (COOKIE.into(), "")
    };
    let age = FLOW_LIFETIME.as_secs();
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    HeaderValue::try_from(cookie).ok()
}

/// The value of the cookie, if the browser has one that this board has set.
pub(crate) fn browser_of(board: &Board, headers: &HeaderMap) -> Option<String> {
    let name = if is_https(board) { format!("__Host-{COOKIE}") } else { COOKIE.to_owned() };
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
    value.filter(|value| value.len() == 32 && value.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_https(board: &Board) -> bool {
    board.accounts().pages().is_some_and(|pages| pages.base.scheme() == "https")
}

/// The path below which a proxy serves the board, without a slash at its end.
pub(crate) fn base_path(board: &Board) -> String {
    let pages = board.accounts().pages();
    pages.map(|pages| pages.base.path().trim_end_matches('/').to_owned()).unwrap_or_default()
}
