use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{Block, ModelEvent, Reply, Stop, Usage};
use switchboard_splice::{Api, Refusal};

use crate::{AnswerOptions, TranslatedRequest, test_requests};

fn read(body: &Value) -> Result<TranslatedRequest, Refusal> {
    test_requests::read(Api::Messages, body)
}

fn sent(body: &Value) -> Value {
    test_requests::sent(Api::Messages, body)
}

#[test]
fn a_conversation_is_carried_over() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let body = json!({
        "model": "m", "max_tokens": 50, "temperature": 0.5, "metadata": {"user_id": "u"}, "stop_sequences": [],
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"},
        "tools": [{"name": "look", "description": "looks", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}],
        "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, image]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "theirs"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": "a"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "gone"}], "is_error": true},
                {"type": "text", "text": "and?"},
            ]},
        ],
    });
    insta::assert_json_snapshot!(sent(&body));
}

#[test]
fn what_would_be_lost_is_refused() {
    let user = json!([{"role": "user", "content": "hi"}]);
    for (name, value, expected) in [
        ("stop_sequences", json!(["x"]), "`stop_sequences`"),
        ("mcp_servers", json!([{"name": "x"}]), "`mcp_servers`"),
        ("output_config", json!({"format": {"type": "json_schema"}}), "`output_config.format`"),
        ("tool_choice", json!({"type": "any"}), "`tool_choice`"),
        (
            "tool_choice",
            json!({"type": "auto", "disable_parallel_tool_use": true}),
            "disable_parallel_tool_use",
        ),
        (
            "tools",
            json!([{"type": "web_search_20250305", "name": "web_search"}]),
            "web_search_20250305",
        ),
        ("messages", json!([{"role": "user", "content": [{"type": "hologram"}]}]), "`hologram`"),
    ] {
        let mut body = json!({"model": "m", "messages": user});
        body[name] = value;
        let refusal = read(&body).unwrap_err();
        assert!(refusal.message.contains(expected), "{refusal}");
        assert_eq!(refusal.status(), 400);
    }
}

#[test]
fn an_answer_is_one_message() {
    let request =
        read(&json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]})).unwrap();
    let mut writer = request.answer(AnswerOptions { id: "1".into(), now: 0 });
    let mut out = Vec::new();
    writer.begin(&mut out);
    let reply = Reply {
        content: vec![
            Block::Reasoning { text: "hm".into(), opaque: Some(json!({"id": "rs"})) },
            Block::text("I look"),
            crate::conversation::call("", "look", r#"{"q":"a"}"#),
        ],
        stop: Stop::ToolCalls,
        ..Reply::default()
    };
    let usage = Usage { input_tokens: 10, cached_tokens: 4, output_tokens: 3, ..Usage::default() };
    for event in [
        ModelEvent::Thinking("h".into()),
        ModelEvent::Thinking("m".into()),
        ModelEvent::Text("I ".into()),
        ModelEvent::Text("look".into()),
        ModelEvent::Usage(usage),
        ModelEvent::Finished(Box::new(reply.clone())),
    ] {
        writer.event(event, &mut out).unwrap();
    }
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
    let whole: Value = serde_json::from_str(&writer.whole().unwrap()).unwrap();
    insta::assert_json_snapshot!(whole);

    // Sent back, it is the reply that the model gave.
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": whole["content"]},
    ]});
    let again = read(&body).unwrap();
    let switchboard_chat::Message::Assistant(found) = &again.model_request("s", "t").messages[1]
    else {
        panic!("no reply")
    };
    assert_eq!(found.source, Some(test_requests::source()));
    assert_eq!(found.content[0], reply.content[0]);
    assert_eq!(found.calls().next().unwrap().id, "toolu_1_0");
}
