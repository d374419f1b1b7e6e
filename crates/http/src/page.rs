//! The web pages: the board at `/`, and the API document at `/api/v1/docs`.

use axum::http::header;
use axum::response::{Html, IntoResponse};

use crate::answers::ForbiddenHost;

const PAGE: &str = include_str!("page.html");
const API_DOCS: &str = include_str!("api_docs.html");

/// The Content-Security-Policy of the pages: only their inline script and style, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn index() -> impl IntoResponse {
    served(PAGE)
}

/// Show this document as a web page
///
/// The page loads nothing from other sites.
#[utoipa::path(
    get,
    path = "/api/v1/docs",
    operation_id = "getDocs",
    tag = "about",
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        ForbiddenHost,
    ),
    security()
)]
pub(crate) async fn api_docs() -> impl IntoResponse {
    served(API_DOCS)
}

fn served(page: &'static str) -> impl IntoResponse {
    let headers =
        [(header::CONTENT_SECURITY_POLICY, POLICY), (header::REFERRER_POLICY, "no-referrer")];
    (headers, Html(page))
}
