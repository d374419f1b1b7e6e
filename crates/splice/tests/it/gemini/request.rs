//! Requests, as the provider gets them.

use std::collections::HashMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_splice::{
    Api, AppRequest, InjectedTurn, Refusal, RefusalKind, RequestTarget, SessionTools,
};

use super::provider::{answer, call, signed, text};
use crate::scripted::{SESSION_TOOLS, options, play, read, rendering};

fn target(model: &str) -> RequestTarget {
    RequestTarget { model: Some(model.into()), is_streamed: Some(true), ..RequestTarget::default() }
}

/// The bodies of a turn with two rounds.
fn bodies(model: &str, body: &str) -> Vec<String> {
    let request = AppRequest::read(Api::Gemini, &target(model), body.as_bytes()).unwrap();
    let call = call(Some("c1"), "files__read", &json!({}));
    let rounds =
        [vec![answer([vec![call]]).streamed()], vec![answer([vec![text("end")]]).streamed()]];
    play(request, &options(), &rounds, &HashMap::new()).bodies
}

#[test]
fn the_bytes_of_the_app_stay_as_they_are() {
    let declaration = r#"{ "name":"lookup" ,"parameters":{"x":1.50},"new":[ 1e2 ]}"#;
    let content = r#"{"parts":[ {"text":"\u00e4"} ] , "role":"user"}"#;
    for (list, config) in [
        ("functionDeclarations", "generationConfig"),
        ("function_declarations", "generation_config"),
    ] {
        let body = format!(
            r#"{{"{config}":{{ "a":1.0 }},"tools":[{{"{list}":[{declaration}]}},{{"urlContext":{{}}}}],"contents":[{content}]}}"#
        );
        let bodies = bodies("gemini-3.1-pro", &body);
        let [first, second] = &bodies[..] else { panic!("two rounds") };
        for body in [first, second] {
            let tools = format!(r#""tools":[{{"{list}":[{declaration},{{"name":"files__read","#);
            assert!(body.contains(&tools), "{body}");
            assert!(body.contains(&format!(r#""{config}":{{ "a":1.0 }}"#)), "{body}");
        }
        assert!(first.ends_with(&format!(r#""contents":[{content}]}}"#)), "{first}");
        assert!(second.contains(&format!(r#""contents":[{content},{{"role":"model","#)));
    }
}

#[test]
fn a_forced_call_holds_for_the_first_round() {
    for (calling, config) in
        [("functionCallingConfig", "toolConfig"), ("function_calling_config", "tool_config")]
    {
        let names =
            if config == "toolConfig" { "allowedFunctionNames" } else { "allowed_function_names" };
        let forced =
            json!({calling: {"mode": "ANY", names: ["files__read"]}, "retrievalConfig": {}});
        let body = json!({"contents": [{"parts": [{"text": "hi"}]}], config: forced});
        let bodies = bodies("gemini-3.1-pro", &body.to_string());
        let sent = |at: usize| serde_json::from_str::<Value>(&bodies[at]).unwrap()[config].clone();
        assert_eq!(sent(0), forced);
        assert_eq!(sent(1), json!({calling: {"mode": "AUTO"}, "retrievalConfig": {}}));
    }
}

#[test]
fn functions_are_not_added_where_the_provider_would_refuse_them() {
    let hi = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    for (model, body, expected) in [
        ("gemini-2.5-pro", json!({"tools": [{"googleSearch": {}}]}), 0),
        ("gemini-2.5-pro", json!({"tools": []}), 2),
        ("gemini-2.5-pro", json!({}), 2),
        ("gemini-3.1-pro", json!({"tools": [{"googleSearch": {}}]}), 2),
        ("gemini-3.1-pro", json!({"cachedContent": "cachedContents/1"}), 0),
        ("gemini-3.1-pro", json!({"cached_content": "cachedContents/1"}), 0),
    ] {
        let mut body = body;
        body["contents"] = hi.clone();
        let sent = bodies(model, &body.to_string());
        let count = sent[0].matches("files__").count() - sent[0].matches("does files__").count();
        assert_eq!(count, expected, "{model} {body}");
    }
}

#[test]
fn tokens_are_counted_with_the_tools() {
    let hi = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    let inner =
        json!({"model": "models/other", "contents": hi, "systemInstruction": {"parts": []}});
    for body in [json!({"contents": hi}), json!({"generateContentRequest": inner})] {
        let request = read(Api::Gemini, &target("gemini-3.1-pro"), &body, &HashMap::new());
        let tools = SessionTools::new(&request, &rendering(Api::Gemini, &SESSION_TOOLS));
        let counted: Value = serde_json::from_slice(&request.count_body(&tools)).unwrap();
        let counted = &counted["generateContentRequest"];
        assert_eq!(counted["model"], "models/gemini-3.1-pro");
        assert_eq!(counted["contents"], hi);
        assert_eq!(counted["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn several_candidates_are_refused() {
    for name in ["candidateCount", "candidate_count"] {
        let body = json!({"contents": [], "generationConfig": {name: 2}}).to_string();
        let refusal = AppRequest::read(Api::Gemini, &target("m"), body.as_bytes()).unwrap_err();
        assert_eq!(refusal.status(), 400);
        assert_eq!(refusal.param.as_deref(), Some("generationConfig.candidateCount"));
    }
}

#[test]
fn the_chunks_of_a_reply_are_one_content() {
    let shown = json!({"toolCall": {"id": "switchboard_1", "toolType": "files__read", "args": {}}});
    let own = json!({"toolCall": {"id": "x", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}});
    let sealed = json!({"text": "", "thoughtSignature": "c2ln"});
    let chunk = |part: &Value| json!({"role": "model", "parts": [part]});
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        chunk(&text("a")), chunk(&shown), chunk(&text("")), chunk(&text("b")), chunk(&own), chunk(&sealed), chunk(&text("")),
        {"role": "user", "parts": [{"text": "go on"}]},
    ]});
    let sent: Value =
        serde_json::from_str(&bodies("gemini-3.1-pro", &body.to_string())[0]).unwrap();
    let expected = json!({"role": "model", "parts": [text("ab"), own, sealed]});
    assert_eq!(sent["contents"].as_array().unwrap().len(), 3);
    assert_eq!(sent["contents"][1], expected);
}

#[test]
fn signatures_that_the_provider_refuses_are_replaced() {
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [signed(text("a")), call(None, "b", &json!({})), signed(call(None, "c", &json!({})))]},
    ]});
    let request = read(Api::Gemini, &target("gemini-3.1-pro"), &body, &HashMap::new());
    let tools = SessionTools::new(&request, &rendering(Api::Gemini, &[]));
    let mut turn = InjectedTurn::new(request, tools, &options()).unwrap();
    let mut refusal = Refusal::new(RefusalKind::Invalid, "contents: too long");
    assert!(!turn.drop_thinking(&refusal));
    refusal.message = "Function call is missing a thought_signature in functionCall parts".into();
    assert!(turn.drop_thinking(&refusal));
    assert!(!turn.drop_thinking(&refusal));
    let sent: Value = serde_json::from_slice(&turn.body()).unwrap();
    let mut first = call(None, "b", &json!({}));
    first["thoughtSignature"] = "skip_thought_signature_validator".into();
    let expected = json!([text("a"), first, call(None, "c", &json!({}))]);
    assert_eq!(sent["contents"][1]["parts"], expected);
}
