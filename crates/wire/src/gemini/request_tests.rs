use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Block, FaultKind, Message, Part, Source};
use switchboard_model::{DeclarationKeys, Effort, ModelSettings, ProviderKind};
use switchboard_render::Provider;

use super::request;
use crate::Tools;
use crate::samples::{Asking, call, calls, conversations, media, rendering, reply, result, source};
use crate::tool_results_tests::conversation;

const NEW: &str = "gemini-3-pro-preview";
const OLD: &str = "gemini-2.5-pro";

fn gemini(model: &str) -> Source {
    source(ProviderKind::Gemini, model)
}

fn tools() -> Tools {
    Tools::only(rendering(Provider::Gemini, &["find", "drop"]))
}

fn no_tools() -> Tools {
    Tools::only(rendering(Provider::Gemini, &[]))
}

fn sent(model: &str, messages: &[Message]) -> Value {
    let (_, body) = Asking::new(gemini(model), no_tools(), messages).send(request);
    check_order(model, &body);
    body["contents"].clone()
}

/// Rules for the order of contents that no schema states.
#[track_caller]
pub(super) fn check_order(model: &str, body: &Value) {
    let contents = body["contents"].as_array().unwrap();
    assert_eq!(contents[0]["role"], "user", "{body:#}");
    let mut open: Vec<(&str, &str)> = Vec::new();
    let mut before = "";
    for content in contents {
        let parts = content["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{body:#}");
        let of = |kind: &str| -> Vec<(&str, &str)> {
            let all = parts.iter().filter_map(|part| part.get(kind));
            all.map(|it| (it["id"].as_str().unwrap(), it["name"].as_str().unwrap())).collect()
        };
        assert_eq!(of("functionResponse"), open, "{body:#}");
        if !open.is_empty() {
            let has_text = parts.iter().any(|part| part.get("text").is_some());
            assert!(content["role"] == "user" && !has_text, "{body:#}");
        }
        open = of("functionCall");
        let role = content["role"].as_str().unwrap();
        assert!(open.is_empty() || (role == "model" && before == "user"), "{body:#}");
        assert!(role == "user" || before != "model", "{body:#}");
        assert!(parts.iter().all(|part| part.get("thought").is_none()), "{body:#}");
        before = role;
    }
    assert_eq!(open, Vec::new(), "{body:#}");
    if model.starts_with("gemini-3") {
        check_signatures(contents);
    }
}

/// In the current turn, the first call of every step has a signature.
#[track_caller]
fn check_signatures(contents: &[Value]) {
    let is_text = |content: &Value| {
        let parts = content["parts"].as_array().unwrap();
        content["role"] == "user" && parts.iter().any(|part| part.get("text").is_some())
    };
    let current = contents.iter().rposition(is_text).unwrap_or(0);
    for content in &contents[current..] {
        let mut parts = content["parts"].as_array().unwrap().iter();
        if let Some(first) = parts.find(|part| part.get("functionCall").is_some()) {
            assert!(first["thoughtSignature"].is_string(), "{contents:#?}");
        }
    }
}

#[test]
fn bodies_of_all_conversations() {
    for model in [NEW, OLD, "gemini-3.1-pro-preview"] {
        for (name, messages) in conversations(&gemini(model)) {
            let (sent, body) = Asking::new(gemini(model), tools(), &messages).send(request);
            let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
            assert_eq!((sent.path, sent.headers), (path, vec![]));
            check_order(model, &body);
            if model == NEW {
                insta::assert_json_snapshot!(name, body["contents"]);
            }
        }
    }
}

#[test]
fn code_assist_gets_the_same_in_an_envelope() {
    let own = source(ProviderKind::CodeAssist, OLD);
    let messages = [Message::system("S"), Message::user("hi")];
    let mut asking = Asking::new(own, tools(), &messages);
    let (sent, body) = asking.send(request);
    assert_eq!(sent.path, "/v1internal:streamGenerateContent?alt=sse");
    let tools: Value = serde_json::from_slice(&tools().base.json()).unwrap();
    assert_eq!(
        body,
        json!({
            "model": OLD, "project": "project-1", "user_prompt_id": "turn-1",
            "request": {
                "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                "systemInstruction": {"parts": [{"text": "S"}]},
                "tools": tools, "session_id": "session-1",
            },
        })
    );
    asking.project = None;
    let fault = request(&asking.ask()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Forbidden);
    assert_eq!(
        fault.message,
        "Code Assist works for a project of the Google account, and provider `code-assist` has none: set its `project` in `providers` of the configuration"
    );
}

#[test]
fn settings_are_sent_as_the_model_takes_them_and_only_where_they_are_set() {
    let check = |model: &str, settings: ModelSettings, expected: Option<Value>| {
        let messages = [Message::user("hi")];
        let mut asking = Asking::new(gemini(model), no_tools(), &messages);
        asking.settings = settings;
        let (_, body) = asking.send(request);
        assert_eq!(body.get("generationConfig").cloned(), expected, "{model}");
        assert_eq!((body.get("tools"), body.get("systemInstruction")), (None, None));
    };
    check(OLD, ModelSettings::default(), None);
    let all = ModelSettings {
        instructions: None,
        max_output_tokens: Some(9),
        temperature: Some(0.5),
        top_p: Some(0.75),
        effort: Some(Effort::Low),
        show_thinking: true,
        ..ModelSettings::default()
    };
    let with = |thinking: Value| json!({"temperature": 0.5, "topP": 0.75, "maxOutputTokens": 9, "thinkingConfig": thinking});
    check(OLD, all.clone(), Some(with(json!({"includeThoughts": true, "thinkingBudget": 1024}))));
    check(NEW, all.clone(), Some(with(json!({"includeThoughts": true, "thinkingLevel": "LOW"}))));
    let plain = json!({"temperature": 0.5, "topP": 0.75, "maxOutputTokens": 9});
    check("gemini-2.0-flash", all, Some(plain));
}

#[test]
fn a_model_cannot_lead_to_another_address() {
    let messages = [Message::user("hi")];
    for model in ["", "../x", "a/b", "a?b", "a b", "a:b", "..", "%2e"] {
        let asking = Asking::new(gemini(model), no_tools(), &messages);
        assert_eq!(request(&asking.ask()).unwrap_err().kind, FaultKind::NotFound, "{model}");
    }
    let (sent, _) = Asking::new(gemini("models/gemini-x"), no_tools(), &messages).send(request);
    assert_eq!(sent.path, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse");
}

#[test]
fn signatures_return_to_their_part_and_the_first_call_of_a_step_is_let_pass_without() {
    let own = gemini(NEW);
    let sealed = |signature: &str| Some(json!({"thoughtSignature": signature}));
    let mut second = call("c2", "find", json!({}));
    second.opaque = sealed("own");
    let messages = [
        Message::user("1"),
        reply(
            &own,
            vec![
                Block::Text { text: "a".into(), opaque: None },
                Block::Text { text: String::new(), opaque: sealed("end") },
                calls(call("c0", "find", json!({}))),
            ],
        ),
        Message::Tool(result("c0", vec![Part::text("r")])),
        Message::user("2"),
        reply(&own, vec![calls(call("c1", "find", json!({}))), calls(second.clone())]),
        Message::Tool(result("c1", vec![])),
        Message::Tool(result("c2", vec![])),
        reply(&gemini(OLD), vec![calls(call("c3", "find", json!({})))]),
        Message::Tool(result("c3", vec![])),
    ];
    let signatures = |model: &str| -> Vec<Value> {
        let contents = sent(model, &messages);
        let model =
            contents.as_array().unwrap().iter().filter(|content| content["role"] == "model");
        let parts = model.flat_map(|content| content["parts"].as_array().unwrap().clone());
        parts.map(|part| part["thoughtSignature"].clone()).collect()
    };
    let bypass = "skip_thought_signature_validator";
    let (none, end) = (Value::Null, "end");
    assert_eq!(
        signatures(NEW),
        [none.clone(), end.into(), none, bypass.into(), "own".into(), bypass.into()]
    );
    // The older model's signatures are different and optional.
    assert_eq!(signatures(OLD), vec![Value::Null; 5]);
}

#[test]
fn media_of_results_stand_in_or_after_their_response() {
    let messages = |own: &Source| {
        vec![
            Message::user("1"),
            reply(
                own,
                vec![calls(call("c1", "find", json!({}))), calls(call("c2", "find", json!({})))],
            ),
            Message::Tool(result(
                "c1",
                vec![
                    Part::text("t"),
                    Part::Image(media("image/png", "AA==")),
                    Part::Image(media("image/gif", "AA==")),
                    Part::File { name: None, media: media("audio/wav", "AA==") },
                ],
            )),
            Message::Tool(result("c2", vec![])),
        ]
    };
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}});
    let wav = json!({"inlineData": {"mimeType": "audio/wav", "data": "AA=="}});
    let response = json!({"output": "t\n[A file of type image/gif is not shown]"});
    let last =
        json!({"functionResponse": {"id": "c2", "name": "find", "response": {"output": ""}}});
    let nested = json!({"functionResponse": {"id": "c1", "name": "find", "response": response, "parts": [png]}});
    assert_eq!(sent(NEW, &messages(&gemini(NEW)))[2]["parts"], json!([nested, wav, last]));
    let plain = json!({"functionResponse": {"id": "c1", "name": "find", "response": response}});
    for model in [OLD, "gemini-3.1-pro-preview"] {
        assert_eq!(
            sent(model, &messages(&gemini(model)))[2]["parts"],
            json!([plain, png, wav, last])
        );
    }
}

#[test]
fn a_model_is_known_with_and_without_its_prefix() {
    let whole = format!("models/{NEW}");
    let foreign = source(ProviderKind::OpenAi, "gpt-6");
    let messages = [
        Message::user("1"),
        reply(&foreign, vec![calls(call("c1", "find", json!({})))]),
        Message::Tool(result("c1", vec![Part::Image(media("image/png", "AA=="))])),
    ];
    let body = |model: &str| {
        let mut asking = Asking::new(gemini(model), no_tools(), &messages);
        asking.settings.effort = Some(Effort::Low);
        asking.send(request).1
    };
    assert_eq!(body(&whole), body(NEW));
    let parts = &body(&whole)["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "skip_thought_signature_validator");
}

proptest! {
    #[test]
    fn whatever_was_said_the_order_is_one_that_is_taken(messages in conversation(gemini(NEW))) {
        for model in [NEW, OLD] {
            let (_, body) = Asking::new(gemini(model), tools(), &messages).send(request);
            check_order(model, &body);
        }
    }
}

#[test]
fn declarations_are_sent_under_both_keys_where_that_is_configured() {
    let messages = [Message::user("hi")];
    for kind in [ProviderKind::Gemini, ProviderKind::CodeAssist] {
        let mut asking = Asking::new(source(kind, OLD), tools(), &messages);
        let (_, body) = asking.send(request);
        let plain = body.get("request").unwrap_or(&body)["tools"].clone();
        assert_eq!(plain[0].as_object().unwrap().len(), 1, "{plain}");
        asking.settings.declaration_keys = DeclarationKeys::Both;
        let (_, body) = asking.send(request);
        let declared = &plain[0]["functionDeclarations"];
        let twice = json!([{"functionDeclarations": declared, "function_declarations": declared}]);
        assert_eq!(body.get("request").unwrap_or(&body)["tools"], twice);
        asking.tools = no_tools();
        let (_, body) = asking.send(request);
        assert_eq!(body.get("request").unwrap_or(&body).get("tools"), None, "{body}");
    }
}
