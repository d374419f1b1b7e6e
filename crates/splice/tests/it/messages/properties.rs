//! Any sequence of rounds, errors, mixed and parallel calls and retries gives a stream that every client reads.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_splice::{Api, RequestTarget, TurnOptions};

use super::checker::{End, accumulate, check_conversation, check_message};
use super::provider::{Answer, answer, search, text, thinking, tool_use};
use crate::scripted::{Attempt, Played, calls, options, play, read};

/// A round, and the number of events after which attempts before it fail.
#[derive(Debug, Clone)]
struct Round {
    answer: Answer,
    failures: Vec<(usize, bool)>,
}

fn block() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        "[a-zä][a-zä \\n]{0,8}".prop_map(|words| vec![text(&words)]),
        "[a-z]{0,8}".prop_map(|words| vec![thinking(&words)]),
        Just(search("srvtoolu_1").to_vec()),
        Just(vec![json!({"type": "redacted_thinking", "data": "opaque"})]),
    ]
}

fn round(is_last: bool) -> impl Strategy<Value = Round> {
    let failures = prop::collection::vec((0_usize..12, any::<bool>()), 0..2);
    let blocks = prop::collection::vec(block(), 0..4);
    (blocks, calls(is_last), any::<bool>(), failures).prop_map(
        move |(blocks, calls, ends_in_calls, failures)| {
            let mut blocks = blocks.concat();
            let has_calls = !is_last || ends_in_calls;
            if has_calls {
                let calls = calls.iter().enumerate().map(|(index, name)| {
                    tool_use(&format!("toolu_{index}"), name, &json!({"path": "a ä", "n": index}))
                });
                blocks.extend(calls);
            } else if blocks.is_empty() {
                blocks.push(text("end"));
            }
            let reason = if has_calls { "tool_use" } else { "end_turn" };
            Round { answer: answer(blocks, reason), failures }
        },
    )
}

fn turn() -> impl Strategy<Value = Vec<Round>> {
    (prop::collection::vec(round(false), 0..4), round(true)).prop_map(|(mut rounds, last)| {
        rounds.push(last);
        // Ids are unique within a conversation.
        for (number, round) in rounds.iter_mut().enumerate() {
            for block in &mut round.answer.blocks {
                for name in ["id", "tool_use_id"] {
                    if let Some(id) = block.get(name).and_then(Value::as_str) {
                        block[name] = format!("{id}{number}").into();
                    }
                }
            }
        }
        rounds
    })
}

fn request(is_streamed: bool, wants_format: bool) -> Value {
    let mut request = json!({
        "model": "claude-test", "max_tokens": 4096, "stream": is_streamed,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "lookup", "input_schema": {"type": "object"}}],
    });
    if wants_format {
        request["output_config"] = json!({"format": {"type": "json_schema", "schema": {}}});
    }
    request
}

fn attempts(rounds: &[Round], is_streamed: bool, has_failures: bool) -> Vec<Vec<Attempt>> {
    let round = |round: &Round| {
        let events = round.answer.events();
        let failures = round.failures.iter().filter(|_| has_failures && is_streamed);
        let failed = failures.map(|(after, is_error)| {
            let mut cut: Vec<_> = events.iter().take((*after).min(events.len() - 2)).cloned().collect();
            if *is_error {
                let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
                cut.push(("error".into(), error.to_string()));
            }
            Attempt::Cut(cut)
        });
        let last = if is_streamed { round.answer.streamed() } else { round.answer.whole() };
        failed.chain([last]).collect()
    };
    rounds.iter().map(round).collect()
}

fn played(rounds: &[Round], request: &Value, options: &TurnOptions, has_failures: bool) -> Played {
    let target = RequestTarget { betas: vec!["some-beta".into()], ..RequestTarget::default() };
    let records = HashMap::new();
    let is_streamed = request["stream"] == true;
    let attempts = attempts(rounds, is_streamed, has_failures);
    play(read(Api::Messages, &target, request, &records), options, &attempts, &records)
}

/// The conversation goes on: the app sends back what it saw, with the results of its own calls.
fn next_request(request: &Value, message: &Value) -> Value {
    let mut next = request.clone();
    let messages = next["messages"].as_array_mut().unwrap();
    let content = message["content"].as_array().unwrap();
    let calls = content.iter().filter(|block| block["type"] == "tool_use");
    let mut results: Vec<_> = calls
        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}))
        .collect();
    results.push(json!({"type": "text", "text": "go on"}));
    messages.push(json!({"role": "assistant", "content": content}));
    messages.push(json!({"role": "user", "content": results}));
    next
}

proptest! {
    #[test]
    fn streams_are_read_by_every_client(
        rounds in turn(), shows in any::<bool>(), wants_format in any::<bool>(), has_failures in any::<bool>(),
    ) {
        let options = TurnOptions { shows_calls: Some(shows), ..options() };
        let request_body = request(true, wants_format);
        let streamed = played(&rounds, &request_body, &options, has_failures);
        let end = accumulate(&streamed.stream).map_err(TestCaseError::fail)?;
        let End::Message(message) = end else {
            prop_assert!(streamed.refusal.is_some());
            return Ok(());
        };
        prop_assert!(streamed.refusal.is_none());
        let shown = message["content"].as_array().unwrap();
        prop_assert!(shows || shown.iter().all(|block| block["type"] != "mcp_tool_use"));
        prop_assert!(shown.iter().all(|block| block["type"] != "tool_use" || block["name"] == "lookup"));

        let whole = played(&rounds, &request(false, wants_format), &options, false);
        let whole: Value = serde_json::from_str(&whole.whole.unwrap()).unwrap();
        check_message(&whole).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&whole, &message);

        for body in &streamed.bodies {
            let body: Value = serde_json::from_str(body).unwrap();
            check_conversation(&body).map_err(TestCaseError::fail)?;
        }

        // With the record the provider gets the whole conversation, and without it one that it accepts.
        let next = next_request(&request_body, &message);
        let target = RequestTarget::default();
        let last = [Round { answer: answer([text("end")], "end_turn"), failures: vec![] }];
        let attempts = attempts(&last, true, false);
        for records in [&streamed.records, &HashMap::new()] {
            let again = play(read(Api::Messages, &target, &next, records), &options, &attempts, records);
            let body: Value = serde_json::from_str(&again.bodies[0]).unwrap();
            let is_whole = !records.is_empty() || !streamed.records.is_empty();
            let is_empty = message["content"].as_array().unwrap().is_empty();
            if !(records.is_empty() && is_empty) {
                check_conversation(&body).map_err(TestCaseError::fail)?;
            }
            if !records.is_empty() && is_whole {
                let sent: Value = serde_json::from_str(streamed.bodies.last().unwrap()).unwrap();
                let sent = sent["messages"].as_array().unwrap();
                prop_assert_eq!(sent, &body["messages"].as_array().unwrap()[..sent.len()]);
            }
        }
    }
}
