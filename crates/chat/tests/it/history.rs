//! Validity rules of conversations, and their exported form.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{
    Block, History, Media, Message, Part, Place, Said, Source, Stop, Usage, answer_dangling, check,
};
use switchboard_model::ProviderKind;

use crate::{asking, result, said};

fn whole() -> Vec<Message> {
    let image = Media { media_type: "image/png".into(), place: Place::Data("AA==".into()) };
    let file =
        Media { media_type: "application/pdf".into(), place: Place::Url("https://x/y".into()) };
    let mut asked = asking(&["a", "b"]);
    if let Message::Assistant(reply) = &mut asked {
        let opaque = Some(json!({"signature": "sealed"}));
        reply.content.insert(0, Block::Reasoning { text: "hm".into(), opaque });
        reply.source = Some(Source {
            kind: ProviderKind::Anthropic,
            provider: "work".into(),
            model: "claude".into(),
            credential: Some("home".into()),
        });
        reply.usage = Some(Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() });
        reply.latency_ms = Some(7);
        reply.tools_revision = Some(4);
    }
    vec![
        Message::system("be kind"),
        Message::User(Said {
            content: vec![
                Part::text("hello"),
                Part::Image(image),
                Part::File { name: Some("a.pdf".into()), media: file },
            ],
        }),
        asked,
        result("a"),
        result("b"),
        said("done"),
    ]
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    let history = History::new(whole());
    let json = serde_json::to_vec(&history).unwrap();
    assert_eq!(History::read(&json).unwrap(), history);
    insta::assert_json_snapshot!(history);
}

#[test]
fn the_older_v1_format_is_read_too() {
    let exported = json!({"version": "v1", "events": [], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [], "tool_calls": [{"id": "c", "name": "t", "arguments": "{\"a\":1}"}],
         "_meta": {"provider": "gemini", "latency_ms": 3}},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "ok"}], "_meta": {"function_name": "t"}},
    ]});
    let history = History::read(exported.to_string().as_bytes()).unwrap();
    let Message::Assistant(reply) = &history.messages[1] else { panic!("{history:?}") };
    let call = reply.calls().next().unwrap();
    assert_eq!((call.id.as_str(), &call.arguments), ("c", &json!({"a": 1})));
    assert_eq!((reply.stop, reply.latency_ms), (Stop::ToolCalls, Some(3)));
}

#[test]
fn what_is_no_conversation_is_refused_with_its_place() {
    let check = |json: Value, expected: &str| {
        let error = History::read(json.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let user = json!({"role": "user", "content": []});
    check(json!([]), "not a conversation: expected an object with `version` and `messages`");
    check(
        json!({"version": 2, "messages": []}),
        "unsupported conversation version 2; supported are 1 and `v1`",
    );
    check(
        json!({"version": 1, "messages": [user, {"role": "robot"}]}),
        "messages[1]: unknown variant `robot`, expected one of `system`, `user`, `assistant`, `tool`",
    );
    check(
        json!({"version": 1, "messages": [result("x")]}),
        "messages[0] is the result of `x`, but no call of that id stands right before it",
    );
    check(
        json!({"version": 1, "messages": [asking(&["x"]), result("x"), asking(&["x"]), result("x")]}),
        "messages[2] has the call id `x`, which an earlier call has too",
    );
    let error = History::read(b"{").unwrap_err().to_string();
    assert!(error.starts_with("invalid JSON: "), "{error}");
}

#[test]
fn calls_without_results_are_answered_right_after_their_reply_in_call_order() {
    let mut messages = vec![
        Message::user("1"),
        asking(&["a", "b", "c"]),
        result("c"),
        Message::user("2"),
        asking(&["d"]),
    ];
    assert!(check(&messages).is_err());
    assert_eq!(answer_dangling(&mut messages), 3);
    check(&messages).unwrap();
    let order = messages.iter().map(|message| match message {
        Message::Tool(result) => {
            format!("{}{}", result.call, if result.is_error { "!" } else { "" })
        }
        Message::User(_) => "user".into(),
        Message::Assistant(_) => "calls".into(),
        Message::System(_) => "system".into(),
    });
    let order: Vec<_> = order.collect();
    assert_eq!(order.join(" "), "user calls a! b! c user calls d!");
    assert_eq!(answer_dangling(&mut messages), 0, "a second time there is nothing to do");
}

#[test]
fn numbers_are_the_same_after_they_were_kept() {
    let number = 0.000_123_456_789_012_345_67_f64;
    let mut asked = asking(&["a"]);
    if let Message::Assistant(reply) = &mut asked
        && let Some(Block::ToolCall(call)) = reply.content.first_mut()
    {
        call.arguments = json!({"a": 1.0 / 3.0, "b": number, "c": 2e-308, "d": 0.1 + 0.2});
    }
    let history = History::new(vec![Message::user("x"), asked, result("a")]);
    let json = serde_json::to_vec(&history).unwrap();
    assert_eq!(History::read(&json).unwrap(), history);
}
