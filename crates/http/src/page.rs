//! The page for people at `/`.

use axum::http::header;
use axum::response::{Html, IntoResponse};

const PAGE: &str = include_str!("page.html");

/// Nothing is loaded from elsewhere; the page's own script and style are allowed by their place in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn index() -> impl IntoResponse {
    let headers =
        [(header::CONTENT_SECURITY_POLICY, POLICY), (header::REFERRER_POLICY, "no-referrer")];
    (headers, Html(PAGE))
}
