//! Whole streams, as the app gets them.

use std::collections::HashMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_splice::{Api, RequestTarget, TurnOptions};

use super::checker::{End, accumulate, accumulate_chunks};
use super::provider::{Answer, answer, call, signed, text};
use crate::scripted::{Attempt, Played, options, play, read};

fn target() -> RequestTarget {
    RequestTarget {
        model: Some("gemini-3.1-pro".into()),
        is_streamed: Some(true),
        ..RequestTarget::default()
    }
}

fn request() -> Value {
    json!({
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "lookup"}]}],
        "generationConfig": {"maxOutputTokens": 12},
    })
}

fn turn(
    target: &RequestTarget,
    request: &Value,
    options: &TurnOptions,
    answers: &[Answer],
) -> Played {
    let records = HashMap::new();
    let attempts: Vec<_> = answers.iter().map(|answer| vec![answer.streamed()]).collect();
    play(read(Api::Gemini, target, request, &records), options, &attempts, &records)
}

fn two_rounds() -> [Answer; 2] {
    let call = signed(call(None, "files__read", &json!({"path": "a"})));
    let thought = json!({"text": "let me see", "thought": true});
    [
        answer([vec![thought], vec![text("I "), text("look.")], vec![call]]),
        answer([vec![text("It says ")], vec![text("a.")]]),
    ]
}

#[track_caller]
fn response(played: &Played) -> Value {
    match accumulate(&played.stream).unwrap() {
        End::Response(response) => response,
        End::Error(error) => panic!("{error}"),
    }
}

#[test]
fn a_hidden_call_leaves_one_answer() {
    let played = turn(&target(), &request(), &options(), &two_rounds());
    insta::assert_snapshot!(played.stream);
    let second: Value = serde_json::from_str(&played.bodies[1]).unwrap();
    insta::assert_json_snapshot!(second);
}

/// Two rounds, with the call between them shown.
pub(crate) fn shown_stream() -> String {
    let options = TurnOptions { shows_calls: Some(true), ..options() };
    turn(&target(), &request(), &options, &two_rounds()).stream
}

#[test]
fn calls_are_shown_to_an_app_that_asked_for_it() {
    insta::assert_snapshot!(shown_stream());
}

#[test]
fn a_stream_without_events_is_one_array() {
    let target = RequestTarget { is_json_array: true, ..target() };
    let played = turn(&target, &request(), &options(), &two_rounds());
    let chunks: Vec<Value> = serde_json::from_str(&played.stream).unwrap();
    let End::Response(array) = accumulate_chunks(chunks).unwrap() else { panic!("an error") };
    let events = response(&turn(&self::target(), &request(), &options(), &two_rounds()));
    assert_eq!(array, events);

    let mut events = two_rounds()[1].events();
    events.pop();
    let records = HashMap::new();
    let request = read(Api::Gemini, &target, &request(), &records);
    let played = play(request, &options(), &[vec![Attempt::Cut(events)]], &records);
    let chunks: Vec<Value> = serde_json::from_str(&played.stream).unwrap();
    assert_eq!(chunks.last().unwrap()["error"]["status"], "UNAVAILABLE");
}

#[test]
fn an_answer_in_one_chunk_passes_as_it_is() {
    let only = answer([vec![text("hello")]]);
    let played = turn(&target(), &request(), &options(), std::slice::from_ref(&only));
    let sent: Value = serde_json::from_str(&only.events()[0].1).unwrap();
    assert_eq!(crate::scripted::frames(&played.stream), [(None, sent)]);
}

#[test]
fn a_refused_prompt_passes_as_it_is() {
    let refused = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}});
    let records = HashMap::new();
    let request = read(Api::Gemini, &target(), &request(), &records);
    let events = vec![(String::new(), refused.to_string())];
    let played = play(request, &options(), &[vec![Attempt::Events(events)]], &records);
    assert_eq!(crate::scripted::frames(&played.stream), [(None, refused)]);
}

#[test]
fn a_mixed_round_goes_back_as_one_turn() {
    let calls = vec![
        signed(call(None, "files__read", &json!({"path": "a"}))),
        call(None, "lookup", &json!({"key": 1})),
        call(None, "files__write", &json!({})),
    ];
    let played = turn(&target(), &request(), &options(), &[answer([calls])]);
    let shown = response(&played);
    let parts = &shown["candidates"][0]["content"]["parts"];
    assert_eq!(*parts, json!([call(None, "lookup", &json!({"key": 1}))]));

    let mut next = request();
    let contents = next["contents"].as_array_mut().unwrap();
    contents.push(json!({"role": "model", "parts": parts}));
    let result = json!({"functionResponse": {"name": "lookup", "response": {"result": "found"}}});
    contents.push(json!({"role": "user", "parts": [{"text": "here"}, result]}));
    let end = [vec![answer([vec![text("end")]]).streamed()]];
    let again = read(Api::Gemini, &target(), &next, &played.records);
    let again = play(again, &options(), &end, &played.records);
    let body: Value = serde_json::from_str(&again.bodies[0]).unwrap();
    insta::assert_json_snapshot!(body["contents"]);
}

#[test]
fn text_waits_where_a_format_is_asked_for() {
    let mut request = request();
    request["generationConfig"]["responseMimeType"] = "application/json".into();
    let [first, mut last] = two_rounds();
    last.chunks = vec![vec![text("{\"a\"")], vec![text(":1}")]];
    let response = response(&turn(&target(), &request, &options(), &[first, last]));
    let parts = &response["candidates"][0]["content"]["parts"];
    assert_eq!(*parts, json!([{"text": "let me see", "thought": true}, text("{\"a\":1}")]));
}

#[test]
fn the_maximum_of_tokens_and_of_rounds_ends_the_answer() {
    let reason = |played: &Played| response(played)["candidates"][0]["finishReason"].clone();
    let rounds = [two_rounds()[0].clone(), two_rounds()[0].clone(), two_rounds()[0].clone()];
    let played = turn(&target(), &request(), &options(), &rounds);
    let body: Value = serde_json::from_str(&played.bodies[2]).unwrap();
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 2);
    assert_eq!(reason(&played), "MAX_TOKENS");
    let options = TurnOptions { max_rounds: 2, ..options() };
    let played = turn(&target(), &request(), &options, &rounds);
    assert_eq!(reason(&played), "TOO_MANY_TOOL_CALLS");
}

#[test]
fn an_error_within_the_stream_is_the_provider_s_own() {
    let error = json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": []}});
    let records = HashMap::new();
    let request = read(Api::Gemini, &target(), &request(), &records);
    let mut events = answer([vec![text("a")], vec![text("b")]]).events();
    events[1].1 = error.to_string();
    let played = play(request, &options(), &[vec![Attempt::Events(events)]], &records);
    assert_eq!(accumulate(&played.stream), Ok(End::Error(error["error"].clone())));
    assert_eq!(played.refusal.unwrap().status(), 429);
}
