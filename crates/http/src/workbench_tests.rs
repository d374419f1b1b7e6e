//! The page takes the addresses that nothing else owns, and only those.

use std::borrow::Cow;

use super::*;

fn site() -> Site {
    Site::new(|path| match path {
        "index.html" => Some(Cow::Borrowed(b"<script nonce=\"CSP_NONCE\">")),
        "assets/index-1.js" => Some(Cow::Borrowed(b"plain")),
        "assets/index-1.js.br" => Some(Cow::Borrowed(b"small")),
        _ => None,
    })
}

fn asked(site: Site, method: &Method, path: &str, accept: &'static str) -> Option<Response> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
    respond(site, method, path, &headers)
}

const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

async fn body(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn header_of(response: &Response, name: header::HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[test]
fn interfaces_keep_their_paths() {
    for path in [
        "/api/v1/nonsense",
        "/api",
        "/mcp",
        "/mcp/x",
        "/s/abc",
        "/openai/v1/x",
        "/anthropic/v1",
        "/gemini/v1",
        "/agents/x",
        "/trustgraph/x",
        "/connect/x",
        "/oauth/x",
        "/.well-known/x",
        "/healthz",
        "/readyz",
        "/metrics",
    ] {
        assert!(asked(site(), &Method::GET, path, BROWSER).is_none(), "{path}");
    }
    for path in ["/", "/servers", "/sessions/a", "/tools/demo.echo", "/nonsense"] {
        assert!(asked(site(), &Method::POST, path, BROWSER).is_none(), "{path}");
        assert!(asked(site(), &Method::GET, path, BROWSER).is_some(), "{path}");
    }
}

#[test]
fn programs_that_mistype_an_address_get_no_page() {
    assert!(asked(site(), &Method::GET, "/nonsense", "*/*").is_none());
    assert!(asked(site(), &Method::GET, "/nonsense", "application/json").is_none());
    assert!(asked(site(), &Method::GET, "/assets/index-0.js", BROWSER).is_none());
    assert!(asked(site(), &Method::GET, "/", "*/*").is_some());
}

#[tokio::test]
async fn every_page_has_a_nonce_of_its_own_and_is_not_kept() {
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let response = asked(site(), &Method::GET, "/tools/demo.echo", BROWSER).unwrap();
        assert_eq!(header_of(&response, header::CACHE_CONTROL), "no-store");
        let policy = header_of(&response, header::CONTENT_SECURITY_POLICY).to_owned();
        let (_, nonce) = policy.split_once("'nonce-").unwrap();
        let (nonce, _) = nonce.split_once('\'').unwrap();
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(body(response).await, format!("<script nonce=\"{nonce}\">"));
        nonces.push(nonce.to_owned());
    }
    assert_ne!(nonces[0], nonces[1]);
}

#[tokio::test]
async fn hashed_files_are_compressed_and_kept() {
    let response = asked(site(), &Method::GET, "/assets/index-1.js", "*/*").unwrap();
    assert_eq!(header_of(&response, header::CONTENT_ENCODING), "br");
    assert_eq!(header_of(&response, header::CACHE_CONTROL), "public, max-age=31536000, immutable");
    assert_eq!(header_of(&response, header::CONTENT_TYPE), "text/javascript; charset=utf-8");
    assert_eq!(body(response).await, "small");
}

#[tokio::test]
async fn a_program_without_the_page_says_so() {
    let empty = Site::new(|_| None);
    let response = asked(empty, &Method::GET, "/tools", BROWSER).unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(
        header_of(&response, header::CONTENT_SECURITY_POLICY).starts_with("default-src 'none'")
    );
    assert!(body(response).await.contains("built without Workbench"));
}
