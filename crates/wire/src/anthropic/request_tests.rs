use std::sync::Arc;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Block, Message, Part, Reply, Source, Stop, ToolReturn};
use switchboard_model::{Effort, ModelSettings, ProviderKind};
use switchboard_render::{Delta, Provider};

use super::request;
use crate::samples::{
    Asking, call, calls, conversations, media, rendering, reply, result, source, thought,
};
use crate::tool_results_tests::conversation;
use crate::{ToolChange, Tools, takes_tool_changes};

const NEW: &str = "claude-opus-5-5";
const OLD: &str = "claude-haiku-4-5";

fn claude(model: &str) -> Source {
    source(ProviderKind::Anthropic, model)
}

fn tools() -> Tools {
    Tools::only(rendering(Provider::Anthropic, &["find", "drop"]))
}

fn no_tools() -> Tools {
    Tools::only(rendering(Provider::Anthropic, &[]))
}

fn sent(model: &str, messages: &[Message]) -> Value {
    Asking::new(claude(model), no_tools(), messages).send(request).1
}

/// Rules for the order of messages that no schema states.
#[track_caller]
fn check_order(body: &Value) {
    let empty = Vec::new();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "user", "{body:#}");
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        let content = message["content"].as_array().unwrap();
        assert!(!content.is_empty() && role != before, "{body:#}");
        let next = messages.get(index + 1).map(|next| &next["role"]);
        if role == "system" {
            let is_legal = before == "user" && next.is_none_or(|next| next == "assistant");
            assert!(is_legal, "{body:#}");
            before = role;
            continue;
        }
        let of = |kind: &str, key: &str| -> Vec<&str> {
            let all = content.iter().filter(|block| block["type"] == kind);
            all.map(|block| block[key].as_str().unwrap()).collect()
        };
        let results = of("tool_result", "tool_use_id");
        assert_eq!(results, open, "{body:#}");
        let first = content.iter().take(results.len());
        assert!(first.into_iter().all(|block| block["type"] == "tool_result"), "{body:#}");
        open = of("tool_use", "id");
        assert!(open.is_empty() || role == "assistant");
        for block in content {
            let is_blank = block["text"].as_str().is_some_and(|text| text.trim().is_empty());
            assert!(
                !is_blank && (block["type"] != "tool_use" || block["input"].is_object()),
                "{body:#}"
            );
        }
        before = role;
    }
    assert_eq!(open, Vec::<&str>::new(), "{body:#}");
    let ids: Vec<_> = messages
        .iter()
        .flat_map(|m| m["content"].as_array().unwrap_or(&empty))
        .filter(|b| b["type"] == "tool_use")
        .map(|b| b["id"].as_str().unwrap())
        .collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{body:#}");
}

#[test]
fn bodies_of_all_conversations() {
    for model in [NEW, OLD] {
        for (name, messages) in conversations(&claude(model)) {
            let (sent, body) = Asking::new(claude(model), tools(), &messages).send(request);
            assert_eq!(sent.path, "/v1/messages");
            assert_eq!(sent.headers, [("anthropic-version", "2023-06-01".to_owned())]);
            check_order(&body);
            if model == NEW {
                insta::assert_json_snapshot!(name, body["messages"]);
            }
        }
    }
}

#[test]
fn settings_are_sent_as_the_model_takes_them_and_only_where_they_are_set() {
    let check = |model: &str, settings: ModelSettings, expected: Value| {
        let messages = [Message::system("S"), Message::user("hi")];
        let mut asking = Asking::new(claude(model), no_tools(), &messages);
        asking.settings = settings;
        let (_, mut body) = asking.send(request);
        let body = body.as_object_mut().unwrap();
        body.remove("messages");
        assert_eq!(Value::Object(body.clone()), expected, "{model}");
    };
    let block = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let plain = json!({"model": NEW, "max_tokens": 32000, "system": block("S"), "stream": true});
    check(NEW, ModelSettings::default(), plain);
    let all = ModelSettings {
        instructions: Some("I".into()),
        max_output_tokens: Some(3000),
        temperature: Some(0.5),
        top_p: Some(0.75),
        effort: Some(Effort::Minimal),
        show_thinking: true,
        ..ModelSettings::default()
    };
    check(
        NEW,
        all.clone(),
        json!({
            "model": NEW, "max_tokens": 3000, "system": block("I\n\nS"), "stream": true,
            "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"},
        }),
    );
    let effort = Some(Effort::High);
    check(
        OLD,
        ModelSettings { effort, ..all.clone() },
        json!({
            "model": OLD, "max_tokens": 3000, "system": block("I\n\nS"), "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 1500},
        }),
    );
    // Accepted only without thinking, and few models accept both.
    let sampled = |model: &str, temperature: Option<f64>| {
        let messages = [Message::user("hi")];
        let mut asking = Asking::new(claude(model), no_tools(), &messages);
        asking.settings =
            ModelSettings { effort: None, show_thinking: false, temperature, ..all.clone() };
        let (_, body) = asking.send(request);
        (body["temperature"].as_f64(), body["top_p"].as_f64())
    };
    assert_eq!(sampled("claude-3-7-sonnet-latest", Some(0.5)), (Some(0.5), Some(0.75)));
    assert_eq!(sampled(OLD, Some(0.5)), (Some(0.5), None));
    assert_eq!(sampled(OLD, None), (None, Some(0.75)));
    assert_eq!(sampled(NEW, Some(0.5)), (None, None));
}

#[test]
fn thoughts_that_are_bound_to_nothing_always_go_back() {
    for (model, expected) in [(OLD, 1), ("claude-sonnet-5", 1), (NEW, 0)] {
        let own = claude(model);
        let messages = [
            Message::user("1"),
            reply(
                &own,
                vec![thought("t", json!({"signature": "s"})), calls(call("c1", "find", json!({})))],
            ),
            Message::Tool(result("c1", vec![Part::text("r")])),
        ];
        let mut asking = Asking::new(own, tools(), &messages);
        asking.replay = 3..3;
        let (_, body) = asking.send(request);
        let content = body["messages"][1]["content"].as_array().unwrap();
        let thoughts = content.iter().filter(|block| block["type"] == "thinking").count();
        assert_eq!(thoughts, expected, "{model}");
    }
}

#[test]
fn a_model_is_not_asked_to_think_where_the_thoughts_before_calls_are_lost() {
    let asks = |model: &str, by: &Source, block: Option<Block>, more: &[Message]| {
        let content = block.into_iter().chain([calls(call("c1", "find", json!({})))]);
        let mut messages = vec![
            Message::user("1"),
            reply(by, content.collect()),
            Message::Tool(result("c1", vec![Part::text("r")])),
        ];
        messages.extend(more.iter().cloned());
        let mut asking = Asking::new(claude(model), tools(), &messages);
        asking.settings = ModelSettings {
            effort: Some(Effort::Low),
            temperature: Some(0.5),
            ..ModelSettings::default()
        };
        let (_, body) = asking.send(request);
        check_order(&body);
        assert_eq!(body.get("thinking").is_none(), body.get("temperature").is_some());
        body.get("thinking").is_some()
    };
    let sealed = || Some(thought("t", json!({"signature": "s"})));
    let foreign = source(ProviderKind::OpenAi, "gpt-6");
    let own = claude(OLD);
    assert!(asks(OLD, &own, sealed(), &[]));
    assert!(!asks(OLD, &own, None, &[]));
    assert!(!asks(OLD, &own, Some(Block::text("so")), &[]));
    assert!(!asks(OLD, &foreign, sealed(), &[]));
    let answer = [reply(&foreign, vec![Block::text("a")]), Message::user("2")];
    assert!(asks(OLD, &foreign, sealed(), &answer), "that is over");
}

#[test]
fn a_model_that_decides_itself_may_think_after_foreign_calls() {
    let foreign = source(ProviderKind::OpenAi, "gpt-6");
    let messages = [
        Message::user("1"),
        reply(&foreign, vec![calls(call("c1", "find", json!({})))]),
        Message::Tool(result("c1", vec![])),
    ];
    let mut asking = Asking::new(claude(NEW), tools(), &messages);
    asking.settings.effort = Some(Effort::Low);
    assert_eq!(asking.send(request).1["thinking"]["type"], "adaptive");
}

#[test]
fn what_failed_is_told_in_words_alone_and_what_cannot_be_read_is_only_mentioned() {
    let png = || Part::Image(media("image/png", "AA=="));
    let outcome = |is_error: bool, content: Vec<Part>| {
        let messages = [
            Message::user("1"),
            reply(&claude(NEW), vec![calls(call("c1", "find", json!({})))]),
            Message::Tool(ToolReturn { is_error, ..result("c1", content) }),
        ];
        let mut body = sent(NEW, &messages);
        body["messages"][2]["content"][0]["content"].take()
    };
    let notice = "[A file of type image/png is not shown]";
    assert_eq!(outcome(true, vec![Part::text("no"), png()]), json!(format!("no\n{notice}")));
    assert_eq!(outcome(true, vec![png()]), json!(notice));
    assert_eq!(outcome(false, vec![png()])[0]["type"], "image");
    for broken in ["", "AAA", "no base64"] {
        let told = outcome(false, vec![Part::Image(media("image/png", broken))]);
        assert_eq!(told, json!([{"type": "text", "text": notice}]), "{broken}");
    }
    let told = outcome(false, vec![Part::Image(media("image/bmp", "AA=="))]);
    assert_eq!(told[0]["text"], "[A file of type image/bmp is not shown]");
    let jpeg = outcome(false, vec![Part::Image(media("image/JPG", "AA=="))]);
    assert_eq!(jpeg[0]["source"]["media_type"], "image/jpeg");
}

#[test]
fn tools_are_sent_as_they_were_rendered_and_not_at_all_where_there_are_none() {
    let messages = [Message::user("hi")];
    let tools = tools();
    let asking = Asking::new(claude(NEW), tools.clone(), &messages);
    let (sent, _) = asking.send(request);
    let body = String::from_utf8(sent.body.to_vec()).unwrap();
    let raw = String::from_utf8(tools.base.json().to_vec()).unwrap();
    assert!(body.contains(&format!(r#""tools":{raw},"#)), "{body}");
    assert_eq!(super::request_tests::sent(NEW, &messages).get("tools"), None);
}

#[test]
fn thoughts_go_back_to_who_thought_them_while_they_stand() {
    let own = claude(NEW);
    let messages = [
        Message::user("1"),
        reply(
            &own,
            vec![
                thought("", json!({"signature": "s1"})),
                thought("", json!({"data": "d1"})),
                Block::text("a"),
            ],
        ),
        Message::user("2"),
        reply(&own, vec![thought("t", json!({"signature": "s2"})), Block::text("b")]),
        Message::user("3"),
        reply(
            &own,
            vec![
                Block::Reasoning { text: "never sealed".into(), opaque: None },
                Block::text("c"),
                thought("cut", json!({"signature": "s3"})),
            ],
        ),
        Message::user("4"),
    ];
    let check = |model: &str, replay: std::ops::Range<usize>, expected: [Value; 3]| {
        let mut asking = Asking::new(claude(model), no_tools(), &messages);
        asking.replay = replay;
        let (_, body) = asking.send(request);
        check_order(&body);
        let content = |index: usize| body["messages"][index]["content"].clone();
        assert_eq!([content(1), content(3), content(5)], expected);
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let first = json!([
        {"type": "thinking", "thinking": "", "signature": "s1"}, {"type": "redacted_thinking", "data": "d1"}, text("a")
    ]);
    let second = json!([{"type": "thinking", "thinking": "t", "signature": "s2"}, text("b")]);
    let third = json!([text("c")]);
    check(NEW, 0..7, [first, second.clone(), third.clone()]);
    check(NEW, 2..7, [json!([text("a")]), second, third.clone()]);
    check("claude-opus-5", 0..7, [json!([text("a")]), json!([text("b")]), third]);
}

#[test]
fn a_paused_answer_is_last_and_goes_on_as_it_was() {
    let own = claude(NEW);
    let content = vec![Block::text("so far"), thought("t", json!({"signature": "s"}))];
    let paused = Message::Assistant(Reply {
        content,
        source: Some(own),
        stop: Stop::Paused,
        ..Reply::default()
    });
    let body = sent(NEW, &[Message::user("1"), paused]);
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "text", "text": "so far", "cache_control": {"type": "ephemeral"}},
            {"type": "thinking", "thinking": "t", "signature": "s"},
        ])
    );
}

#[test]
fn operators_are_heard_in_the_middle_of_a_conversation() {
    let own = claude(NEW);
    let messages = [
        Message::user("1"),
        Message::system("stop"),
        Message::system("now"),
        Message::user("2"),
        reply(&own, vec![Block::text("a")]),
        Message::user("3"),
    ];
    let body = sent(NEW, &messages);
    check_order(&body);
    let system = json!({"role": "system", "content": [{"type": "text", "text": "stop"}, {"type": "text", "text": "now"}]});
    assert_eq!(body["messages"][1], system);
    let body = sent(OLD, &messages);
    check_order(&body);
    let told = &body["messages"][0]["content"][1]["text"];
    assert_eq!(told, "[Message from the operator, not from the user]\nstop");
}

/// Where the system messages for changes of tools are placed.
#[test]
fn changes_of_tools_stand_at_the_next_place_where_they_may() {
    let own = claude(NEW);
    let messages = [
        Message::user("1"),
        reply(&own, vec![calls(call("c1", "find", json!({})))]),
        Message::Tool(result("c1", vec![Part::text("r")])),
        reply(&own, vec![Block::text("a")]),
        Message::user("2"),
    ];
    let check = |places: &[usize], expected: &[(usize, usize)]| {
        let names = ["find", "t1", "t2"];
        let list = |count: usize| rendering(Provider::Anthropic, &names[..=count]);
        let changes = places.iter().enumerate().map(|(count, before)| {
            let delta = Delta::between(&list(count), &list(count + 1));
            ToolChange { before: *before, delta: Arc::new(delta) }
        });
        let tools = Tools { base: list(0), changes: changes.collect(), newest: list(places.len()) };
        let (sent, body) = Asking::new(own.clone(), tools, &messages).send(request);
        check_order(&body);
        let beta = "inline-tools-2026-09-15,mid-conversation-tool-changes-2026-07-01".to_owned();
        assert_eq!(sent.headers[1], ("anthropic-beta", beta));
        let found = body["messages"].as_array().unwrap().iter().enumerate();
        let found = found.filter(|(_, message)| message["role"] == "system");
        let found: Vec<_> =
            found.map(|(at, message)| (at, message["content"].as_array().unwrap().len())).collect();
        assert_eq!(found, expected, "{places:?}");
    };
    // Before the first message, before the reply, before its results: placed after the first user message or after the
    // results.
    check(&[0], &[(1, 1)]);
    check(&[1], &[(1, 1)]);
    check(&[2], &[(3, 1)]);
    check(&[3], &[(3, 1)]);
    check(&[4], &[(5, 1)]);
    check(&[5], &[(5, 1)]);
    check(&[1, 3], &[(1, 1), (4, 1)]);
    check(&[2, 3], &[(3, 2)]);
    assert!(takes_tool_changes(&own) && !takes_tool_changes(&claude(OLD)));
    assert!(!takes_tool_changes(&source(ProviderKind::OpenAi, NEW)));
}

#[test]
fn removals_are_said_and_need_only_their_own_beta() {
    let (both, one) = (
        rendering(Provider::Anthropic, &["find", "drop"]),
        rendering(Provider::Anthropic, &["find"]),
    );
    let delta = Arc::new(Delta::between(&both, &one));
    let tools = Tools { base: both, changes: vec![ToolChange { before: 1, delta }], newest: one };
    let messages = [Message::user("1")];
    let (sent, body) = Asking::new(claude(NEW), tools, &messages).send(request);
    assert_eq!(sent.headers[1].1, "mid-conversation-tool-changes-2026-07-01");
    let gone =
        json!([{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "drop"}}]);
    assert_eq!(body["messages"][1], json!({"role": "system", "content": gone}));
}

proptest! {
    #[test]
    fn whatever_was_said_the_order_is_one_that_is_taken(
        messages in conversation(claude(NEW)),
        places in proptest::collection::vec(0_usize..14, 0..3),
        replay in 0_usize..14,
    ) {
        let list = |count: usize| rendering(Provider::Anthropic, &["find", "t1", "t2", "t3"][..=count]);
        let mut places = places;
        places.sort_unstable();
        let changes = places.iter().enumerate().map(|(count, before)| {
            let delta = Delta::between(&list(count), &list(count + 1));
            ToolChange { before: *before, delta: Arc::new(delta) }
        });
        let tools = Tools { base: list(0), changes: changes.collect(), newest: list(places.len()) };
        for model in [NEW, OLD] {
            let changes = if model == NEW { tools.clone() } else { Tools::only(list(0)) };
            let mut asking = Asking::new(claude(model), changes, &messages);
            asking.replay = replay.min(messages.len())..messages.len();
            check_order(&asking.send(request).1);
        }
    }
}

#[test]
fn the_token_of_an_account_is_sent_with_the_session_and_the_beta_path() {
    let messages = [Message::user("hi")];
    let mut asking = Asking::new(claude(NEW), no_tools(), &messages);
    let (sent, body) = asking.send(request);
    assert_eq!((sent.path.as_str(), body.get("metadata")), ("/v1/messages", None));
    asking.is_bearer = true;
    let (sent, body) = asking.send(request);
    assert_eq!(sent.path, "/v1/messages?beta=true");
    assert_eq!(body["metadata"], json!({"user_id": "session-1"}));
}

#[test]
fn configured_blocks_stand_before_the_instructions_and_the_last_one_is_cached() {
    let messages = [Message::user("hi")];
    let mut asking = Asking::new(claude(NEW), no_tools(), &messages);
    let mut check = |blocks: &[&str], instructions: Option<&str>, expected: Value| {
        asking.settings.system_blocks = blocks.iter().map(|&text| text.to_owned()).collect();
        asking.settings.instructions = instructions.map(str::to_owned);
        let (_, body) = asking.send(request);
        assert_eq!(body.get("system").cloned().unwrap_or_default(), expected);
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let cached =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    check(&[], None, json!(null));
    check(&["A", "B"], None, json!([text("A"), cached("B")]));
    check(&["A", "B"], Some("I"), json!([text("A"), text("B"), cached("I")]));
}
