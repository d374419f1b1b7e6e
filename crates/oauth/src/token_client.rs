//! Sends one token request and keeps its outcome as data.
//!
//! rmcp writes the request and reads the response, but reports every failure as one text. Whether the authorization
//! server could be reached, and what it answered, is known here.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use futures::FutureExt;
use http::{Response, StatusCode};
use parking_lot::Mutex;
use reqwest::redirect::Policy;
use reqwest::{Client, Request};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde::Deserialize;
use switchboard_model::{ConnectError, ConnectErrorKind, EgressPolicy, EgressRule};
use switchboard_outbound::{EgressGuard, USER_AGENT, describe_failure, error_chain};
use url::{Host, Url};

/// Maximum time of a token request.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);
/// Maximum size of the response.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Networks of this machine.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
/// Private networks, and those of providers.
const PRIVATE: [&str; 5] =
    ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/// The variables that name a proxy.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The result of a token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenOutcome {
    /// There was no response, or only a part of one.
    NoAnswer(ConnectError),
    Answered {
        status: StatusCode,
        /// The `error` and `error_description` of the response, if it has them.
        reason: Option<String>,
    },
}

/// The HTTP client of one token request. It follows no redirect: the request carries credentials.
#[derive(Debug)]
pub(crate) struct TokenClient {
    http: Client,
    guard: Option<EgressGuard>,
    outcome: Mutex<Option<TokenOutcome>>,
}

impl TokenClient {
    /// A client for the authorization server that this server names.
    pub(crate) async fn new(server: &Url) -> Result<Self, ConnectError> {
        let own = addresses_of(server).await;
        Self::with(Some(EgressGuard::new(policy_for(&own, proxy_hosts()))))
    }

    /// A client for an authorization server that the configuration names: it may have any address. All of them share one,
    /// because making one reads the certificates of the system.
    pub(crate) fn configured() -> Result<Self, ConnectError> {
        static SHARED: OnceLock<Client> = OnceLock::new();
        if let Some(http) = SHARED.get() {
            return Ok(Self { http: http.clone(), guard: None, outcome: Mutex::default() });
        }
        let made = Self::with(None)?;
        // Another one may have been made at the same time; either is fine.
        let _first = SHARED.set(made.http.clone());
        Ok(made)
    }

    fn with(guard: Option<EgressGuard>) -> Result<Self, ConnectError> {
        let builder = Client::builder()
            .timeout(LONGEST_REQUEST)
            .redirect(Policy::none())
            // A connection is used for one request and may not outlive the runtime that made it.
            .pool_max_idle_per_host(0)
            .user_agent(USER_AGENT);
        let http = match &guard {
            Some(guard) => builder.dns_resolver(guard.clone()),
            None => builder,
        };
        let http = http.build();
        let http = http.map_err(|error| {
            ConnectError::new(ConnectErrorKind::Unreachable, error_chain(&error))
        })?;
        Ok(Self { http, guard, outcome: Mutex::default() })
    }

    /// Takes the outcome; `None` if no request was sent.
    pub(crate) fn take_outcome(&self) -> Option<TokenOutcome> {
        self.outcome.lock().take()
    }

    pub(crate) async fn exchange(
        &self,
        request: Request,
    ) -> Result<Response<Vec<u8>>, ConnectError> {
        let host = request.url().host_str().unwrap_or_default().to_owned();
        self.send(request).await.map_err(|error| of_token_request(error, &host))
    }

    async fn send(&self, request: Request) -> Result<Response<Vec<u8>>, ConnectError> {
        if let Some(guard) = &self.guard {
            guard.check_literal(request.url())?;
        }
        let sent = self.http.execute(request).await;
        let mut response = sent.map_err(|error| describe_failure(&error))?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| describe_failure(&error))? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                let message = format!("the answer is larger than {MAX_BODY_BYTES} bytes");
                return Err(ConnectError::new(ConnectErrorKind::Protocol, message));
            }
            body.extend_from_slice(&chunk);
        }
        let mut read = Response::new(body);
        *read.status_mut() = response.status();
        *read.headers_mut() = std::mem::take(response.headers_mut());
        Ok(read)
    }
}

impl OAuthHttpClient for TokenClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        async move {
            let request = Request::try_from(request.request)?;
            let exchanged = self.exchange(request).await;
            *self.outcome.lock() = Some(match &exchanged {
                Ok(response) => TokenOutcome::Answered {
                    status: response.status(),
                    reason: read_reason(response.body()),
                },
                Err(error) => TokenOutcome::NoAnswer(error.clone()),
            });
            Ok(exchanged?)
        }
        .boxed()
    }
}

/// The addresses that a server may name: public ones, and those of the network that the server itself is in. So a server
/// on the internet cannot direct credentials to an internal address. The name of a proxy may resolve to any address.
fn policy_for(server: &[IpAddr], proxies: Vec<String>) -> EgressPolicy {
    let allowing = |allow| EgressPolicy { allow, deny: Vec::new() };
    let mut allow: Vec<EgressRule> = proxies.into_iter().map(EgressRule::Host).collect();
    for own in server.iter().filter(|own| allowing(Vec::new()).judge(None, **own).is_err()) {
        allow.extend(own.to_string().parse::<EgressRule>());
        for networks in [&LOOPBACK[..], &PRIVATE] {
            let rules: Vec<EgressRule> = networks.iter().flat_map(|it| it.parse()).collect();
            if allowing(rules.clone()).judge(None, *own).is_ok() {
                allow.extend(rules);
            }
        }
    }
    allowing(allow)
}

/// The addresses of a server; none if its name cannot be looked up.
async fn addresses_of(server: &Url) -> Vec<IpAddr> {
    match server.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
            vec![std::net::Ipv4Addr::LOCALHOST.into()]
        }
        Some(Host::Domain(name)) => {
            let found = tokio::net::lookup_host((name, 443)).await;
            found.map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
        }
        None => Vec::new(),
    }
}

fn proxy_hosts() -> Vec<String> {
    let set = PROXIES.iter().filter_map(|name| std::env::var(name).ok());
    let urls = set.filter_map(|proxy| {
        Url::parse(&proxy).ok().filter(Url::has_host).or_else(|| {
            // A proxy may be written without its scheme.
            Url::parse(&format!("http://{proxy}")).ok()
        })
    });
    urls.filter_map(|url| Some(url.domain()?.to_ascii_lowercase())).collect()
}

/// The failure as it concerns a token request: hints at the address of the MCP server and at the egress policy of the
/// configuration do not apply.
fn of_token_request(error: ConnectError, host: &str) -> ConnectError {
    if error.kind != ConnectErrorKind::Forbidden {
        return ConnectError::new(error.kind, error.message);
    }
    let message = format!("the server names '{host}', which is not a public address");
    ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
        "an authorization server may be in a private network only if the MCP server is",
    )
}

/// The reason in the body of a refusal (RFC 6749, section 5.2).
fn read_reason(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
        error_description: Option<String>,
    }
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    Some(match refusal.error_description.filter(|text| !text.is_empty()) {
        Some(description) => format!("{}: {description}", refusal.error),
        None => refusal.error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_addresses_of_a_server_are_looked_up() {
        for (server, address) in [
            ("http://10.1.2.3", "10.1.2.3"),
            ("http://[::1]:1", "::1"),
            ("http://a.localhost", "127.0.0.1"),
        ] {
            let found = addresses_of(&server.parse().unwrap()).await;
            assert_eq!(found, [address.parse::<IpAddr>().unwrap()], "{server}");
        }
        assert!(addresses_of(&"https://mcp.invalid".parse().unwrap()).await.is_empty());
    }

    #[test]
    fn a_server_names_public_addresses_and_those_of_its_own_network() {
        let check = |server: &str, address: &str, is_allowed: bool| {
            let own: Vec<IpAddr> = server.split(',').flat_map(str::parse).collect();
            let policy = policy_for(&own, Vec::new());
            let judged = policy.judge(None, address.parse().unwrap());
            assert_eq!(judged.is_ok(), is_allowed, "{server} names {address}: {judged:?}");
        };
        for server in ["", "93.184.216.34", "2606:4700::1111"] {
            check(server, "93.184.216.35", true);
            for internal in
                ["127.0.0.1", "10.0.0.9", "169.254.169.254", "::1", "fd00::1", "0.0.0.0"]
            {
                check(server, internal, false);
            }
        }
        for server in ["127.0.0.1", "::1", "127.0.0.1,::1"] {
            for (address, is_allowed) in [
                ("127.0.0.1", true),
                ("::1", true),
                ("93.184.216.35", true),
                ("10.0.0.9", false),
                ("169.254.169.254", false),
            ] {
                check(server, address, is_allowed);
            }
        }
        check("10.1.2.3", "192.168.0.1", true);
        check("10.1.2.3", "127.0.0.1", false);
        check("169.254.1.1", "169.254.1.1", true);
        check("169.254.1.1", "169.254.169.254", false);
    }

    #[test]
    fn the_name_of_a_proxy_may_lead_anywhere() {
        let policy = policy_for(&[], vec!["proxy".into()]);
        assert!(policy.judge(Some("proxy"), "10.0.0.1".parse().unwrap()).is_ok());
        assert!(policy.judge(Some("as.example"), "10.0.0.1".parse().unwrap()).is_err());
    }

    #[test]
    fn the_reason_of_a_refusal_is_read_as_the_standard_writes_it() {
        for (body, reason) in [
            (r#"{"error":"invalid_client"}"#, Some("invalid_client")),
            (r#"{"error":"a","error_description":"b","x":1}"#, Some("a: b")),
            (r#"{"error":"a","error_description":""}"#, Some("a")),
            (r#"{"error":{"code":1}}"#, None),
            ("<html>request failed: http 500</html>", None),
        ] {
            assert_eq!(read_reason(body.as_bytes()).as_deref(), reason, "{body}");
        }
    }
}
