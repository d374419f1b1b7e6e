//! Reads requests of Responses.

use serde_json::{Map, Value, json};
use switchboard_chat::{Block, Reply, Source};
use switchboard_model::ModelSettings;
use switchboard_render::Provider;
use switchboard_splice::Refusal;

use super::API;
use crate::conversation::{Conversation, call};
use crate::members::{Members, not_carried};
use crate::request::{ReadRequest, effort};
use crate::{content, sealed_reply, tools};

const MEMBERS: Members = Members {
    api: API,
    carried: &[
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "top_p",
        "max_output_tokens",
        "reasoning",
        "text",
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
        "truncation",
        "include",
        "max_tool_calls",
    ],
    defaults: || json!({"parallel_tool_calls": true, "background": false, "top_logprobs": 0}),
};

/// Members that the answer repeats.
const ECHOED: [&str; 12] = [
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "reasoning",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
];

pub(crate) fn read(
    body: &Map<String, Value>,
    source: &Source,
    provider: Provider,
) -> Result<ReadRequest, Refusal> {
    MEMBERS.check(body, source)?;
    let get = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let format = &get("text")["format"]["type"];
    if format.as_str().is_some_and(|format| format != "text") {
        let what = format!("`text.format` of the type {format}");
        return Err(Refusal::of_member("text", not_carried(&what, API, source)));
    }
    let are_allowed = tools::are_allowed(get("tool_choice"), API, source)?;
    let declared = get("tools").as_array().into_iter().flatten().filter(|_| are_allowed);
    let functions: Vec<_> = declared.collect();
    if let Some(tool) = functions.iter().find(|tool| tool["type"] != "function") {
        let what = format!("a tool of the type {}", tool["type"]);
        return Err(Refusal::of_member("tools", not_carried(&what, API, source)));
    }
    let word = get("reasoning")["effort"].as_str();
    let most = get("max_output_tokens").as_u64();
    let echoed = ECHOED.iter().filter_map(|name| Some((*name, body.get(*name)?)));
    Ok(ReadRequest {
        messages: messages(get("input"), source)?,
        tools: tools::render(functions, provider)?,
        settings: ModelSettings {
            instructions: get("instructions").as_str().map(str::to_owned),
            max_output_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            temperature: get("temperature").as_f64(),
            top_p: get("top_p").as_f64(),
            effort: word.and_then(effort),
            show_thinking: word.is_some() || get("reasoning")["summary"].is_string(),
            ..ModelSettings::default()
        },
        is_streamed: get("stream").as_bool().unwrap_or(false),
        echoed: echoed.map(|(name, value)| (name.to_owned(), value.clone())).collect(),
    })
}

fn messages(input: &Value, source: &Source) -> Result<Vec<switchboard_chat::Message>, Refusal> {
    let refused = |index: usize, what: &str| {
        let what = format!("item {index} of `input`: {what}");
        Refusal::of_member("input", not_carried(&what, API, source))
    };
    let mut reading = Reading::default();
    match input {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                reading.item(item).map_err(|what| refused(index, &what))?;
            }
        }
        text => {
            let parts = content::read(text).map_err(|what| refused(0, &what))?;
            reading.conversation.user(parts);
        }
    }
    reading.end_reply();
    reading.conversation.finish("input")
}

/// Items are read one by one; those of the model that follow each other are one reply.
#[derive(Default)]
struct Reading {
    conversation: Conversation,
    reply: Reply,
    sealed: Vec<String>,
}

impl Reading {
    /// Reads an item. The error is what cannot be read.
    fn item(&mut self, item: &Value) -> Result<(), String> {
        let word = |name: &str| item[name].as_str().unwrap_or_default();
        match (word("type"), word("role")) {
            ("" | "message", "assistant") => {
                for part in content::read(&item["content"])? {
                    if let switchboard_chat::Part::Text { text } = part {
                        self.reply.content.push(Block::text(text));
                    }
                }
            }
            ("" | "message", role) => {
                self.end_reply();
                let content = content::read(&item["content"])?;
                match role {
                    "system" | "developer" => self.conversation.system(content),
                    "user" => self.conversation.user(content),
                    role => return Err(format!("the role `{role}`")),
                }
            }
            ("function_call", _) => {
                let made = call(word("call_id"), word("name"), word("arguments"));
                self.reply.content.push(made);
            }
            ("function_call_output", _) => {
                self.end_reply();
                let id = word("call_id");
                if !self.conversation.result(id, content::read(&item["output"])?, false) {
                    return Err(format!("an output of the call `{id}`, which nobody made"));
                }
            }
            // Reasoning of another provider means nothing to this one.
            ("reasoning", _) => {
                self.sealed.extend(item["encrypted_content"].as_str().map(str::to_owned));
            }
            (kind, _) => return Err(format!("the type `{kind}`")),
        }
        Ok(())
    }

    fn end_reply(&mut self) {
        let visible = std::mem::take(&mut self.reply);
        let sealed = std::mem::take(&mut self.sealed);
        let opened = sealed.iter().find_map(|sealed| sealed_reply::open(sealed, &visible));
        self.conversation.reply(opened.unwrap_or(visible));
    }
}
