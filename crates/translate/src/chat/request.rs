//! Reads requests of Chat Completions.

use serde_json::{Map, Value, json};
use switchboard_chat::{Block, Reply, Source};
use switchboard_model::ModelSettings;
use switchboard_render::Provider;
use switchboard_splice::Refusal;

use super::API;
use crate::conversation::{Conversation, call};
use crate::members::{Members, not_carried};
use crate::request::ReadRequest;
use crate::{content, sealed_reply, tools};

const MEMBERS: Members = Members {
    api: API,
    carried: &[
        "model",
        "messages",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
    ],
    left_out: &[
        "stream_options",
        "user",
        "metadata",
        "store",
        "service_tier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "seed",
        "verbosity",
    ],
    defaults: || {
        json!({
            "n": 1, "parallel_tool_calls": true, "logprobs": false, "frequency_penalty": 0, "presence_penalty": 0,
            "response_format": {"type": "text"}, "modalities": ["text"],
        })
    },
};

pub(crate) fn read(
    body: &Map<String, Value>,
    source: &Source,
    provider: Provider,
) -> Result<ReadRequest, Refusal> {
    MEMBERS.check(body, source)?;
    let get = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let mut conversation = Conversation::default();
    for (index, message) in get("messages").as_array().into_iter().flatten().enumerate() {
        read_message(message, &mut conversation).map_err(|what| {
            let what = format!("message {index} of `messages`: {what}");
            Refusal::of_member("messages", not_carried(&what, API, source))
        })?;
    }
    let are_allowed = tools::are_allowed(get("tool_choice"), API, source)?;
    let mut functions = Vec::new();
    for tool in get("tools").as_array().into_iter().flatten().filter(|_| are_allowed) {
        if tool["type"] != "function" {
            let what = format!("a tool of the type {}", tool["type"]);
            return Err(Refusal::of_member("tools", not_carried(&what, API, source)));
        }
        functions.push(&tool["function"]);
    }
    let most = get("max_completion_tokens").as_u64().or(get("max_tokens").as_u64());
    let effort = get("reasoning_effort").as_str();
    Ok(ReadRequest {
        messages: conversation.finish("messages")?,
        tools: tools::render(functions, provider)?,
        settings: ModelSettings {
            max_output_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            temperature: get("temperature").as_f64(),
            top_p: get("top_p").as_f64(),
            effort: effort.and_then(crate::request::effort),
            show_thinking: effort.is_some(),
            ..ModelSettings::default()
        },
        is_streamed: get("stream").as_bool().unwrap_or(false),
        echoed: Map::new(),
    })
}

/// Reads a message. The error is what cannot be read.
fn read_message(message: &Value, conversation: &mut Conversation) -> Result<(), String> {
    let content = content::read(&message["content"])?;
    match message["role"].as_str().unwrap_or_default() {
        "system" | "developer" => conversation.system(content),
        "user" => conversation.user(content),
        "assistant" => conversation.reply(read_reply(message)?),
        "tool" => {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !conversation.result(id, content, false) {
                return Err(format!("a result of the call `{id}`, which nobody made"));
            }
        }
        role => return Err(format!("the role `{role}`")),
    }
    Ok(())
}

fn read_reply(message: &Value) -> Result<Reply, String> {
    let texts = [&message["content"], &message["refusal"]].map(text_of);
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    let mut blocks: Vec<Block> = texts.map(Block::text).collect();
    for made in message["tool_calls"].as_array().into_iter().flatten() {
        if made["type"].as_str().is_some_and(|kind| kind != "function") {
            return Err(format!("a call of the type {}", made["type"]));
        }
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &made["function"];
        blocks.push(call(
            &word(&made["id"]),
            &word(&function["name"]),
            &word(&function["arguments"]),
        ));
    }
    let visible = Reply { content: blocks, ..Reply::default() };
    let sealed = message["reasoning_details"].as_array().into_iter().flatten();
    let mut sealed = sealed.filter_map(|detail| detail["data"].as_str());
    Ok(sealed.find_map(|sealed| sealed_reply::open(sealed, &visible)).unwrap_or(visible))
}

/// The text of a reply's content.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts
                .iter()
                .filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()));
            texts.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
