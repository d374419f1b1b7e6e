//! F9: clients and servers of both eras, in every combination, on one gateway.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_test_support::{
    Fault, Reply, ScriptedServer, ScriptedServerBuilder, SeenRequest, Stage, Tool, wait_until,
};

use crate::client::{Answer, Events, Peer, Session};
use crate::fixture::Fixture;
use crate::support::{Home, PATIENCE, Serve};
use crate::world::home;

/// A gateway with a legacy server `old` and a modern one `new`.
struct World {
    serve: Serve,
    _home: Home,
    _fixtures: [Fixture; 2],
}

async fn world() -> World {
    let fixtures = ["legacy", "modern"].map(Fixture::start);
    let home = home(&[("old", &fixtures[0].url), ("new", &fixtures[1].url)], &[]);
    let serve = home.serve().await;
    let servers = serve.get("/api/v1/servers").await;
    let eras: Vec<_> =
        servers["servers"].as_array().unwrap().iter().map(|server| server["era"].clone()).collect();
    assert_eq!(eras, [json!("legacy"), json!("modern")], "{servers}");
    World { serve, _home: home, _fixtures: fixtures }
}

/// What a client answers to a question of a server.
fn answer_to(method: &str) -> Value {
    match method {
        "elicitation/create" => {
            json!({"action": "accept", "content": {"username": "ana", "email": "a@b.c", "name": "ana"}})
        }
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "from the model"}, "model": "m", "stopReason": "endTurn"})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///work/here", "name": "here"}]}),
        other => panic!("nobody asks {other}"),
    }
}

/// A call of a legacy client that answers what it is asked; gives all messages, the response last.
async fn legacy_dialogue(
    session: &Session,
    tool: &str,
    arguments: Value,
    meta: Value,
) -> Vec<Value> {
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let response = session.ask_response(session.next_id(), "tools/call", params).await;
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    if kind.starts_with("application/json") {
        return vec![Answer::of(response).await.last()];
    }
    let mut events = Events::of(response);
    let mut messages = Vec::new();
    while let Some(message) = events.next().await {
        if let (Some(method), false) = (message["method"].as_str(), message["id"].is_null()) {
            session.reply(&message["id"], answer_to(method)).await;
        }
        messages.push(message);
    }
    messages
}

/// The same of a modern client, which is told what is wanted and comes back with it.
async fn modern_dialogue(peer: &Peer, tool: &str, arguments: Value) -> Vec<Value> {
    let mut params = json!({"name": tool, "arguments": arguments});
    let mut messages = Vec::new();
    for _ in 0..5 {
        let answer = peer.modern("tools/call", params.clone()).await;
        messages.extend(answer.messages());
        let result = answer.last()["result"].clone();
        if result["resultType"] != "input_required" {
            return messages;
        }
        let mut responses = json!({});
        for (key, request) in result["inputRequests"].as_object().unwrap() {
            responses[key] = answer_to(request["method"].as_str().unwrap());
        }
        params["inputResponses"] = responses;
        params["requestState"] = result["requestState"].clone();
        if params["requestState"].is_null() {
            params.as_object_mut().unwrap().remove("requestState");
        }
    }
    panic!("{tool} asks without end: {messages:?}");
}

fn text_of(messages: &[Value]) -> String {
    let last = messages.last().expect("an answer");
    last["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{last}")).to_owned()
}

fn with_method<'a>(messages: &'a [Value], method: &str) -> Vec<&'a Value> {
    messages.iter().filter(|message| message["method"] == method).collect()
}

#[tokio::test]
async fn f9_every_client_lists_and_calls_every_server() {
    let world = world().await;
    let peer = Peer::of(&world.serve);
    let session = peer.open().await;
    let tools = peer.tools().await;
    assert_eq!(session.tools().await, tools);
    for server in ["old", "new"] {
        let tool = format!("{server}__test_simple_text");
        assert!(tools.contains(&tool), "{tools:?}");
        let (modern, legacy) =
            (peer.call(&tool, json!({})).await, session.call(&tool, json!({})).await);
        assert_eq!(modern.result()["resultType"], "complete");
        assert_eq!(modern.text(), "This is a simple text response for testing.");
        assert_eq!(legacy.text(), modern.text());
        let failed = session.call(&format!("{server}__test_error_handling"), json!({})).await;
        assert_eq!(failed.result()["isError"], true);
        for (method, params) in [
            ("prompts/get", json!({"name": format!("{server}__test_simple_prompt")})),
            ("resources/templates/list", json!({})),
        ] {
            assert!(!peer.modern(method, params.clone()).await.is_refusal(), "{server} {method}");
            assert!(!session.ask(method, params).await.is_refusal(), "{server} {method}");
        }
    }
}

#[tokio::test]
async fn f9_progress_and_log_messages_cross_every_combination() {
    let world = world().await;
    let peer = Peer::of(&world.serve);
    let session = peer.open().await;
    for server in ["old", "new"] {
        let tool = format!("{server}__test_tool_with_progress");
        let modern =
            modern_dialogue(&peer.meta(json!({"progressToken": "mine"})), &tool, json!({})).await;
        let legacy =
            legacy_dialogue(&session, &tool, json!({}), json!({"progressToken": 42})).await;
        for (messages, token) in [(modern, json!("mine")), (legacy, json!(42))] {
            let progress = with_method(&messages, "notifications/progress");
            let steps: Vec<_> =
                progress.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
            assert_eq!(steps, [0.0, 50.0, 100.0], "{server} {messages:?}");
            assert!(
                progress.iter().all(|one| one["params"]["progressToken"] == token),
                "{messages:?}"
            );
            assert_eq!(text_of(&messages), "Progressed.");
        }
        let silent = peer.call(&tool, json!({})).await;
        assert_eq!(silent.messages().len(), 1, "{server}: nobody asked for progress");
    }
    for server in ["old", "new"] {
        let tool = format!("{server}__test_tool_with_logging");
        let wanted = peer.meta(json!({"io.modelcontextprotocol/logLevel": "info"}));
        let modern = modern_dialogue(&wanted, &tool, json!({})).await;
        assert_eq!(with_method(&modern, "notifications/message").len(), 3, "{server} {modern:?}");
        assert_eq!(session.ask("logging/setLevel", json!({"level": "info"})).await.code(), 0);
        let legacy = legacy_dialogue(&session, &tool, json!({}), json!({})).await;
        assert_eq!(with_method(&legacy, "notifications/message").len(), 3, "{server} {legacy:?}");
        // Who wants to hear less hears less, although the server was made to talk.
        let calm = peer.meta(json!({"io.modelcontextprotocol/logLevel": "error"}));
        for quiet in [
            modern_dialogue(&peer, &tool, json!({})).await,
            modern_dialogue(&calm, &tool, json!({})).await,
        ] {
            assert_eq!(with_method(&quiet, "notifications/message").len(), 0, "{server} {quiet:?}");
        }
        assert_eq!(session.ask("logging/setLevel", json!({"level": "error"})).await.code(), 0);
        let quiet = legacy_dialogue(&session, &tool, json!({}), json!({})).await;
        assert_eq!(with_method(&quiet, "notifications/message").len(), 0, "{server} {quiet:?}");
    }
}

#[tokio::test]
async fn f9_questions_of_servers_cross_every_combination() {
    let world = world().await;
    let peer = Peer::of(&world.serve).able();
    let session = peer.open().await;
    for server in ["old", "new"] {
        for (tool, arguments, heard) in [
            ("test_elicitation", json!({"message": "who?"}), "ana"),
            ("test_sampling", json!({"prompt": "say"}), "from the model"),
            ("test_input_required_result_list_roots", json!({}), "file:///work/here"),
            ("test_input_required_result_multi_round", json!({}), "likes"),
            ("test_input_required_result_multiple_inputs", json!({}), "from the model"),
        ] {
            let tool = format!("{server}__{tool}");
            let modern = modern_dialogue(&peer, &tool, arguments.clone()).await;
            assert!(text_of(&modern).contains(heard), "modern {tool}: {modern:?}");
            let legacy = legacy_dialogue(&session, &tool, arguments, json!({})).await;
            assert!(text_of(&legacy).contains(heard), "legacy {tool}: {legacy:?}");
        }
    }
}

#[tokio::test]
async fn f9_a_client_that_cannot_answer_is_not_asked() {
    let world = world().await;
    let peer = Peer::of(&world.serve);
    let session = peer.open().await;
    for server in ["old", "new"] {
        for (tool, arguments) in [
            ("test_elicitation", json!({"message": "m"})),
            ("test_sampling", json!({"prompt": "p"})),
        ] {
            let tool = format!("{server}__{tool}");
            let modern = peer.call(&tool, arguments.clone()).await;
            assert_eq!((modern.status, modern.code()), (400, -32021), "{tool}: {}", modern.body);
            let legacy = legacy_dialogue(&session, &tool, arguments, json!({})).await;
            assert_eq!(legacy.len(), 1, "{tool}: {legacy:?}");
            let refused = legacy[0]["error"].is_object() || legacy[0]["result"]["isError"] == true;
            assert!(refused, "{tool}: {legacy:?}");
        }
    }
}

#[tokio::test]
async fn f9_a_client_that_cannot_answer_everything_is_asked_nothing() {
    let form = json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
    let wanted = json!({"resultType": "input_required", "inputRequests": {
        "a": {"method": "elicitation/create", "params": form},
        "b": {"method": "roots/list", "params": {}},
    }});
    let asks = Tool::new("asks").replies(Reply::Result(wanted));
    let upstream = ScriptedServer::builder().modern().tools([asks]).start().await;
    let serve = home(&[("new", &upstream.url())], &[]).serve().await;
    let session = Peer::of(&serve).able_to(json!({"elicitation": {}})).open().await;
    let messages = legacy_dialogue(&session, "new__asks", json!({}), json!({})).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["result"]["isError"], true, "{messages:?}");
}

#[tokio::test]
async fn f9_what_a_client_was_asked_is_withdrawn_when_the_server_answers_without_it() {
    let world = world().await;
    let peer = Peer::of(&world.serve).able_to(json!({"elicitation": {"url": {}}}));
    let session = peer.open().await;
    let call = json!({"name": "old__test_impatient_question", "arguments": {}});
    let mut events = Events::of(session.ask_response(session.next_id(), "tools/call", call).await);
    let mut messages = Vec::new();
    while let Some(message) = events.next().await {
        messages.push(message);
    }
    let asked = with_method(&messages, "elicitation/create");
    let withdrawn = with_method(&messages, "notifications/cancelled");
    assert_eq!((asked.len(), withdrawn.len()), (1, 1), "{messages:?}");
    assert_eq!(withdrawn[0]["params"]["requestId"], asked[0]["id"]);
    assert_eq!(text_of(&messages), "It did not matter.");
}

/// Clients that know only forms would not know what to do with an address.
#[tokio::test]
async fn f9_only_a_client_that_opens_pages_is_sent_to_one() {
    let world = world().await;
    for (elicitation, is_able) in
        [(json!({}), false), (json!({"form": {}}), false), (json!({"form": {}, "url": {}}), true)]
    {
        let peer = Peer::of(&world.serve).able_to(json!({"elicitation": elicitation}));
        let session = peer.open().await;
        for server in ["old", "new"] {
            let tool = format!("{server}__test_url_elicitation");
            let legacy = legacy_dialogue(&session, &tool, json!({}), json!({})).await;
            let asked = with_method(&legacy, "elicitation/create");
            assert_eq!(asked.len(), usize::from(is_able), "{server} {elicitation}: {legacy:?}");
            let last = legacy.last().unwrap();
            let is_refused = last["error"].is_object() || last["result"]["isError"] == true;
            assert_eq!(is_refused, !is_able, "{server} {elicitation}: {last}");
        }
        for server in ["old", "new"] {
            let tool = format!("{server}__test_url_elicitation");
            if is_able {
                let modern = modern_dialogue(&peer, &tool, json!({})).await;
                assert!(text_of(&modern).contains("accept"), "{modern:?}");
            } else {
                let refused = peer.call(&tool, json!({})).await;
                let error = &refused.last()["error"];
                let required = json!({"elicitation": {"url": {}}});
                assert_eq!((refused.status, &error["code"]), (400, &json!(-32021)), "{error}");
                assert_eq!(error["data"]["requiredCapabilities"], required, "{error}");
            }
        }
    }
}

/// Older servers refuse with -32042 until a page was opened; the modern era asks for it, and then once more.
#[tokio::test]
async fn f9_pages_that_an_old_server_wants_opened_are_asked_for() {
    let page = |id: &str| json!({"mode": "url", "elicitationId": id, "url": format!("https://example.com/{id}"), "message": "Sign in"});
    let wants = |elicitations: Value| {
        let data = json!({ "elicitations": elicitations });
        let error = json!({"code": -32042, "message": "sign in first", "data": data});
        Tool::echo("buy").replies(Reply::Error(error))
    };
    let two = || wants(json!([page("a"), page("b")]));
    let shop = ScriptedServer::builder().legacy().tools([two()]).start().await;
    let serve = home(&[("shop", &shop.url())], &[]).serve().await;
    let peer = Peer::of(&serve).able_to(json!({"elicitation": {"url": {}}}));
    let call = json!({"name": "shop__buy", "arguments": {"n": 1}, "x-mine": 1});
    let asked = async || {
        let answer = peer.modern("tools/call", call.clone()).await;
        let result = answer.result();
        assert_eq!(result["resultType"], "input_required", "{result}");
        let wanted: Vec<_> = result["inputRequests"].as_object().unwrap().values().collect();
        let asks = |id| json!({"method": "elicitation/create", "params": page(id)});
        assert_eq!(wanted, [&asks("a"), &asks("b")]);
        result
    };
    let come_back = async |asked: &Value, actions: [&str; 2]| {
        let keys = asked["inputRequests"].as_object().unwrap().keys();
        let responses: serde_json::Map<String, Value> = keys
            .zip(actions)
            .map(|(key, action)| (key.clone(), json!({"action": action})))
            .collect();
        let mut params = call.clone();
        params["inputResponses"] = json!(responses);
        params["requestState"] = asked["requestState"].clone();
        peer.modern("tools/call", params).await
    };

    // The server still refuses: it is asked for once more. Then it does not, and hears only its own.
    let again = come_back(&asked().await, ["accept", "accept"]).await.result();
    assert_eq!(again["resultType"], "input_required", "{again}");
    assert_eq!(shop.stats().total_calls(), 2);
    shop.set_tools([Tool::echo("buy")]);
    let done = come_back(&again, ["accept", "accept"]).await.result();
    assert_eq!(done["structuredContent"], json!({"n": 1}), "{done}");
    let last = shop.stats().calls.last().unwrap().params.clone();
    assert_eq!(last["x-mine"], 1, "{last}");
    assert!(last["inputResponses"].is_null() && last["requestState"].is_null(), "{last}");

    // Who does not open a page gets no further, and the server is left alone.
    shop.set_tools([two()]);
    for actions in [["accept", "decline"], ["cancel", "accept"]] {
        let question = asked().await;
        let calls = shop.stats().total_calls();
        let refused = come_back(&question, actions).await;
        assert_eq!(refused.result()["isError"], true, "{}", refused.body);
        assert!(refused.text().contains("not opened"), "{}", refused.body);
        assert_eq!(shop.stats().total_calls(), calls);
    }
    // No modern client is ever told -32042; older ones are, as it stands.
    let unable = Peer::of(&serve).modern("tools/call", call.clone()).await;
    assert_eq!((unable.status, unable.code()), (400, -32021), "{}", unable.body);
    let legacy = peer.open().await.ask("tools/call", call.clone()).await;
    assert_eq!(legacy.code(), -32042, "{}", legacy.body);
    assert_eq!(legacy.last()["error"]["data"]["elicitations"][1], page("b"));
    for broken in [json!([]), json!(7), json!([page("a"), {"mode": "form"}]), json!([null])] {
        shop.set_tools([wants(broken.clone())]);
        let answer = peer.modern("tools/call", call.clone()).await;
        assert_eq!(answer.result()["isError"], true, "{broken}: {}", answer.body);
        assert!(answer.text().contains("sign in first"), "{}", answer.body);
    }
}

#[tokio::test]
async fn f9_a_question_that_the_server_withdraws_is_withdrawn_at_the_client() {
    let world = world().await;
    let peer = Peer::of(&world.serve).able_to(json!({"elicitation": {"url": {}}}));
    let session = peer.open().await;
    let params = json!({"name": "old__test_withdrawn_question", "arguments": {}});
    let mut events =
        Events::of(session.ask_response(session.next_id(), "tools/call", params).await);
    let (mut messages, mut answered) = (Vec::new(), 0);
    let sorted = |messages: &[Value]| {
        let asked = with_method(messages, "elicitation/create").into_iter().cloned();
        asked.partition(|it| it["params"]["elicitationId"] == "withdrawn")
    };
    while let Some(message) = events.next().await {
        messages.push(message);
        let (left_alone, asked): (Vec<Value>, Vec<Value>) = sorted(&messages);
        let withdrawn = with_method(&messages, "notifications/cancelled").len();
        // The last request is answered once the unanswered one is cancelled.
        if answered < asked.len() && left_alone.len() == 1 && answered <= withdrawn {
            session.reply(&asked[answered]["id"], answer_to("elicitation/create")).await;
            answered += 1;
        }
    }
    let (left_alone, asked): (Vec<Value>, Vec<Value>) = sorted(&messages);
    let withdrawn = with_method(&messages, "notifications/cancelled");
    assert_eq!((left_alone.len(), asked.len(), withdrawn.len()), (1, 2, 1), "{messages:?}");
    assert_eq!(withdrawn[0]["params"]["requestId"], left_alone[0]["id"]);
    assert!(text_of(&messages).contains("accept"), "{messages:?}");
    let complete = with_method(&messages, "notifications/elicitation/complete");
    assert_eq!(complete.len(), 1, "{messages:?}");
    assert_eq!(complete[0]["params"], json!({"elicitationId": "e-1"}));
}

#[tokio::test]
async fn f9_cancellation_crosses_every_combination() {
    let slow = || [Tool::new("slow").sleeps(8_000)];
    let old = ScriptedServer::builder().legacy().tools(slow()).start().await;
    let new = ScriptedServer::builder().modern().tools(slow()).start().await;
    let serve = home(&[("old", &old.url()), ("new", &new.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    for (name, upstream) in [("old", &old), ("new", &new)] {
        let call = json!({"name": format!("{name}__slow"), "arguments": {}});
        let started = async || {
            wait_until(PATIENCE, async || (upstream.stats().running_calls == 1).then_some(()))
                .await;
        };
        // A modern client closes its response, a legacy one says so.
        tokio::select! {
            answer = peer.modern("tools/call", call.clone()) => panic!("{answer:?}"),
            () = started() => {}
        }
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 0).then_some(())).await;
        let id = session.next_id();
        let cancelling = async {
            started().await;
            session.notify("notifications/cancelled", json!({"requestId": id})).await;
        };
        let (response, ()) = tokio::join!(session.ask_response(id, "tools/call", call), cancelling);
        assert!(Answer::of(response).await.is_refusal());
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 0).then_some(())).await;
        let stats = upstream.stats();
        assert_eq!((stats.total_calls(), stats.finished_calls), (2, 0), "{name}");
    }
}

#[tokio::test]
async fn f9_old_clients_are_spoken_to_in_their_version() {
    let world = world().await;
    for (asked, spoken) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let session = Peer::of(&world.serve).able().open_version(asked).await;
        assert_eq!(session.greeting["protocolVersion"], spoken, "{asked}");
        for server in ["old", "new"] {
            let tool = format!("{server}__test_simple_text");
            assert!(!session.call(&tool, json!({})).await.is_refusal(), "{asked} {tool}");
            let asks = format!("{server}__test_sampling");
            let heard = legacy_dialogue(&session, &asks, json!({"prompt": "p"}), json!({})).await;
            assert!(text_of(&heard).contains("from the model"), "{asked} {asks}: {heard:?}");
        }
    }
}

#[tokio::test]
async fn f9_a_version_that_nobody_speaks_is_told_what_is_spoken() {
    let world = world().await;
    let peer = Peer::of(&world.serve);
    for version in ["2026-12-31", "2027-01-01", "2099-01-01"] {
        for method in ["tools/list", "server/discover"] {
            let mut message = peer.modern_message(method, &json!({}));
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
            let headers = [
                ("mcp-protocol-version".to_owned(), version.to_owned()),
                ("mcp-method".to_owned(), method.to_owned()),
            ];
            let answer = peer.post(message.to_string(), &headers).await;
            assert_eq!((answer.status, answer.code()), (400, -32022), "{}", answer.body);
            let data = answer.last()["error"]["data"].clone();
            assert_eq!(data["requested"], version);
            assert!(data["supported"].as_array().unwrap().contains(&json!("2026-07-28")), "{data}");
        }
    }
    // A session of the other era does not change era in the middle.
    let session = peer.open().await;
    let odd = session.peer.with("mcp-protocol-version", "1999-01-01");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(odd.post(list, &[]).await.status, 400);
}

#[tokio::test]
async fn f9_changes_of_tools_reach_listeners_of_both_eras() {
    let world = world().await;
    let peer = Peer::of(&world.serve);
    let session = peer.open().await;
    let mut legacy = session.listen().await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = Events::of(peer.modern_response("subscriptions/listen", wanted).await);
    modern.next().await.unwrap();
    for server in ["old", "new"] {
        let tool = format!("{server}__test_trigger_tool_change");
        assert!(!peer.call(&tool, json!({})).await.is_refusal());
        for stream in [&mut legacy, &mut modern] {
            let told = stream.next().await.unwrap();
            assert_eq!(told["method"], "notifications/tools/list_changed", "{server} {told}");
        }
        assert!(
            session.tools().await.contains(&format!("{server}__test_dynamic_tool")),
            "{server}"
        );
    }
    for stream in [&mut legacy, &mut modern] {
        assert!(stream.within(Duration::from_millis(500)).await.is_err());
    }
}

/// A server of either era with a prompt and two resources, and a gateway before it.
async fn shelf(
    era: fn(ScriptedServerBuilder) -> ScriptedServerBuilder,
    gateway: &str,
) -> (ScriptedServer, Home, Serve) {
    let builder = era(ScriptedServer::builder()).tools([Tool::new("t")]);
    let server = builder.prompts(["p"]).resources(["one://r", "one://other"]).start().await;
    let home = home(&[("one", &server.url())], &[gateway]);
    let serve = home.serve().await;
    // What it announces is heard from now on.
    wait_until(PATIENCE, async || (server.open_streams() > 0).then_some(())).await;
    (server, home, serve)
}

async fn listening(peer: &Peer, wanted: Value) -> Events {
    let wanted = json!({ "notifications": wanted });
    let mut events = Events::of(peer.modern_response("subscriptions/listen", wanted.clone()).await);
    let acknowledged = events.next().await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"], wanted["notifications"], "{acknowledged}");
    events
}

async fn assert_quiet<const N: usize>(streams: [&mut Events; N]) {
    for stream in streams {
        assert!(stream.within(Duration::from_millis(300)).await.is_err());
    }
}

#[tokio::test]
async fn f9_updates_of_resources_reach_who_asked_for_them_and_nobody_else() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let (server, _home, serve) = shelf(era, "").await;
        let peer = Peer::of(&serve);
        let (session, stranger) = (peer.open().await, peer.open().await);
        let subscribed = session.ask("resources/subscribe", json!({"uri": "one://r"})).await;
        assert!(!subscribed.is_refusal(), "{}", subscribed.body);
        let (mut legacy, mut unasked) = (session.listen().await, stranger.listen().await);
        let mut modern = listening(&peer, json!({"resourceSubscriptions": ["one://r"]})).await;
        let mut lists = listening(&peer, json!({"resourcesListChanged": true})).await;
        let mut other = listening(&peer, json!({"resourceSubscriptions": ["one://other"]})).await;
        assert_eq!(server.watched(), ["one://other", "one://r"]);
        assert!(server.update_resource("one://r").await > 0);
        for stream in [&mut legacy, &mut modern] {
            let told = stream.next().await.unwrap();
            assert_eq!(told["method"], "notifications/resources/updated", "{told}");
            assert_eq!(told["params"]["uri"], "one://r", "{told}");
        }
        assert!(server.update_resource("one://other").await > 0);
        let told = other.next().await.unwrap();
        assert_eq!(told["params"]["uri"], "one://other", "{told}");
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1, "{told}");
        let streams = [&mut legacy, &mut modern, &mut other, &mut unasked, &mut lists];
        assert_quiet(streams).await;
        // Who unsubscribes or stops to listen is not told any more.
        session.ask("resources/unsubscribe", json!({"uri": "one://r"})).await;
        drop((modern, other));
        wait_until(PATIENCE, async || server.watched().is_empty().then_some(())).await;
        assert_eq!(server.update_resource("one://r").await, 0);
        assert_quiet([&mut legacy]).await;
    }
}

#[tokio::test]
async fn f9_changes_of_prompts_and_resources_reach_listeners_of_both_eras() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let (server, _home, serve) = shelf(era, "").await;
        let peer = Peer::of(&serve);
        let session = peer.open().await;
        let mut legacy = session.listen().await;
        let mut prompts = listening(&peer, json!({"promptsListChanged": true})).await;
        let mut resources = listening(&peer, json!({"resourcesListChanged": true})).await;
        let mut tools = listening(&peer, json!({"toolsListChanged": true})).await;
        // Who sees nothing of the server hears nothing of it.
        let narrowed = peer.with("x-mcp-tools", "none");
        let everything = json!({"promptsListChanged": true, "resourcesListChanged": true});
        let mut blind = listening(&narrowed, everything).await;
        let mut blind_session = narrowed.open().await.listen().await;
        let told = async |streams: [&mut Events; 2], method: &str| {
            for stream in streams {
                assert_eq!(stream.next().await.unwrap()["method"], method);
            }
        };
        assert_eq!(server.set_prompts(["p", "q"]).await, 1);
        told([&mut legacy, &mut prompts], "notifications/prompts/list_changed").await;
        assert_eq!(server.set_resources(["one://r", "one://new"]).await, 1);
        told([&mut legacy, &mut resources], "notifications/resources/list_changed").await;
        for (method, new) in [("prompts/list", "one__q"), ("resources/list", "one://new")] {
            assert!(peer.modern(method, json!({})).await.body.contains(new), "{method}");
            assert!(session.ask(method, json!({})).await.body.contains(new), "{method}");
        }
        let streams =
            [&mut legacy, &mut prompts, &mut resources, &mut tools, &mut blind, &mut blind_session];
        assert_quiet(streams).await;
    }
}

#[tokio::test]
async fn f9_a_list_that_cannot_be_read_just_now_stays_what_it_was() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let (server, _home, serve) = shelf(era, "").await;
        let peer = Peer::of(&serve);
        let prompts = async || peer.modern("prompts/list", json!({})).await.body;
        assert!(prompts().await.contains("one__p"));
        let asked = || {
            let stats = server.stats();
            let is_list = |seen: &&SeenRequest| seen.method.as_deref() == Some("prompts/list");
            stats.requests.iter().filter(is_list).count()
        };
        let before = asked();
        server.set_fault(Fault::Status(Stage::Prompts, 503)).await;
        server.set_prompts(["q"]).await;
        wait_until(PATIENCE, async || (asked() > before).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(prompts().await.contains("one__p"));
        assert!(peer.modern("resources/list", json!({})).await.body.contains("one://r"));
        server.clear_fault().await;
        server.set_prompts(["q"]).await;
        wait_until(PATIENCE, async || prompts().await.contains("one__q").then_some(())).await;
        assert!(!prompts().await.contains("one__p"));
    }
}

#[tokio::test]
async fn f9_a_server_that_does_not_answer_who_watches_it_holds_up_nobody_else() {
    let start = async |uri: &str| {
        let builder = ScriptedServer::builder().legacy().tools([Tool::new("t")]);
        builder.resources([uri]).start().await
    };
    let (stuck, good) = (start("stuck://r").await, start("good://r").await);
    let servers = [("stuck", &*stuck.url()), ("good", &good.url())];
    let serve = home(&servers, &["gateway: {session_idle: 12s}"]).serve().await;
    let sessions = [Peer::of(&serve).open().await, Peer::of(&serve).open().await];
    stuck.set_fault(Fault::Hang(Stage::Subscribe)).await;
    let subscribe = async |session: &Session, uri: &str| {
        let subscribed = session.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert!(!subscribed.is_refusal(), "{}", subscribed.body);
    };
    let mut waits = std::pin::pin!(subscribe(&sessions[0], "stuck://r"));
    for _ in 0..2 {
        tokio::select! {
            biased;
            () = &mut waits => panic!("who waits for the server that is stuck waits for longer"),
            () = subscribe(&sessions[1], "good://r") => {}
        }
    }
    assert_eq!(good.watched(), ["good://r"]);
    waits.await;
    // After the fault it subscribes again without a new request of a client.
    assert_eq!(stuck.watched(), [""; 0]);
    stuck.clear_fault().await;
    // The last question may still be waiting for its time to be up.
    wait_until(3 * PATIENCE, async || (stuck.watched() == ["stuck://r"]).then_some(())).await;
}

#[tokio::test]
async fn f9_what_nobody_watches_any_more_is_given_up() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let (server, _home, serve) = shelf(era, "gateway: {session_idle: 3s}").await;
        let peer = Peer::of(&serve);
        let given_up = async || {
            wait_until(PATIENCE, async || server.watched().is_empty().then_some(())).await;
        };
        let subscribe = async || {
            let session = peer.open().await;
            let subscribed = session.ask("resources/subscribe", json!({"uri": "one://r"})).await;
            assert!(!subscribed.is_refusal(), "{}", subscribed.body);
            assert_eq!(server.watched(), ["one://r"]);
            session
        };
        let session = subscribe().await;
        assert_eq!(session.delete().await.status, 204);
        given_up().await;
        // Who goes away without a word is let go after a while.
        let session = subscribe().await;
        given_up().await;
        assert_eq!(session.ask("tools/list", json!({})).await.status, 404);
        // One of two is not all of them.
        let listener = listening(&peer, json!({"resourceSubscriptions": ["one://r"]})).await;
        assert_eq!(subscribe().await.delete().await.status, 204);
        let other = subscribe().await;
        assert_eq!(server.watched(), ["one://r"]);
        drop(listener);
        assert_eq!(other.delete().await.status, 204);
        given_up().await;
    }
}
