//! A9: proxy headers such as `X-Forwarded-For` have no effect when a client sends them.

use reqwest::Method;
use serde_json::json;
use switchboard_test_support::Tool;

use crate::client::Peer;
use crate::support::server;
use crate::world::{home, key};

const CLAIMS: [(&str, &str); 22] = [
    ("x-forwarded-for", "127.0.0.1"),
    ("x-forwarded-host", "127.0.0.1"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-user", "root"),
    ("x-forwarded-access-token", "admin"),
    ("x-forwarded-prefix", "/admin"),
    ("forwarded", "for=127.0.0.1;host=localhost;proto=https"),
    ("x-real-ip", "127.0.0.1"),
    ("x-client-ip", "127.0.0.1"),
    ("true-client-ip", "127.0.0.1"),
    ("x-user", "admin"),
    ("x-remote-user", "admin"),
    ("x-role", "admin"),
    ("x-principal", "local"),
    ("x-auth-request-user", "admin"),
    ("x-original-url", "/healthz"),
    ("x-rewrite-url", "/healthz"),
    ("x-http-method-override", "DELETE"),
    ("x-host", "127.0.0.1"),
    ("x-internal", "1"),
    ("x-switchboard-role", "admin"),
    ("x-mcp-session-id", "x"),
];

fn claiming(peer: &Peer) -> Peer {
    CLAIMS.iter().fold(peer.clone(), |peer, (name, value)| peer.with(name, value))
}

#[tokio::test]
async fn a9_headers_of_proxies_change_neither_role_nor_host_nor_session() {
    let upstream = server([Tool::new("echo")]).await;
    let home = home(&[("one", &upstream.url())], &[]);
    let (alice, bob) = (key(&home, "alice", "client"), key(&home, "bob", "client"));
    let serve = home.serve().await;
    let nobody = claiming(&Peer::of(&serve));
    assert_eq!(nobody.modern("tools/list", json!({})).await.status, 401);
    assert_eq!(
        nobody.at(serve.at("/metrics")).request(Method::GET, &[]).send().await.unwrap().status(),
        401
    );
    let client = claiming(&Peer::of(&serve).with_key(&alice));
    for path in ["/metrics", "/api/v1/calls/export"] {
        let answer = client.at(serve.at(path)).request(Method::GET, &[]).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{path}");
    }
    let abroad = client.with("host", "evil.example");
    assert_eq!(abroad.modern("tools/list", json!({})).await.status, 403);
    let page = client.with("origin", "https://evil.example");
    assert_eq!(page.modern("tools/list", json!({})).await.status, 403);

    let session = client.open().await;
    assert_eq!(session.tools().await, ["one__echo"], "still there: nothing became a DELETE");
    let stranger = claiming(&Peer::of(&serve).with_key(&bob)).with("mcp-session-id", &session.id);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(stranger.post(list, &[]).await.status, 404);
}

#[tokio::test]
async fn a9_without_keys_they_change_nothing_either() {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let (plain, claiming) = (Peer::of(&serve), claiming(&Peer::of(&serve)));
    let list = async |peer: &Peer| peer.modern("tools/list", json!({})).await.result();
    assert_eq!(list(&plain).await, list(&claiming).await);
    let metadata = claiming.at(serve.at("/.well-known/oauth-protected-resource"));
    assert_eq!(metadata.request(Method::GET, &[]).send().await.unwrap().status(), 404);
    assert!(!claiming.call("one__echo", json!({})).await.is_refusal());
    let seen = upstream.stats();
    let headers = &seen.last_request("tools/call").unwrap().headers;
    assert!(CLAIMS.iter().all(|(name, _)| !headers.contains_key(*name)), "{headers:?}");
}
