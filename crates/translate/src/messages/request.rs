//! Reads requests of Anthropic Messages.

use serde_json::{Map, Value, json};
use switchboard_chat::{Block, Media, Part, Place, Reply, Source};
use switchboard_model::ModelSettings;
use switchboard_render::Provider;
use switchboard_splice::Refusal;

use super::API;
use crate::conversation::{Conversation, call};
use crate::members::{Members, not_carried};
use crate::request::{ReadRequest, effort};
use crate::{sealed_reply, tools};

const MEMBERS: Members = Members {
    api: API,
    carried: &[
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "max_tokens",
        "temperature",
        "top_p",
        "thinking",
        "output_config",
    ],
    left_out: &[
        "metadata",
        "service_tier",
        "cache_control",
        "context_management",
        "inference_geo",
        "diagnostics",
        "billing_policy",
        "speed",
        "top_k",
    ],
    defaults: || json!({}),
};

pub(crate) fn read(
    body: &Map<String, Value>,
    source: &Source,
    provider: Provider,
) -> Result<ReadRequest, Refusal> {
    MEMBERS.check(body, source)?;
    let get = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let lost =
        |member: &str, what: &str| Refusal::of_member(member, not_carried(what, API, source));
    let config = get("output_config").as_object();
    let other = config.and_then(|config| config.keys().find(|name| *name != "effort"));
    if let Some(other) = other.filter(|other| !get("output_config")[*other].is_null()) {
        return Err(lost("output_config", &format!("`output_config.{other}`")));
    }
    let mut conversation = Conversation::default();
    let system = parts(get("system")).map_err(|what| lost("system", &what))?;
    if !system.is_empty() {
        conversation.system(system);
    }
    for (index, message) in get("messages").as_array().into_iter().flatten().enumerate() {
        read_message(message, &mut conversation)
            .map_err(|what| lost("messages", &format!("message {index} of `messages`: {what}")))?;
    }
    let choice = get("tool_choice");
    if choice["disable_parallel_tool_use"] == true {
        return Err(lost("tool_choice", "`tool_choice.disable_parallel_tool_use`"));
    }
    let are_allowed = tools::are_allowed(&choice["type"], API, source)?;
    let mut functions = Vec::new();
    for tool in get("tools").as_array().into_iter().flatten().filter(|_| are_allowed) {
        if tool["type"].as_str().is_some_and(|kind| kind != "custom") {
            return Err(lost("tools", &format!("a tool of the type {}", tool["type"])));
        }
        functions.push(json!({
            "name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"],
        }));
    }
    let most = get("max_tokens").as_u64();
    let thinking = get("thinking");
    let is_thinking = matches!(thinking["type"].as_str(), Some("enabled" | "adaptive"));
    Ok(ReadRequest {
        messages: conversation.finish("messages")?,
        tools: tools::render(&functions, provider)?,
        settings: ModelSettings {
            max_output_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            temperature: get("temperature").as_f64(),
            top_p: get("top_p").as_f64(),
            effort: get("output_config")["effort"].as_str().and_then(effort),
            show_thinking: is_thinking && thinking["display"] != "omitted",
            ..ModelSettings::default()
        },
        is_streamed: get("stream").as_bool().unwrap_or(false),
        echoed: Map::new(),
    })
}

/// Reads a message. The error is what cannot be read.
fn read_message(message: &Value, conversation: &mut Conversation) -> Result<(), String> {
    let content = &message["content"];
    match message["role"].as_str().unwrap_or_default() {
        "system" => conversation.system(parts(content)?),
        "assistant" => conversation.reply(read_reply(content)?),
        "user" => {
            let mut own = Vec::new();
            for block in content.as_array().into_iter().flatten() {
                if block["type"] != "tool_result" {
                    own.push(block.clone());
                    continue;
                }
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                let is_error = block["is_error"] == true;
                if !conversation.result(id, parts(&block["content"])?, is_error) {
                    return Err(format!("a result of the call `{id}`, which nobody made"));
                }
            }
            let own = if content.is_array() { parts(&Value::Array(own))? } else { parts(content)? };
            if !own.is_empty() {
                conversation.user(own);
            }
        }
        role => return Err(format!("the role `{role}`")),
    }
    Ok(())
}

fn read_reply(content: &Value) -> Result<Reply, String> {
    let text = |block: &Value, name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let mut blocks: Vec<Block> = content.as_str().map(Block::text).into_iter().collect();
    let mut sealed = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => blocks.push(Block::text(text(block, "text"))),
            "tool_use" => {
                let input = block["input"].to_string();
                blocks.push(call(&text(block, "id"), &text(block, "name"), &input));
            }
            // Signed thinking of Anthropic itself has no use for another provider.
            "thinking" => {}
            "redacted_thinking" => sealed.push(text(block, "data")),
            kind => return Err(format!("a block of the type `{kind}`")),
        }
    }
    let visible = Reply { content: blocks, ..Reply::default() };
    let opened = sealed.iter().find_map(|sealed| sealed_reply::open(sealed, &visible));
    Ok(opened.unwrap_or(visible))
}

/// Reads the content of a message or of a result. The error is what cannot be read.
fn parts(content: &Value) -> Result<Vec<Part>, String> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::text(text)]),
        Value::Array(blocks) => blocks.iter().map(part).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("content that is neither a text nor a list of blocks".to_owned())
        }
    }
}

fn part(block: &Value) -> Result<Part, String> {
    let kind = block["type"].as_str().unwrap_or_default();
    let source = &block["source"];
    let place = || match source["type"].as_str()? {
        "base64" => source["data"].as_str().map(|data| Place::Data(data.to_owned())),
        "url" => source["url"].as_str().map(|url| Place::Url(url.to_owned())),
        _ => None,
    };
    let media = |likely: &str| {
        let media_type = source["media_type"].as_str().unwrap_or(likely).to_owned();
        place().map(|place| Media { media_type, place })
    };
    let read = match kind {
        "text" => block["text"].as_str().map(Part::text),
        "image" => media("image/jpeg").map(Part::Image),
        "document" if source["type"] == "text" => source["data"].as_str().map(Part::text),
        "document" => media("application/pdf")
            .map(|media| Part::File { name: block["title"].as_str().map(str::to_owned), media }),
        _ => None,
    };
    read.ok_or_else(|| format!("a block of the type `{kind}`"))
}
