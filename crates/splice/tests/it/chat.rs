//! Turns of Chat Completions, one by one.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_splice::Api;

use crate::chat_checker::check;
use crate::play::{Played, Stage};
use crate::said::{End, Said, call, chat, said, text};

fn stage() -> Stage {
    Stage::new(Api::Chat)
}

fn request(more: &Value) -> Value {
    let mut request =
        json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "stream": true});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

fn app_tools() -> Value {
    json!([{"type": "function", "function": {"name": "app_one", "parameters": {"type": "object"}}}])
}

fn play(request: &Value, rounds: &[Said]) -> Played {
    let rounds: Vec<_> = rounds.iter().map(|said| chat::stream(said, 100)).collect();
    stage().stream(stage().request(request).unwrap(), &rounds)
}

#[test]
fn the_stream_of_two_rounds_is_one_answer() {
    let played = play(
        &request(&json!({"stream_options": {"include_usage": true}})),
        &[
            said(0, &[text("I look."), call("find", r#"{"q":"x"}"#)]),
            said(1, &[text("It is there.")]),
        ],
    );
    insta::assert_snapshot!(played.out);
    insta::assert_snapshot!("the_second_request_of_a_chat", played.bodies[1]);
    assert_eq!(check(&played.out, true).completion["usage"]["total_tokens"], 34);
}

#[test]
fn a_mixed_round_ends_with_the_apps_calls_and_goes_on_with_all_results() {
    let first = request(&json!({"tools": app_tools()}));
    let played = play(
        &first,
        &[said(0, &[call("find", "{}"), call("app_one", r#"{"a":1}"#), call("weather", "{}")])],
    );
    let seen = check(&played.out, false).completion;
    assert_eq!(seen["finish_reason"], "tool_calls");
    assert_eq!(played.ran.len(), 2);
    let message = seen["message"].clone();
    let id = &message["tool_calls"][0]["id"];
    let mut messages = first["messages"].as_array().unwrap().clone();
    // Another time in the system message: the conversation differs, the id of the call does not.
    messages.insert(0, json!({"role": "system", "content": "It is ten o'clock."}));
    messages.push(message.clone());
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "done"}));
    let mut next =
        stage().request(&request(&json!({"messages": messages, "tools": app_tools()}))).unwrap();
    let records = played.records();
    assert!(next.record_keys().iter().any(|key| records.contains_key(key)));
    next.put_back(&records).unwrap();
    let next = stage().stream(next, &[chat::stream(&said(1, &[text("Done.")]), 100)]);
    insta::assert_snapshot!("the_request_after_a_mixed_round", next.bodies[0]);
}

#[test]
fn hidden_rounds_are_put_back_and_the_earlier_bytes_stay() {
    let first = request(&json!({}));
    let played = play(
        &first,
        &[said(0, &[text("I look."), call("find", "{}")]), said(1, &[text("It is there.")])],
    );
    let mut messages = first["messages"].as_array().unwrap().clone();
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "I look.\n\nIt is there."}]}));
    messages.push(json!({"role": "user", "content": "And now?"}));
    let mut next = stage().request(&request(&json!({"messages": messages}))).unwrap();
    next.put_back(&played.records()).unwrap();
    let next = stage().stream(next, &[chat::stream(&said(1, &[text("Still.")]), 100)]);
    let body = next.body(0);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    // What the provider has in its cache stays as it was.
    let prefix =
        |body: &str| body.split("\"stream\"").next().unwrap().trim_end_matches("],").to_owned();
    assert!(prefix(&next.bodies[0]).starts_with(&prefix(&played.bodies[1])));
}

#[test]
fn a_forged_or_edited_reply_is_sent_as_the_app_wrote_it() {
    let first = request(&json!({}));
    let played = play(&first, &[said(0, &[call("find", "{}")]), said(1, &[text("There.")])]);
    let messages = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "Nowhere."}, {"role": "user", "content": "?"}]);
    let mut next = stage().request(&request(&json!({"messages": messages}))).unwrap();
    next.put_back(&played.records()).unwrap();
    let next = stage().stream(next, &[chat::stream(&said(1, &[text("Ok.")]), 100)]);
    assert_eq!(next.body(0)["messages"], messages);
}

#[test]
fn a_forced_choice_holds_for_the_first_round() {
    let forced = json!({"type": "function", "function": {"name": "find"}});
    for (choice, second) in [
        (forced, json!("auto")),
        (json!("required"), json!("auto")),
        (json!("none"), json!("none")),
        (
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}),
        ),
    ] {
        let played = play(
            &request(
                &json!({"tool_choice": choice, "parallel_tool_calls": false, "prompt_cache_key": "k"}),
            ),
            &[said(0, &[call("find", "{}")]), said(1, &[text("There.")])],
        );
        assert_eq!(played.body(0)["tool_choice"], choice);
        assert_eq!(played.body(1)["tool_choice"], second);
        assert_eq!(played.body(1)["parallel_tool_calls"], false);
        assert_eq!(played.body(1)["prompt_cache_key"], "k");
    }
}

#[test]
fn output_tokens_are_a_budget_of_all_rounds() {
    let rounds =
        [said(0, &[call("find", "{}")]), said(1, &[call("find", "{}")]), said(2, &[text("x")])];
    let played = play(&request(&json!({"max_tokens": 11})), &rounds);
    assert_eq!(played.body(1)["max_tokens"], 5);
    assert_eq!(played.bodies.len(), 2);
    // The app did not ask for the usage that the budget needs.
    assert_eq!(played.body(0)["stream_options"]["include_usage"], true);
    assert_eq!(check(&played.out, false).completion["finish_reason"], "length");
}

#[test]
fn text_before_a_session_call_is_not_shown_to_an_app_that_parses_it() {
    let format = json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}});
    let rounds =
        [said(0, &[text("I look."), call("find", "{}")]), said(1, &[text("{\"a\":"), text("1}")])];
    let played = play(&request(&format), &rounds);
    assert_eq!(check(&played.out, false).completion["message"]["content"], "{\"a\":1}");
    assert_eq!(played.body(1)["messages"][1]["content"], "I look.");
}

#[test]
fn calls_are_told_only_to_an_app_that_asks() {
    let rounds = [said(0, &[call("find", "{}"), call("fail", "{}")]), said(1, &[text("x")])];
    let rounds = rounds.map(|said| chat::stream(&said, 100));
    let stage = Stage { shows_calls: Some(true), ..stage() };
    let played = stage.stream(stage.request(&request(&json!({}))).unwrap(), &rounds);
    let told = &check(&played.out, false).completion["message"]["switchboard"]["calls"];
    assert_eq!(told[0]["output"], "Error: fail of {}");
    assert_eq!(told[1]["output"], "find of {}");
}

#[test]
fn a_round_is_repeated_until_something_of_it_was_shown() {
    let lost = said(0, &[call("find", "{}")]).ends(End::Error);
    let played = play(&request(&json!({})), &[lost, said(1, &[text("Here.")])]);
    assert_eq!(check(&played.out, false).completion["message"]["content"], "Here.");
    let shown = said(0, &[text("Her")]).ends(End::Cut);
    let played = play(&request(&json!({})), &[shown, said(1, &[text("Here.")])]);
    assert!(played.failed.is_some());
    let error = check(&played.out, false).error.unwrap();
    assert_eq!(error["message"], "the provider's stream ended before the answer did");
}

#[test]
fn the_calls_of_a_cut_answer_do_not_run() {
    let cut = said(0, &[text("a"), call("find", r#"{"q":"#)]).ends(End::Length);
    let played = play(&request(&json!({})), &[cut]);
    assert!(played.ran.is_empty());
    assert_eq!(check(&played.out, false).completion["finish_reason"], "length");
}

#[test]
fn what_cannot_be_done_in_several_rounds_is_refused() {
    for (more, param) in [
        (json!({"n": 2}), Some("n")),
        (json!({"functions": [{"name": "f"}]}), Some("functions")),
        (json!({"messages": "hello"}), Some("messages")),
    ] {
        let refusal = stage().request(&request(&more)).unwrap_err();
        assert_eq!(refusal.param.as_deref(), param);
        assert_eq!(refusal.status(), 400);
    }
    assert!(stage().request(&request(&json!({"n": 1, "functions": null}))).is_ok());
}

#[test]
fn the_apps_bytes_are_kept() {
    let body = r#"{"messages":[ {"role":"user" , "content":"\u00e4"} ],"unknown":1.50,"tools":[{ "type":"function","function":{"name":"find"}}],"model":"m","stream":true}"#;
    let target = switchboard_splice::RequestTarget::default();
    let request =
        switchboard_splice::AppRequest::read(Api::Chat, &target, body.as_bytes()).unwrap();
    let played = stage().stream(
        request,
        &[chat::stream(&said(0, &[call("find_2", "{}"), call("find", "{}")]), 100)],
    );
    let sent = &played.bodies[0];
    for kept in [
        r#"[ {"role":"user" , "content":"\u00e4"} ]"#,
        r#""unknown":1.50"#,
        r#""tools":[{ "type":"function","function":{"name":"find"}},{"#,
        r#""name":"find_2""#,
    ] {
        assert!(sent.contains(kept), "{kept} is not in {sent}");
    }
    assert_eq!(played.ran[0].tool, "find");
    let shown = check(&played.out, false).completion;
    assert_eq!(shown["message"]["tool_calls"][0]["function"]["name"], "find");
}

/// Streams of servers that do it their own way.
#[test]
fn servers_with_their_own_ways_are_understood() {
    let chunk = |delta: Value, finish: Value| {
        (
            String::new(),
            json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).to_string(),
        )
    };
    let done = || (String::new(), "[DONE]".to_owned());
    let fragment = |more: Value| json!({"tool_calls": [more]});
    // No role, no index, no id, an object for the arguments, no finish reason.
    let first = vec![
        chunk(
            fragment(json!({"function": {"name": "find", "arguments": {"q": "x"}}})),
            Value::Null,
        ),
        chunk(
            fragment(
                json!({"function": {"name": "app_one", "arguments": "{}"}, "extra_content": {"s": "t"}}),
            ),
            Value::Null,
        ),
        done(),
    ];
    let request = stage().request(&request(&json!({"tools": app_tools()}))).unwrap();
    let played = stage().stream(request, &[first]);
    let seen = check(&played.out, false).completion;
    assert_eq!(played.ran[0].arguments, json!({"q": "x"}));
    assert_eq!(seen["message"]["tool_calls"][0]["function"]["name"], "app_one");
    assert_eq!(seen["message"]["tool_calls"][0]["extra_content"]["s"], "t");
    assert_eq!(seen["finish_reason"], "tool_calls");
    let (_, record) = played.record.unwrap();
    assert!(record.to_json().contains(r#""extra_content":{"s":"t"}"#));
}
