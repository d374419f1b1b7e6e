//! `stdio --url`: a client that can only start programs uses a running instance.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool, wait_until};

use crate::board::{META_NAMES, meta_and, two_servers};
use crate::fixture::Fixture;
use crate::hearing::CHANGED;
use crate::peer::{BOTH, Era, text};
use crate::pipe::Pipe;
use crate::support::{Home, PATIENCE, Serve, dynamic, server, yaml};

async fn bridge(era: Era, home: &Home, serve: &Serve) -> Pipe {
    Pipe::open_with(era, home, &["stdio", "--url", &serve.url], json!({"elicitation": {}})).await
}

#[tokio::test]
async fn both_eras_list_call_and_hear_of_progress_through_a_bridge() {
    let tools = [Tool::echo("echo"), Tool::echo("slow").sleeps(300).progress_every(50)];
    let upstream = server(tools).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &upstream.url())]));
    let serve = home.serve().await;
    for era in BOTH {
        let mut client = bridge(era, &home, &serve).await;
        assert_eq!(client.list().await, ["one__echo", "one__slow"]);
        let echoed = client.call("one__echo", json!({"n": 7})).await;
        assert_eq!(echoed["structuredContent"], json!({"n": 7}));
        let params =
            json!({"name": "one__slow", "arguments": {}, "_meta": {"progressToken": "mine"}});
        let answer = client.ask("tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        let heard = client.heard();
        assert!(client.of_method("notifications/progress").len() >= 2, "{heard:?}");
        assert_eq!(heard.last(), Some(&answer), "progress comes before the answer");
        // What is no message is answered by the board, and what is too long before it.
        client.write(b"no JSON\n");
        client.message(|message| message["error"]["code"] == -32700).await;
        client.write(&vec![b'x'; 5 * 1024 * 1024]);
        client.write(b"\n");
        let long = |message: &Value| {
            message["error"]["message"] == "a message is larger than 4194304 bytes"
        };
        client.message(long).await;
        let last = client.new_id();
        let call = json!({"name": "one__echo", "arguments": {"last": true}});
        client.request(&last, "tools/call", call);
        client.close_input();
        assert_eq!(client.ended().await.code(), Some(0));
        assert!(client.answer(&last).await["result"].is_object());
    }
    let sessions = serve.get("/api/v1/sessions").await;
    assert_eq!(sessions["sessions"], json!([]), "the session of the legacy client was ended");
    assert_eq!(upstream.stats().initialize_count + upstream.stats().discover_count, 1, "one board");
}

#[tokio::test]
async fn changes_of_the_list_and_cancellations_cross_a_bridge() {
    let board = two_servers("exposure: dynamic, stateless_state: principal").await;
    board.shop.set_tools([Tool::echo("find"), Tool::echo("price").sleeps(25_000)]);
    let serve = board.home.serve().await;
    for (era, calls) in BOTH.into_iter().zip(1..) {
        let client = bridge(era, &board.home, &serve).await;
        client.subscribe().await;
        client.call("enable_toolset", json!({"toolsetName": "look"})).await;
        client.until(CHANGED, 1).await;
        assert_eq!(client.list().await, meta_and(&["shop__find", "shop__price"]));
        let id = json!("mine");
        client.request(&id, "tools/call", json!({"name": "shop__price", "arguments": {}}));
        wait_until(PATIENCE, async || (board.shop.stats().running_calls == 1).then_some(())).await;
        client.request(&id, "tools/list", json!({}));
        assert_eq!(client.answer(&id).await["error"]["code"], -32600);
        client.cancel(&id);
        wait_until(PATIENCE, async || (board.shop.stats().running_calls == 0).then_some(())).await;
        let stats = board.shop.stats();
        assert_eq!(stats.cancelled.len() + stats.dropped_calls.len(), calls, "{stats:?}");
        client.call("disable_toolset", json!({"toolsetName": "look"})).await;
        client.until(CHANGED, 2).await;
        assert_eq!(client.list().await, META_NAMES);
    }
}

#[tokio::test]
async fn questions_and_headers_cross_a_bridge() {
    let fixture = Fixture::start("modern");
    let home = Home::new(yaml(&[], &[dynamic("new", &fixture.url)]));
    let serve = home.serve().await;
    let content = json!({"username": "ada", "email": "ada@example.org"});
    let accepted = json!({"action": "accept", "content": content});
    let asking = json!({"name": "new__test_elicitation", "arguments": {"message": "Who is it?"}});

    let legacy = bridge(Era::Legacy, &home, &serve).await;
    let id = legacy.new_id();
    legacy.request(&id, "tools/call", asking.clone());
    let question = legacy.message(|message| message["method"] == "elicitation/create").await;
    legacy.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted}));
    let answer = legacy.answer(&id).await;
    assert!(answer["result"].to_string().contains("ada"), "{answer}");

    let modern = bridge(Era::Modern, &home, &serve).await;
    let asked = modern.ask("tools/call", asking.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let mut params = asking;
    params["inputResponses"] = json!({key: accepted});
    if !asked["requestState"].is_null() {
        params["requestState"] = asked["requestState"].clone();
    }
    let answer = modern.ask("tools/call", params).await;
    assert!(answer["result"].to_string().contains("ada"), "{answer}");

    // Over HTTP its argument must be a header too. Lines have none, so the bridge adds it.
    for client in [&legacy, &modern] {
        let called = client.call("new__test_custom_header", json!({"value": "grüße"})).await;
        assert_eq!(text(&called), "Accepted.", "{called}");
    }
}

#[tokio::test]
async fn a_session_that_the_board_has_lost_is_opened_anew() {
    let board = two_servers("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let client = bridge(Era::Legacy, &board.home, &serve).await;
    client.call("enable_toolset", json!({"toolsetName": "look"})).await;
    client.until(CHANGED, 1).await;
    for n in 0..2 {
        let sessions = serve.get("/api/v1/sessions").await;
        let id = sessions["sessions"][0]["id"].as_str().unwrap();
        let path = format!("/api/v1/sessions/{id}");
        let ended = serve.http.delete(serve.at(&path)).send().await.unwrap();
        assert_eq!(ended.status(), 204);
        // Nothing is enabled in the new one, and the client is told: also when it asks for nothing.
        if n == 0 {
            assert_eq!(client.list().await, META_NAMES);
        }
        client.until(CHANGED, 2 + 2 * n).await;
        assert_eq!(client.list().await, META_NAMES);
        client.call("enable_toolset", json!({"toolsetName": "buy"})).await;
        client.until(CHANGED, 3 + 2 * n).await;
    }
    assert_eq!(client.list().await, meta_and(&["shop__price", "shop__order"]));
}

#[tokio::test]
async fn what_a_lost_session_was_told_is_told_to_the_next_one() {
    let builder = ScriptedServer::builder().tools([Tool::echo("t")]);
    let upstream = builder.resources(["one://r", "one://s"]).start().await;
    let home = Home::new(yaml(&[], &[dynamic("one", &upstream.url())]));
    let serve = home.serve().await;
    let client = bridge(Era::Legacy, &home, &serve).await;
    for (method, uri) in [
        ("resources/subscribe", "one://r"),
        ("resources/subscribe", "one://s"),
        ("resources/unsubscribe", "one://s"),
    ] {
        let answer = client.ask(method, json!({ "uri": uri })).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let sessions = serve.get("/api/v1/sessions").await;
    let path = format!("/api/v1/sessions/{}", sessions["sessions"][0]["id"].as_str().unwrap());
    assert_eq!(serve.http.delete(serve.at(&path)).send().await.unwrap().status(), 204);
    wait_until(PATIENCE, async || upstream.watched().is_empty().then_some(())).await;
    assert_eq!(client.list().await, ["one__t"]);
    wait_until(PATIENCE, async || (upstream.watched() == ["one://r"]).then_some(())).await;
    for list in ["tools", "prompts", "resources"] {
        client.until(&format!("notifications/{list}/list_changed"), 1).await;
    }
    assert!(upstream.update_resource("one://r").await > 0);
    client.until("notifications/resources/updated", 1).await;
}

#[tokio::test]
async fn a_board_that_is_gone_is_named_in_the_answer() {
    for era in BOTH {
        let upstream = server([Tool::echo("slow").sleeps(25_000)]).await;
        let home = Home::new(yaml(&[], &[dynamic("one", &upstream.url())]));
        let mut serve = home.serve().await;
        let mut client = bridge(era, &home, &serve).await;
        let id = client.new_id();
        client.request(&id, "tools/call", json!({"name": "one__slow", "arguments": {}}));
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 1).then_some(())).await;
        serve.signal("KILL");
        serve.ended().await;
        for answer in [client.answer(&id).await, client.ask("tools/list", json!({})).await] {
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("cannot reach {}/mcp: ", serve.url)), "{message}");
            assert!(message.ends_with("is `switchboard serve` running there?"), "{message}");
        }
        client.close_input();
        assert_eq!(client.ended().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_bridge_that_cannot_start_says_why() {
    let home = Home::empty();
    let nobody = home.line("stdio --url http://127.0.0.1:1").expect(4);
    assert!(nobody.stderr.contains("cannot reach http://127.0.0.1:1/mcp: "), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("`switchboard serve`"), "{}", nobody.stderr);
    let strange = server([]).await;
    let url = strange.url().replace("/mcp", "/elsewhere");
    let elsewhere = home.run(&["stdio", "--url", &url]).expect(4);
    assert!(elsewhere.stderr.contains("answered HTTP 404"), "{}", elsewhere.stderr);
    strange.set_fault(Fault::LoginPage(Stage::Any)).await;
    let page = home.run(&["stdio", "--url", &strange.url()]).expect(4);
    assert!(
        page.stderr.contains("answered HTTP 200 OK, which is not an MCP response"),
        "{}",
        page.stderr
    );
    home.line("stdio --url nowhere").expect(2);
    let shown = home.line("stdio --url http://127.0.0.1:1 --tool-sets look").expect(2);
    assert!(shown.stderr.contains("/mcp/toolsets/NAMES"), "{}", shown.stderr);

    let guarded = Home::new(yaml(&[], &[]));
    let key = guarded.line("key add laptop --json").expect(0).json();
    let serve = guarded.serve().await;
    let refused = home.run(&["stdio", "--url", &serve.url]).expect(4);
    assert!(refused.stderr.contains("answered HTTP 401"), "{}", refused.stderr);
    let holder = Home::empty().with_variable("SWITCHBOARD_API_KEY", key["key"].as_str().unwrap());
    for era in BOTH {
        assert_eq!(bridge(era, &holder, &serve).await.list().await, [""; 0]);
    }
}

/// What `connect` writes for a board of its own must not become something else where a variable is set.
#[tokio::test]
async fn a_configuration_that_is_named_is_served_whatever_the_variable_says() {
    let upstream = server([Tool::echo("echo")]).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &upstream.url())]))
        .with_variable("SWITCHBOARD_URL", "http://127.0.0.1:1");
    let file = home.config();
    let arguments = ["--config", file.to_str().unwrap(), "stdio"];
    let client = Pipe::open_with(Era::Legacy, &home, &arguments, json!({})).await;
    assert_eq!(client.list().await, ["one__echo"]);
}
