//! The gateway over standard input and output: the same features as over HTTP, one message per line.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, peers, wait_until};

use crate::board::{META_NAMES, meta_and, two_servers};
use crate::fixture::Fixture;
use crate::hearing::CHANGED;
use crate::peer::{BOTH, Era, text};
use crate::pipe::Pipe;
use crate::support::{Home, PATIENCE, dynamic, server, stdio, yaml};

/// A server with these tools, and a home that has it as `one`.
async fn one_server(tools: impl IntoIterator<Item = Tool>) -> (ScriptedServer, Home) {
    let upstream = server(tools).await;
    let home = Home::new(yaml(&[], &[dynamic("one", &upstream.url())]));
    (upstream, home)
}

/// A board with one fixture of each era, `old` and `new`.
fn old_and_new() -> (Home, [Fixture; 2]) {
    let fixtures = ["legacy", "modern"].map(Fixture::start);
    let servers = [dynamic("old", &fixtures[0].url), dynamic("new", &fixtures[1].url)];
    (Home::new(yaml(&[], &servers)), fixtures)
}

/// A result as it ends a request to listen.
fn goodbye(id: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}})
}

#[tokio::test]
async fn both_eras_list_call_and_hear_of_progress() {
    let tools = [Tool::echo("echo"), Tool::echo("slow").sleeps(300).progress_every(50)];
    let (_upstream, home) = one_server(tools).await;
    for era in BOTH {
        let client = Pipe::open(era, &home).await;
        assert_eq!(client.list().await, ["one__echo", "one__slow"]);
        let echoed = client.call("one__echo", json!({"n": 7})).await;
        assert_eq!(echoed["structuredContent"], json!({"n": 7}));
        assert_eq!(echoed["resultType"] == "complete", era == Era::Modern, "{echoed}");
        let params =
            json!({"name": "one__slow", "arguments": {}, "_meta": {"progressToken": "mine"}});
        let answer = client.ask("tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        let heard = client.heard();
        let told: Vec<_> =
            heard.iter().filter(|one| one["method"] == "notifications/progress").collect();
        assert!(told.len() >= 2, "{heard:?}");
        assert!(told.iter().all(|one| one["params"]["progressToken"] == "mine"), "{told:?}");
        assert_eq!(heard.last(), Some(&answer), "progress comes before the answer");
    }
}

#[tokio::test]
async fn a_toolset_that_is_switched_changes_the_list_and_is_told() {
    let board = two_servers("exposure: dynamic, stateless_state: principal").await;
    for era in BOTH {
        let client = Pipe::open(era, &board.home).await;
        let listening = client.subscribe().await;
        assert_eq!(client.list().await, META_NAMES);
        let enabled = client.call("enable_toolset", json!({"toolsetName": "look"})).await;
        assert!(text(&enabled).contains("Toolset 'look' is enabled"), "{enabled}");
        client.until(CHANGED, 1).await;
        assert_eq!(client.list().await, meta_and(&["shop__find", "shop__price"]));
        client.call("shop__find", json!({})).await;
        client.call("disable_toolset", json!({"toolsetName": "look"})).await;
        client.until(CHANGED, 2).await;
        assert_eq!(client.list().await, META_NAMES);
        for told in client.of_method(CHANGED) {
            let id = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            let expected = if era == Era::Modern { &listening } else { &Value::Null };
            assert_eq!(id, expected, "{told}");
        }
    }
}

#[tokio::test]
async fn a_list_that_a_server_changes_is_told() {
    let (upstream, home) = one_server([Tool::echo("first")]).await;
    for (era, name) in BOTH.into_iter().zip(["second", "third"]) {
        let client = Pipe::open(era, &home).await;
        client.subscribe().await;
        client.list().await;
        wait_until(PATIENCE, async || (upstream.open_streams() == 1).then_some(())).await;
        upstream.set_tools_and_notify([Tool::echo(name)]).await;
        client.until(CHANGED, 1).await;
        assert_eq!(client.list().await, [format!("one__{name}")]);
    }
}

#[tokio::test]
async fn a_legacy_client_is_asked_with_a_request_whatever_the_server_speaks() {
    let (home, _fixtures) = old_and_new();
    let can_answer = json!({"elicitation": {}});
    let client = Pipe::open_with(Era::Legacy, &home, &["stdio"], can_answer).await;
    for server in ["old", "new"] {
        let id = client.new_id();
        let tool = format!("{server}__test_elicitation");
        let arguments = json!({"message": format!("Who asks {server}?")});
        client.request(&id, "tools/call", json!({"name": tool, "arguments": arguments}));
        let question = client.message(|one| one["params"]["message"] == arguments["message"]).await;
        assert_eq!(question["method"], "elicitation/create");
        let content = json!({"username": "ada", "email": "ada@example.org"});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"],
                            "result": {"action": "accept", "content": content}}));
        let answer = client.answer(&id).await;
        assert!(answer["result"].to_string().contains("ada"), "{answer}");
    }
}

#[tokio::test]
async fn a_modern_client_is_asked_with_an_answer_whatever_the_server_speaks() {
    let (home, _fixtures) = old_and_new();
    let can_answer = json!({"elicitation": {}});
    let client = Pipe::open_with(Era::Modern, &home, &["stdio"], can_answer).await;
    for server in ["old", "new"] {
        let mut params = json!({"name": format!("{server}__test_elicitation"),
                                "arguments": {"message": "Who is it?"}});
        let asked = client.ask("tools/call", params.clone()).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let questions = asked["inputRequests"].as_object().unwrap();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!(question["params"]["message"], "Who is it?");
        let content = json!({"username": "ada", "email": "ada@example.org"});
        params["inputResponses"] = json!({key: {"action": "accept", "content": content}});
        if !asked["requestState"].is_null() {
            params["requestState"] = asked["requestState"].clone();
        }
        let answer = client.ask("tools/call", params).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert!(answer["result"].to_string().contains("ada"), "{answer}");
    }
}

#[tokio::test]
async fn log_messages_come_as_the_client_wants_them() {
    const LOGGED: &str = "notifications/message";
    let (home, _fixtures) = old_and_new();
    for server in ["old", "new"] {
        let call = json!({"name": format!("{server}__test_tool_with_logging"), "arguments": {}});
        let legacy = Pipe::open(Era::Legacy, &home).await;
        for (level, expected) in [("error", 0), ("info", 3)] {
            let set = legacy.ask("logging/setLevel", json!({ "level": level })).await;
            assert_eq!(set["result"], json!({}), "{set}");
            legacy.ask("tools/call", call.clone()).await;
            assert_eq!(legacy.of_method(LOGGED).len(), expected, "{server} {level}");
        }
        let mut modern = Pipe::open(Era::Modern, &home).await;
        modern.ask("tools/call", call.clone()).await;
        assert_eq!(modern.of_method(LOGGED).len(), 0, "{server}: it did not ask for any");
        modern.meta["io.modelcontextprotocol/logLevel"] = json!("info");
        modern.ask("tools/call", call).await;
        assert_eq!(modern.of_method(LOGGED).len(), 3, "{server}");
    }
}

#[tokio::test]
async fn the_end_of_the_input_is_the_end_of_the_program_and_of_its_children() {
    for era in BOTH {
        let home = Home::empty();
        let file = home.path().join("pids");
        let arguments = ["--spawn-grandchild", "--pid-file", file.to_str().unwrap()];
        let family = stdio("family", &peers::stdio_peer(), &arguments);
        home.rewrite(yaml(&[], &[family]));
        let mut client = Pipe::open(era, &home).await;
        client.call("family__echo", json!({})).await;
        let pids = std::fs::read_to_string(&file).unwrap();
        let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), 3, "a child and its children");
        // What was asked before the end is answered after it.
        let last = client.new_id();
        let call = json!({"name": "family__sleep", "arguments": {"ms": 300}});
        client.request(&last, "tools/call", call);
        client.close_input();
        assert_eq!(client.ended().await.code(), Some(0));
        let answer = client.answer(&last).await;
        assert!(answer["result"].is_object() && answer["result"]["isError"] != true, "{answer}");
        wait_until(PATIENCE, async || {
            let is_gone = |pid: &u32| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
                stat.map_or(true, |stat| stat.contains(") Z "))
            };
            pids.iter().all(is_gone).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_question_that_nobody_can_answer_any_more_does_not_hold_up_the_end() {
    let (home, _servers) = old_and_new();
    for server in ["old", "new"] {
        let able = json!({"elicitation": {}});
        let mut client = Pipe::open_with(Era::Legacy, &home, &["stdio"], able).await;
        let id = client.new_id();
        let arguments = json!({"message": "who?"});
        let name = format!("{server}__test_elicitation");
        client.request(&id, "tools/call", json!({"name": name, "arguments": arguments}));
        let asked = async || (!client.of_method("elicitation/create").is_empty()).then_some(());
        wait_until(PATIENCE, asked).await;
        client.close_input();
        assert_eq!(client.ended().await.code(), Some(0));
        // The server heard that there is no answer, and had its last word.
        let answer = client.answer(&id).await;
        assert_ne!(answer["error"]["code"], -32800, "{answer}");
    }
}

#[tokio::test]
async fn what_is_cut_off_at_the_end_is_told_so() {
    let (upstream, home) = one_server([Tool::new("slow").sleeps(600_000)]).await;
    for era in BOTH {
        let mut client = Pipe::open(era, &home).await;
        let id = client.new_id();
        client.request(&id, "tools/call", json!({"name": "one__slow", "arguments": {}}));
        let runs = async || (upstream.stats().running_calls == 1).then_some(());
        wait_until(PATIENCE, runs).await;
        client.close_input();
        client.signal("TERM");
        assert_eq!(client.ended().await.code(), Some(0));
        let answer = client.answer(&id).await;
        assert_eq!(answer["error"]["code"], -32800, "{era:?} {answer}");
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 0).then_some(())).await;
    }
}

#[tokio::test]
async fn bad_lines_are_answered_and_the_program_goes_on() {
    const MIB: usize = 1024 * 1024;
    let (_upstream, home) = one_server([Tool::echo("echo")]).await;
    for era in BOTH {
        let client = Pipe::open(era, &home).await;
        let known = client.heard().len();
        let rows: [(&[u8], i64, Value); 8] = [
            (b"no JSON", -32700, Value::Null),
            (b"\xff\xfe", -32700, Value::Null),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1", -32700, Value::Null),
            (br#"{"jsonrpc":"1.0","id":41,"method":"ping"}"#, -32600, json!(41)),
            (br#"{"id":42,"method":"ping"}"#, -32600, json!(42)),
            (br#"{"jsonrpc":"2.0","id":43,"method":7}"#, -32600, json!(43)),
            (br#"{"jsonrpc":"2.0","id":44,"method":"ping","params":[]}"#, -32600, json!(44)),
            (b"\"a text\"", -32600, Value::Null),
        ];
        for (n, (line, code, id)) in rows.iter().enumerate() {
            client.write(&[line, &b"\n"[..]].concat());
            let answered = async || client.heard().get(known + n).cloned();
            let answer = wait_until(PATIENCE, answered).await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{answer}");
        }
        let piece = vec![b'x'; MIB];
        for _ in 0..100 {
            client.write(&piece);
        }
        client.write(b"\n\n  \r\n");
        let answered = async || client.heard().get(known + rows.len()).cloned();
        let answer = wait_until(PATIENCE, answered).await;
        assert_eq!(answer["error"]["message"], "a message is larger than 4194304 bytes");
        client.call("one__echo", json!({})).await;
        assert_eq!(client.heard().len(), known + rows.len() + 2, "empty lines are no messages");
    }
}

#[tokio::test]
async fn a_batch_is_answered_as_one_line_where_the_version_has_batches() {
    let (upstream, home) = one_server([Tool::echo("echo")]).await;
    let call = |id: Value, n: u64| {
        let params = json!({"name": "one__echo", "arguments": {"n": n}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let strange = json!({"jsonrpc": "2.0", "id": 503, "method": "no/such"});
    let batch =
        json!([call(json!(501), 1), notice, call(json!("two"), 2), strange, {"no": "message"}, []]);
    let refusal = |client: &Pipe, count: usize| {
        let refused = client.heard().into_iter().filter(|one| one["id"].is_null());
        let refused: Vec<_> = refused.filter(|one| one["error"].is_object()).collect();
        refused.get(count).cloned()
    };
    for version in ["2024-11-05", "2025-03-26"] {
        let mut client = Pipe::start(Era::Legacy, &home, &["stdio"]);
        client.listen();
        client.send(&json!([call(json!(1), 0)]));
        let early = wait_until(PATIENCE, async || refusal(&client, 0)).await;
        assert_eq!(early["error"]["code"], -32600, "nothing is known of the client yet: {early}");
        client.hello(version, json!({})).await;
        client.send(&batch);
        let answers = client.message(Value::is_array).await;
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 5, "{answers:?}");
        let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!(of(json!(501))["result"]["structuredContent"]["n"], 1);
        assert_eq!(of(json!("two"))["result"]["structuredContent"]["n"], 2);
        assert_eq!(of(json!(503))["error"]["code"], -32601);
        assert_eq!(of(Value::Null)["error"]["code"], -32600);
        client.send(&json!([notice, notice]));
        for (n, wrong) in [json!([]), json!(vec![notice.clone(); 101])].iter().enumerate() {
            client.send(wrong);
            let refused = wait_until(PATIENCE, async || refusal(&client, n + 1)).await;
            assert_eq!(refused["error"]["message"], "a batch has from 1 to 100 messages");
        }
    }
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = Pipe::start(Era::Legacy, &home, &["stdio"]);
        client.listen();
        client.hello(version, json!({})).await;
        client.send(&batch);
        let refused = wait_until(PATIENCE, async || refusal(&client, 0)).await;
        assert_eq!(refused["error"]["code"], -32600);
        let message = refused["error"]["message"].as_str().unwrap();
        assert_eq!(message, "batches are not part of this protocol version");
    }
    assert_eq!(upstream.stats().total_calls(), 4, "each call ran once, and none that was refused");
}

#[tokio::test]
async fn requests_that_run_have_a_bound_in_both_eras() {
    const MOST: u64 = 1024;
    let (_upstream, home) = one_server([Tool::echo("slow").sleeps(25_000)]).await;
    for era in BOTH {
        let client = Pipe::open(era, &home).await;
        let call = json!({"name": "one__slow", "arguments": {}});
        for n in 0..MOST {
            client.request(&json!(format!("call-{n}")), "tools/call", call.clone());
        }
        let refused = client.ask("tools/call", call.clone()).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        assert_eq!(refused["error"]["message"], "too many requests are running");
        // Whatever ends makes room for another one.
        client.cancel(&json!("call-7"));
        wait_until(PATIENCE, async || {
            let answer = client.ask("tools/list", json!({})).await;
            answer["result"].is_object().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_free_with_the_answer() {
    let tools = [Tool::echo("echo"), Tool::echo("slow").sleeps(25_000)];
    let (upstream, home) = one_server(tools).await;
    for (era, calls) in BOTH.into_iter().zip(1..) {
        let client = Pipe::open(era, &home).await;
        let id = json!("mine");
        client.request(&id, "tools/call", json!({"name": "one__slow", "arguments": {}}));
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 1).then_some(())).await;
        client.request(&id, "tools/list", json!({}));
        let refused = client.answer(&id).await;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert_eq!(refused["error"]["message"], "a request of this id is still running");
        // The first one still runs, and can be cancelled.
        client.cancel(&id);
        wait_until(PATIENCE, async || (upstream.stats().running_calls == 0).then_some(())).await;
        let stats = upstream.stats();
        assert_eq!(stats.cancelled.len() + stats.dropped_calls.len(), calls, "{stats:?}");
        let known = client.heard().len();
        for n in 0..50 {
            client.request(&json!("again"), "tools/list", json!({}));
            let answered = async || client.heard().get(known + n).cloned();
            let answer = wait_until(PATIENCE, answered).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
}

#[tokio::test]
async fn who_listens_is_told_the_end() {
    let (_upstream, home) = one_server([Tool::echo("echo")]).await;
    for is_signal in [false, true] {
        let mut client = Pipe::open(Era::Modern, &home).await;
        let ended = client.subscribe().await;
        let cancelled = client.new_id();
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        client.request(&cancelled, "subscriptions/listen", wanted);
        client.until("notifications/subscriptions/acknowledged", 2).await;
        client.cancel(&cancelled);
        client.list().await;
        if is_signal {
            client.signal("TERM");
        } else {
            client.close_input();
        }
        assert_eq!(client.ended().await.code(), Some(0));
        let heard = client.heard();
        let of = |id: &Value| heard.iter().find(|message| message["id"] == *id);
        assert_eq!(of(&ended), Some(&goodbye(&ended)), "{heard:#?}");
        assert_eq!(of(&cancelled), None, "who ended it is not told");
    }
}

#[tokio::test]
async fn who_listens_and_does_not_read_is_told_the_end_and_may_listen_again() {
    let tools = [Tool::echo("echo")];
    let upstream = server(tools).await;
    let home = Home::new(format!(
        "switchboard:\n  gateway: {{exposure: dynamic, stateless_state: principal}}\n  \
         toolbox:\n    mcps:\n      - {}\n",
        dynamic("one", &upstream.url())
    ));
    let mut client = Pipe::start(Era::Modern, &home, &["stdio"]);
    let listening = json!("listening");
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    client.request(&listening, "subscriptions/listen", wanted);
    // The pipe takes so much, and 256 messages wait behind it.
    for n in 0..400 {
        client.request(&json!(format!("full-{n}")), "server/discover", json!({}));
    }
    for n in 0..400 {
        let tool = ["enable_toolset", "disable_toolset"][n % 2];
        let params = json!({"name": tool, "arguments": {"toolsetName": "one"}});
        client.request(&json!(format!("switch-{n}")), "tools/call", params);
    }
    let call = json!({"name": "one__echo", "arguments": {}});
    let call = json!({"name": "call_tool", "arguments": call});
    client.request(&json!("last"), "tools/call", call);
    wait_until(PATIENCE, async || (upstream.stats().total_calls() == 1).then_some(())).await;
    // Switches are stored one after the other, and the call may overtake them.
    client.idle().await;
    client.listen();
    assert_eq!(client.answer(&listening).await, goodbye(&listening));
    client.subscribe().await;
    client.call("enable_toolset", json!({"toolsetName": "one"})).await;
    client.call("disable_toolset", json!({"toolsetName": "one"})).await;
    let told = |message: &Value| {
        let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        message["method"] == CHANGED && id.is_number()
    };
    client.message(told).await;
}
