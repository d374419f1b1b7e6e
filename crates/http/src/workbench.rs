//! Workbench, the web page: its files, and the page itself at every address that no other part of the program owns.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use switchboard_workbench::{Site, SiteFile};

use crate::problem;

/// First segments of paths that belong to interfaces of the program, now or by reservation. What is unknown below them is
/// answered with a problem, never with the page.
const INTERFACES: &[&str] = &[
    ".well-known",
    "agents",
    "anthropic",
    "api",
    "connect",
    "gemini",
    "healthz",
    "mcp",
    "metrics",
    "oauth",
    "openai",
    "readyz",
    "s",
    "trustgraph",
];

/// The page of a program that was built without Workbench.
const NOT_BUILT: &str = include_str!("workbench_missing.html");
const NOT_BUILT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                                form-action 'none'; frame-ancestors 'none'";

/// Whether the request is for the page or its files. They need no credentials: everything that the page shows comes from
/// the API. A program that mistypes an address is not shown the page.
pub(crate) fn is_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return false;
    }
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if INTERFACES.contains(&first) {
        return false;
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    path == "/" || is_file(path) || accept.is_some_and(|accept| accept.contains("text/html"))
}

fn is_file(path: &str) -> bool {
    path.starts_with("/assets/") || path == "/favicon.svg"
}

/// Responds to what no route matches.
pub(crate) async fn serve(request: Request) -> Response {
    let path = request.uri().path();
    match respond(Site::default(), request.method(), path, request.headers()) {
        Some(response) => response,
        None => problem::not_found(request.uri()).into_response(),
    }
}

/// The response of the page; `None` when the request is for something else.
fn respond(site: Site, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    if !is_page(method, path, headers) {
        return None;
    }
    if !is_file(path) {
        return Some(page(site));
    }
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    site.file(path, accepted).map(sent)
}

fn sent(file: SiteFile) -> Response {
    let keep = if file.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = Body::from(file.bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = file.encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

/// The page, with a fresh nonce for its style elements.
fn page(site: Site) -> Response {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let nonce = STANDARD.encode(random);
    let (policy, page) = match site.page(&nonce) {
        Some(page) => (policy(&nonce), page),
        None => (NOT_BUILT_POLICY.to_owned(), NOT_BUILT.to_owned()),
    };
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, Html(page)).into_response()
}

/// The Content-Security-Policy of the page: its own scripts, styles with the nonce, requests to this server, and images
/// and sounds that results carry.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; \
         media-src data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
#[path = "workbench_tests.rs"]
mod tests;
