//! What other providers are sent for a conversation of an app.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{Block, ModelEvent, Reply, Stop, ToolCall};
use switchboard_model::ProviderKind;
use switchboard_render::Provider;
use switchboard_splice::Api;
use switchboard_translate::{AnswerOptions, TranslatedRequest};
use switchboard_wire::request;

use crate::demo::source;

fn sent(api: Api, body: &Value, kind: ProviderKind, provider: Provider) -> Value {
    let body = body.to_string();
    let read = TranslatedRequest::read(api, body.as_bytes(), source(kind), provider).unwrap();
    let sent = request(&read.model_request("session", "turn")).unwrap();
    serde_json::from_slice(&sent.body).unwrap()
}

fn chat() -> Value {
    json!({
        "model": "x", "temperature": 0.5, "max_completion_tokens": 99, "n": 1, "user": "u",
        "messages": [
            {"role": "developer", "content": "Be short."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
                {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": "{"}},
            ]},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: no object"},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a cat"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "strict": true,
            "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}}],
    })
}

#[test]
fn a_chat_is_sent_to_every_other_provider() {
    insta::assert_json_snapshot!(
        "chat_to_anthropic",
        sent(Api::Chat, &chat(), ProviderKind::Anthropic, Provider::Anthropic)
    );
    insta::assert_json_snapshot!(
        "chat_to_gemini",
        sent(Api::Chat, &chat(), ProviderKind::Gemini, Provider::Gemini)
    );
    insta::assert_json_snapshot!(
        "chat_to_responses",
        sent(Api::Chat, &chat(), ProviderKind::OpenAi, Provider::OpenAi)
    );
}

#[test]
fn a_response_is_sent_to_every_other_provider() {
    let body = json!({
        "model": "x", "instructions": "Be short.", "max_output_tokens": 99, "store": false,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "of another provider"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{\"at\":1}"},
            {"type": "function_call_output", "call_id": "call_2", "output": [
                {"type": "input_text", "text": "a cat"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"},
            ]},
            {"type": "function_call_output", "call_id": "call_1", "output": "nothing"},
        ],
        "tools": [{"type": "function", "name": "look", "strict": false, "parameters": {"type": "object", "properties": {}}}],
    });
    insta::assert_json_snapshot!(
        "response_to_anthropic",
        sent(Api::Responses, &body, ProviderKind::Anthropic, Provider::Anthropic)
    );
    insta::assert_json_snapshot!(
        "response_to_chat",
        sent(Api::Responses, &body, ProviderKind::OpenAiChat, Provider::OpenAiChat)
    );
}

/// Signed thinking of Claude comes back to it as it was, through an app that knows nothing of it.
#[test]
fn signed_thinking_survives_the_app() {
    let own = source(ProviderKind::Anthropic);
    let signature = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    let call = ToolCall {
        id: String::new(),
        name: "look".into(),
        arguments: json!({"at": 1}),
        unreadable: None,
        origin: None,
        opaque: None,
    };
    let reply = Reply {
        content: vec![
            Block::Reasoning { text: "hm".into(), opaque: Some(signature) },
            Block::text("I look."),
            Block::ToolCall(Box::new(call)),
        ],
        stop: Stop::ToolCalls,
        ..Reply::default()
    };
    for api in [Api::Chat, Api::Responses] {
        let mut body = match api {
            Api::Chat => json!({"model": "x", "messages": [{"role": "user", "content": "go"}]}),
            _ => json!({"model": "x", "input": [{"role": "user", "content": "go"}]}),
        };
        let first = body.to_string();
        let first =
            TranslatedRequest::read(api, first.as_bytes(), own.clone(), Provider::Anthropic)
                .unwrap();
        let mut answer = first.answer(AnswerOptions { id: "a".into(), now: 7 });
        let mut out = Vec::new();
        answer.begin(&mut out);
        answer.event(ModelEvent::Text("I look.".into()), &mut out).unwrap();
        answer.event(ModelEvent::Finished(Box::new(reply.clone())), &mut out).unwrap();
        let whole: Value = serde_json::from_str(&answer.whole().unwrap()).unwrap();
        if api == Api::Chat {
            let message = whole["choices"][0]["message"].clone();
            let id = message["tool_calls"][0]["id"].clone();
            let list = body["messages"].as_array_mut().unwrap();
            list.push(message);
            list.push(json!({"role": "tool", "tool_call_id": id, "content": "a cat"}));
        } else {
            let list = body["input"].as_array_mut().unwrap();
            list.extend(whole["output"].as_array().unwrap().clone());
            let id = list.last().unwrap()["call_id"].clone();
            list.push(json!({"type": "function_call_output", "call_id": id, "output": "a cat"}));
        }
        let sent = sent(api, &body, ProviderKind::Anthropic, Provider::Anthropic);
        let content = &sent["messages"][1]["content"];
        assert_eq!(content[0]["signature"], "c2ln", "{api:?}: {content}");
        assert_eq!(content[1]["text"], "I look.");
        assert_eq!(content[2]["type"], "tool_use");
        // A reply that the app edited has no signature.
        let edited = body.to_string().replace("I look.", "I do not look.");
        let read =
            TranslatedRequest::read(api, edited.as_bytes(), own.clone(), Provider::Anthropic);
        let sent = request(&read.unwrap().model_request("s", "t")).unwrap();
        assert!(!String::from_utf8(sent.body.to_vec()).unwrap().contains("c2ln"));
    }
}
