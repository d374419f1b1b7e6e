//! Refuses cross-site requests and DNS rebinding.
//!
//! The program listens on loopback, where every page in the user's browser can send requests to it: directly, which the
//! `Origin` header shows, or through a domain of its own that resolves to 127.0.0.1, which the `Host` header shows.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::ProblemResponse;

pub(crate) const RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The accepted values of `Host` and `Origin`.
#[derive(Debug, Clone, Default)]
pub struct HostPolicy {
    /// Accepted host names beside those of this machine.
    pub hosts: Vec<String>,
    /// Accepted origins of other sites, such as `https://app.example.com`.
    pub origins: Vec<String>,
    /// Whether other machines can connect. Then IP addresses are accepted as hosts too: DNS rebinding needs a name, so a
    /// page cannot make a browser send an address.
    pub is_wide: bool,
}

pub(crate) fn forbidden(detail: String) -> Response {
    ProblemResponse::new("forbidden_host", StatusCode::FORBIDDEN, detail).into_response()
}

/// Sets the security headers: browsers must not guess the content type, nor embed the response in other sites' pages.
pub(crate) fn hardened<B>(response: &mut Response<B>) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
}

impl HostPolicy {
    /// Why a request for a page is refused that people open from other sites: only the host counts.
    pub(crate) fn page_refusal(
        &self,
        headers: &HeaderMap,
        authority: Option<&Authority>,
    ) -> Option<String> {
        self.named_host(headers, authority).is_none().then(foreign_host)
    }

    pub(crate) fn refusal(
        &self,
        headers: &HeaderMap,
        authority: Option<&Authority>,
    ) -> Option<String> {
        if authority.is_none() && is_a_plain_local_request(headers) {
            return None;
        }
        let Some(host) = self.named_host(headers, authority) else { return Some(foreign_host()) };
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let origin = origins.next().map(|origin| origin.to_str().unwrap_or_default());
        if origins.next().is_some() {
            return Some("there is more than one Origin header".into());
        }
        if origin.is_some_and(|origin| self.origins.iter().any(|allowed| allowed == origin)) {
            return None;
        }
        // Browsers send this for requests of another site's page, also without an `Origin`.
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

    /// The host that the request names, if it is this board's.
    fn named_host(&self, headers: &HeaderMap, authority: Option<&Authority>) -> Option<Authority> {
        // HTTP/2 names the host in `:authority`, HTTP/1 may name it in the request line: all of them must match.
        let in_header = headers.get_all(header::HOST).iter();
        let in_header = in_header.map(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let mut named = in_header.chain(authority.cloned().map(Some));
        let host = named.next().flatten().filter(|host| self.is_ours(host));
        let are_others_ours = named.all(|other| other.is_some_and(|other| self.is_ours(&other)));
        host.filter(|_| are_others_ours)
    }

    fn is_ours(&self, authority: &Authority) -> bool {
        let host = bare_host(authority);
        // User information such as `name@127.0.0.1` has no use here except to mislead.
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

fn foreign_host() -> String {
    "the Host header does not name this machine; `security.allowed_hosts` may add names".into()
}

/// Whether it is a typical request of a program on this machine: one plain local `Host` and no header that only browsers
/// send. The full check accepts such requests as well; this one is faster.
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

/// Whether every host that the request names, in `Host` and in its URI, is `localhost` or a loopback address. True if it
/// names none.
pub(crate) fn names_this_machine(headers: &HeaderMap, authority: Option<&Authority>) -> bool {
    let named = headers.get_all(header::HOST).iter();
    let mut named = named.map(|host| host.to_str().ok()?.parse::<Authority>().ok());
    named.all(|host| host.is_some_and(|host| is_local(&host))) && authority.is_none_or(is_local)
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
        let policy = HostPolicy::default();
        assert_eq!(policy.refusal(&headers, None).is_none(), is_let_in, "{host} {origin:?}");
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
        let policy = HostPolicy {
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
            policy.refusal(&headers, None).is_none()
        };
        assert!(check("gateway.example.com", None));
        assert!(check("GATEWAY.example.com:8420", Some("https://app.example.com")));
        assert!(check("10.0.0.7:8420", None), "an address cannot be rebound");
        assert!(!check("evil.example", None));
        assert!(!check("gateway.example.com", Some("https://evil.example")));
        assert!(!check("gateway.example.com", Some("https://app.example.com.evil.example")));
    }
}
