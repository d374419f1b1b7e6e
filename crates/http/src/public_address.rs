//! The address under which a client reaches this board, for URLs in answers.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::request::Parts as RequestParts;
use axum::http::uri::Authority;
use url::Url;

use crate::problem::ProblemResponse;
use crate::ready::Ready;
use crate::server_state::Shared;

/// Extracts the address: `gateway.public_url`, else the host that the request names, which has been checked
/// ([`crate::origin_check`]), over `http`, or `https` if the server has a certificate.
pub(crate) struct PublicAddress(pub(crate) Url);

impl FromRequestParts<Shared> for PublicAddress {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        parts: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let Ready(board) = Ready::from_request_parts(parts, shared).await?;
        if let Some(url) = &board.plan().gateway.public_url {
            return Ok(Self(url.clone()));
        }
        let in_header = || parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        // HTTP/2 names the host in the request line.
        let host = parts.uri.authority().map(Authority::as_str).or_else(in_header);
        let scheme = shared.scheme();
        let url = host.and_then(|host| Url::parse(&format!("{scheme}://{host}")).ok());
        url.map(Self).ok_or_else(|| {
            let detail =
                "the request does not name the host that it was sent to; set `gateway.public_url`";
            ProblemResponse::new("bad_request", StatusCode::BAD_REQUEST, detail)
        })
    }
}
