//! Whole streams, as the app gets them.

use std::collections::HashMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_splice::{Api, RequestTarget, TurnOptions};

use super::checker::{End, accumulate};
use super::provider::{Answer, answer, search, text, thinking, tool_use};
use crate::scripted::{Attempt, Played, options, play, read};

fn turn(request: &Value, options: &TurnOptions, answers: &[Answer]) -> Played {
    let records = HashMap::new();
    let attempts: Vec<_> = answers.iter().map(|answer| vec![answer.streamed()]).collect();
    let target = RequestTarget::default();
    play(read(Api::Messages, &target, request, &records), options, &attempts, &records)
}

fn request() -> Value {
    json!({
        "model": "claude-test", "max_tokens": 100, "stream": true,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "lookup", "input_schema": {"type": "object"}}],
    })
}

fn two_rounds() -> [Answer; 2] {
    let call = tool_use("toolu_1", "files__read", &json!({"path": "a"}));
    [
        answer([thinking("let me see"), text("I look."), call], "tool_use"),
        answer([text("It says a.")], "end_turn"),
    ]
}

#[track_caller]
fn message(played: &Played) -> Value {
    match accumulate(&played.stream).unwrap() {
        End::Message(message) => message,
        End::Error(error) => panic!("{error}"),
    }
}

#[test]
fn a_hidden_call_leaves_no_gap() {
    insta::assert_snapshot!(turn(&request(), &options(), &two_rounds()).stream);
}

/// Two rounds, with the call between them shown.
pub(crate) fn shown_stream() -> String {
    let options = TurnOptions { shows_calls: Some(true), ..options() };
    turn(&request(), &options, &two_rounds()).stream
}

#[test]
fn a_shown_call_is_whole_and_has_its_result() {
    insta::assert_snapshot!(shown_stream());
}

#[test]
fn the_client_beta_shows_calls_and_counts_every_round() {
    let records = HashMap::new();
    let betas = vec!["mcp-client-2025-11-20".to_owned()];
    let target = RequestTarget { betas, ..RequestTarget::default() };
    let mut request = request();
    request["stream"] = false.into();
    let attempts = two_rounds().map(|answer| vec![answer.whole()]);
    let request = read(Api::Messages, &target, &request, &records);
    let played = play(request, &options(), &attempts, &records);
    let message: Value = serde_json::from_str(&played.whole.unwrap()).unwrap();
    insta::assert_json_snapshot!(message);
}

#[test]
fn a_mixed_round_ends_the_message_with_the_app_s_call() {
    let session = tool_use("toolu_1", "files__read", &json!({"path": "a"}));
    let app = tool_use("toolu_2", "lookup", &json!({"key": 1.0}));
    let played = turn(&request(), &options(), &[answer([session, app], "tool_use")]);
    let shown = message(&played);
    assert_eq!(shown["stop_reason"], "tool_use");
    assert_eq!(shown["content"][0]["name"], "lookup");

    // A client of JavaScript writes 1.0 as 1.
    let mut next = request();
    let messages = next["messages"].as_array_mut().unwrap();
    let call = json!({"type": "tool_use", "id": "toolu_2", "name": "lookup", "input": {"key": 1}});
    messages.push(json!({"role": "assistant", "content": [call]}));
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_2", "content": "found"});
    messages.push(json!({"role": "user", "content": [result]}));
    let end = [vec![answer([text("end")], "end_turn").streamed()]];
    let target = RequestTarget::default();
    let again = read(Api::Messages, &target, &next, &played.records);
    let again = play(again, &options(), &end, &played.records);
    let body: Value = serde_json::from_str(&again.bodies[0]).unwrap();
    insta::assert_json_snapshot!(body["messages"]);
}

#[test]
fn text_waits_where_a_format_is_asked_for() {
    let mut request = request();
    request["output_config"] = json!({"format": {"type": "json_schema", "schema": {}}});
    let [first, mut last] = two_rounds();
    last.blocks = vec![text(r#"{"a":1}"#)];
    let message = message(&turn(&request, &options(), &[first, last]));
    let content = json!([thinking("let me see"), text(r#"{"a":1}"#)]);
    assert_eq!(message["content"], content);
}

#[test]
fn tools_of_the_provider_pass() {
    let [use_, result] = search("srvtoolu_1");
    let call = tool_use("toolu_1", "files__read", &json!({}));
    let first = answer([call, use_.clone(), result.clone()], "tool_use");
    let last = answer([text("end")], "end_turn");
    let message = message(&turn(&request(), &options(), &[first, last]));
    assert_eq!(message["content"], json!([use_, result, text("end")]));
}

#[test]
fn what_is_unknown_passes() {
    let mut events = answer([text("a")], "end_turn").events();
    let block = json!({"type": "hologram", "cells": [1.50]});
    let start =
        json!({"type": "content_block_start", "index": 1, "content_block": block, "new": 1});
    let delta = json!({"type": "content_block_delta", "index": 1, "delta": {"type": "cell_delta", "cells": [2]}});
    let stop = json!({"type": "content_block_stop", "index": 1});
    let news = json!({"type": "news", "about": "x"});
    let new = [
        ("content_block_start", start),
        ("content_block_delta", delta),
        ("content_block_stop", stop),
        ("news", news),
    ];
    let new = new.map(|(name, event)| (name.to_owned(), event.to_string()));
    events.splice(5..5, new.clone());
    let records = HashMap::new();
    let request = read(Api::Messages, &RequestTarget::default(), &request(), &records);
    let played = play(request, &options(), &[vec![Attempt::Events(events)]], &records);
    for (_, event) in new {
        assert!(played.stream.contains(&event), "{event}");
    }
}

#[test]
fn an_error_within_the_stream_is_the_provider_s_own() {
    let mut events = answer([text("a")], "end_turn").events();
    events.truncate(4);
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "request_id": "r"});
    events.push(("error".into(), error.to_string()));
    let records = HashMap::new();
    let request = read(Api::Messages, &RequestTarget::default(), &request(), &records);
    let played = play(request, &options(), &[vec![Attempt::Events(events)]], &records);
    assert_eq!(accumulate(&played.stream), Ok(End::Error(error["error"].clone())));
    assert_eq!(played.refusal.unwrap().status(), 529);
}

#[test]
fn a_cut_stream_ends_with_an_error() {
    let mut events = answer([text("a")], "end_turn").events();
    events.truncate(5);
    let records = HashMap::new();
    let request = read(Api::Messages, &RequestTarget::default(), &request(), &records);
    let played = play(request, &options(), &[vec![Attempt::Cut(events)]], &records);
    let End::Error(error) = accumulate(&played.stream).unwrap() else { panic!("no error") };
    assert_eq!(error["type"], "api_error");
}

#[test]
fn a_call_that_was_cut_does_not_run() {
    let call = tool_use("toolu_1", "files__write", &json!({"path": "a"}));
    let played = turn(&request(), &options(), &[answer([text("a"), call], "max_tokens")]);
    assert_eq!(message(&played)["stop_reason"], "max_tokens");
    assert!(played.records.is_empty());
}

#[test]
fn the_maximum_of_tokens_holds_for_all_rounds() {
    let [mut first, last] = two_rounds();
    first.usage.1 = 60;
    let played = turn(&request(), &options(), &[first.clone(), last.clone()]);
    let second: Value = serde_json::from_str(&played.bodies[1]).unwrap();
    assert_eq!(second["max_tokens"], 40);
    first.usage.1 = 100;
    let played = turn(&request(), &options(), &[first, last]);
    assert_eq!(played.bodies.len(), 1);
    assert_eq!(message(&played)["stop_reason"], "max_tokens");
}

#[test]
fn the_maximum_of_rounds_pauses_the_turn() {
    let [first, last] = two_rounds();
    let options = TurnOptions { max_rounds: 1, ..options() };
    let played = turn(&request(), &options, &[first, last.clone()]);
    let shown = message(&played);
    assert_eq!(shown["stop_reason"], "pause_turn");

    // The app sends the reply back as it is, and the model goes on from the results.
    let mut next = request();
    let reply = json!({"role": "assistant", "content": shown["content"]});
    next["messages"].as_array_mut().unwrap().push(reply);
    let next = read(Api::Messages, &RequestTarget::default(), &next, &played.records);
    let again = play(next, &options, &[vec![last.streamed()]], &played.records);
    let body: Value = serde_json::from_str(&again.bodies[0]).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
    assert_eq!(body["messages"][2]["content"][0]["type"], "tool_result");
}
