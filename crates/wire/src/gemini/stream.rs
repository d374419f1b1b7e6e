//! Parses Gemini's stream of chunks.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_chat::{
    Block, CallOrigin, FaultKind, ModelEvent, Source, Stop, ToolCall, Usage, read_arguments,
};

use super::fault::RawError;
use crate::Limits;
use crate::accumulator::{self, Full, Gathered};
use crate::borrowed::{Few, First, Text, read};
use crate::parser::{Wire, failed};
use crate::scan::{self, Took};

/// A chunk, or Code Assist's envelope around one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEvent<'a> {
    #[serde(borrow)]
    response: Option<Box<RawChunk<'a>>>,
    #[serde(borrow)]
    candidates: Option<First<RawCandidate<'a>>>,
    prompt_feedback: Option<Box<RawFeedback>>,
    usage_metadata: Option<RawUsage>,
    error: Option<Box<RawError>>,
}

impl<'a> RawEvent<'a> {
    fn into_chunk(self) -> RawChunk<'a> {
        match self.response {
            Some(wrapped) => *wrapped,
            None => RawChunk {
                candidates: self.candidates,
                prompt_feedback: self.prompt_feedback,
                usage_metadata: self.usage_metadata,
            },
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawChunk<'a> {
    #[serde(borrow)]
    candidates: Option<First<RawCandidate<'a>>>,
    prompt_feedback: Option<Box<RawFeedback>>,
    usage_metadata: Option<RawUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCandidate<'a> {
    #[serde(borrow)]
    content: Option<RawContent<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    finish_message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RawContent<'a> {
    #[serde(borrow)]
    parts: Option<Few<RawPart<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPart<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Text<'a>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

// Fast path for the most frequent chunk: one text with its usage. It scans the needed members without parsing the
// others; any other chunk is deserialised normally.
impl<'a> RawChunk<'a> {
    fn scanned(data: &'a [u8]) -> Option<Self> {
        let (mut bare, mut wrapped) = (Self::default(), None);
        let end = scan::each(data, |key, rest| match key {
            b"response" => {
                let took = wrapped.insert(Self::default()).scan(rest)?;
                Some(Took::Bytes(took))
            }
            b"error" => scan::null(rest),
            _ => bare.member(key, rest),
        })?;
        (end == data.len()).then(|| wrapped.unwrap_or(bare))
    }

    fn scan(&mut self, chunk: &'a [u8]) -> Option<usize> {
        scan::each(chunk, |key, rest| self.member(key, rest))
    }

    fn member(&mut self, key: &[u8], rest: &'a [u8]) -> Option<Took> {
        match key {
            b"candidates" => {
                let mut candidate = RawCandidate::default();
                let took = scan::only(rest, |element| candidate.scan(element))?;
                self.candidates = Some(First(Some(candidate)));
                Some(Took::Bytes(took))
            }
            b"usageMetadata" => {
                let took = self.usage_metadata.insert(RawUsage::default()).scan(rest)?;
                Some(Took::Bytes(took))
            }
            b"promptFeedback" => scan::null(rest),
            _ => Some(Took::Unread),
        }
    }
}

impl<'a> RawCandidate<'a> {
    fn scan(&mut self, candidate: &'a [u8]) -> Option<usize> {
        scan::each(candidate, |key, rest| match key {
            b"content" => {
                let mut content = RawContent { parts: None };
                let took = content.scan(rest)?;
                self.content = Some(content);
                Some(Took::Bytes(took))
            }
            b"finishReason" => scan::text(rest, &mut self.finish_reason),
            b"finishMessage" => scan::null(rest),
            _ => Some(Took::Unread),
        })
    }
}

impl<'a> RawContent<'a> {
    fn scan(&mut self, content: &'a [u8]) -> Option<usize> {
        scan::each(content, |key, rest| match key {
            b"parts" => {
                let mut part = RawPart::default();
                let took = scan::only(rest, |element| part.scan(element))?;
                self.parts = Some(Few { first: Some(part), rest: Vec::new() });
                Some(Took::Bytes(took))
            }
            _ => Some(Took::Unread),
        })
    }
}

impl<'a> RawPart<'a> {
    fn scan(&mut self, part: &'a [u8]) -> Option<usize> {
        scan::each(part, |key, rest| match key {
            b"text" => scan::text(rest, &mut self.text),
            b"thought" if rest.starts_with(b"true") => {
                self.thought = Some(true);
                Some(Took::Bytes(4))
            }
            b"thoughtSignature" => scan::text(rest, &mut self.thought_signature),
            b"thought" | b"functionCall" => None,
            _ => Some(Took::Unread),
        })
    }
}

impl RawUsage {
    fn scan(&mut self, usage: &[u8]) -> Option<usize> {
        scan::each(usage, |key, rest| {
            let place = match key {
                b"promptTokenCount" => &mut self.prompt,
                b"cachedContentTokenCount" => &mut self.cached,
                b"candidatesTokenCount" => &mut self.candidates,
                b"thoughtsTokenCount" => &mut self.thoughts,
                b"toolUsePromptTokenCount" => &mut self.tool_use_prompt,
                _ => return Some(Took::Unread),
            };
            scan::number(rest, place)
        })
    }
}

#[derive(Debug, Deserialize)]
struct FunctionCall {
    id: Option<String>,
    #[serde(default)]
    name: String,
    args: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawFeedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct RawUsage {
    #[serde(rename = "promptTokenCount")]
    prompt: Option<u64>,
    #[serde(rename = "cachedContentTokenCount")]
    cached: Option<u64>,
    #[serde(rename = "candidatesTokenCount")]
    candidates: Option<u64>,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts: Option<u64>,
    #[serde(rename = "toolUsePromptTokenCount")]
    tool_use_prompt: Option<u64>,
}

impl RawUsage {
    fn read(&self) -> Usage {
        let prompt = self.prompt.unwrap_or(0);
        let thoughts = self.thoughts.unwrap_or(0);
        Usage {
            input_tokens: prompt.saturating_add(self.tool_use_prompt.unwrap_or(0)),
            output_tokens: self.candidates.unwrap_or(0).saturating_add(thoughts),
            cached_tokens: self.cached.unwrap_or(0),
            cache_write_tokens: 0,
            reasoning_tokens: thoughts,
        }
    }
}

/// Parses one answer of a model in the format of Gemini, event by event.
#[derive(Debug)]
pub(crate) struct GeminiWire {
    gathered: Gathered,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    /// Why the model stopped. More chunks may follow, such as the final usage; the end of the stream ends the answer.
    stop: Option<Stop>,
}

type Events = Vec<ModelEvent>;

impl GeminiWire {
    pub(crate) fn new(_source: &Source, limits: Limits) -> Self {
        Self { gathered: Gathered::new(limits), blocks: Vec::new(), usage: None, stop: None }
    }

    fn read(&mut self, mut event: RawEvent<'_>, out: &mut Events) -> Result<(), Full> {
        if let Some(error) = event.error.take() {
            out.push(ModelEvent::Failed(Box::new(error.into_fault())));
            return Ok(());
        }
        self.chunk(event.into_chunk(), out)
    }

    fn chunk(&mut self, chunk: RawChunk<'_>, out: &mut Events) -> Result<(), Full> {
        let used = chunk.usage_metadata.map(|usage| usage.read());
        if let Some(usage) = used.filter(|used| self.usage != Some(*used)) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
        // Only one candidate is requested.
        if let Some(candidate) = chunk.candidates.and_then(|candidates| candidates.0) {
            let parts = candidate.content.and_then(|content| content.parts);
            if let Some(Few { first, rest }) = parts {
                for part in first.into_iter().chain(rest) {
                    self.part(part, out)?;
                }
            }
            if let Some(reason) = candidate.finish_reason.filled() {
                match stop_of(reason) {
                    Ok(stop) => self.stop = Some(stop),
                    Err(kind) => out.push(stopped(kind, reason, candidate.finish_message)),
                }
            }
        }
        let feedback = chunk.prompt_feedback;
        let blocked = feedback
            .and_then(|feedback| Some((feedback.block_reason?, feedback.block_reason_message)));
        if let Some((reason, message)) = blocked {
            out.push(stopped(FaultKind::Refused, &reason, message));
        }
        Ok(())
    }

    fn part(&mut self, part: RawPart<'_>, out: &mut Events) -> Result<(), Full> {
        let signature = part.thought_signature.filled();
        if let Some(call) = part.function_call {
            return match serde_json::from_str(call.get()) {
                Ok(call) => self.call(call, signature, out),
                Err(error) => {
                    out.push(unreadable(&error));
                    Ok(())
                }
            };
        }
        let text = part.text.into_cow();
        let is_thought = part.thought == Some(true);
        self.gathered.take(text.len())?;
        let opaque = match signature {
            // Thinking is never sent back, so its signature is not needed.
            Some(signature) if !is_thought => {
                self.gathered.take(signature.len())?;
                Some(json!({"thoughtSignature": signature}))
            }
            Some(_) | None => None,
        };
        if text.is_empty() && opaque.is_none() {
            return Ok(());
        }
        match self.blocks.last_mut() {
            Some(Block::Text { text: known, opaque: None }) if !is_thought && opaque.is_none() => {
                known.push_str(&text);
            }
            Some(Block::Reasoning { text: known, .. }) if is_thought => known.push_str(&text),
            _ => {
                self.gathered.take_block()?;
                let text = text.clone().into_owned();
                let block = if is_thought {
                    Block::Reasoning { text, opaque }
                } else {
                    Block::Text { text, opaque }
                };
                self.blocks.push(block);
            }
        }
        if !text.is_empty() {
            let text = text.into_owned();
            out.push(if is_thought { ModelEvent::Thinking(text) } else { ModelEvent::Text(text) });
        }
        Ok(())
    }

    /// Processes a function call; calls are never split over chunks.
    fn call(
        &mut self,
        raw: FunctionCall,
        signature: Option<&str>,
        out: &mut Events,
    ) -> Result<(), Full> {
        let index = self.gathered.take_call()?;
        self.gathered.take_block()?;
        let FunctionCall { id, name, args } = raw;
        let args = args.filter(|args| !args.is_null()).unwrap_or_else(|| json!({}));
        let delta = args.to_string();
        let length = id.as_ref().map_or(0, String::len) + name.len() + delta.len();
        self.gathered.take(length + signature.map_or(0, str::len))?;
        let (arguments, unreadable) = read_arguments(args);
        out.push(ModelEvent::CallBegun { index, name: name.clone() });
        out.push(ModelEvent::CallArguments { index, delta });
        self.blocks.push(Block::ToolCall(Box::new(ToolCall {
            id: String::new(),
            name,
            arguments,
            unreadable,
            origin: Some(CallOrigin {
                id: id.filter(|id| !id.is_empty()),
                ..CallOrigin::default()
            }),
            opaque: signature.map(|signature| json!({"thoughtSignature": signature})),
        })));
        Ok(())
    }
}

/// Maps the finish reason; an error means that there is no usable answer. Gemini has no separate reason for calls.
fn stop_of(reason: &str) -> Result<Stop, FaultKind> {
    match reason {
        "MAX_TOKENS" => Ok(Stop::Length),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "NO_IMAGE" => Ok(Stop::Refused),
        image if image.starts_with("IMAGE_") => Ok(Stop::Refused),
        "MALFORMED_FUNCTION_CALL" => Err(FaultKind::MalformedCall),
        "UNEXPECTED_TOOL_CALL" => Err(FaultKind::UnexpectedCall),
        "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" | "OTHER" => Err(FaultKind::Provider),
        _ => Ok(Stop::End),
    }
}

fn stopped(kind: FaultKind, reason: &str, message: Option<String>) -> ModelEvent {
    let text = match message {
        Some(message) if !message.is_empty() => {
            format!("the provider stopped ({reason}): {message}")
        }
        _ => format!("the provider stopped: {reason}"),
    };
    let mut event = failed(kind, text);
    if let ModelEvent::Failed(fault) = &mut event {
        fault.code = Some(reason.to_owned());
    }
    event
}

fn unreadable(error: &serde_json::Error) -> ModelEvent {
    let text = format!("an event of the stream cannot be read: {error}");
    failed(FaultKind::Unreadable, text)
}

impl Wire for GeminiWire {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) {
        if data == b"[DONE]" {
            return;
        }
        let taken = match RawChunk::scanned(data) {
            Some(chunk) => Ok(self.chunk(chunk, out)),
            None => read(data).map(|event| self.read(event, out)),
        };
        match taken {
            Ok(Ok(())) => {}
            Ok(Err(full)) => out.push(full.into()),
            Err(error) => out.push(unreadable(&error)),
        }
    }

    fn end(&mut self, out: &mut Events) {
        match self.stop {
            Some(stop) => {
                let reply = accumulator::reply(std::mem::take(&mut self.blocks), stop, self.usage);
                out.push(ModelEvent::Finished(Box::new(reply)));
            }
            None => {
                out.push(failed(FaultKind::Interrupted, "the stream ended before the answer did"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_chunk_that_is_scanned_is_the_one_that_is_read() {
        let check = |data: &str, is_scanned: bool| {
            let scanned = RawChunk::scanned(data.as_bytes());
            assert_eq!(scanned.is_some(), is_scanned, "{data}");
            if let Some(scanned) = scanned {
                let read: RawEvent<'_> = read(data.as_bytes()).unwrap();
                assert_eq!(format!("{scanned:?}"), format!("{:?}", read.into_chunk()), "{data}");
            }
        };
        let chunk = |candidate: &str| {
            format!(
                r#"{{"candidates" : [ {candidate} ],"usageMetadata":{{"promptTokenCount":9,"totalTokenCount":12,
                "thoughtsTokenCount":3,"promptTokensDetails":[{{"modality":"TEXT","tokenCount":9}}]}},"error":null}}"#
            )
        };
        for candidate in [
            r#"{"content":{"parts":[{"text":"Grüße"}],"role":"model"},"index":0}"#,
            r#"{"content":{"parts":[{"text":"a\"b","thought":true,"thoughtSignature":"x"}]},"finishReason":"STOP"}"#,
            r#"{"content":{"parts":[{"inlineData":{"data":"eA=="}}]},"finishMessage":null}"#,
            r#"{"content":{"role":"model"}}"#,
        ] {
            check(&chunk(candidate), true);
            check(&format!(r#"{{"response":{},"traceId":"a"}}"#, chunk(candidate)), true);
            check(&format!("{} x", chunk(candidate)), false);
        }
        for candidate in [
            r#"{"content":{"parts":[{"text":"a"},{"text":"b"}]}}"#,
            r#"{"content":{"parts":[{"functionCall":{"name":"find"}}]}}"#,
            r#"{"content":null}"#,
            r#"{"finishReason":"OTHER","finishMessage":"no"}"#,
            "{}, {}",
        ] {
            check(&chunk(candidate), false);
        }
        check(r#"{"error":{"code":429}}"#, false);
        check(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, false);
        check(r#"{"usageMetadata":{"promptTokenCount":1.5}}"#, false);
    }
}
