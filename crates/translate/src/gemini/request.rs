//! Reads requests of Gemini.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Map, Value, json};
use switchboard_chat::{Block, Media, Part, Place, Reply, Source};
use switchboard_model::ModelSettings;
use switchboard_render::Provider;
use switchboard_splice::Refusal;

use super::API;
use super::declarations::{camel_case, function};
use crate::conversation::{Conversation, call};
use crate::members::{Members, not_carried};
use crate::request::{ReadRequest, effort};
use crate::{sealed_reply, tools};

const MEMBERS: Members = Members {
    api: API,
    carried: &["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"],
    left_out: &["safetySettings", "labels", "serviceTier", "store"],
    defaults: || json!({}),
};

const CONFIG: Members = Members {
    api: API,
    carried: &["maxOutputTokens", "temperature", "topP", "thinkingConfig"],
    left_out: &["topK", "seed"],
    defaults: || {
        json!({
            "candidateCount": 1, "responseMimeType": "text/plain", "responseModalities": ["TEXT"],
            "presencePenalty": 0, "frequencyPenalty": 0, "responseLogprobs": false,
        })
    },
};

pub(crate) fn read(
    body: &Map<String, Value>,
    source: &Source,
    provider: Provider,
) -> Result<ReadRequest, Refusal> {
    let body = camel_case(&Value::Object(body.clone()));
    let empty = Map::new();
    MEMBERS.check(body.as_object().unwrap_or(&empty), source)?;
    let config = &body["generationConfig"];
    CONFIG.check(config.as_object().unwrap_or(&empty), source)?;
    let lost =
        |member: &str, what: &str| Refusal::of_member(member, not_carried(what, API, source));
    let mut conversation = Conversation::default();
    let system =
        parts(&body["systemInstruction"]).map_err(|what| lost("systemInstruction", &what))?;
    if !system.is_empty() {
        conversation.system(system);
    }
    let mut calls = Calls::default();
    for (index, content) in body["contents"].as_array().into_iter().flatten().enumerate() {
        read_content(content, &mut calls, &mut conversation)
            .map_err(|what| lost("contents", &format!("content {index} of `contents`: {what}")))?;
    }
    let mode = body["toolConfig"]["functionCallingConfig"]["mode"].as_str().unwrap_or_default();
    let are_allowed = match mode {
        "" | "MODE_UNSPECIFIED" | "AUTO" | "VALIDATED" => true,
        "NONE" => false,
        mode => {
            return Err(lost(
                "toolConfig",
                &format!("the mode `{mode}` of `functionCallingConfig`"),
            ));
        }
    };
    let mut functions = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten().filter(|_| are_allowed) {
        let others = tool.as_object().into_iter().flat_map(Map::keys);
        if let Some(other) = others.into_iter().find(|name| *name != "functionDeclarations") {
            return Err(lost("tools", &format!("the tool `{other}`")));
        }
        let declared = tool["functionDeclarations"].as_array().into_iter().flatten();
        functions.extend(declared.map(function));
    }
    let most = config["maxOutputTokens"].as_u64();
    let thinking = &config["thinkingConfig"];
    let level = thinking["thinkingLevel"].as_str().map(str::to_ascii_lowercase);
    Ok(ReadRequest {
        messages: conversation.finish("contents")?,
        tools: tools::render(&functions, provider)?,
        settings: ModelSettings {
            max_output_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            temperature: config["temperature"].as_f64(),
            top_p: config["topP"].as_f64(),
            effort: level.as_deref().and_then(effort),
            show_thinking: thinking["includeThoughts"] == true,
            ..ModelSettings::default()
        },
        // The path of the request says it.
        is_streamed: false,
        echoed: Map::new(),
    })
}

/// The calls that wait for a result. Many clients send no ids.
#[derive(Debug, Default)]
struct Calls {
    made: usize,
    used: HashSet<String>,
    /// The id of the app, if there is one, our id, and the name.
    waiting: Vec<(Option<String>, String, String)>,
}

impl Calls {
    fn add(&mut self, id: Option<&str>, name: &str) -> String {
        self.made += 1;
        // Some clients count the calls of each reply anew.
        let own = match id {
            Some(id) if self.used.insert(id.to_owned()) => id.to_owned(),
            Some(_) | None => format!("call_{}", self.made),
        };
        self.waiting.push((id.map(str::to_owned), own.clone(), name.to_owned()));
        own
    }

    /// Our id of the call that a response answers.
    fn take(&mut self, id: Option<&str>, name: &str) -> Option<String> {
        let by_id =
            self.waiting.iter().position(|(known, ..)| id.is_some() && known.as_deref() == id);
        let by_name = || self.waiting.iter().position(|(_, _, known)| known == name);
        let at = by_id.or_else(by_name)?;
        Some(self.waiting.remove(at).1)
    }
}

/// Reads a content. The error is what cannot be read.
fn read_content(
    content: &Value,
    calls: &mut Calls,
    conversation: &mut Conversation,
) -> Result<(), String> {
    match content["role"].as_str().unwrap_or("user") {
        "model" => conversation.reply(read_reply(content, calls)?),
        "user" | "function" => {
            let mut own = Vec::new();
            for part in content["parts"].as_array().into_iter().flatten() {
                let response = &part["functionResponse"];
                if response.is_null() {
                    own.push(part.clone());
                    continue;
                }
                let name = response["name"].as_str().unwrap_or_default();
                let id = calls.take(response["id"].as_str(), name).unwrap_or_default();
                let (content, is_error) = result(response)?;
                if !conversation.result(&id, content, is_error) {
                    return Err(format!("a result of the function `{name}`, which nobody called"));
                }
            }
            let own = parts(&json!({"parts": own}))?;
            if !own.is_empty() {
                conversation.user(own);
            }
        }
        role => return Err(format!("the role `{role}`")),
    }
    Ok(())
}

fn read_reply(content: &Value, calls: &mut Calls) -> Result<Reply, String> {
    let mut blocks = Vec::new();
    let mut sealed = Vec::new();
    for part in content["parts"].as_array().into_iter().flatten() {
        sealed.extend(part["thoughtSignature"].as_str().and_then(unsealed));
        let made = &part["functionCall"];
        if let Some(text) = part["text"].as_str() {
            if part["thought"] != true && !text.is_empty() {
                blocks.push(Block::text(text));
            }
        } else if made.is_object() {
            let name = made["name"].as_str().unwrap_or_default();
            let id = calls.add(made["id"].as_str(), name);
            let arguments = if made["args"].is_null() { json!({}) } else { made["args"].clone() };
            blocks.push(call(&id, name, &arguments.to_string()));
        } else {
            return Err(unread(part));
        }
    }
    let visible = Reply { content: blocks, ..Reply::default() };
    let opened = sealed.iter().find_map(|sealed| sealed_reply::open(sealed, &visible));
    Ok(opened.unwrap_or(visible))
}

/// The sealed reply in a signature, which clients send back in either alphabet of base64.
fn unsealed(signature: &str) -> Option<String> {
    let bytes = STANDARD.decode(signature).or_else(|_| URL_SAFE.decode(signature)).ok()?;
    String::from_utf8(bytes).ok()
}

/// The content of a function response, and whether it is an error.
fn result(response: &Value) -> Result<(Vec<Part>, bool), String> {
    let value = &response["response"];
    let only = value.as_object().filter(|members| members.len() == 1);
    let member = |name: &str| only.and_then(|members| members.get(name));
    let is_error = member("error").is_some();
    let said = member("error").or_else(|| member("output")).or_else(|| member("result"));
    let text = match said.unwrap_or(value) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut content = vec![Part::text(text)];
    content.extend(parts(response)?);
    Ok((content, is_error))
}

/// Reads the parts of a content. The error is what cannot be read.
fn parts(content: &Value) -> Result<Vec<Part>, String> {
    if let Some(text) = content.as_str() {
        return Ok(vec![Part::text(text)]);
    }
    content["parts"].as_array().into_iter().flatten().map(part).collect()
}

fn part(part: &Value) -> Result<Part, String> {
    if let Some(text) = part["text"].as_str() {
        return Ok(Part::text(text));
    }
    let (inline, file) = (&part["inlineData"], &part["fileData"]);
    let (holder, place) = match (inline["data"].as_str(), file["fileUri"].as_str()) {
        (Some(data), _) => (inline, Place::Data(data.to_owned())),
        (None, Some(uri)) => (file, Place::Url(uri.to_owned())),
        (None, None) => return Err(unread(part)),
    };
    let media_type = holder["mimeType"].as_str().unwrap_or("application/octet-stream").to_owned();
    let name = holder["displayName"].as_str().map(str::to_owned);
    let media = Media { media_type, place };
    if media.media_type.starts_with("image/") {
        return Ok(Part::Image(media));
    }
    Ok(Part::File { name, media })
}

fn unread(part: &Value) -> String {
    let kinds = part.as_object().into_iter().flat_map(Map::keys);
    let kind = kinds.into_iter().find(|name| !name.starts_with("thought"));
    format!("a part with `{}`", kind.map_or("", String::as_str))
}
