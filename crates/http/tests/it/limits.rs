//! Limits of requests and responses: body sizes, records, slices of stored results, sessions.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::{Reply, Tool};

use crate::api_server::{Answer, Api, ApiServer, scripted, yaml};

const MIB: usize = 1 << 20;

/// A JSON object of this size that no endpoint accepts.
fn padded(bytes: usize) -> String {
    format!("{{\"padding\": \"{}\"}}", "x".repeat(bytes - 15))
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_with_the_limit_of_its_path() {
    let server = ApiServer::start(&yaml(&["{name: sum_numbers}"], &[])).await;
    let api = server.api();
    api.new_session(json!({"id": "work"})).await;
    let (call, turns) = ("/api/v1/tools/sum_numbers/call", "/api/v1/sessions/work/turns");
    let send = async |method: Method, path: &str, body: String| {
        let request = api.request(method, path).header("content-type", "application/json");
        Answer::of(request.body(body)).await
    };
    // What fits is read, and refused for what it says.
    send(Method::POST, call, padded(4 * MIB)).await.problem(422, "bad_request");
    send(Method::POST, turns, padded(5 * MIB)).await.problem(422, "bad_request");
    for (path, limit) in [(call, 4_194_304), ("/api/v1/sessions", 4_194_304), (turns, 33_554_432)] {
        // Announced by its length: it is refused before it is sent.
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            limit + 1
        );
        let (status, body) = server.send_raw(&head).await;
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &problem["title"]), (413, &json!("bad request")), "{path}");
        assert_eq!(problem["detail"], format!("the body is larger than {limit} bytes"));
    }
    // Of unknown length: it is cut off at the limit.
    let chunks = (0..5).map(|_| Ok::<_, std::io::Error>("x".repeat(MIB)));
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    let request = api.request(Method::POST, call).header("content-type", "application/json");
    Answer::of(request.body(body)).await.problem(413, "bad_request");
}

#[tokio::test]
async fn a_large_result_is_stored_and_read_in_slices() {
    let one = scripted([Tool::new("large").replies(Reply::Text("y".repeat(9 * MIB)))]).await;
    let tools = ["{name: large, max_result_bytes: 1024}"];
    let server = ApiServer::start(&yaml(&tools, &[("one", &one)])).await;
    let api = server.api();
    let called = api.post("/api/v1/tools/large/call", json!({})).await.good();
    assert!(called["result"].to_string().len() < 4096, "the response has only the beginning");
    let path = format!("/api/v1/results/{}", called["result_handle"].as_str().unwrap());
    let slice = async |query: &str| {
        let request = api.request(Method::GET, &format!("{path}{query}"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{query}");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let (total, kind) =
            (header("x-result-bytes").parse::<usize>().unwrap(), header("content-type"));
        (total, kind, response.bytes().await.unwrap())
    };
    let (total, kind, first) = slice("").await;
    assert!(total > 9 * MIB && first.len() == 8 * MIB, "{total} {}", first.len());
    assert_eq!(kind, "application/octet-stream", "a part of a JSON text is not JSON");
    let (_, _, rest) = slice(&format!("?offset={}", first.len())).await;
    assert_eq!(first.len() + rest.len(), total);
    let whole: Value = serde_json::from_slice(&[first.clone(), rest].concat()).unwrap();
    assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 9 * MIB);
    assert_eq!(slice("?offset=2&length=9").await.2, first.slice(2..11));
    for query in ["?offset=99999999999", "?length=0"] {
        assert_eq!(slice(query).await.2.len(), 0, "{query}");
    }
    let gone = api.get("/api/v1/results/result-none").await.problem(404, "unknown_result");
    assert_eq!(gone, "there is no result 'result-none'; large results are kept for a day");
}

#[tokio::test]
async fn records_are_paged_from_the_newest_and_filtered() {
    let one = scripted([Tool::echo("echo")]).await;
    let server = ApiServer::start(&yaml(&[], &[("one", &one)])).await;
    let api = server.api();
    for number in 0..5 {
        let body = json!({"arguments": {"n": number}});
        api.post("/api/v1/tools/one.echo/call", body).await.good();
    }
    api.post("/api/v1/tools/nothing/call", json!({})).await.problem(404, "unknown_tool");
    let ids = async |query: &str| {
        let list = api.get(&format!("/api/v1/calls{query}")).await.good();
        let ids = list["calls"].as_array().unwrap().iter();
        ids.map(|call| call["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ids("").await;
    assert_eq!(all.len(), 6);
    let mut paged = ids("?limit=4").await;
    paged.extend(ids(&format!("?limit=4&before={}", paged[3])).await);
    assert_eq!(paged, all);
    for (query, expected) in [
        ("?outcome=unknown_tool", &all[..1]),
        ("?outcome=ok", &all[1..]),
        ("?tool=echo", &all[1..]),
        ("?server=one&outcome=timeout", &[]),
        ("?since=2100-01-01T00:00:00Z", &[]),
        ("?session=none", &[]),
    ] {
        assert_eq!(ids(query).await, expected, "{query}");
    }
    let said = api.get("/api/v1/calls?since=yesterday").await.problem(400, "bad_request");
    assert_eq!(said, "`since` is not an RFC 3339 timestamp");
}

#[tokio::test]
async fn each_principal_has_a_limited_number_of_sessions() {
    let config = format!("{}  gateway: {{max_sessions_per_principal: 2}}\n", yaml(&[], &[]));
    let server = ApiServer::start(&config).await;
    let alice = server.api_of("alice", Role::Client).await;
    let bob = server.api_of("bob", Role::Client).await;
    let create = async |api: &Api| api.post("/api/v1/sessions", json!({})).await;
    let kept = create(&alice).await.good()["id"].as_str().unwrap().to_owned();
    create(&alice).await.good();
    create(&alice).await.problem(429, "too_many_sessions");
    create(&bob).await.good();
    let ended = alice.send(Method::DELETE, &format!("/api/v1/sessions/{kept}"), None).await;
    assert_eq!(ended.status, 204);
    create(&alice).await.good();
}
