//! A5: callers' credentials are never forwarded, tokens for another audience are refused, and no secret is returned or
//! logged.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool, wait_until};

use crate::client::{Events, Peer};
use crate::support::{Home, PATIENCE, Serve, dynamic, server, with};
use crate::world::{config, home, key};

const ISSUER: &str = "https://issuer.example/realm";
const AUDIENCE: &str = "https://board.example/mcp";

#[tokio::test]
async fn a5_credentials_of_a_caller_never_reach_a_server() {
    let (old, new) = (server([Tool::new("echo")]).await, modern([Tool::new("echo")]).await);
    let servers = [
        with(&dynamic("old", &old.url()), "headers: {x-own: upstream-secret}"),
        dynamic("new", &new.url()),
    ];
    let home = Home::new(config(&servers, &[]));
    let key = key(&home, "one", "client");
    let serve = home.serve_with(&["-vvv"]).await;
    let smuggled = [
        ("cookie", "session=cookie-secret"),
        ("proxy-authorization", "Basic proxy-secret"),
        ("x-mcp-readonly", "false"),
        ("x-mcp-tools", "old__echo,new__echo"),
        ("x-anything", "anything-secret"),
        ("x-forwarded-for", "10.9.8.7"),
        ("x-own", "overwritten-secret"),
        ("mcp-param-own", "param-secret"),
        ("last-event-id", "event-secret"),
    ];
    let bearer = Peer::of(&serve).with_key(&key);
    let header = Peer::of(&serve).with("x-api-key", &key);
    for peer in [bearer, header] {
        let peer = smuggled.iter().fold(peer, |peer, (name, value)| peer.with(name, value));
        let session = peer.open().await;
        for tool in ["old__echo", "new__echo"] {
            assert!(!peer.call(tool, json!({})).await.is_refusal(), "{tool}");
            assert!(!session.call(tool, json!({})).await.is_refusal(), "{tool}");
        }
    }
    for upstream in [&old, &new] {
        let stats = upstream.stats();
        assert_eq!(stats.total_calls(), 4);
        for request in &stats.requests {
            let own = request.headers.get("x-own").map_or("upstream-secret", String::as_str);
            assert_eq!(own, "upstream-secret", "{request:?}");
            let text = format!(
                "{:?}",
                request.headers.iter().filter(|(name, _)| *name != "x-own").collect::<Vec<_>>()
            );
            assert!(!text.contains("secret") && !text.contains(&key), "{text}");
            for name in [
                "authorization",
                "x-api-key",
                "cookie",
                "x-mcp-readonly",
                "x-mcp-tools",
                "x-forwarded-for",
            ] {
                assert!(!request.headers.contains_key(name), "{name}: {request:?}");
            }
            assert!(!request.body.to_string().contains(&key), "{request:?}");
        }
    }
    assert_nothing_secret(&serve, &[&key, "upstream-secret", "cookie-secret"]);
}

#[tokio::test]
async fn a5_credentials_for_a_server_are_told_to_nobody_when_it_quotes_them() {
    let (old, new) = (server([Tool::new("echo")]).await, modern([Tool::new("echo")]).await);
    let own = "headers: {x-own: upstream-secret, authorization: \"Bearer upstream-token\"}";
    let servers = [("old", &old), ("new", &new)];
    let config = config(&servers.map(|(name, it)| with(&dynamic(name, &it.url()), own)), &[]);
    let serve = Home::new(config).serve_with(&["-vvv"]).await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    for (before, (name, upstream)) in servers.into_iter().enumerate() {
        upstream.set_fault(Fault::Reflect(Stage::Call)).await;
        let tool = format!("{name}__echo");
        for answer in [peer.call(&tool, json!({})).await, session.call(&tool, json!({})).await] {
            assert!(answer.is_refusal() && answer.body.contains("***"), "{}", answer.body);
            assert!(!answer.body.contains("upstream-"), "{}", answer.body);
        }
        // What is said of a server that cannot be listed is shown and written down too.
        upstream.set_fault(Fault::Reflect(Stage::Any)).await;
        peer.call(&tool, json!({})).await;
        let shown = wait_until(PATIENCE, async || {
            let shown = serve.get("/api/v1/servers").await.to_string();
            (shown.matches("HTTP 401").count() == before + 1).then_some(shown)
        });
        let shown = shown.await;
        assert!(!shown.contains("upstream-"), "{shown}");
    }
    assert_nothing_secret(&serve, &["upstream-secret", "upstream-token"]);
}

async fn modern(tools: impl IntoIterator<Item = Tool>) -> ScriptedServer {
    ScriptedServer::builder().modern().tools(tools).start().await
}

#[track_caller]
fn assert_nothing_secret(serve: &Serve, secrets: &[&str]) {
    let said = format!("{}{}", serve.stdout(), serve.stderr());
    assert!(!said.is_empty());
    for secret in secrets {
        assert!(!said.contains(secret), "{secret} is in {said}");
    }
}

/// An issuer whose key the gateway knows.
struct Issuer(EncodingKey);

impl Issuer {
    fn new() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Self(EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref()))
    }

    fn keys(&self) -> String {
        let mut jwk = Jwk::from_encoding_key(&self.0, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some("k1".into());
        json!({"keys": [jwk]}).to_string()
    }

    fn token(&self, changes: &Value) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "client_id": "c", "scope": "mcp:use",
            "exp": now + 300,
        });
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some("k1".into());
        encode(&header, &claims, &self.0).unwrap()
    }
}

fn home_with_tokens(url: &str, issuer: &Issuer) -> Home {
    let jwt = format!(
        "security: {{jwt: {{issuer: \"{ISSUER}\", audience: \"{AUDIENCE}\", jwks_file: jwks.json, required_scopes: [\"mcp:use\"]}}}}"
    );
    let home = home(&[("one", url)], &[&jwt]);
    home.file("jwks.json", issuer.keys());
    home
}

#[tokio::test]
async fn a5_a_token_for_somebody_else_is_refused_with_the_way_to_get_one() {
    let upstream = server([Tool::new("echo")]).await;
    let issuer = Issuer::new();
    let home = home_with_tokens(&upstream.url(), &issuer);
    let serve = home.serve_with(&["-vvv"]).await;
    let good = issuer.token(&json!({}));
    assert!(!Peer::of(&serve).with_key(&good).call("one__echo", json!({})).await.is_refusal());
    let document =
        "resource_metadata=\"https://board.example/.well-known/oauth-protected-resource/mcp\"";
    let forged = Issuer::new().token(&json!({}));
    let unsigned = format!("{}.", good.rsplit_once('.').unwrap().0);
    let cases = [
        (issuer.token(&json!({"aud": "https://other.example"})), 401),
        (issuer.token(&json!({"aud": ["https://other.example", "https://board.example"]})), 401),
        (issuer.token(&json!({"iss": "https://evil.example"})), 401),
        (issuer.token(&json!({"exp": 1})), 401),
        (issuer.token(&json!({"nbf": 99_999_999_999_u64})), 401),
        (issuer.token(&json!({"scope": "other"})), 403),
        (forged, 401),
        (unsigned, 401),
        ("eyJhbGciOiJub25lIn0.e30.".to_owned(), 401),
    ];
    for (token, status) in &cases {
        let peer = Peer::of(&serve).with_key(token);
        let listed = peer.call("one__echo", json!({})).await;
        let begun = peer.initialize("2025-11-25").await;
        let api =
            peer.at(serve.at("/api/v1/tools")).request(Method::GET, &[]).send().await.unwrap();
        assert_eq!(
            [listed.status, begun.status, api.status().as_u16()],
            [*status; 3],
            "{listed:?}"
        );
        let challenge = listed.headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.contains(document), "{challenge}");
        assert!(!listed.body.contains(token.as_str()), "{}", listed.body);
        assert_eq!(challenge.contains("insufficient_scope"), *status == 403, "{challenge}");
    }
    assert_eq!(upstream.stats().total_calls(), 1);
    let signatures: Vec<&str> = cases
        .iter()
        .map(|(token, _)| token.rsplit('.').next().unwrap())
        .filter(|s| !s.is_empty())
        .collect();
    assert_nothing_secret(&serve, &signatures);
    assert_nothing_secret(&serve, &[&good]);
}

#[tokio::test]
async fn a5_the_metadata_of_the_resource_is_served_without_credentials() {
    let upstream = server([Tool::new("echo")]).await;
    let issuer = Issuer::new();
    let serve = home_with_tokens(&upstream.url(), &issuer).serve().await;
    for path in ["", "/mcp"] {
        let document = serve.get(&format!("/.well-known/oauth-protected-resource{path}")).await;
        assert_eq!(document["resource"], AUDIENCE, "{path}");
        assert_eq!(document["authorization_servers"], json!([ISSUER]), "{path}");
        assert_eq!(document["scopes_supported"], json!(["mcp:use"]), "{path}");
    }
    let missing = Peer::of(&serve).modern("tools/list", json!({})).await;
    assert_eq!(missing.status, 401);
    assert!(
        missing.headers["www-authenticate"]
            .to_str()
            .unwrap()
            .starts_with("Bearer resource_metadata=")
    );
    // A client without a token gets a challenge that names the scopes to request.
    let challenge = missing.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.ends_with(", scope=\"mcp:use\""), "{challenge}");
    // A valid token without the needed scope gets a challenge that names it.
    let peer = Peer::of(&serve).with_key(&issuer.token(&json!({})));
    let metrics = peer.at(serve.at("/metrics")).request(Method::GET, &[]).send().await.unwrap();
    assert_eq!(metrics.status(), 403);
    let challenge = metrics.headers()["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("insufficient_scope"), "{challenge}");
    assert!(challenge.ends_with(", scope=\"mcp:use switchboard:operator\""), "{challenge}");
}

#[tokio::test]
async fn a5_a_revoked_key_stops_within_seconds_also_in_a_session() {
    let upstream = server([Tool::new("echo")]).await;
    let home = home(&[("one", &upstream.url())], &[]);
    let (lost, kept) = (key(&home, "lost", "client"), key(&home, "kept", "client"));
    let serve = home.serve().await;
    let peer = Peer::of(&serve).with_key(&lost);
    let session = peer.open().await;
    assert!(!session.call("one__echo", json!({})).await.is_refusal());
    home.line("key revoke lost").expect(0);
    wait_until(PATIENCE, async || {
        (peer.modern("tools/list", json!({})).await.status == 401).then_some(())
    })
    .await;
    let refused = session.call("one__echo", json!({})).await;
    assert_eq!(refused.status, 401);
    assert!(!refused.body.contains(&lost), "{}", refused.body);
    assert_eq!(Peer::of(&serve).with_key(&kept).modern("tools/list", json!({})).await.status, 200);
    assert_eq!(upstream.stats().total_calls(), 1);
    assert_nothing_secret(&serve, &[&lost, &kept]);
}

/// All streams that stay open, each with the first thing that it says, if that is anything.
async fn streams(serve: &Serve, peer: &Peer) -> Vec<Events> {
    let session = peer.open().await;
    let listening = json!({"notifications": {"toolsListChanged": true}});
    let listening = peer.modern_response("subscriptions/listen", listening).await;
    let made = peer.at(serve.at("/api/v1/sessions")).post("{}", &[]).await;
    let id = made.last()["id"].as_str().unwrap().to_owned();
    let following = peer.at(serve.at(&format!("/api/v1/sessions/{id}/events")));
    let following = following.request(Method::GET, &[]).send().await.unwrap();
    // The name of the method may be written in another way.
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let message = peer.modern_message("subscriptions/listen", &wanted).to_string();
    let headers = Peer::modern_headers("subscriptions/listen", &wanted).into_iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| match value.as_str() {
            "subscriptions/listen" => (name, "=?base64?c3Vic2NyaXB0aW9ucy9saXN0ZW4=?=".to_owned()),
            _ => (name, value),
        })
        .collect();
    let encoded = peer.request(Method::POST, &headers).body(message).send().await.unwrap();
    assert_eq!(encoded.status(), 200);
    let mut streams = vec![
        session.listen().await,
        Events::of(listening),
        Events::of(following),
        Events::of(encoded),
    ];
    for stream in &mut streams[1..] {
        assert!(stream.next().await.is_some());
    }
    streams
}

/// Waits for the end of a stream, whatever it still says.
async fn has_ended(mut stream: Events) {
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn a5_the_streams_of_a_revoked_key_end_and_those_of_others_go_on() {
    let upstream = server([Tool::new("echo")]).await;
    let home = home(&[("one", &upstream.url())], &[]);
    let (lost, kept) = (key(&home, "lost", "client"), key(&home, "kept", "client"));
    let serve = home.serve().await;
    let doomed = streams(&serve, &Peer::of(&serve).with_key(&lost)).await;
    let peer = Peer::of(&serve).with("x-api-key", &kept);
    let listening = json!({"notifications": {"toolsListChanged": true}});
    let mut others = Events::of(peer.modern_response("subscriptions/listen", listening).await);
    assert!(others.next().await.is_some());
    wait_until(PATIENCE, async || (upstream.open_streams() == 1).then_some(())).await;
    home.line("key revoke lost").expect(0);
    for stream in doomed {
        has_ended(stream).await;
    }
    upstream.set_tools_and_notify([Tool::new("echo"), Tool::new("new")]).await;
    let told = others.next().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_nothing_secret(&serve, &[&lost, &kept]);
}

#[tokio::test]
async fn a5_the_streams_of_a_token_end_when_it_expires() {
    let upstream = server([Tool::new("echo")]).await;
    let issuer = Issuer::new();
    let jwt = format!(
        "security: {{jwt: {{issuer: \"{ISSUER}\", audience: \"{AUDIENCE}\", jwks_file: jwks.json, leeway: 1s}}}}"
    );
    let home = home(&[("one", &upstream.url())], &[&jwt]);
    home.file("jwks.json", issuer.keys());
    let serve = home.serve().await;
    let end = jiff::Timestamp::now().as_second() + 4;
    let peer = Peer::of(&serve).with_key(&issuer.token(&json!({"exp": end})));
    for stream in streams(&serve, &peer).await {
        has_ended(stream).await;
    }
    assert!(jiff::Timestamp::now().as_second() >= end, "not before its time");
}

#[tokio::test]
async fn a5_two_credentials_at_once_are_none() {
    let home = Home::new("switchboard: {}");
    let (one, two) = (key(&home, "one", "client"), key(&home, "two", "admin"));
    let serve = home.serve().await;
    let peer = Peer::of(&serve);
    for peer in [
        peer.with_key(&one).with_key(&two),
        peer.with_key(&one).with("x-api-key", &two),
        peer.with("x-api-key", &one).with("x-api-key", &one),
        peer.with("authorization", &format!("Basic {one}")),
        peer.with("authorization", &one),
        peer.with("authorization", &format!("Bearer {one},{two}")),
        peer.with("cookie", &format!("authorization=Bearer {one}")),
    ] {
        assert_eq!(peer.modern("tools/list", json!({})).await.status, 401, "{peer:?}");
    }
}

#[tokio::test]
async fn a5_a_client_key_does_not_see_what_others_do() {
    let home = Home::new("switchboard: {}");
    let (client, operator) = (key(&home, "one", "client"), key(&home, "two", "operator"));
    let serve = home.serve().await;
    for path in ["/api/v1/calls/export", "/metrics"] {
        let ask = async |key: &str| {
            let peer = Peer::of(&serve).with_key(key).at(serve.at(path));
            peer.request(Method::GET, &[]).send().await.unwrap().status().as_u16()
        };
        assert_eq!(ask(&client).await, 403, "{path}");
        assert_ne!(ask(&operator).await, 403, "{path}");
    }
}
