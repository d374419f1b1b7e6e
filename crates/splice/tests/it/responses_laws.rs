//! Whatever a model says in whatever number of rounds, an app sees one valid response, streamed or not.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_splice::Api;

use crate::chat_laws::{Wishes, rounds, wishes};
use crate::play::{Played, Stage};
use crate::responses_checker::check;
use crate::said::{End, Said, responses};

fn request(wishes: &Wishes, is_streamed: bool) -> Value {
    let mut request =
        json!({"model": "m", "input": "go", "stream": is_streamed, "store": wishes.usage});
    if wishes.has_tools {
        let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
        request["tools"] = json!([tool("app_one"), tool("app_two"), {"type": "web_search"}]);
    }
    if wishes.format {
        request["text"] = json!({"format": {"type": "json_object"}});
    }
    if let Some(most) = wishes.most {
        request["max_output_tokens"] = most.into();
    }
    request
}

fn stage(wishes: &Wishes) -> Stage {
    Stage { shows_calls: wishes.shows_calls, max_rounds: 4, ..Stage::new(Api::Responses) }
}

fn streamed(wishes: &Wishes, rounds: &[Said], size: usize) -> Played {
    let stage = stage(wishes);
    let rounds: Vec<_> = rounds.iter().map(|said| responses::stream(said, size)).collect();
    stage.stream(stage.request(&request(wishes, true)).unwrap(), &rounds)
}

/// Every call has one result after it, and reasoning is sent as it came.
fn check_bodies(played: &Played) {
    for index in 0..played.bodies.len() {
        let body = played.body(index);
        let Some(items) = body["input"].as_array() else { continue };
        let mut open: Vec<&Value> = Vec::new();
        for item in items {
            match item["type"].as_str().unwrap_or("message") {
                "function_call" => open.push(&item["call_id"]),
                "function_call_output" => {
                    let at = open.iter().position(|id| **id == item["call_id"]);
                    open.remove(at.expect("an output without a call"));
                }
                "reasoning" => {
                    assert!(item["encrypted_content"].as_str().unwrap().starts_with("sealed"));
                    assert!(item.get("status").is_none());
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "calls without outputs: {open:?}");
    }
}

proptest! {
    #[test]
    fn a_stream_is_one_valid_response(
        wishes in wishes(),
        rounds in rounds(true),
        size in 1..8usize,
    ) {
        let played = streamed(&wishes, &rounds, size);
        let response = check(&played.out);
        prop_assert_eq!(response["status"] == "failed", played.failed.is_some());
        let output = response["output"].as_array().unwrap();
        let of = |kind: &'static str| output.iter().filter(move |item| item["type"] == kind);
        for call in of("function_call") {
            let name = call["name"].as_str().unwrap();
            prop_assert!(wishes.has_tools, "a call of an app without tools");
            prop_assert!(["app_one", "app_two", "nobody"].contains(&name), "{} is a session tool", name);
        }
        let shown = of("mcp_call").count();
        if wishes.shows_calls == Some(false) {
            prop_assert_eq!(shown, 0);
        } else {
            prop_assert_eq!(shown, played.ran.len());
        }
        if wishes.format && played.failed.is_none() {
            // An app that parses texts sees those of one round.
            let rounds: std::collections::HashSet<_> =
                of("message").map(|item| item["id"].as_str().unwrap().split('_').nth(1)).collect();
            prop_assert!(rounds.len() <= 1, "texts of several rounds");
        }
        check_bodies(&played);
    }

    #[test]
    fn a_response_in_one_piece_is_what_a_stream_adds_up_to(
        wishes in wishes(),
        rounds in rounds(false),
        size in 1..8usize,
    ) {
        let streamed = streamed(&wishes, &rounds, size);
        let stage = stage(&wishes);
        let bodies: Vec<_> = rounds.iter().map(responses::whole).collect();
        let whole = stage.whole(stage.request(&request(&wishes, false)).unwrap(), &bodies);
        let whole_response: Value = serde_json::from_str(&whole.out).unwrap();
        prop_assert_eq!(check(&streamed.out), whole_response);
        prop_assert_eq!(streamed.bodies.len(), whole.bodies.len());
        let keys = |played: &Played| played.record.clone().map(|(keys, _)| keys);
        prop_assert_eq!(keys(&streamed), keys(&whole));
    }

    #[test]
    fn what_an_app_sends_back_becomes_what_happened(rounds in rounds(false)) {
        // An app without tools sees the whole turn; it sends the output back as its next input.
        let wishes = Wishes { has_tools: false, format: false, usage: false, shows_calls: None, most: None };
        prop_assume!(rounds.iter().all(|said| said.end == End::Whole));
        let first = streamed(&wishes, &rounds, 4);
        // Without hidden rounds the app's own items are sent as they are.
        prop_assume!(!first.ran.is_empty());
        let stage = stage(&wishes);
        let output = check(&first.out)["output"].clone();
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(output.as_array().unwrap().clone());
        input.push(json!({"role": "user", "content": "more"}));
        let mut body = request(&wishes, true);
        body["input"] = input.into();
        let mut next = stage.request(&body).unwrap();
        next.put_back(&first.records()).unwrap();
        let next = stage.stream(next, &[responses::stream(&rounds[0], 4)]);
        check_bodies(&next);
        let items = next.body(0)["input"].as_array().unwrap().clone();
        prop_assert!(items.iter().all(|item| item["type"] != "mcp_call"));
        let outputs = items.iter().filter(|item| item["type"] == "function_call_output").count();
        prop_assert_eq!(outputs, first.ran.len());
    }
}
