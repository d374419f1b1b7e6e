//! Whatever a model says in whatever number of rounds, an app sees one valid answer, streamed or not.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_splice::Api;

use crate::chat_checker::{check, normalised, of_whole};
use crate::play::{Played, Stage};
use crate::said::{End, Part, Said, chat};

/// What an app asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wishes {
    pub(crate) has_tools: bool,
    pub(crate) format: bool,
    pub(crate) usage: bool,
    pub(crate) shows_calls: Option<bool>,
    pub(crate) most: Option<u64>,
}

pub(crate) fn wishes() -> impl Strategy<Value = Wishes> {
    let shows = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    (any::<bool>(), any::<bool>(), any::<bool>(), shows, proptest::option::of(1..60u64)).prop_map(
        |(has_tools, format, usage, shows_calls, most)| Wishes {
            has_tools,
            format,
            usage,
            shows_calls,
            most,
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    let words = prop_oneof![Just(String::new()), "[a-zä ]{1,12}"];
    let name = prop_oneof![
        Just("find"),
        Just("fail"),
        Just("weather"),
        Just("app_one"),
        Just("app_two"),
        Just("nobody")
    ];
    let arguments = prop_oneof![Just("{}"), Just(r#"{"q":"x y"}"#), Just(r#"{"q":"#), Just("")];
    prop_oneof![
        words.clone().prop_map(Part::Text),
        words.prop_map(Part::Thought),
        (name, arguments).prop_map(|(name, arguments)| Part::Call {
            name: name.to_owned(),
            arguments: arguments.to_owned()
        }),
    ]
}

/// Rounds of a model. The last one has an end and calls nobody, so that the turn ends.
pub(crate) fn rounds(has_faults: bool) -> impl Strategy<Value = Vec<Said>> {
    let end = move || {
        if has_faults {
            prop_oneof![4 => Just(End::Whole), 1 => Just(End::Length), 1 => Just(End::Cut), 1 => Just(End::Error)]
                .boxed()
        } else {
            prop_oneof![6 => Just(End::Whole), 1 => Just(End::Length)].boxed()
        }
    };
    let round = (proptest::collection::vec(part(), 0..5), end());
    proptest::collection::vec(round, 0..5).prop_map(|rounds| {
        let last = (vec![Part::Text("the end".to_owned())], End::Whole);
        let rounds = rounds.into_iter().chain([last]).enumerate();
        rounds.map(|(number, (parts, end))| Said { parts, end, number }).collect()
    })
}

fn request(wishes: &Wishes, is_streamed: bool) -> Value {
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "stream": is_streamed});
    if wishes.has_tools {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
        request["tools"] = json!([tool("app_one"), tool("app_two")]);
    }
    if wishes.format {
        request["response_format"] = json!({"type": "json_object"});
    }
    if wishes.usage {
        request["stream_options"] = json!({"include_usage": true});
    }
    if let Some(most) = wishes.most {
        request["max_completion_tokens"] = most.into();
    }
    request
}

fn stage(wishes: &Wishes) -> Stage {
    Stage { shows_calls: wishes.shows_calls, max_rounds: 4, ..Stage::new(Api::Chat) }
}

fn streamed(wishes: &Wishes, rounds: &[Said], size: usize) -> Played {
    let stage = stage(wishes);
    let rounds: Vec<_> = rounds.iter().map(|said| chat::stream(said, size)).collect();
    stage.stream(stage.request(&request(wishes, true)).unwrap(), &rounds)
}

/// Every body pairs each call with one result, and limits nothing to less than one token.
fn check_bodies(played: &Played) {
    for index in 0..played.bodies.len() {
        let body = played.body(index);
        if let Some(most) = body.get("max_completion_tokens") {
            assert!(most.as_u64().unwrap() > 0);
        }
        let messages = body["messages"].as_array().unwrap();
        let mut open: Vec<Value> = Vec::new();
        for message in messages {
            if message["role"] == "tool" {
                let at = open.iter().position(|id| *id == message["tool_call_id"]);
                open.remove(at.expect("a result without a call"));
            } else {
                assert!(open.is_empty(), "calls without results: {open:?}");
                let calls = message.get("tool_calls").and_then(Value::as_array);
                open = calls.into_iter().flatten().map(|call| call["id"].clone()).collect();
            }
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
    }
}

proptest! {
    #[test]
    fn a_stream_is_one_valid_answer(
        wishes in wishes(),
        rounds in rounds(true),
        size in 1..8usize,
    ) {
        let played = streamed(&wishes, &rounds, size);
        let seen = check(&played.out, wishes.usage);
        prop_assert_eq!(seen.error.is_some(), played.failed.is_some());
        let calls = seen.completion["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        for call in &calls {
            let name = call["function"]["name"].as_str().unwrap();
            prop_assert!(wishes.has_tools, "a call of an app without tools");
            prop_assert!(["app_one", "app_two", "nobody"].contains(&name), "{} is a session tool", name);
        }
        if !calls.is_empty() && seen.error.is_none() {
            let reason = seen.completion["finish_reason"].as_str().unwrap();
            prop_assert!(reason == "tool_calls" || reason == "length");
        } else {
            prop_assert_ne!(&seen.completion["finish_reason"], "tool_calls");
        }
        check_bodies(&played);
    }

    #[test]
    fn an_answer_in_one_piece_is_what_a_stream_adds_up_to(
        wishes in wishes(),
        rounds in rounds(false),
        size in 1..8usize,
    ) {
        let wishes = Wishes { usage: true, ..wishes };
        let streamed = streamed(&wishes, &rounds, size);
        let stage = stage(&wishes);
        let bodies: Vec<_> = rounds.iter().map(chat::whole).collect();
        let whole = stage.whole(stage.request(&request(&wishes, false)).unwrap(), &bodies);
        let seen = check(&streamed.out, true).completion;
        prop_assert_eq!(normalised(seen), normalised(of_whole(&whole.out)));
        prop_assert_eq!(streamed.bodies.len(), whole.bodies.len());
        let keys = |played: &Played| played.record.clone().map(|(keys, _)| keys);
        prop_assert_eq!(keys(&streamed), keys(&whole));
    }
}
