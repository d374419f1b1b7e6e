//! A8: sessions, endpoints and pending requests of one principal cannot be used by another.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::Tool;

use crate::client::{Answer, Peer};
use crate::fixture::Fixture;
use crate::support::{Home, Serve, server};
use crate::world::{home, key};

const INVALID_PARAMS: i64 = -32602;

/// Two principals on one gateway.
struct Pair {
    alice: Peer,
    bob: Peer,
    serve: Serve,
    home: Home,
}

impl Pair {
    async fn new(home: Home) -> Self {
        let (alice, bob) = (key(&home, "alice", "client"), key(&home, "bob", "client"));
        let serve = home.serve().await;
        let peer = Peer::of(&serve);
        Self { alice: peer.with_key(&alice), bob: peer.with_key(&bob), serve, home }
    }
}

async fn status(peer: &Peer, method: Method, body: &Value) -> u16 {
    let request = peer.request(method, &[]).body(body.to_string());
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a8_a_session_of_one_principal_is_unknown_to_another() {
    let upstream = server([Tool::new("echo")]).await;
    let pair = Pair::new(home(&[("one", &upstream.url())], &[])).await;
    let session = pair.alice.open().await;
    let thief = pair.bob.with("mcp-session-id", &session.id);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo"}});
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let answer = json!({"jsonrpc": "2.0", "id": "switchboard-1", "result": {}});
    for body in [&list, &call, &cancel, &answer] {
        assert_eq!(status(&thief, Method::POST, body).await, 404, "{body}");
    }
    assert_eq!(status(&thief, Method::GET, &Value::Null).await, 404);
    assert_eq!(status(&thief, Method::DELETE, &Value::Null).await, 404);
    // The same text as for a session that never existed, so that its existence is not revealed.
    let refused = async |peer: Peer| peer.post(list.to_string(), &[]).await.body;
    let unknown = pair.bob.with("mcp-session-id", "AAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(refused(thief).await, refused(unknown).await);
    assert_eq!(session.tools().await, ["one__echo"], "the owner noticed nothing");
    assert_eq!(upstream.stats().total_calls(), 0);
    assert_eq!(session.delete().await.status, 204);
    assert_eq!(status(&session.peer, Method::POST, &list).await, 404);
}

/// Nothing but the store knows it then.
#[tokio::test]
async fn a8_a_session_that_sleeps_is_unknown_to_another_too() {
    let upstream = server([Tool::new("echo")]).await;
    let mut pair = Pair::new(home(&[("one", &upstream.url())], &[])).await;
    let session = pair.alice.open().await;
    pair.serve.signal("TERM");
    assert!(pair.serve.ended().await.success());
    let serve = pair.home.serve().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let thief = pair.bob.with("mcp-session-id", &session.id).at(serve.at("/mcp"));
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(status(&thief, method.clone(), &list).await, 404, "{method}");
    }
    let owner = session.peer.at(serve.at("/mcp"));
    assert_eq!(status(&owner, Method::POST, &list).await, 200, "the owner noticed nothing");
    assert_eq!(status(&thief, Method::POST, &list).await, 404, "also when it is awake again");
}

#[tokio::test]
async fn a8_ids_are_long_and_never_the_same() {
    let serve = Home::new("switchboard: {}").serve().await;
    let mut ids = HashSet::new();
    for _ in 0..50 {
        let session = Peer::of(&serve).open().await;
        assert!(session.id.len() >= 22, "{}", session.id);
        assert!(session.id.bytes().all(|byte| byte.is_ascii_graphic()), "{}", session.id);
        ids.insert(session.id);
    }
    assert_eq!(ids.len(), 50);
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let all: Vec<_> = ids.iter().collect();
    assert!(all.windows(2).all(|pair| common(pair[0], pair[1]) < 8), "{all:?}");
}

#[tokio::test]
async fn a8_a_session_endpoint_belongs_to_who_made_it() {
    let upstream = server([Tool::new("echo")]).await;
    let pair =
        Pair::new(home(&[("one", &upstream.url())], &["gateway: {exposure: dynamic}"])).await;
    let make = async |peer: &Peer, body: Value| {
        let peer = peer.at(pair.serve.at("/api/v1/sessions"));
        let answer = peer.post(body.to_string(), &[]).await;
        (answer.status, answer.last())
    };
    let (made, endpoint) = make(&pair.alice, json!({})).await;
    assert_eq!(made, 201);
    let id = endpoint["id"].as_str().unwrap().to_owned();
    assert!(id.len() >= 22, "{id}");
    let url = pair.serve.at(endpoint["path"].as_str().unwrap());
    let (alice, bob) = (pair.alice.at(&url), pair.bob.at(&url));
    assert_eq!(bob.modern("tools/list", json!({})).await.status, 404);
    assert_eq!(bob.initialize("2025-11-25").await.status, 404);
    let theirs = pair.bob.at(pair.serve.at(&format!("/api/v1/sessions/{id}")));
    assert_eq!(status(&theirs, Method::DELETE, &Value::Null).await, 404);
    let listed = pair.bob.at(pair.serve.at("/api/v1/sessions"));
    let listed = listed.request(Method::GET, &[]).send().await.unwrap().text().await.unwrap();
    assert!(!listed.contains(&id), "{listed}");
    // A taken name is refused for every principal, and reveals nothing else.
    assert_eq!(make(&pair.alice, json!({"id": "mine"})).await.0, 201);
    assert_eq!(make(&pair.bob, json!({"id": "mine"})).await.0, 409);
    assert_eq!(alice.call("enable_toolset", json!({"toolsetName": "one"})).await.status, 200);
    assert!(alice.tools().await.contains(&"one__echo".to_owned()));
    assert!(!pair.bob.tools().await.contains(&"one__echo".to_owned()));
    // A legacy session within the endpoint is no key to another endpoint.
    let session = alice.open().await;
    let elsewhere = session.peer.at(pair.serve.at("/mcp/sessions/mine"));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(status(&elsewhere, Method::POST, &list).await, 404);
}

#[tokio::test]
async fn a8_a_session_of_one_server_is_no_key_to_another() {
    let (x, y) = (server([Tool::new("of_x")]).await, server([Tool::new("of_y")]).await);
    let serve = home(&[("x", &x.url()), ("y", &y.url())], &[]).serve().await;
    let session = Peer::of(&serve).at(serve.at("/mcp/servers/x")).open().await;
    assert_eq!(session.tools().await, ["x__of_x"]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "y__of_y"}});
    for path in ["/mcp/servers/y", "/mcp/toolsets/y", "/mcp/toolsets/x", "/mcp/sessions/x"] {
        let peer = session.peer.at(serve.at(path));
        for (method, body) in [
            (Method::POST, &list),
            (Method::POST, &call),
            (Method::GET, &list),
            (Method::DELETE, &list),
        ] {
            assert_eq!(status(&peer, method, body).await, 404, "{path} {body}");
        }
    }
    // At the endpoint of everything it still sees no more than it was opened for.
    let everywhere = session.peer.at(serve.at("/mcp"));
    let listed = everywhere.post(list.to_string(), &[]).await;
    assert!(!listed.body.contains("of_y"), "{}", listed.body);
    assert!(everywhere.post(call.to_string(), &[]).await.is_unknown_tool());
    assert_eq!(y.stats().total_calls(), 0);
}

/// A tool that asks its client a question, and the answer to it.
async fn asked(peer: &Peer, tool: &str, arguments: &Value) -> (String, Value) {
    question(&peer.call(tool, arguments.clone()).await.result())
}

fn question(result: &Value) -> (String, Value) {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let state = result["requestState"].as_str().unwrap().to_owned();
    let keys = result["inputRequests"].as_object().unwrap().keys();
    let accepted =
        json!({"action": "accept", "content": {"username": "u", "email": "e", "ok": true}});
    let responses: Value =
        keys.map(|key| (key.clone(), accepted.clone())).collect::<serde_json::Map<_, _>>().into();
    (state, responses)
}

async fn come_back(
    peer: &Peer,
    tool: &str,
    arguments: &Value,
    state: &str,
    responses: &Value,
) -> Answer {
    let params = json!({
        "name": tool, "arguments": arguments, "requestState": state, "inputResponses": responses,
    });
    peer.modern("tools/call", params).await
}

/// `tool` asks before it answers, and `other` would take an answer of the same shape.
async fn a_waiting_request_is_its_owners(era: &str, tool: &str, other: &str, arguments: Value) {
    let fixture = Fixture::start(era);
    let pair = Pair::new(home(&[("fix", &fixture.url)], &[])).await;
    let (alice, bob) = (pair.alice.able(), pair.bob.able());
    let (state, responses) = asked(&alice, tool, &arguments).await;
    assert!(state.len() >= 22, "{state}");
    let refused = async |peer: &Peer, tool: &str, arguments: &Value, state: &str| {
        let answer = come_back(peer, tool, arguments, state, &responses).await;
        assert!(answer.is_refusal(), "{tool} {arguments} {state}: {answer:?}");
    };
    refused(&bob, tool, &arguments, &state).await;
    refused(&alice, other, &arguments, &state).await;
    refused(&alice, tool, &json!({"message": "something else"}), &state).await;
    let mut tampered = state.clone();
    let last = tampered.pop().unwrap();
    tampered.push(if last == 'A' { 'B' } else { 'A' });
    refused(&alice, tool, &arguments, &tampered).await;
    let mut head = state.clone();
    // The head may be hexadecimal, where `a` and `A` are the same.
    head.replace_range(..1, if head.starts_with(['B', 'b']) { "C" } else { "B" });
    refused(&alice, tool, &arguments, &head).await;
    refused(&alice, tool, &arguments, &format!("{state}x")).await;
    let mine = come_back(&alice, tool, &arguments, &state, &responses).await;
    assert!(!mine.is_refusal(), "{mine:?}");
    assert_eq!(mine.result()["resultType"], "complete", "{mine:?}");
}

#[tokio::test]
async fn a8_a_waiting_request_to_a_legacy_server_is_its_owners() {
    let arguments = json!({"message": "who?"});
    a_waiting_request_is_its_owners(
        "legacy",
        "fix__test_elicitation",
        "fix__test_streaming_elicitation",
        arguments,
    )
    .await;
}

#[tokio::test]
async fn a8_a_waiting_request_to_a_modern_server_is_its_owners() {
    let tool = "fix__test_input_required_result_request_state";
    let other = "fix__test_input_required_result_tampered_state";
    a_waiting_request_is_its_owners("modern", tool, other, json!({})).await;
}

#[tokio::test]
async fn a8_a_state_is_used_once_with_a_legacy_server() {
    let fixture = Fixture::start("legacy");
    let serve = home(&[("fix", &fixture.url)], &[]).serve().await;
    let peer = Peer::of(&serve).able();
    let arguments = json!({"message": "who?"});
    let (one, responses) = asked(&peer, "fix__test_elicitation", &arguments).await;
    let (two, _) = asked(&peer, "fix__test_elicitation", &arguments).await;
    assert_ne!(one, two);
    let first = come_back(&peer, "fix__test_elicitation", &arguments, &one, &responses).await;
    assert!(!first.is_refusal(), "{first:?}");
    let again = come_back(&peer, "fix__test_elicitation", &arguments, &one, &responses).await;
    assert_eq!(again.code(), INVALID_PARAMS, "{again:?}");
    assert!(
        !come_back(&peer, "fix__test_elicitation", &arguments, &two, &responses).await.is_refusal()
    );
}

/// Modified states that an attacker with valid states would try.
fn forgeries(one: &str, two: &str) -> Vec<String> {
    let changed_at = |at: usize| {
        let mut bytes = one.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).unwrap()
    };
    let parts = 8;
    let changed = (0..parts).map(|part| changed_at(part * (one.len() - 1) / (parts - 1)));
    let (seal, inside) = one.split_once('.').unwrap();
    let (_, other_inside) = two.split_once('.').unwrap();
    let (half, _) = one.split_at(one.len() / 2);
    let (_, other_half) = two.split_at(two.len() / 2);
    // The beginning of one with the rest of the other, and what is left when something is cut off.
    let put_together = [
        format!("{seal}.{other_inside}"),
        format!("{half}{other_half}"),
        half.to_owned(),
        inside.to_owned(),
        one.chars().skip(1).collect(),
        one.chars().take(one.len() - 1).collect(),
        String::new(),
        format!("{one}{one}"),
    ];
    changed.chain(put_together).collect()
}

#[tokio::test]
async fn a8_a_state_of_a_modern_server_is_worth_nothing_changed_or_elsewhere() {
    let fixture = Fixture::start("modern");
    let servers = [("fix", fixture.url.as_str()), ("twin", fixture.url.as_str())];
    let pair = Pair::new(home(&servers, &[])).await;
    let (alice, bob) = (pair.alice.able(), pair.bob.able());
    let (tool, arguments) = ("fix__test_input_required_result_multi_round", json!({}));
    let (one, answer_one) = asked(&alice, tool, &arguments).await;
    let next = come_back(&alice, tool, &arguments, &one, &answer_one).await;
    let (two, answer_two) = question(&next.result());
    assert_ne!(one, two);
    let refused = async |peer: &Peer, tool: &str, state: &str| {
        let answer = come_back(peer, tool, &arguments, state, &answer_two).await;
        assert!(answer.is_refusal(), "{tool} {state}: {answer:?}");
    };
    for forged in forgeries(&two, &one).into_iter().chain(forgeries(&one, &two)) {
        refused(&alice, tool, &forged).await;
    }
    // The same tool of another server, and an endpoint that does not show the tool.
    refused(&alice, "twin__test_input_required_result_multi_round", &two).await;
    refused(&alice.at(pair.serve.at("/mcp/servers/twin")), tool, &two).await;
    refused(&bob, tool, &two).await;
    let mine = come_back(&alice, tool, &arguments, &two, &answer_two).await;
    assert_eq!(mine.result()["resultType"], "complete", "{mine:?}");
    // Once it was used it is no more to others than before. To its owner it is what the server makes of it.
    refused(&bob, tool, &two).await;
    let again = come_back(&alice, tool, &arguments, &two, &answer_two).await;
    assert_eq!(again.result()["resultType"], "complete", "{again:?}");
}

#[tokio::test]
async fn a8_a_state_of_a_modern_server_opens_no_session_that_does_not_show_the_tool() {
    let fixture = Fixture::start("modern");
    let pair = Pair::new(home(&[("fix", &fixture.url)], &["gateway: {exposure: dynamic}"])).await;
    let alice = pair.alice.able();
    let make = async |id: &str| {
        let body = json!({ "id": id }).to_string();
        let made = alice.at(pair.serve.at("/api/v1/sessions")).post(body, &[]).await;
        assert_eq!(made.status, 201, "{}", made.body);
        alice.at(pair.serve.at(made.last()["path"].as_str().unwrap()))
    };
    let (open, closed) = (make("open").await, make("closed").await);
    assert_eq!(open.call("enable_toolset", json!({"toolsetName": "fix"})).await.status, 200);
    let (tool, arguments) = ("fix__test_input_required_result_request_state", json!({}));
    let (state, responses) = asked(&open, tool, &arguments).await;
    for elsewhere in [&closed, &alice] {
        let answer = come_back(elsewhere, tool, &arguments, &state, &responses).await;
        assert!(answer.is_refusal(), "{answer:?}");
    }
    let mine = come_back(&open, tool, &arguments, &state, &responses).await;
    assert_eq!(mine.result()["resultType"], "complete", "{mine:?}");
}
