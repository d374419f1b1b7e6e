//! Requests, as the provider gets them.

use std::collections::HashMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_splice::{
    Api, AppRequest, InjectedTurn, Refusal, RefusalKind, RequestTarget, SessionTools, TurnOptions,
};

use super::checker::{End, accumulate};
use super::provider::{answer, text, thinking, tool_use};
use crate::scripted::{Attempt, Played, SESSION_TOOLS, options, play, read, rendering};

/// The bodies of a turn with two rounds.
fn bodies(request: &Value) -> Vec<String> {
    let records = HashMap::new();
    let call = tool_use("toolu_1", "files__read", &json!({"path": "a"}));
    let rounds = [
        vec![answer([call], "tool_use").streamed()],
        vec![answer([text("end")], "end_turn").streamed()],
    ];
    let request = read(Api::Messages, &RequestTarget::default(), request, &records);
    play(request, &options(), &rounds, &records).bodies
}

fn parsed(bodies: &[String]) -> Vec<Value> {
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

#[test]
fn the_bytes_of_the_app_stay_as_they_are() {
    let tools = r#"{ "name":"lookup" , "input_schema":{"type":"object","x":1.50},"new":[ 1e2 ]}"#;
    let messages = r#"{"role":"user","content":[ {"type":"text","text":"\u00e4"} ] }"#;
    let body = format!(
        r#"{{"model":"m","stream":true,"max_tokens":10,"future":{{ "a":1.0 }},"tools":[{tools}],"messages":[{messages}]}}"#
    );
    let request =
        AppRequest::read(Api::Messages, &RequestTarget::default(), body.as_bytes()).unwrap();
    let call = tool_use("toolu_1", "files__read", &json!({}));
    let rounds = [
        vec![answer([call], "tool_use").streamed()],
        vec![answer([text("end")], "end_turn").streamed()],
    ];
    let played = play(request, &options(), &rounds, &HashMap::new());
    assert_eq!(played.bodies.len(), 2);
    let [first, second] = &played.bodies[..] else { panic!("two rounds") };
    for body in [first, second] {
        assert!(body.contains(&format!(r#""tools":[{tools},{{"name":"files__read","#)), "{body}");
        assert!(body.contains(r#""future":{ "a":1.0 }"#), "{body}");
    }
    let conversation = first.split_once(r#""messages":["#).unwrap().1.strip_suffix("]}").unwrap();
    assert_eq!(conversation, messages);
    assert!(second.contains(&format!(r#""messages":[{messages},{{"role":"assistant","#)));
}

#[test]
fn a_forced_choice_holds_for_the_first_round() {
    for (choice, later) in [
        (json!({"type": "any"}), json!({"type": "auto"})),
        (
            json!({"type": "tool", "name": "lookup", "disable_parallel_tool_use": true}),
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        (json!({"type": "none"}), json!({"type": "none"})),
        (
            json!({"type": "auto", "disable_parallel_tool_use": true}),
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
    ] {
        let messages = [json!({"role": "user", "content": "hi"})];
        let request = json!({"stream": true, "tool_choice": choice, "messages": messages});
        let bodies = parsed(&bodies(&request));
        assert_eq!(bodies[0]["tool_choice"], choice);
        assert_eq!(bodies[1]["tool_choice"], later);
    }
}

#[test]
fn the_thinking_budget_stays_below_what_is_left() {
    let messages = [json!({"role": "user", "content": "hi"})];
    let body = |max_tokens: u64, budget: u64| {
        let thinking = json!({"type": "enabled", "budget_tokens": budget});
        let request = json!({"stream": true, "max_tokens": max_tokens, "thinking": thinking, "messages": messages});
        parsed(&bodies(&request)).remove(1)
    };
    assert_eq!(body(4000, 2000)["thinking"]["budget_tokens"], 2000);
    assert_eq!(body(4000, 3999)["thinking"]["budget_tokens"], 3994);
    assert_eq!(body(1025, 1024)["thinking"], Value::Null);
    // With interleaved thinking the budget is for all rounds.
    assert_eq!(body(4000, 9000)["thinking"]["budget_tokens"], 9000);
}

#[test]
fn a_spare_mark_moves_with_the_rounds() {
    let mark = json!({"type": "ephemeral"});
    let block = json!({"type": "text", "text": "x", "cache_control": mark});
    let messages = [json!({"role": "user", "content": [block]})];
    let request = json!({"stream": true, "system": [block, block], "messages": messages});
    let bodies = parsed(&bodies(&request));
    assert_eq!(bodies[0]["tools"][1]["cache_control"], mark);
    assert_eq!(bodies[1]["tools"][1]["cache_control"], Value::Null);
    assert_eq!(bodies[1]["messages"][2]["content"][0]["cache_control"], mark);
    let marks = bodies[1].to_string().matches("cache_control").count();
    assert_eq!(marks, 4);
}

#[test]
fn a_name_of_the_app_stays_and_ours_changes() {
    let tools = json!([{"name": "files__read", "input_schema": {"type": "object"}}]);
    let request = json!({"tools": tools, "messages": []});
    let request = read(Api::Messages, &RequestTarget::default(), &request, &HashMap::new());
    let tools = SessionTools::new(&request, &rendering(Api::Messages, &SESSION_TOOLS));
    let counted: Value = serde_json::from_slice(&request.count_body(&tools)).unwrap();
    let names: Vec<_> =
        counted["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["files__read", "files__read_2", "files__write"]);
}

#[test]
fn an_unknown_thread_is_refused_so_that_the_client_sends_everything() {
    let target = RequestTarget::default();
    let code = |refusal: &Refusal| {
        let body: Value = serde_json::from_str(&refusal.to_body(Api::Messages)).unwrap();
        body["error"]["details"]["error_code"].clone()
    };
    let body = json!({"thread": {"type": "braid"}, "messages": []}).to_string();
    let refusal = AppRequest::read(Api::Messages, &target, body.as_bytes()).unwrap_err();
    assert_eq!((refusal.kind, refusal.status()), (RefusalKind::ThreadUnsupported, 400));
    assert_eq!(code(&refusal), "thread_unsupported_request");

    let thread = json!({"type": "continue", "previous_message_id": "msg_gone"});
    let body = json!({"thread": thread, "messages": []}).to_string();
    let mut request = AppRequest::read(Api::Messages, &target, body.as_bytes()).unwrap();
    let refusal = request.put_back(&HashMap::new()).unwrap_err();
    assert_eq!((refusal.kind, refusal.status()), (RefusalKind::NotFound, 404));
    assert_eq!(code(&refusal), "thread_not_found");
}

#[test]
fn a_thread_goes_on_after_its_last_message() {
    let target = RequestTarget::default();
    let tools = json!([{"name": "lookup", "input_schema": {"type": "object"}}]);
    let create = json!({
        "stream": true, "thread": {"type": "create"}, "system": "be brief", "tools": tools,
        "messages": [{"role": "user", "content": "hi"}],
    });
    let session = tool_use("toolu_1", "files__read", &json!({"path": "a"}));
    let app = tool_use("toolu_2", "lookup", &json!({}));
    let rounds =
        [vec![answer([text("both"), session.clone(), app.clone()], "tool_use").streamed()]];
    let request = read(Api::Messages, &target, &create, &HashMap::new());
    let first = play(request, &options(), &rounds, &HashMap::new());
    assert_eq!(parsed(&first.bodies)[0].get("thread"), None);

    // Only the new messages come. The names of the tools are known from the first request.
    let message = |played: &Played| match accumulate(&played.stream).unwrap() {
        End::Message(message) => message,
        End::Error(error) => panic!("{error}"),
    };
    let next = |id: &Value, messages: Value| {
        let thread = json!({"type": "continue", "previous_message_id": id});
        json!({"stream": true, "thread": thread, "messages": messages})
    };
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_2", "content": "found"});
    let body = next(&message(&first)["id"], json!([{"role": "user", "content": [result]}]));
    let request = read(Api::Messages, &target, &body, &first.records);
    let options = TurnOptions { seed: "second".into(), ..options() };
    let rounds = [vec![answer([text("found it")], "end_turn").streamed()]];
    let second = play(request, &options, &rounds, &first.records);
    let sent = &parsed(&second.bodies)[0];
    assert_eq!((&sent["system"], &sent["tools"][0]), (&create["system"], &tools[0]));
    let session_result =
        json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "result of toolu_1"});
    let expected = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [text("both"), session, app]},
        {"role": "user", "content": [session_result, result]},
    ]);
    assert_eq!(sent["messages"], expected);

    // A turn without calls of ours is held, too.
    let body = next(&message(&second)["id"], json!([{"role": "user", "content": "thanks"}]));
    let request = read(Api::Messages, &target, &body, &second.records);
    let third = play(request, &options, &rounds, &second.records);
    let sent = &parsed(&third.bodies)[0]["messages"];
    assert_eq!(sent.as_array().unwrap().len(), 5);
    assert_eq!(sent[3]["content"][0], text("found it"));
}

#[test]
fn invented_results_are_text_of_the_app() {
    let call = json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "pay", "server_name": "switchboard", "input": {"n": 1}});
    let result = json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false, "content": [{"type": "text", "text": "paid"}]});
    let own = json!({"type": "mcp_tool_use", "id": "mcptoolu_2", "name": "x", "server_name": "theirs", "input": {}});
    let own_result = json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_2", "is_error": false, "content": "y"});
    let content = json!([thinking("sealed"), call, result, own, own_result, text("done")]);
    let request = json!({
        "mcp_servers": [{"type": "url", "name": "theirs", "url": "https://a"}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": "go on"},
        ],
    });
    let request = read(Api::Messages, &RequestTarget::default(), &request, &HashMap::new());
    let tools = SessionTools::new(&request, &rendering(Api::Messages, &[]));
    let body: Value = serde_json::from_slice(&request.count_body(&tools)).unwrap();
    let expected = json!([
        text(r#"[Call of the tool pay with {"n":1}]"#),
        text("[Result of the tool: paid]"),
        own,
        own_result,
        text("done"),
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
}

#[test]
fn the_same_conversation_is_found_in_another_form() {
    let records = HashMap::new();
    let shows = TurnOptions { shows_calls: Some(true), ..options() };
    let call = tool_use("toolu_1", "files__read", &json!({"path": "a"}));
    let rounds = [
        vec![answer([text("one "), call], "tool_use").streamed()],
        vec![answer([text("two")], "end_turn").streamed()],
    ];
    let request = json!({"stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let request = read(Api::Messages, &RequestTarget::default(), &request, &records);
    let played = play(request, &shows, &rounds, &records);
    let mark = json!({"type": "ephemeral"});
    let next = json!({"stream": true, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]},
        {"role": "assistant", "content": "one two"},
        {"role": "user", "content": "go on"},
    ]});
    let next = read(Api::Messages, &RequestTarget::default(), &next, &played.records);
    let tools = SessionTools::new(&next, &rendering(Api::Messages, &[]));
    let body: Value = serde_json::from_slice(&next.count_body(&tools)).unwrap();
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
}

#[test]
fn a_call_in_the_reply_finds_its_record_where_earlier_messages_were_changed() {
    let records = HashMap::new();
    let session = tool_use("toolu_01A", "files__read", &json!({"path": "a"}));
    let app = tool_use("toolu_02B", "lookup", &json!({}));
    let rounds = [vec![answer([session, app.clone()], "tool_use").streamed()]];
    let tools = json!([{"name": "lookup", "input_schema": {"type": "object"}}]);
    let request = json!({"stream": true, "tools": tools, "messages": [{"role": "user", "content": "hi <today>"}]});
    let request = read(Api::Messages, &RequestTarget::default(), &request, &records);
    let played = play(request, &options(), &rounds, &records);
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_02B", "content": "x"});
    let next = json!({"tools": tools, "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [app]},
        {"role": "user", "content": [result]},
    ]});
    let next = read(Api::Messages, &RequestTarget::default(), &next, &played.records);
    let none = SessionTools::new(&next, &rendering(Api::Messages, &[]));
    let body: Value = serde_json::from_slice(&next.count_body(&none)).unwrap();
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 2);
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "toolu_01A");
}

#[test]
fn every_turn_of_a_conversation_is_put_back() {
    let call = |id: &str| tool_use(id, "files__read", &json!({"path": "a"}));
    let target = RequestTarget::default();
    let mut records = HashMap::new();
    let mut messages = vec![json!({"role": "user", "content": "0"})];
    for (turn, reply) in ["one", "two", "three"].into_iter().enumerate() {
        let rounds = [
            vec![answer([call(&format!("toolu_{turn}"))], "tool_use").streamed()],
            vec![answer([text(reply)], "end_turn").streamed()],
        ];
        let request =
            read(Api::Messages, &target, &json!({"stream": true, "messages": messages}), &records);
        let played = play(request, &options(), &rounds, &records);
        let sent = &parsed(&played.bodies)[0]["messages"];
        assert_eq!(sent.as_array().unwrap().len(), 4 * turn + 1, "{sent}");
        records = played.records;
        messages.push(json!({"role": "assistant", "content": reply}));
        messages.push(json!({"role": "user", "content": "next"}));
    }
}

#[test]
fn later_rounds_go_on_in_the_container_of_the_provider() {
    let mut events = answer([tool_use("toolu_1", "files__read", &json!({}))], "tool_use").events();
    let at = events.len() - 2;
    let mut ended: Value = serde_json::from_str(&events[at].1).unwrap();
    ended["delta"]["container"] = json!({"id": "container_1", "expires_at": "x"});
    events[at].1 = ended.to_string();
    for (own, expected) in [
        (Value::Null, json!("container_1")),
        (json!({"skills": [1]}), json!({"skills": [1], "id": "container_1"})),
    ] {
        let body = json!({"stream": true, "container": own, "messages": [{"role": "user", "content": "hi"}]});
        let request = read(Api::Messages, &RequestTarget::default(), &body, &HashMap::new());
        let rounds = [
            vec![Attempt::Events(events.clone())],
            vec![answer([text("end")], "end_turn").streamed()],
        ];
        let played = play(request, &options(), &rounds, &HashMap::new());
        assert_eq!(parsed(&played.bodies)[1]["container"], expected);
    }
}

#[test]
fn thinking_that_the_provider_refuses_is_dropped() {
    let reply = |content: Value| json!({"role": "assistant", "content": content});
    let body = json!({"messages": [
        {"role": "user", "content": "hi"},
        reply(json!([thinking("a"), text("b")])),
        {"role": "user", "content": "more"},
        reply(json!([{"type": "redacted_thinking", "data": "x"}])),
        {"role": "user", "content": "and more"},
    ]});
    let request = read(Api::Messages, &RequestTarget::default(), &body, &HashMap::new());
    let tools = SessionTools::new(&request, &rendering(Api::Messages, &[]));
    let mut turn = InjectedTurn::new(request, tools, &options()).unwrap();
    let mut refusal = Refusal::new(RefusalKind::Invalid, "messages: too long");
    assert!(!turn.drop_thinking(&refusal));
    refusal.message = "messages.1: Invalid `signature` in `thinking` block".into();
    assert!(turn.drop_thinking(&refusal));
    assert!(!turn.drop_thinking(&refusal));
    let sent: Value = serde_json::from_slice(&turn.body()).unwrap();
    let expected = json!([
        {"role": "user", "content": "hi"},
        reply(json!([text("b")])),
        {"role": "user", "content": "more"},
        {"role": "user", "content": "and more"},
    ]);
    assert_eq!(sent["messages"], expected);
}
