//! Any sequence of rounds, errors, mixed and parallel calls and retries gives a stream that every client reads.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_splice::{Api, RequestTarget, TurnOptions};

use super::checker::{End, accumulate, check_conversation, check_response, joined};
use super::provider::{Answer, answer, call, signed, text};
use crate::scripted::{Attempt, Played, calls, options, play, read};

/// A round, and the number of events after which attempts before it fail.
#[derive(Debug, Clone)]
struct Round {
    answer: Answer,
    failures: Vec<(usize, bool)>,
}

fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => "[a-zä][a-zä \\n]{0,8}".prop_map(|words| text(&words)),
        1 => "[a-z]{1,8}".prop_map(|words| json!({"text": words, "thought": true})),
        1 => Just(signed(text(""))),
        1 => Just(json!({"executableCode": {"language": "PYTHON", "code": "1"}})),
    ]
}

fn round(is_last: bool) -> impl Strategy<Value = Round> {
    let failures = prop::collection::vec((0_usize..6, any::<bool>()), 0..2);
    let parts = prop::collection::vec(prop::collection::vec(part(), 1..3), 0..4);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (parts, calls(is_last), flags, failures).prop_map(
        move |(mut chunks, calls, (ends_in_calls, has_ids, is_one_chunk), failures)| {
            if !is_last || ends_in_calls {
                let calls = calls.iter().enumerate().map(|(index, name)| {
                    let id = format!("id{index}");
                    let part =
                        call(has_ids.then_some(&id), name, &json!({"path": "a ä", "n": index}));
                    if index == 0 { signed(part) } else { part }
                });
                let calls: Vec<_> = calls.collect();
                if is_one_chunk {
                    chunks.push(calls);
                } else {
                    chunks.extend(calls.into_iter().map(|call| vec![call]));
                }
            } else {
                chunks.push(vec![text("end")]);
            }
            Round { answer: answer(chunks), failures }
        },
    )
}

fn turn() -> impl Strategy<Value = Vec<Round>> {
    (prop::collection::vec(round(false), 0..4), round(true)).prop_map(|(mut rounds, last)| {
        rounds.push(last);
        for (number, round) in rounds.iter_mut().enumerate() {
            round.answer.prompt += u64::try_from(number).unwrap();
            for part in round.answer.chunks.iter_mut().flatten() {
                if let Some(id) = part["functionCall"]["id"].as_str() {
                    part["functionCall"]["id"] = format!("{id}-{number}").into();
                } else if part["functionCall"].is_null() {
                    part.as_object_mut().unwrap().remove("functionCall");
                }
            }
        }
        rounds
    })
}

fn request(wants_format: bool) -> Value {
    let mut request = json!({
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "lookup"}]}],
        "generationConfig": {"maxOutputTokens": 4096},
    });
    if wants_format {
        request["generationConfig"]["responseSchema"] = json!({"type": "OBJECT"});
    }
    request
}

fn attempts(rounds: &[Round], is_streamed: bool, has_failures: bool) -> Vec<Vec<Attempt>> {
    let round = |round: &Round| {
        let events = round.answer.events();
        let failures = round.failures.iter().filter(|_| has_failures && is_streamed);
        let failed = failures.map(|(after, is_error)| {
            let mut cut: Vec<_> =
                events.iter().take((*after).min(events.len() - 1)).cloned().collect();
            if *is_error {
                let error =
                    json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}});
                cut.push((String::new(), error.to_string()));
            }
            Attempt::Cut(cut)
        });
        let last = if is_streamed { round.answer.streamed() } else { round.answer.whole() };
        failed.chain([last]).collect()
    };
    rounds.iter().map(round).collect()
}

fn target(is_streamed: bool) -> RequestTarget {
    RequestTarget {
        model: Some("gemini-3.1-pro".into()),
        is_streamed: Some(is_streamed),
        ..RequestTarget::default()
    }
}

fn played(
    rounds: &[Round],
    wants_format: bool,
    options: &TurnOptions,
    is_streamed: bool,
    has_failures: bool,
) -> Played {
    let records = HashMap::new();
    let attempts = attempts(rounds, is_streamed, has_failures);
    let request = read(Api::Gemini, &target(is_streamed), &request(wants_format), &records);
    play(request, options, &attempts, &records)
}

/// The conversation goes on as Google's chat helper does it: one content for each chunk.
fn next_request(request: &Value, parts: &[Value]) -> Value {
    let mut next = request.clone();
    let contents = next["contents"].as_array_mut().unwrap();
    contents.extend(parts.iter().map(|part| json!({"role": "model", "parts": [part]})));
    if parts.is_empty() {
        contents.push(json!({"role": "model", "parts": [{"text": ""}]}));
    }
    let calls = parts.iter().filter_map(|part| part.get("functionCall"));
    let mut results: Vec<_> = calls
        .map(|call| json!({"functionResponse": {"name": call["name"], "response": {"result": "ok"}}}))
        .collect();
    if results.is_empty() {
        results.push(json!({"text": "go on"}));
    }
    contents.push(json!({"role": "user", "parts": results}));
    next
}

proptest! {
    #[test]
    fn streams_are_read_by_every_client(
        rounds in turn(), shows in any::<bool>(), wants_format in any::<bool>(), has_failures in any::<bool>(),
    ) {
        let options = TurnOptions { shows_calls: Some(shows), ..options() };
        let streamed = played(&rounds, wants_format, &options, true, has_failures);
        let end = accumulate(&streamed.stream).map_err(TestCaseError::fail)?;
        let End::Response(response) = end else {
            prop_assert!(streamed.refusal.is_some());
            return Ok(());
        };
        prop_assert!(streamed.refusal.is_none());
        let parts = response["candidates"][0]["content"]["parts"].as_array().unwrap();
        prop_assert!(shows || parts.iter().all(|part| part.get("toolCall").is_none()));
        for part in parts {
            prop_assert!(part.get("functionCall").is_none_or(|call| call["name"] == "lookup"));
        }

        let whole = played(&rounds, wants_format, &options, false, false);
        let mut whole: Value = serde_json::from_str(&whole.whole.unwrap()).unwrap();
        let content = &mut whole["candidates"][0]["content"];
        content["parts"] = joined(content["parts"].as_array().unwrap()).into();
        check_response(&whole).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&whole, &response);

        for body in &streamed.bodies {
            let body: Value = serde_json::from_str(body).unwrap();
            check_conversation(&body).map_err(TestCaseError::fail)?;
        }

        let next = next_request(&request(wants_format), parts);
        let last = [Round { answer: answer([vec![text("end")]]), failures: vec![] }];
        let attempts = attempts(&last, true, false);
        for records in [&streamed.records, &HashMap::new()] {
            let again = play(read(Api::Gemini, &target(true), &next, records), &options, &attempts, records);
            let body: Value = serde_json::from_str(&again.bodies[0]).unwrap();
            check_conversation(&body).map_err(TestCaseError::fail)?;
            if !records.is_empty() {
                let sent: Value = serde_json::from_str(streamed.bodies.last().unwrap()).unwrap();
                let sent = sent["contents"].as_array().unwrap();
                prop_assert_eq!(sent, &body["contents"].as_array().unwrap()[..sent.len()]);
            }
        }
    }
}
