//! Encodes a response as events of Anthropic Messages, or as one document.

use serde_json::{Value, json};

use super::anthropic_check::{seal_redacted, seal_thinking};
use super::heard::EventReceiver;
use super::state::Ids;
use super::step::{Part, Step, Stop, Usage, pieces, sent_arguments};
use super::stream::Event;

/// A content block and its deltas.
struct Block {
    /// The block in `content_block_start`.
    start: Value,
    /// Each delta with the number of repetitions.
    deltas: Vec<(Value, usize)>,
    /// The complete block.
    whole: Value,
}

pub(crate) fn events(step: &Step, heard: &EventReceiver, ids: &Ids) -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |name: &str, mut data: Value, count: usize| {
        data["type"] = json!(name);
        events.push(Event::named(name, &data).times(count));
    };
    let usage = step.counted();
    let message = message(heard, ids, &json!([]), usage.map(start_usage));
    push("message_start", json!({"message": message}), 1);
    push("ping", json!({}), 1);
    for (index, block) in blocks(step, heard, ids).into_iter().enumerate() {
        push("content_block_start", json!({"index": index, "content_block": block.start}), 1);
        for (delta, count) in block.deltas {
            push("content_block_delta", json!({"index": index, "delta": delta}), count);
        }
        push("content_block_stop", json!({"index": index}), 1);
    }
    if let Some(error) = &step.error_event {
        push("error", json!({"error": {"type": error.kind, "message": error.message}}), 1);
    } else if step.ends() {
        let mut end = json!({"delta": {"stop_reason": stop_reason(step), "stop_sequence": null}});
        end["usage"] = usage.map_or_else(|| json!({"output_tokens": 0}), usage_of);
        if !heard.dropped_blocks.is_empty() {
            end["input_transformations"] = transformations(heard);
        }
        push("message_delta", end, 1);
        push("message_stop", json!({}), 1);
    }
    events
}

pub(crate) fn document(step: &Step, heard: &EventReceiver, ids: &Ids) -> Value {
    let content: Vec<Value> =
        blocks(step, heard, ids).into_iter().map(|block| block.whole).collect();
    let usage = usage_of(step.counted().unwrap_or_default());
    let mut message = message(heard, ids, &json!(content), Some(usage));
    message["stop_reason"] = json!(stop_reason(step));
    if !heard.dropped_blocks.is_empty() {
        message["input_transformations"] = transformations(heard);
    }
    message
}

fn transformations(heard: &EventReceiver) -> Value {
    let dropped = heard.dropped_blocks.iter();
    dropped.map(|place| json!({"type": "thinking_block_dropped", "location": place})).collect()
}

fn message(heard: &EventReceiver, ids: &Ids, content: &Value, usage: Option<Value>) -> Value {
    let usage = usage.unwrap_or_else(|| json!({"input_tokens": 0, "output_tokens": 0}));
    json!({
        "id": ids.next("msg"), "type": "message", "role": "assistant", "model": heard.model,
        "content": content, "stop_reason": null, "stop_sequence": null, "usage": usage,
    })
}

fn blocks(step: &Step, heard: &EventReceiver, ids: &Ids) -> Vec<Block> {
    let parts = step.parts.iter().enumerate();
    parts.map(|(place, part)| block(part, step.is_cut(place), heard, ids)).collect()
}

fn block(part: &Part, is_cut: bool, heard: &EventReceiver, ids: &Ids) -> Block {
    match part {
        Part::Thinking(text) => {
            let signature = seal_thinking(&heard.model, text, &heard.prefix);
            let mut deltas: Vec<_> = pieces(text)
                .into_iter()
                .map(|piece| (json!({"type": "thinking_delta", "thinking": piece}), 1))
                .collect();
            deltas.push((json!({"type": "signature_delta", "signature": signature}), 1));
            let block = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
            Block { start: block("", ""), deltas, whole: block(text, &signature) }
        }
        Part::Redacted => {
            let data = seal_redacted(&heard.model, &heard.prefix);
            let whole = json!({"type": "redacted_thinking", "data": data});
            Block { start: whole.clone(), deltas: Vec::new(), whole }
        }
        Part::Text(text) => text_block(text, pieces(text).into_iter().map(|piece| (piece, 1))),
        Part::Repeat { count, text } => {
            text_block(&text.repeat(*count), std::iter::once((text.clone(), *count)))
        }
        Part::Call { name, arguments, id } => {
            let id = id.clone().unwrap_or_else(|| ids.next("toolu"));
            let sent = sent_arguments(arguments, is_cut);
            // Without arguments there is no fragment, or an empty one.
            let sent = if sent == "{}" { String::new() } else { sent };
            let fragments = std::iter::once(String::new()).chain(pieces(&sent));
            let deltas = fragments
                .map(|piece| (json!({"type": "input_json_delta", "partial_json": piece}), 1));
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            let block =
                |input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
            Block { start: block(json!({})), deltas: deltas.collect(), whole: block(input) }
        }
    }
}

fn text_block(text: &str, deltas: impl Iterator<Item = (String, usize)>) -> Block {
    let block = |text: &str| json!({"type": "text", "text": text});
    let deltas = deltas.map(|(piece, count)| (json!({"type": "text_delta", "text": piece}), count));
    Block { start: block(""), deltas: deltas.collect(), whole: block(text) }
}

fn stop_reason(step: &Step) -> &'static str {
    match step.stop {
        Stop::Natural if step.calls().next().is_some() => "tool_use",
        Stop::Natural => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

/// The usage in `message_start`: the input, and a first output token.
fn start_usage(usage: Usage) -> Value {
    let mut start = usage_of(usage);
    start["output_tokens"] = json!(1);
    start
}

/// Anthropic's `input_tokens` does not include cached tokens.
fn usage_of(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_written),
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
    })
}
