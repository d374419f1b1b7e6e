//! CORS for the origins in `security.allowed_origins`: lets their pages send requests and read responses in a browser.
//!
//! Other origins get no CORS headers. `*` is never sent, and cookies are never allowed: credentials are sent in a header.

use std::sync::LazyLock;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::origin_check::HostPolicy;

/// Answers preflights, which carry no credentials, and adds the CORS headers to other responses. Only for requests that
/// [`is_allowed_page`] accepts.
pub(crate) static LAYER: LazyLock<CorsLayer> = LazyLock::new(|| {
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_methods(METHODS)
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(READABLE)
        .max_age(MAX_AGE)
        .vary([header::ORIGIN])
});

const METHODS: [Method; 5] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// The response headers that a page may read.
const READABLE: [HeaderName; 5] = [
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
    header::WWW_AUTHENTICATE,
    header::RETRY_AFTER,
    HeaderName::from_static("x-result-bytes"),
];
/// The maximum of some browsers.
const MAX_AGE: Duration = Duration::from_hours(2);
/// Request headers that a page may send, and prefixes of further ones. The layer itself can allow a list or everything,
/// but no prefix.
const KNOWN: [&str; 9] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "x-api-key",
];
const KNOWN_PREFIXES: [&str; 2] = ["mcp-param-", "x-mcp-"];

/// Whether the request comes from a page of an allowed origin. Costs one header lookup, and only where origins are
/// configured.
pub(crate) fn is_allowed_page(policy: &HostPolicy, headers: &HeaderMap) -> bool {
    !policy.origins.is_empty()
        && headers
            .get(header::ORIGIN)
            .is_some_and(|origin| policy.origins.iter().any(|allowed| origin == allowed.as_str()))
}

/// Removes the requested headers from a preflight unless all of them have a meaning here, so that [`LAYER`] allows none.
pub(crate) fn refuse_unknown_headers(preflight: &mut HeaderMap) {
    let requested = preflight.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    if requested.is_some_and(|requested| !are_known(requested)) {
        preflight.remove(header::ACCESS_CONTROL_REQUEST_HEADERS);
    }
}

fn are_known(requested: &HeaderValue) -> bool {
    let is_known = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        KNOWN.contains(&name.as_str())
            || KNOWN_PREFIXES.iter().any(|prefix| {
                name.strip_prefix(prefix).is_some_and(|rest| HeaderName::try_from(rest).is_ok())
            })
    };
    requested.to_str().is_ok_and(|requested| requested.split(',').all(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(requested: &str, is_kept: bool) {
        let name = header::ACCESS_CONTROL_REQUEST_HEADERS;
        let mut headers = HeaderMap::from_iter([(name.clone(), requested.parse().unwrap())]);
        refuse_unknown_headers(&mut headers);
        assert_eq!(headers.contains_key(name), is_kept, "{requested}");
    }

    #[test]
    fn headers_are_allowed_when_all_of_them_mean_something_here() {
        check("content-type", true);
        check("authorization,content-type,mcp-protocol-version,mcp-session-id", true);
        check("Content-Type, X-API-Key, Last-Event-ID, Accept", true);
        check("mcp-method,mcp-name,mcp-param-region,x-mcp-toolsets", true);
        check("content-type,cookie", false);
        check("x-forwarded-for", false);
        check("mcp-param-", false);
        check("mcp-other", false);
        check("*", false);
        check("", false);
    }

    #[test]
    fn only_pages_that_are_named_are_told_anything() {
        let page = |origins: &[&str], origin: Option<&str>| {
            let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
            let policy = HostPolicy { origins, ..HostPolicy::default() };
            let mut headers = HeaderMap::new();
            headers.extend(origin.map(|origin| (header::ORIGIN, origin.parse().unwrap())));
            is_allowed_page(&policy, &headers)
        };
        let app = "https://app.example.com";
        assert!(page(&[app], Some(app)));
        assert!(!page(&[app], None));
        assert!(!page(&[app], Some("null")));
        assert!(!page(&[app], Some("https://app.example.com.evil.example")));
        assert!(!page(&[], Some(app)));
    }
}
