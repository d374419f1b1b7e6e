//! Whole turns of the demo model: translated, and joined by the splicer of the API.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{Part, Source, ToolReturn};
use switchboard_model::{ProviderKind, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_splice::{
    Api, AppRequest, InjectedTurn, NextStep, RequestTarget, SessionTools, TurnOptions,
};
use switchboard_translate::{AnswerOptions, TranslatedRequest};
use switchboard_wire::{Beat, demo};

pub(crate) fn source(kind: ProviderKind) -> Source {
    let name = kind.as_str().to_owned();
    Source { kind, provider: name.clone(), model: name, credential: None }
}

/// One round: the stream, and the whole answer.
fn round(api: Api, body: &[u8], number: usize) -> (String, String) {
    let source = source(ProviderKind::Demo);
    let request = TranslatedRequest::read(api, body, source, Provider::OpenAi).unwrap();
    let mut answer = request.answer(AnswerOptions { id: format!("up{number}"), now: 7 });
    let mut out = Vec::new();
    answer.begin(&mut out);
    for beat in demo(&request.model_request("s", "t"), 0) {
        if let Beat::Event(event) = beat {
            answer.event(event, &mut out).unwrap();
        }
    }
    (String::from_utf8(out).unwrap(), answer.whole().unwrap())
}

/// The events of a stream, as a decoder gives them.
fn events(stream: &str) -> Vec<(&str, &str)> {
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty());
    let events = frames.map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap_or(("", frame));
        (name.strip_prefix("event: ").unwrap_or(name), data.strip_prefix("data: ").unwrap())
    });
    events.collect()
}

/// Plays a turn with the session tool `find`. Returns the answer and the request of the last round.
fn play(api: Api, request: &Value) -> (String, Value) {
    play_for(&RequestTarget::default(), api, request)
}

fn play_for(target: &RequestTarget, api: Api, request: &Value) -> (String, Value) {
    let is_streamed = request["stream"] == true || target.is_streamed == Some(true);
    let body = request.to_string();
    let request = AppRequest::read(api, target, body.as_bytes()).unwrap();
    let descriptor = ToolDescriptor::named("find");
    let named = [NamedTool { name: "find", descriptor: &descriptor }];
    let tools = SessionTools::new(&request, &Rendering::new(api.provider(), named));
    let options = TurnOptions {
        shows_calls: None,
        seed: "seed".to_owned(),
        max_rounds: 4,
        now: 7,
        server_label: "switchboard".to_owned(),
    };
    let mut turn = InjectedTurn::new(request, tools, &options).unwrap();
    let mut out = Vec::new();
    loop {
        let body = turn.body();
        let number = usize::try_from(turn.rounds()).unwrap();
        let (stream, whole) = round(api, &body, number);
        let mut step = if is_streamed {
            for (name, data) in events(&stream) {
                turn.event(name, data, &mut out).unwrap();
            }
            turn.end_round(&mut out).unwrap()
        } else {
            turn.whole_answer(&whole).unwrap()
        };
        if let NextStep::Run(calls) = step {
            for call in calls {
                let found = ToolReturn {
                    call: call.id.clone(),
                    name: call.tool.clone(),
                    content: vec![Part::text(format!("found {}", call.arguments))],
                    structured: None,
                    is_error: false,
                    latency_ms: None,
                };
                turn.call_ended(&call.id, found, &mut out);
            }
            step = turn.after_calls();
        }
        match step {
            NextStep::Ask => {}
            NextStep::Finish | NextStep::Run(_) => {
                turn.finish(&mut out);
                let answer =
                    if is_streamed { String::from_utf8(out).unwrap() } else { turn.finish_whole() };
                return (answer, serde_json::from_slice(&body).unwrap());
            }
        }
    }
}

const ORDERS: &str = "/think hm\n/say I look.\n/call find {\"q\":\"x\"}";

#[test]
fn a_chat_with_the_demo_model_calls_the_tools_of_the_session() {
    let body = |is_streamed: bool| {
        json!({"model": "demo", "stream": is_streamed, "stream_options": {"include_usage": true},
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": ORDERS}]})
    };
    let (whole, last) = play(Api::Chat, &body(false));
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["content"], "I look.\n\nfind answered: found {\"q\":\"x\"}");
    assert_eq!(message["reasoning_content"], "hm");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert!(whole["usage"]["total_tokens"].as_u64().unwrap() > 0);
    assert_eq!(last["messages"][3]["role"], "tool");
    let (stream, _) = play(Api::Chat, &body(true));
    let text: String = events(&stream)
        .into_iter()
        .filter_map(|(_, data)| serde_json::from_str::<Value>(data).ok())
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect();
    assert_eq!(text, message["content"].as_str().unwrap());
}

#[test]
fn a_response_of_the_demo_model_has_the_calls_that_ran_here() {
    let body = |is_streamed: bool| {
        json!({"model": "demo", "stream": is_streamed, "instructions": "Be short.", "input": ORDERS,
            "reasoning": {"effort": "low"}})
    };
    let (whole, _) = play(Api::Responses, &body(false));
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let types: Vec<_> =
        whole["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(types, ["reasoning", "message", "mcp_call", "message"]);
    assert_eq!(whole["output"][2]["output"], "found {\"q\":\"x\"}");
    assert_eq!((&whole["instructions"], &whole["tools"]), (&json!("Be short."), &json!([])));
    let (stream, _) = play(Api::Responses, &body(true));
    let (name, last) = events(&stream).pop().unwrap();
    assert_eq!(name, "response.completed");
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["response"], whole);
}

#[test]
fn the_stream_of_a_response_is_complete() {
    let body = json!({"model": "demo", "stream": true, "input": "/think a b\n/say c d\n/call app {}",
        "tools": [{"type": "function", "name": "app", "parameters": {"type": "object"}}]});
    let (stream, _) = round(Api::Responses, body.to_string().as_bytes(), 0);
    insta::assert_snapshot!(stream);
}

#[test]
fn the_stream_of_a_chat_is_complete() {
    let body = json!({"model": "demo", "stream": true,
        "messages": [{"role": "user", "content": "/think a\n/say c d\n/call app {\"a\":1}"}],
        "tools": [{"type": "function", "function": {"name": "app", "parameters": {"type": "object"}}}]});
    let (stream, _) = round(Api::Chat, body.to_string().as_bytes(), 0);
    insta::assert_snapshot!(stream);
}

#[test]
fn a_message_with_the_demo_model_calls_the_tools_of_the_session() {
    let body = |is_streamed: bool| {
        json!({"model": "demo", "stream": is_streamed, "max_tokens": 1000, "system": "Be short.",
            "thinking": {"type": "adaptive"}, "messages": [{"role": "user", "content": ORDERS}]})
    };
    let (whole, last) = play(Api::Messages, &body(false));
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let texts: Vec<_> = whole["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    assert_eq!(texts, ["I look.", "find answered: found {\"q\":\"x\"}"]);
    assert_eq!(whole["content"][0]["thinking"], "hm");
    assert_eq!(whole["stop_reason"], "end_turn");
    assert_eq!(last["messages"][2]["content"][0]["type"], "tool_result");
    let (stream, _) = play(Api::Messages, &body(true));
    let text: String = events(&stream)
        .into_iter()
        .filter_map(|(_, data)| serde_json::from_str::<Value>(data).ok())
        .filter_map(|event| Some(event["delta"]["text"].as_str()?.to_owned()))
        .collect();
    assert_eq!(text, texts.concat());
    assert!(stream.ends_with("data: {\"type\":\"message_stop\"}\n\n"));
}

#[test]
fn gemini_s_api_with_the_demo_model_calls_the_tools_of_the_session() {
    let body = json!({"systemInstruction": {"parts": [{"text": "Be short."}]},
        "contents": [{"role": "user", "parts": [{"text": ORDERS}]}]});
    let target = |is_streamed| RequestTarget {
        model: Some("demo".to_owned()),
        is_streamed: Some(is_streamed),
        ..RequestTarget::default()
    };
    let (whole, last) = play_for(&target(false), Api::Gemini, &body);
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let parts = |response: &Value| {
        let parts = response["candidates"][0]["content"]["parts"].as_array().cloned();
        let answers = parts.unwrap_or_default().into_iter().filter(|part| part["thought"] != true);
        answers.filter_map(|part| Some(part["text"].as_str()?.to_owned())).collect::<String>()
    };
    assert_eq!(parts(&whole), "I look.\n\nfind answered: found {\"q\":\"x\"}");
    assert_eq!(whole["candidates"][0]["finishReason"], "STOP");
    assert!(last["contents"][2]["parts"][0]["functionResponse"].is_object());
    let (stream, _) = play_for(&target(true), Api::Gemini, &body);
    let frames = stream.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let chunks = frames.map(|frame| serde_json::from_str::<Value>(frame).unwrap());
    assert_eq!(chunks.map(|chunk| parts(&chunk)).collect::<String>(), parts(&whole));
}
