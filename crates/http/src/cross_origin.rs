//! CORS for the origins in `security.allowed_origins`: the response headers that let a browser's page send requests and
//! read responses.
//!
//! Other origins get no CORS headers. `*` is never sent, and cookies are never allowed: credentials are sent in a header.

use axum::body::Body;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};

use crate::origin_check::{HostPolicy, RESOURCE_POLICY};

const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// The response headers that a page may read.
const READABLE: &str =
    "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After, X-Result-Bytes";
/// Two hours, the maximum of some browsers.
const MAX_AGE: &str = "7200";
/// Request headers that a page may send, and prefixes of further ones.
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
const KNOWN_KINDS: [&str; 2] = ["mcp-param-", "x-mcp-"];

/// An allowed origin of a request.
#[derive(Debug)]
pub(crate) struct Page(HeaderValue);

impl Page {
    /// The origin of the request, if it is allowed. Requests cost one header lookup, and only where origins are configured.
    pub(crate) fn of(policy: &HostPolicy, headers: &HeaderMap) -> Option<Self> {
        if policy.origins.is_empty() {
            return None;
        }
        let origin = headers.get(header::ORIGIN)?;
        policy
            .origins
            .iter()
            .any(|allowed| origin == allowed.as_str())
            .then(|| Self(origin.clone()))
    }

    /// Whether the request is a CORS preflight.
    pub(crate) fn is_preflight<B>(request: &Request<B>) -> bool {
        request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// The response to a preflight. It needs no credentials, because browsers send none; the request that follows does.
    pub(crate) fn preflight(headers: &HeaderMap) -> Response<Body> {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let allowed = answer.headers_mut();
        allowed.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        allowed.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        let wanted = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        if let Some(wanted) = wanted.filter(|wanted| are_known(wanted)) {
            allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        answer
    }

    /// Adds the headers that let the page read the response.
    pub(crate) fn may_read(self, answer: &mut HeaderMap) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READABLE));
        answer.append(header::VARY, HeaderValue::from_static("Origin"));
        answer.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    }
}

/// Whether all of the requested headers have a meaning here. One unknown header refuses the whole list.
fn are_known(wanted: &HeaderValue) -> bool {
    let is_known = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        KNOWN.contains(&name.as_str())
            || KNOWN_KINDS.iter().any(|kind| {
                name.strip_prefix(kind).is_some_and(|rest| HeaderName::try_from(rest).is_ok())
            })
    };
    wanted.to_str().is_ok_and(|wanted| wanted.split(',').all(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, is_mirrored: bool) {
        let policy =
            HostPolicy { origins: vec!["https://app.example.com".into()], ..HostPolicy::default() };
        let request = Request::builder()
            .method(Method::OPTIONS)
            .header("origin", "https://app.example.com")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", wanted)
            .body(())
            .unwrap();
        assert!(Page::of(&policy, request.headers()).is_some() && Page::is_preflight(&request));
        let answer = Page::preflight(request.headers());
        let mirrored = answer.headers().get("access-control-allow-headers");
        assert_eq!(mirrored.map(|it| it.to_str().unwrap()), is_mirrored.then_some(wanted));
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
            Page::of(&policy, &headers).is_some()
        };
        let app = "https://app.example.com";
        assert!(page(&[app], Some(app)));
        assert!(!page(&[app], None));
        assert!(!page(&[app], Some("null")));
        assert!(!page(&[app], Some("https://app.example.com.evil.example")));
        assert!(!page(&[], Some(app)));
    }
}
