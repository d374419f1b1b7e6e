//! Refuses requests that a page of another site makes a browser send.
//!
//! We listen on loopback, where every page that the user visits can send requests to us: directly, which the
//! `Origin` header shows, or under a name of its own that it points at 127.0.0.1, which the `Host` header shows.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use switchboard_api::Problem;

use crate::problem::ProblemResponse;

pub(crate) const RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who may be named in `Host` and `Origin`.
#[derive(Debug, Clone, Default)]
pub struct HostPolicy {
    /// Names of this gateway beside those of this machine.
    pub hosts: Vec<String>,
    /// Pages of other sites that may ask, such as `https://app.example.com`.
    pub origins: Vec<String>,
    /// Whether others than this machine can connect. Then bare addresses are accepted too: a page cannot make a
    /// browser send those for its own name.
    pub is_wide: bool,
}

pub(crate) fn forbidden(detail: String) -> Response {
    ProblemResponse(Problem::new("forbidden_host", StatusCode::FORBIDDEN.as_u16(), detail))
        .into_response()
}

/// No answer of ours is taken for something else, or read by another site's page.
pub(crate) fn hardened<B>(response: &mut Response<B>) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
}

impl HostPolicy {
    pub(crate) fn refusal(
        &self,
        headers: &HeaderMap,
        authority: Option<&Authority>,
    ) -> Option<String> {
        if authority.is_none() && is_a_plain_local_request(headers) {
            return None;
        }
        // HTTP/2 names the host in the request line, and HTTP/1 may do so too: whatever is named must be ours.
        let in_header = headers.get_all(header::HOST).iter();
        let in_header = in_header.map(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let mut named = in_header.chain(authority.cloned().map(Some));
        let host = named.next().flatten().filter(|host| self.is_ours(host));
        let are_others_ours = named.all(|other| other.is_some_and(|other| self.is_ours(&other)));
        let Some(host) = host.filter(|_| are_others_ours) else {
            return Some("the Host header does not name this machine; `security.allowed_hosts` may add names".into());
        };
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let origin = origins.next().map(|origin| origin.to_str().unwrap_or_default());
        if origins.next().is_some() {
            return Some("the Origin header stands twice, which no browser does".into());
        }
        if origin.is_some_and(|origin| self.origins.iter().any(|allowed| allowed == origin)) {
            return None;
        }
        // A browser says so when another site's page asks, also where it sends no `Origin`.
        if headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site") {
            return Some("the request comes from a page of another site".into());
        }
        let same = origin?
            .strip_prefix("http://")
            .or(origin?.strip_prefix("https://"))
            .and_then(|origin| origin.parse::<Authority>().ok())
            .is_some_and(|origin| {
                origin == host
                    || (is_local(&origin)
                        && is_local(&host)
                        && origin.port_u16() == host.port_u16())
            });
        (!same).then(|| {
            "the Origin header names another site; `security.allowed_origins` may add it".into()
        })
    }

    fn is_ours(&self, authority: &Authority) -> bool {
        let host = bare_host(authority);
        // Nobody signs in by the address; who writes `name@127.0.0.1` wants it to be misread.
        let has_user = authority.as_str().contains('@');
        !has_user && self.knows(authority, host)
    }

    fn knows(&self, authority: &Authority, host: &str) -> bool {
        is_local(authority)
            || self.hosts.iter().any(|allowed| {
                allowed.eq_ignore_ascii_case(host)
                    || allowed.eq_ignore_ascii_case(authority.as_str())
            })
            || (self.is_wide && host.parse::<std::net::IpAddr>().is_ok())
    }
}

/// Whether it is what programs on this machine send: one `Host` that is spelled as everybody does, and nothing that a
/// browser adds. It is let in by the rules as well; they take longer.
fn is_a_plain_local_request(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, another) = (hosts.next().map(HeaderValue::as_bytes), hosts.next());
    let port = host.and_then(|host| {
        host.strip_prefix(b"127.0.0.1:").or_else(|| host.strip_prefix(b"localhost:"))
    });
    port.is_some_and(|port| {
        !port.is_empty() && port.len() < 6 && port.iter().all(u8::is_ascii_digit)
    }) && another.is_none()
        && !headers.contains_key(header::ORIGIN)
        && !headers.contains_key(FETCH_SITE)
}

fn bare_host(authority: &Authority) -> &str {
    authority.host().trim_start_matches('[').trim_end_matches(']')
}

fn is_local(authority: &Authority) -> bool {
    let host = bare_host(authority);
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
        let doors = HostPolicy::default();
        assert_eq!(doors.refusal(&headers, None).is_none(), is_let_in, "{host} {origin:?}");
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
        let mut twice = HeaderMap::new();
        twice.insert(header::HOST, "127.0.0.1:8420".parse().unwrap());
        for origin in ["http://127.0.0.1:8420", "http://evil.example"] {
            twice.append(header::ORIGIN, origin.parse().unwrap());
        }
        assert!(HostPolicy::default().refusal(&twice, None).is_some(), "two origins");
        let mut script = HeaderMap::new();
        script.insert(header::HOST, "127.0.0.1:8420".parse().unwrap());
        script.insert("sec-fetch-site", "cross-site".parse().unwrap());
        assert!(
            HostPolicy::default().refusal(&script, None).is_some(),
            "a script tag of another site"
        );
        assert!(
            HostPolicy::default().refusal(&HeaderMap::new(), None).is_some(),
            "a request names its host"
        );
    }

    #[test]
    fn names_and_pages_can_be_added_and_nothing_comes_with_them() {
        let doors = HostPolicy {
            hosts: vec!["gateway.example.com".into()],
            origins: vec!["https://app.example.com".into()],
            is_wide: true,
        };
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            doors.refusal(&headers, None).is_none()
        };
        assert!(check("gateway.example.com", None));
        assert!(check("GATEWAY.example.com:8420", Some("https://app.example.com")));
        assert!(check("10.0.0.7:8420", None), "an address cannot be rebound");
        assert!(!check("evil.example", None));
        assert!(!check("gateway.example.com", Some("https://evil.example")));
        assert!(!check("gateway.example.com", Some("https://app.example.com.evil.example")));
    }
}
