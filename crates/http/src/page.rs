//! The pages for people: the board at `/`, and the API at `/api/v1/docs`.

use axum::http::header;
use axum::response::{Html, IntoResponse};

use crate::answers::ForbiddenHost;

const PAGE: &str = include_str!("page.html");
const API_DOCS: &str = include_str!("api_docs.html");

/// Nothing is loaded from elsewhere; a page's own script and style are allowed by their place in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn index() -> impl IntoResponse {
    served(PAGE)
}

/// This document as a page
///
/// For people. The page needs nothing from elsewhere.
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
