//! Streams in the providers' formats: mostly small deltas, with the envelope that each provider sends around them.

use serde_json::{Value, json};
use switchboard_model::ProviderKind;

/// The formats and their names in the table.
pub(crate) const FORMATS: [(ProviderKind, &str); 5] = [
    (ProviderKind::OpenAi, "OpenAI Responses"),
    (ProviderKind::OpenAiChat, "Chat Completions"),
    (ProviderKind::Anthropic, "Anthropic Messages"),
    (ProviderKind::Gemini, "Gemini"),
    (ProviderKind::CodeAssist, "Gemini Code Assist"),
];

/// Tokens as models write them: words, numbers, line ends, quotes, code and multi-byte characters.
const TOKENS: [&str; 24] = [
    " the",
    " stream",
    " of",
    " tokens",
    ",",
    " and",
    " each",
    " delta",
    " is",
    " small",
    ".",
    "\n\n",
    " 1",
    "024",
    " für",
    " naïve",
    " \"quoted\"",
    " fn",
    " main",
    "()",
    " {\n",
    "   ",
    " 世界",
    " again",
];
/// Gemini sends many tokens per chunk.
const TOKENS_OF_A_CHUNK: usize = 12;
/// One in this many deltas belongs to a tool call.
const CALL_DELTA: usize = 8;

fn tokens(count: usize) -> impl Iterator<Item = (usize, &'static str)> {
    (0..count).map(|number| (number, TOKENS[(number * 7 + number / 24) % TOKENS.len()]))
}

/// A complete stream with this number of deltas.
pub(crate) fn stream(kind: ProviderKind, deltas: usize) -> Vec<u8> {
    match kind {
        ProviderKind::OpenAi | ProviderKind::ChatGpt | ProviderKind::Demo => responses(deltas),
        ProviderKind::OpenAiChat => chat(deltas),
        ProviderKind::Anthropic => anthropic(deltas),
        ProviderKind::Gemini => gemini(deltas, |chunk| chunk),
        ProviderKind::CodeAssist => {
            gemini(deltas, |chunk| json!({"response": chunk, "traceId": "5f0c1d2e3b4a5968"}))
        }
    }
}

/// A fragment of arguments: JSON within a JSON string, so mostly escapes.
fn argument(number: usize) -> String {
    if number < CALL_DELTA { "{\"list\":[".into() } else { format!("\"a{number}\",") }
}

fn named(out: &mut Vec<u8>, name: &str, data: &Value) {
    out.extend_from_slice(format!("event: {name}\ndata: {data}\n\n").as_bytes());
}

fn responses(deltas: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut push = |number: usize, name: &str, mut data: Value| {
        data["sequence_number"] = json!(number);
        named(&mut out, name, &data);
    };
    let item = "msg_0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789";
    let (mut text, mut arguments) = (String::new(), String::new());
    let call = |arguments: &str, status: &str| json!({"type": "function_call", "id": "fc_0a1b2c", "call_id": "call_0a1b2c", "name": "find", "arguments": arguments, "status": status});
    for (place, added) in [
        (
            0,
            json!({"type": "message", "id": item, "status": "in_progress", "role": "assistant", "content": []}),
        ),
        (1, call("", "in_progress")),
    ] {
        push(
            place,
            "response.output_item.added",
            json!({"type": "response.output_item.added", "output_index": place, "item": added}),
        );
    }
    for (number, token) in tokens(deltas) {
        if number % CALL_DELTA == CALL_DELTA - 1 {
            let delta = argument(number);
            arguments.push_str(&delta);
            let name = "response.function_call_arguments.delta";
            push(
                number,
                name,
                json!({"type": name, "item_id": "fc_0a1b2c", "output_index": 1, "delta": delta, "obfuscation": "kP3xQz81"}),
            );
            continue;
        }
        text.push_str(token);
        let name = "response.output_text.delta";
        push(
            number,
            name,
            json!({"type": name, "item_id": item, "output_index": 0, "content_index": 0, "delta": token, "logprobs": [], "obfuscation": "kP3xQz81mN"}),
        );
    }
    arguments.push_str("0]}");
    let name = "response.output_item.done";
    let done = json!({"type": "message", "id": item, "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]});
    push(deltas, name, json!({"type": name, "output_index": 0, "item": done}));
    let done = call(&arguments, "completed");
    push(deltas, name, json!({"type": name, "output_index": 1, "item": done}));
    let name = "response.completed";
    push(
        deltas,
        name,
        json!({"type": name, "response": {"id": "resp_1", "status": "completed", "output": [], "usage": {"input_tokens": 9, "output_tokens": deltas}}}),
    );
    out
}

fn chat(deltas: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut push = |delta: Value, finish: Option<&str>, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-C0a1b2c3d4e5f60718293a4b5c6d7", "object": "chat.completion.chunk", "created": 1_790_000_000,
            "model": "gpt-5.5-2026-05-01", "service_tier": "default", "system_fingerprint": "fp_0a1b2c3d4e",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}], "usage": usage,
            "obfuscation": "kP3xQz81",
        });
        out.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
    };
    push(json!({"role": "assistant", "content": "", "refusal": null}), None, Value::Null);
    push(
        json!({"tool_calls": [{"index": 0, "id": "call_0a1b2c", "type": "function", "function": {"name": "find", "arguments": ""}}]}),
        None,
        Value::Null,
    );
    for (number, token) in tokens(deltas) {
        let delta = if number % CALL_DELTA == CALL_DELTA - 1 {
            json!({"tool_calls": [{"index": 0, "function": {"arguments": argument(number)}}]})
        } else {
            json!({"content": token})
        };
        push(delta, None, Value::Null);
    }
    push(
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "0]}"}}]}),
        None,
        Value::Null,
    );
    push(json!({}), Some("tool_calls"), json!({"prompt_tokens": 9, "completion_tokens": deltas}));
    out.extend_from_slice(b"data: [DONE]\n\n");
    out
}

fn anthropic(deltas: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut push = |name: &str, data: Value| named(&mut out, name, &data);
    push(
        "message_start",
        json!({"type": "message_start", "message": {"id": "msg_01", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
    );
    let blocks = [
        json!({"type": "text", "text": ""}),
        json!({"type": "tool_use", "id": "toolu_01", "name": "find", "input": {}}),
    ];
    for (index, block) in blocks.into_iter().enumerate() {
        push(
            "content_block_start",
            json!({"type": "content_block_start", "index": index, "content_block": block}),
        );
    }
    let name = "content_block_delta";
    for (number, token) in tokens(deltas) {
        let (index, delta) = if number % CALL_DELTA == CALL_DELTA - 1 {
            (1, json!({"type": "input_json_delta", "partial_json": argument(number)}))
        } else {
            (0, json!({"type": "text_delta", "text": token}))
        };
        push(name, json!({"type": name, "index": index, "delta": delta}));
    }
    push(
        name,
        json!({"type": name, "index": 1, "delta": {"type": "input_json_delta", "partial_json": "0]}"}}),
    );
    for index in 0..2 {
        push("content_block_stop", json!({"type": "content_block_stop", "index": index}));
    }
    push(
        "message_delta",
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": deltas}}),
    );
    push("message_stop", json!({"type": "message_stop"}));
    out
}

fn gemini(deltas: usize, envelope: impl Fn(Value) -> Value) -> Vec<u8> {
    let mut out = Vec::new();
    let chunks = deltas.div_ceil(TOKENS_OF_A_CHUNK);
    let all: Vec<&str> = tokens(deltas).map(|(_, token)| token).collect();
    for (number, tokens) in all.chunks(TOKENS_OF_A_CHUNK).enumerate() {
        let mut candidate =
            json!({"content": {"parts": [{"text": tokens.concat()}], "role": "model"}, "index": 0});
        if number + 1 == chunks {
            candidate["finishReason"] = json!("STOP");
        }
        let count = number * TOKENS_OF_A_CHUNK;
        let chunk = envelope(json!({
            "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": count, "totalTokenCount": count + 9, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}]},
            "modelVersion": "gemini-3.1-pro-preview", "responseId": "a0b1c2d3e4f5g6h7i8j9",
        }));
        out.extend_from_slice(format!("data: {chunk}\r\n\r\n").as_bytes());
    }
    out
}
