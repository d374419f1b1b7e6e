//! A1: foreign `Host` and `Origin` headers, on every interface and in both eras; a non-loopback address needs
//! credentials.

use std::process::Child;

use reqwest::Client;
use serde_json::json;
use switchboard_test_support::{Tool, free_port, wait_until};

use crate::client::{LEGACY, Peer, raw, status_of};
use crate::support::{Home, PATIENCE, Serve, server};
use crate::world::{home, key};

const FORBIDDEN: u16 = 403;

/// Statuses of the same visit to each face: modern list, handshake, GET stream, API.
async fn visit(serve: &Serve, headers: &[(&str, &str)]) -> Vec<u16> {
    let mut peer = Peer::of(serve);
    for (name, value) in headers {
        peer = peer.with(name, value);
    }
    let api = peer.at(serve.at("/api/v1/tools"));
    let metrics = peer.at(serve.at("/metrics"));
    let stream = peer.request(reqwest::Method::GET, &[]).send().await.unwrap();
    vec![
        peer.modern("tools/list", json!({})).await.status,
        peer.initialize(LEGACY).await.status,
        stream.status().as_u16(),
        api.request(reqwest::Method::GET, &[]).send().await.unwrap().status().as_u16(),
        metrics.request(reqwest::Method::GET, &[]).send().await.unwrap().status().as_u16(),
    ]
}

const WELCOME: [u16; 5] = [200, 200, 400, 200, 200];

#[tokio::test]
async fn a1_foreign_hosts_and_pages_are_refused_on_every_face() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let port = serve.url.rsplit(':').next().unwrap().to_owned();
    let own = format!("http://127.0.0.1:{port}");
    let local = format!("localhost:{port}");
    for headers in [&[][..], &[("origin", own.as_str())], &[("host", local.as_str())]] {
        assert_eq!(visit(&serve, headers).await, WELCOME, "{headers:?}");
    }
    for headers in [
        [("host", "evil.example")],
        [("host", "127.0.0.1.evil.example")],
        [("host", "localhost.evil.example:80")],
        [("host", "10.0.0.1")],
        [("host", "evil@127.0.0.1")],
        [("host", "0x7f.1")],
        [("origin", "http://evil.example")],
        [("origin", "https://127.0.0.1.evil.example")],
        [("origin", "http://localhost:1")],
        [("origin", "null")],
        [("origin", "file://")],
        [("origin", "")],
        [("sec-fetch-site", "cross-site")],
    ] {
        let statuses = visit(&serve, &headers).await;
        assert!(
            statuses.iter().all(|status| [FORBIDDEN, 400].contains(status)),
            "{headers:?} {statuses:?}"
        );
        assert_ne!(statuses, WELCOME, "{headers:?}");
    }
    assert_eq!(upstream.stats().total_calls(), 0);
}

#[tokio::test]
async fn a1_a_host_cannot_be_smuggled_past_the_check() {
    let serve = Home::new("switchboard: {}").serve().await;
    let ask = async |head: &str| {
        let answer = raw(&serve, format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).await;
        status_of(&answer).to_owned()
    };
    assert_eq!(ask("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1").await, "200");
    for head in [
        "GET /readyz HTTP/1.1",
        "GET /readyz HTTP/1.0",
        "GET /readyz HTTP/1.1\r\nHost: evil.example",
        "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example",
        "GET /readyz HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1",
        "GET http://evil.example/readyz HTTP/1.1\r\nHost: 127.0.0.1",
        "GET http://127.0.0.1/readyz HTTP/1.1\r\nHost: evil.example",
        "GET /readyz HTTP/1.1\r\nHost: ",
    ] {
        let status = ask(head).await;
        assert!(["400", "403"].contains(&status.as_str()), "{head:?}: {status}");
    }
}

#[tokio::test]
async fn a1_the_authority_of_http2_is_checked_too() {
    let serve = Home::new("switchboard: {}").serve().await;
    let address = serve.url.strip_prefix("http://").unwrap().parse().unwrap();
    let client = Client::builder().no_proxy().http2_prior_knowledge();
    let client = client.resolve("evil.example", address).build().unwrap();
    let port = serve.url.rsplit(':').next().unwrap();
    let ask = async |host: &str, path: &str| {
        let url = format!("http://{host}:{port}{path}");
        let mut peer = Peer::of(&serve).at(url);
        peer.http = client.clone();
        peer.modern("tools/list", json!({})).await.status
    };
    assert_eq!(ask("127.0.0.1", "/mcp").await, 200);
    assert_eq!(ask("evil.example", "/mcp").await, FORBIDDEN);
    assert_eq!(ask("evil.example", "/api/v1/tools").await, FORBIDDEN);
    let page = client.get(format!("http://evil.example:{port}/readyz")).header("host", "127.0.0.1");
    // Either the two names are taken for a fault of the request, or for an attack.
    if let Ok(answer) = page.send().await {
        assert_eq!(answer.status().as_u16(), FORBIDDEN);
    }
}

#[tokio::test]
async fn a1_names_and_pages_that_are_configured_are_let_in_and_no_others() {
    let security = "security: {allowed_hosts: [gateway.example.com], allowed_origins: [\"https://app.example.com\"]}";
    let serve = Home::new(format!("switchboard:\n  {security}\n")).serve().await;
    let host = ("host", "gateway.example.com");
    let page = ("origin", "https://app.example.com");
    for headers in [&[host][..], &[page], &[host, page], &[("host", "GATEWAY.example.com:444")]] {
        assert_eq!(visit(&serve, headers).await, WELCOME, "{headers:?}");
    }
    for headers in [
        &[("host", "sub.gateway.example.com")][..],
        &[("host", "gateway.example.com.evil.example")],
        &[("origin", "https://app.example.com.evil.example")],
        &[("origin", "http://app.example.com")],
        &[host, ("origin", "https://evil.example")],
        &[("host", "evil.example"), page],
    ] {
        let statuses = visit(&serve, headers).await;
        assert!(statuses.iter().all(|status| *status == FORBIDDEN), "{headers:?} {statuses:?}");
    }
}

#[tokio::test]
async fn a1_a_reload_changes_who_is_let_in_and_says_what_needs_a_restart() {
    let named = |name: &str| format!("switchboard:\n  security: {{allowed_hosts: [{name}]}}\n");
    let home = Home::new(named("old.example.com"));
    let serve = home.serve().await;
    assert_eq!(visit(&serve, &[("host", "old.example.com")]).await, WELCOME);
    home.rewrite(named("new.example.com"));
    serve.said("the new configuration is in force").await;
    assert_eq!(visit(&serve, &[("host", "new.example.com")]).await, WELCOME);
    let statuses = visit(&serve, &[("host", "old.example.com")]).await;
    assert!(statuses.iter().all(|status| *status == FORBIDDEN), "{statuses:?}");
    assert!(!serve.stderr().contains("restart"), "{}", serve.stderr());

    home.file("jwks.json", "{\"keys\": []}");
    let jwt = "jwt: {issuer: \"https://id.example.com\", audience: \"https://board.example.com/mcp\", jwks_file: jwks.json}";
    home.rewrite(format!("switchboard:\n  security: {{{jwt}}}\n"));
    serve.said("`security.jwt` has changed: restart for it to take effect").await;
}

#[tokio::test]
async fn a1_a_page_that_is_named_can_ask_from_a_browser_and_no_other_can() {
    let upstream = server([Tool::new("echo")]).await;
    let security = "security: {allowed_origins: [\"https://app.example.com\"]}";
    let home = home(&[("one", &upstream.url())], &[security]);
    let key = key(&home, "one", "client");
    let serve = home.serve().await;
    let app = Peer::of(&serve).with("origin", "https://app.example.com");
    let preflight = async |peer: &Peer, path: &str, method: &str, headers: &str| {
        let peer = peer.at(serve.at(path)).with("access-control-request-method", method);
        let peer = peer.with("access-control-request-headers", headers);
        peer.request(reqwest::Method::OPTIONS, &[]).send().await.unwrap()
    };
    let told = |answer: &reqwest::Response, name: &str| {
        answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let wanted = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-param-region";
    for (path, method) in
        [("/mcp", "POST"), ("/mcp/servers/one", "DELETE"), ("/api/v1/tools", "GET")]
    {
        // A browser shows no credentials when it asks.
        let answer = preflight(&app, path, method, wanted).await;
        assert_eq!(answer.status(), 200, "{path}");
        let origin = told(&answer, "access-control-allow-origin");
        assert_eq!(origin.as_deref(), Some("https://app.example.com"), "{path}");
        assert_eq!(told(&answer, "access-control-allow-headers").as_deref(), Some(wanted));
        assert!(told(&answer, "access-control-allow-methods").unwrap().contains(method));
        assert_eq!(told(&answer, "vary").as_deref(), Some("origin"));
        assert_eq!(told(&answer, "access-control-allow-credentials"), None);
        let answer = preflight(&app, path, method, "content-type,x-forwarded-for").await;
        assert_eq!(told(&answer, "access-control-allow-headers"), None, "{path}");
        for stranger in [
            Peer::of(&serve).with("origin", "https://evil.example"),
            Peer::of(&serve).with("origin", "null"),
            app.with("host", "evil.example"),
        ] {
            let answer = preflight(&stranger, path, method, wanted).await;
            assert_eq!(answer.status(), 403, "{path}");
            assert_eq!(told(&answer, "access-control-allow-methods"), None, "{path}");
        }
        let own = Peer::of(&serve).with("origin", &serve.url);
        let answer = preflight(&own, path, method, wanted).await;
        assert_eq!(told(&answer, "access-control-allow-origin"), None, "{path}");
    }
    let page = app.with_key(&key);
    let listed = page.modern("tools/list", json!({})).await;
    let begun = page.initialize(LEGACY).await;
    let refused = app.modern("tools/list", json!({})).await;
    let api = page.at(serve.at("/api/v1/tools")).request(reqwest::Method::GET, &[]);
    let api = crate::client::Answer::of(api.send().await.unwrap()).await;
    assert_eq!([listed.status, begun.status, refused.status, api.status], [200, 200, 401, 200]);
    for answer in [listed, begun, refused, api] {
        let told = |name: &str| answer.headers[name].to_str().unwrap();
        assert_eq!(told("access-control-allow-origin"), "https://app.example.com");
        assert_eq!(told("cross-origin-resource-policy"), "cross-origin");
        let varies = answer.headers.get_all("vary").iter().any(|value| value == "origin");
        assert!(varies, "{:?}", answer.headers);
        assert!(told("access-control-expose-headers").contains("mcp-session-id"));
    }
    let plain = Peer::of(&serve).with_key(&key).modern("tools/list", json!({})).await;
    assert_eq!(plain.headers["cross-origin-resource-policy"], "same-origin");
    assert!(!plain.headers.contains_key("access-control-allow-origin"));
}

/// `serve` on all addresses of the machine. Dropping it kills it.
struct Wide {
    child: Child,
    url: String,
}

impl Drop for Wide {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Wide {
    async fn start(home: &Home) -> Self {
        let port = free_port();
        let listen = format!("0.0.0.0:{port}");
        let child = home.command(&["serve", "--listen", &listen, "--json"]).spawn().unwrap();
        let wide = Self { child, url: format!("http://127.0.0.1:{port}") };
        let http = Client::builder().no_proxy().build().unwrap();
        wait_until(PATIENCE, async || {
            let ready = http.get(format!("{}/readyz", wide.url)).send().await.ok()?;
            ready.status().is_success().then_some(())
        })
        .await;
        wide
    }
}

#[tokio::test]
async fn a1_a_wide_address_is_refused_without_credentials() {
    let home = Home::new("switchboard: {}");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let outcome = home.line(&format!("serve --listen {address}")).expect(1);
        assert!(outcome.stderr.contains("no credentials are configured"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("switchboard key add"), "{}", outcome.stderr);
    }
}

#[tokio::test]
async fn a1_behind_a_wide_address_every_path_but_three_needs_the_key() {
    let home = Home::new("switchboard: {}");
    let key = key(&home, "one", "operator");
    let wide = Wide::start(&home).await;
    let http = Client::builder().no_proxy().build().unwrap();
    let ask = async |method: &str, path: &str, key: Option<&str>| {
        let method = method.parse().unwrap();
        let mut request = http.request(method, format!("{}{path}", wide.url));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        request.send().await.unwrap().status().as_u16()
    };
    for path in ["/", "/healthz", "/readyz"] {
        assert_eq!(ask("GET", path, None).await, 200, "{path}");
    }
    let closed = [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("PUT", "/mcp"),
        ("POST", "/mcp/servers/x"),
        ("POST", "/mcp/toolsets/x"),
        ("POST", "/mcp/sessions/x"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/servers"),
        ("GET", "/api/v1/tools"),
        ("GET", "/api/v1/tools/x"),
        ("POST", "/api/v1/tools/x/call"),
        ("GET", "/api/v1/calls"),
        ("GET", "/api/v1/results/x"),
        ("GET", "/api/v1/toolsets"),
        ("GET", "/api/v1/sessions"),
        ("POST", "/api/v1/sessions"),
        ("DELETE", "/api/v1/sessions/x"),
        ("GET", "/nothing"),
        ("GET", "/api"),
        ("GET", "//healthz"),
        ("GET", "/healthz/../metrics"),
        ("GET", "/%2e/metrics"),
        ("GET", "/healthz/"),
        ("OPTIONS", "/api/v1/tools"),
        ("HEAD", "/metrics"),
    ];
    for (method, path) in closed {
        assert_eq!(ask(method, path, None).await, 401, "{method} {path}");
        assert_eq!(ask(method, path, Some("sbk_wrong")).await, 401, "{method} {path}");
        assert_ne!(ask(method, path, Some(&key)).await, 401, "{method} {path}");
    }
    // A key stands in a header, never in an address.
    assert_eq!(
        ask("GET", &format!("/api/v1/tools?api_key={key}&access_token={key}"), None).await,
        401
    );
}
