//! The page of the API document at `/api/v1/docs`.

use axum::http::header;
use axum::response::{Html, IntoResponse};

use crate::answers::ForbiddenHost;

const API_DOCS: &str = include_str!("api_docs.html");

/// The Content-Security-Policy of the page: only its inline script and style, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
    let headers =
        [(header::CONTENT_SECURITY_POLICY, POLICY), (header::REFERRER_POLICY, "no-referrer")];
    (headers, Html(API_DOCS))
}
