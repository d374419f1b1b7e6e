//! Refuses requests that a page of another site makes a browser send.
//!
//! We listen on loopback, where every page that the user visits can send requests to us: directly, which the
//! `Origin` header shows, or under a name of its own that it points at 127.0.0.1, which the `Host` header shows.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use switchboard_api::Problem;

use crate::problem::ProblemResponse;

pub(crate) async fn check(request: Request, next: Next) -> Response {
    match refusal(request.headers(), request.uri().authority()) {
        None => hardened(next.run(request).await),
        Some(detail) => {
            let problem = Problem::new("forbidden_host", StatusCode::FORBIDDEN.as_u16(), detail);
            ProblemResponse(problem).into_response()
        }
    }
}

/// No answer of ours is taken for something else, or read by another site's page.
fn hardened(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

fn refusal(headers: &HeaderMap, authority: Option<&Authority>) -> Option<String> {
    let host = match headers.get(header::HOST) {
        Some(host) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
        // HTTP/2 names the host in the request line.
        None => authority.cloned(),
    };
    let Some(host) = host.filter(is_local) else {
        return Some("the Host header does not name this machine".into());
    };
    // A browser says so when another site's page asks, also where it sends no `Origin`.
    if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") {
        return Some("the request comes from a page of another site".into());
    }
    let origin = headers.get(header::ORIGIN)?;
    let same = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://").or(origin.strip_prefix("https://")))
        .and_then(|origin| origin.parse::<Authority>().ok())
        .is_some_and(|origin| is_local(&origin) && origin.port_u16() == host.port_u16());
    (!same).then(|| "the Origin header names another site".into())
}

fn is_local(authority: &Authority) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, is_let_in: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        assert_eq!(refusal(&headers, None).is_none(), is_let_in, "{host} {origin:?}");
    }

    #[test]
    fn only_this_machine_and_its_own_pages_are_let_in() {
        check("127.0.0.1:8420", None, true);
        check("localhost:8420", Some("http://localhost:8420"), true);
        check("[::1]:8420", Some("http://127.0.0.1:8420"), true);
        check("evil.example:8420", None, false);
        check("127.0.0.1.evil.example", None, false);
        check("127.0.0.1:8420", Some("http://evil.example"), false);
        check("127.0.0.1:8420", Some("http://127.0.0.1:3000"), false);
        check("127.0.0.1:8420", Some("null"), false);
        let mut script = HeaderMap::new();
        script.insert(header::HOST, "127.0.0.1:8420".parse().unwrap());
        script.insert("sec-fetch-site", "cross-site".parse().unwrap());
        assert!(refusal(&script, None).is_some(), "a script tag of another site");
        assert!(refusal(&HeaderMap::new(), None).is_some(), "a request names its host");
    }
}
