//! Accumulates a stream as Google's SDKs and their chat helpers do.

use serde_json::{Value, json};

use crate::scripted::frames;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Response(Value),
    Error(Value),
}

/// The response of a stream, with the texts of its chunks joined.
pub(crate) fn accumulate(stream: &str) -> Result<End, String> {
    let chunks = frames(stream).into_iter().map(|(name, chunk)| match name {
        Some(name) => Err(format!("an event has the name {name}")),
        None => Ok(chunk),
    });
    accumulate_chunks(chunks.collect::<Result<Vec<_>, _>>()?)
}

pub(crate) fn accumulate_chunks(chunks: Vec<Value>) -> Result<End, String> {
    let mut response = Value::Null;
    let mut parts = Vec::new();
    let (mut has_ended, mut id) = (false, Value::Null);
    for mut chunk in chunks {
        if has_ended {
            return Err(format!("{chunk} after the end"));
        }
        if let Some(error) = chunk.get("error") {
            return Ok(End::Error(error.clone()));
        }
        let candidate = &mut chunk["candidates"][0];
        let content = candidate["content"].take();
        let own = content["parts"].as_array().filter(|parts| !parts.is_empty());
        // The chat helpers forget the whole turn if a chunk has no part, or an empty one.
        let own = own.ok_or("a chunk without parts")?;
        if content["role"] != "model" || own.contains(&json!({})) {
            return Err(format!("the content {content}"));
        }
        parts.extend(own.iter().cloned());
        has_ended = !candidate["finishReason"].is_null();
        if !has_ended && !chunk["usageMetadata"].is_null() {
            return Err("usage before the end".into());
        }
        // Keep-alives have no id.
        if let Some(own) = chunk.get("responseId") {
            if !id.is_null() && *own != id {
                return Err("the id of the response changes".into());
            }
            id = own.clone();
        }
        response = chunk;
    }
    if !has_ended {
        return Err("the stream was cut".into());
    }
    response["candidates"][0]["content"] = json!({"role": "model", "parts": joined(&parts)});
    check_response(&response)?;
    Ok(End::Response(response))
}

/// Joins texts, and drops empty ones.
pub(crate) fn joined(parts: &[Value]) -> Vec<Value> {
    let is_plain =
        |part: &Value| part["text"].is_string() && part.get("thoughtSignature").is_none();
    let mut joined: Vec<Value> = Vec::new();
    for part in parts.iter().filter(|part| !is_plain(part) || part["text"] != "") {
        match joined.last_mut() {
            Some(last)
                if is_plain(last) && is_plain(part) && last["thought"] == part["thought"] =>
            {
                let text = last["text"].as_str().unwrap_or_default().to_owned();
                last["text"] = (text + part["text"].as_str().unwrap_or_default()).into();
            }
            _ => joined.push(part.clone()),
        }
    }
    joined
}

/// Checks a whole response.
pub(crate) fn check_response(response: &Value) -> Result<(), String> {
    let parts = response["candidates"][0]["content"]["parts"].as_array().ok_or("no parts")?;
    let ids = |kind: &str| -> Vec<Value> {
        parts.iter().filter_map(|part| Some(part.get(kind)?["id"].clone())).collect()
    };
    let (mut calls, mut results) = (ids("toolCall"), ids("toolResponse"));
    calls.sort_by_key(Value::to_string);
    results.sort_by_key(Value::to_string);
    if calls != results {
        return Err(format!("shown calls {calls:?}, results {results:?}"));
    }
    let usage = &response["usageMetadata"];
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let sum = count("promptTokenCount")
        + count("toolUsePromptTokenCount")
        + count("candidatesTokenCount");
    if sum != count("totalTokenCount") {
        return Err(format!("the usage does not add up: {usage}"));
    }
    Ok(())
}

/// Checks a conversation as the API does: a content with calls is followed by one with as many responses.
pub(crate) fn check_conversation(body: &Value) -> Result<(), String> {
    let contents = body["contents"].as_array().ok_or("no contents")?;
    let parts = |content: &Value| content["parts"].as_array().cloned().unwrap_or_default();
    for (index, content) in contents.iter().enumerate() {
        if parts(content).is_empty() {
            return Err("a content without parts".into());
        }
        if parts(content).iter().any(|part| part.get("toolCall").is_some()) {
            return Err(format!("a shown call went to the provider: {content}"));
        }
        let names = |content: &Value, kind: &str| -> Vec<Value> {
            let parts = parts(content).into_iter();
            parts.filter_map(|part| Some(part.get(kind)?["name"].clone())).collect()
        };
        let calls = names(content, "functionCall");
        if calls.is_empty() {
            continue;
        }
        let next = contents.get(index + 1).ok_or("calls without responses")?;
        let responses = names(next, "functionResponse");
        if calls != responses || content["role"] != "model" || next["role"] != "user" {
            return Err(format!("calls {calls:?}, responses {responses:?}"));
        }
    }
    Ok(())
}
