//! F9, with A8 and A13: calls that run as tasks of their server belong to the principal that made them, and to no
//! other.

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::client::{Answer, Peer};
use crate::fixture::Fixture;
use crate::support::{Home, PATIENCE, Serve, dynamic, signal};
use crate::world::{config, config_with, home, key};

const INVALID_PARAMS: i64 = -32602;
const MISSING_CAPABILITY: i64 = -32021;

fn takes_tasks() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn about(peer: &Peer, method: &str, id: &Value) -> Answer {
    let params = json!({"taskId": id});
    let mut headers = Peer::modern_headers(method, &params);
    headers.push(("mcp-name".into(), id.as_str().unwrap_or("-").into()));
    peer.post(peer.modern_message(method, &params).to_string(), &headers).await
}

/// Begins a task and gives its id.
async fn begin(peer: &Peer, tool: &str, arguments: Value) -> Value {
    let result = peer.call(tool, arguments).await.result();
    assert_eq!((&result["resultType"], &result["status"]), (&json!("task"), &json!("working")));
    let id = result["taskId"].clone();
    // The server's own ids are good for nothing here.
    assert!(id.as_str().is_some_and(|id| !id.starts_with("task ")), "{result}");
    id
}

async fn stopped(mut serve: Serve) {
    signal(serve.pid(), "TERM");
    assert!(serve.ended().await.success());
}

#[tokio::test]
async fn f9_a_task_is_followed_answered_and_cancelled_through_the_gateway() {
    let fixture = Fixture::start("modern");
    let serve = home(&[("new", &fixture.url)], &[]).serve().await;
    let peer = Peer::of(&serve).able_to(takes_tasks());
    let discovered = peer.modern("server/discover", json!({})).await.result();
    let extensions = &discovered["capabilities"]["extensions"];
    assert_eq!(*extensions, json!({"io.modelcontextprotocol/tasks": {}}));

    let id = begin(&peer, "new__slow_compute", json!({"seconds": 0.2, "label": "x"})).await;
    let done = wait_until(PATIENCE, async || {
        let now = about(&peer, "tasks/get", &id).await.result();
        assert_eq!((&now["taskId"], &now["resultType"]), (&id, &json!("complete")));
        (now["status"] == "completed").then_some(now)
    });
    assert_eq!(done.await["result"]["content"][0]["text"], "Computed x");

    let id = begin(&peer, "new__confirm_delete", json!({"filename": "x"})).await;
    let asked = about(&peer, "tasks/get", &id).await.result();
    assert_eq!(asked["status"], "input_required");
    assert!(asked["inputRequests"]["confirm"].is_object(), "{asked}");
    let params = json!({"taskId": id, "inputResponses": {"confirm": {"action": "accept", "content": {"ok": true}}}});
    let mut headers = Peer::modern_headers("tasks/update", &params);
    headers.push(("mcp-name".into(), id.as_str().unwrap().into()));
    let message = peer.modern_message("tasks/update", &params).to_string();
    assert_eq!(peer.post(message, &headers).await.result(), json!({"resultType": "complete"}));
    assert_eq!(about(&peer, "tasks/get", &id).await.result()["status"], "completed");

    let id = begin(&peer, "new__slow_compute", json!({"seconds": 600, "label": "x"})).await;
    assert_eq!(about(&peer, "tasks/cancel", &id).await.result(), json!({"resultType": "complete"}));
    assert_eq!(about(&peer, "tasks/get", &id).await.result()["status"], "cancelled");

    // Other interfaces, and clients without task support, get the server's result for clients without tasks.
    let plain = Peer::of(&serve).call("new__slow_compute", json!({"seconds": 0})).await;
    assert_eq!(plain.text(), "Computed ");
    let (_, plain) = serve.call("slow_compute", json!({"seconds": 0, "label": "y"})).await;
    assert!(plain.to_string().contains("Computed y"), "{plain}");
    let refused = Peer::of(&serve).call("new__failing_job", json!({})).await;
    assert_eq!((refused.status, refused.code()), (400, MISSING_CAPABILITY));
    // So does a client of the era that cannot follow one, whatever it says.
    let session = peer.open().await;
    let plain = session.call("new__slow_compute", json!({"seconds": 0, "label": "z"})).await;
    assert_eq!(plain.text(), "Computed z");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(session.ask(method, json!({"taskId": id})).await.code(), -32601, "{method}");
        let unable = about(&Peer::of(&serve), method, &id).await;
        assert_eq!((unable.status, unable.code()), (400, MISSING_CAPABILITY), "{method}");
    }
}

#[tokio::test]
async fn f9_a_task_belongs_to_its_principal_outlives_a_restart_and_ends_with_the_policy() {
    let fixture = Fixture::start("modern");
    let home = home(&[("new", &fixture.url)], &[]);
    let (alice, bob) = (key(&home, "alice", "client"), key(&home, "bob", "client"));
    let serve = home.serve().await;
    let peers = |serve: &Serve| {
        let peer = Peer::of(serve).able_to(takes_tasks());
        (peer.with_key(&alice), peer.with_key(&bob))
    };
    let (owner, other) = peers(&serve);
    let id = begin(&owner, "new__slow_compute", json!({"seconds": 600})).await;
    let forged = json!(format!("{}x", id.as_str().unwrap()));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let stolen = about(&other, method, &id).await;
        let unknown = about(&other, method, &json!("task 0")).await;
        assert_eq!((stolen.status, stolen.code()), (200, INVALID_PARAMS), "{method}");
        // The same words as for one that never was.
        assert_eq!(stolen.body, unknown.body, "{method}");
        assert_eq!(about(&owner, method, &forged).await.body, unknown.body, "{method}");
        assert_eq!(about(&owner, method, &json!(7)).await.code(), INVALID_PARAMS, "{method}");
    }
    assert_eq!(about(&owner, "tasks/get", &id).await.result()["status"], "working");

    stopped(serve).await;
    let serve = home.serve().await;
    let (owner, _) = peers(&serve);
    assert_eq!(about(&owner, "tasks/get", &id).await.result()["status"], "working");
    // A connection that sees less sees less of tasks, too.
    let narrow = owner.with("x-mcp-tools", "new__greet");
    assert_eq!(about(&narrow, "tasks/get", &id).await.code(), INVALID_PARAMS);
    stopped(serve).await;

    // Whether the whole server is hidden, or the tool alone.
    let servers = [dynamic("new", &fixture.url)];
    for hiding in [
        config(&servers, &["gateway: {deny_toolsets: [new]}"]),
        config_with(&["{name: new.slow_compute, enabled: false}"], &servers, &[]),
    ] {
        home.rewrite(hiding);
        let serve = home.serve().await;
        let (owner, _) = peers(&serve);
        assert_eq!(about(&owner, "tasks/get", &id).await.code(), INVALID_PARAMS);
        stopped(serve).await;
    }
}

#[tokio::test]
async fn f9_what_a_task_has_come_to_is_capped_like_a_result_and_kept_once() {
    let fixture = Fixture::start("modern");
    let limited = "{name: new.slow_compute, max_result_bytes: 10000}";
    let yaml = config_with(&[limited], &[dynamic("new", &fixture.url)], &[]);
    let home = Home::new(yaml);
    let serve = home.serve().await;
    let peer = Peer::of(&serve).able_to(takes_tasks());
    let label = "x".repeat(50_000);
    let id = begin(&peer, "new__slow_compute", json!({"seconds": 0, "label": label})).await;
    let handle = async || {
        let now = about(&peer, "tasks/get", &id).await.result();
        assert_eq!((&now["taskId"], &now["status"]), (&id, &json!("completed")));
        let text = now["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.len() < 10_000 && text.contains("max_result_bytes"), "{text}");
        now["result"]["_meta"]["switchboard/result"]["handle"].as_str().unwrap().to_owned()
    };
    let (first, again) = (handle().await, handle().await);
    assert_eq!(first, again);
    let whole = serve.text(&format!("/api/v1/results/{first}")).await;
    assert!(whole.contains(&label), "{}", whole.len());
}

#[tokio::test]
async fn f9_a_task_begins_through_call_tool_and_is_recorded_as_a_call() {
    let fixture = Fixture::start("modern");
    let serve = home(&[("new", &fixture.url)], &["gateway: {exposure: dynamic}"]).serve().await;
    let peer = Peer::of(&serve).able_to(takes_tasks());
    let arguments = json!({"name": "new__slow_compute", "arguments": {"seconds": 600}});
    let id = begin(&peer, "call_tool", arguments).await;
    assert_eq!(about(&peer, "tasks/get", &id).await.result()["status"], "working");
    let calls = serve.get("/api/v1/calls").await;
    assert_eq!(calls["calls"][0]["tool"], "new.slow_compute", "{calls}");
    assert_eq!(calls["calls"][0]["outcome"], "ok", "{calls}");
}

#[tokio::test]
async fn f9_a_task_of_a_server_that_a_session_brought_is_of_that_session() {
    let fixture = Fixture::start("modern");
    let egress = "security: {egress: {allow: [\"127.0.0.0/8\"]}}";
    let serve = home(&[], &[egress]).serve().await;
    let make = Peer::of(&serve).at(serve.at("/api/v1/sessions"));
    for id in ["mine", "theirs"] {
        assert_eq!(make.post(json!({"id": id}).to_string(), &[]).await.status, 201);
    }
    let put = make.at(serve.at("/api/v1/sessions/mine/servers/own"));
    let put = put.request(Method::PUT, &[]).body(json!({"url": fixture.url}).to_string());
    assert!(put.send().await.unwrap().status().is_success());
    let at = |path: &str| Peer::of(&serve).able_to(takes_tasks()).at(serve.at(path));
    let peer = at("/mcp/sessions/mine");
    wait_until(PATIENCE, async || {
        peer.tools().await.contains(&"own__greet".to_owned()).then_some(())
    })
    .await;
    let id = begin(&peer, "own__slow_compute", json!({"seconds": 600})).await;
    assert_eq!(about(&peer, "tasks/get", &id).await.result()["status"], "working");
    for elsewhere in ["/mcp/sessions/theirs", "/mcp"] {
        let answer = about(&at(elsewhere), "tasks/get", &id).await;
        assert_eq!(answer.code(), INVALID_PARAMS, "{elsewhere}");
    }
}

#[tokio::test]
async fn f9_a_task_that_nobody_asked_for_is_a_failed_call() {
    let task = json!({"resultType": "task", "taskId": "1", "status": "working"});
    let nameless = json!({"resultType": "task", "status": "working"});
    let tools = [("eager", task), ("nameless", nameless)];
    let tools = tools.map(|(name, result)| Tool::new(name).replies(Reply::Result(result)));
    let upstream = ScriptedServer::builder().modern().tools(tools).start().await;
    let home: Home = home(&[("new", &upstream.url())], &[]);
    let serve = home.serve().await;
    let peer = Peer::of(&serve);
    for (peer, tool) in [(&peer, "new__eager"), (&peer.able_to(takes_tasks()), "new__nameless")] {
        let answer = peer.call(tool, json!({})).await;
        assert_eq!(answer.result()["isError"], true, "{tool}: {answer:?}");
        assert!(answer.text().contains("a task"), "{tool}: {answer:?}");
    }
    assert!(peer.open().await.call("new__eager", json!({})).await.text().contains("a task"));
    let (_, said) = serve.call("eager", json!({})).await;
    assert!(said.to_string().contains("a task, which this face cannot follow"), "{said}");
}
