use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{Block, Message, ModelEvent, Reply, Stop, Usage};
use switchboard_splice::{Api, Refusal};

use crate::{AnswerOptions, TranslatedRequest, test_requests};

fn read(body: &Value) -> Result<TranslatedRequest, Refusal> {
    test_requests::read(Api::Gemini, body)
}

fn sent(body: &Value) -> Value {
    test_requests::sent(Api::Gemini, body)
}

#[test]
fn a_conversation_is_carried_over() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {"q": "a"}}});
    let result = |name: &str, response: Value| json!({"functionResponse": {"name": name, "response": response}});
    let declared = json!({"name": "look", "description": "looks", "parameters": {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}}});
    let body = json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {"maxOutputTokens": 50, "temperature": 0.5, "topK": 64, "thinkingConfig": {"thinkingLevel": "LOW"}},
        "safetySettings": [{"category": "x"}],
        "tools": [{"functionDeclarations": [declared, {"name": "find"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
            {"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "I look"}, call("look"), call("find"), call("look")]},
            {"role": "user", "parts": [
                result("look", json!({"output": "one"})),
                result("find", json!({"error": "gone"})),
                result("look", json!({"two": 2})),
            ]},
        ],
    });
    let carried = sent(&body);
    insta::assert_json_snapshot!(carried);

    let snake = body.to_string();
    let snake = snake
        .replace("systemInstruction", "system_instruction")
        .replace("generationConfig", "generation_config")
        .replace("maxOutputTokens", "max_output_tokens")
        .replace("functionDeclarations", "function_declarations")
        .replace("functionCall", "function_call")
        .replace("functionResponse", "function_response")
        .replace("mimeType", "mime_type")
        .replace("inlineData", "inline_data");
    assert_eq!(sent(&serde_json::from_str(&snake).unwrap()), carried);
}

#[test]
fn what_would_be_lost_is_refused() {
    let user = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    for (name, value, expected) in [
        ("cachedContent", json!("cachedContents/1"), "`cachedContent`"),
        ("generationConfig", json!({"responseSchema": {"type": "OBJECT"}}), "`responseSchema`"),
        ("generationConfig", json!({"stopSequences": ["x"]}), "`stopSequences`"),
        ("toolConfig", json!({"functionCallingConfig": {"mode": "ANY"}}), "the mode `ANY`"),
        ("tools", json!([{"googleSearch": {}}]), "`googleSearch`"),
        (
            "contents",
            json!([{"role": "user", "parts": [{"videoMetadata": {}}]}]),
            "`videoMetadata`",
        ),
    ] {
        let mut body = json!({"contents": user});
        body[name] = value;
        let refusal = read(&body).unwrap_err();
        assert!(refusal.message.contains(expected), "{refusal}");
        assert_eq!(refusal.status(), 400);
    }
}

#[test]
fn ids_that_begin_anew_are_told_apart() {
    let call = json!({"role": "model", "parts": [{"functionCall": {"id": "1", "name": "look"}}]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "look", "response": {"output": "x"}}}]});
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "hi"}]}, call, result, call, result,
    ]});
    let request = read(&body).unwrap();
    let messages = request.model_request("s", "t").messages;
    let ids: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result.call.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["1", "call_2"]);
}

#[test]
fn an_answer_ends_once() {
    let request =
        read(&json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})).unwrap();
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
    let usage =
        Usage { input_tokens: 10, output_tokens: 5, reasoning_tokens: 2, ..Usage::default() };
    for event in [
        ModelEvent::Thinking("hm".into()),
        ModelEvent::Text("I ".into()),
        ModelEvent::Text("look".into()),
        ModelEvent::Usage(usage),
        ModelEvent::Finished(Box::new(reply.clone())),
    ] {
        writer.event(event, &mut out).unwrap();
    }
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
    let whole: Value = serde_json::from_str(&writer.whole().unwrap()).unwrap();

    // Sent back, in the alphabet that Google's SDK for Python writes, it is the reply that the model gave.
    let mut content = whole["candidates"][0]["content"].clone();
    let signature = content["parts"][2]["thoughtSignature"].as_str().unwrap();
    content["parts"][2]["thoughtSignature"] = signature.replace('+', "-").replace('/', "_").into();
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}, content]});
    let again = read(&body).unwrap();
    let Message::Assistant(found) = &again.model_request("s", "t").messages[1] else {
        panic!("no reply")
    };
    assert_eq!(found.source, Some(test_requests::source()));
    assert_eq!(found.content[0], reply.content[0]);
}
