//! The stream of Gemini, one chunk after the other.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_chat::{
    Block, CallOrigin, FaultKind, ModelEvent, Reply, Source, Stop, ToolCall, Usage,
};

use super::fault::RawError;
use crate::Limits;
use crate::borrowed::{Few, Text, read};
use crate::gather::{Full, Gathered};
use crate::parser::{Wire, failed};

/// A chunk as it is, or, from Code Assist, in an envelope.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEvent<'a> {
    #[serde(borrow)]
    response: Option<Box<RawChunk<'a>>>,
    #[serde(borrow)]
    candidates: Option<Few<RawCandidate<'a>>>,
    prompt_feedback: Option<Box<RawFeedback>>,
    usage_metadata: Option<RawUsage>,
    error: Option<Box<RawError>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawChunk<'a> {
    #[serde(borrow)]
    candidates: Option<Few<RawCandidate<'a>>>,
    prompt_feedback: Option<Box<RawFeedback>>,
    usage_metadata: Option<RawUsage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCandidate<'a> {
    #[serde(borrow)]
    content: Option<RawContent<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    finish_message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RawContent<'a> {
    #[serde(borrow)]
    parts: Option<Few<RawPart<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPart<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
    function_call: Option<Box<RawCall>>,
}

#[derive(Debug, Deserialize)]
struct RawCall {
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

#[derive(Debug, Deserialize)]
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

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct GeminiWire {
    gathered: Gathered,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    /// Why the model stopped. More may follow, such as the last count; the end of the stream ends the answer.
    stop: Option<Stop>,
}

type Events = Vec<ModelEvent>;

impl GeminiWire {
    pub(crate) fn new(_source: &Source, limits: Limits) -> Self {
        Self { gathered: Gathered::new(limits), blocks: Vec::new(), usage: None, stop: None }
    }

    fn read(&mut self, event: RawEvent<'_>, out: &mut Events) -> Result<(), Full> {
        if let Some(error) = event.error {
            out.push(ModelEvent::Failed(Box::new(error.into_fault())));
            return Ok(());
        }
        let chunk = match event.response {
            Some(wrapped) => *wrapped,
            None => RawChunk {
                candidates: event.candidates,
                prompt_feedback: event.prompt_feedback,
                usage_metadata: event.usage_metadata,
            },
        };
        let used = chunk.usage_metadata.map(|usage| usage.read());
        if let Some(usage) = used.filter(|used| self.usage != Some(*used)) {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
        // Only one answer is asked for.
        if let Some(candidate) = chunk.candidates.and_then(|all| all.first) {
            let parts = candidate.content.and_then(|content| content.parts);
            if let Some(Few { first, rest }) = parts {
                for part in first.into_iter().chain(rest) {
                    self.part(part, out)?;
                }
            }
            if let Some(reason) = candidate.finish_reason {
                match stop_of(&reason.0) {
                    Ok(stop) => self.stop = Some(stop),
                    Err(kind) => out.push(stopped(kind, &reason.0, candidate.finish_message)),
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
        let signature = part.thought_signature.map(|signature| signature.0);
        if let Some(call) = part.function_call {
            return self.call(*call, signature.as_deref(), out);
        }
        let text = part.text.map(|text| text.0).unwrap_or_default();
        let is_thought = part.thought == Some(true);
        self.gathered.take(text.len())?;
        let opaque = match signature {
            // Thoughts are never given back.
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

    /// Calls come whole.
    fn call(
        &mut self,
        raw: RawCall,
        signature: Option<&str>,
        out: &mut Events,
    ) -> Result<(), Full> {
        let index = self.gathered.take_call()?;
        self.gathered.take_block()?;
        let RawCall { id, name, args } = raw;
        let args = args.filter(|args| !args.is_null()).unwrap_or_else(|| Map::new().into());
        let delta = args.to_string();
        let length = id.as_ref().map_or(0, String::len) + name.len() + delta.len();
        self.gathered.take(length + signature.map_or(0, str::len))?;
        let (arguments, unreadable) = match args {
            Value::Object(_) => (args, None),
            _ => (Map::new().into(), Some(delta.clone())),
        };
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

    fn reply(&mut self, stop: Stop) -> Reply {
        let mut content = std::mem::take(&mut self.blocks);
        if stop == Stop::Refused {
            // What a filter has cut off is not to be run.
            content.retain(|block| !matches!(block, Block::ToolCall(_)));
        }
        let mut reply = Reply { content, stop, usage: self.usage, ..Reply::default() };
        if stop == Stop::End && reply.calls().next().is_some() {
            reply.stop = Stop::ToolCalls;
        }
        reply
    }
}

/// Why it stopped, or that this is no answer. There is no word for calls.
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

impl Wire for GeminiWire {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) {
        if data == b"[DONE]" {
            return;
        }
        match read::<RawEvent<'_>>(data) {
            Ok(event) => {
                if let Err(full) = self.read(event, out) {
                    out.push(full.into());
                }
            }
            Err(error) => {
                let text = format!("an event of the stream cannot be read: {error}");
                out.push(failed(FaultKind::Unreadable, text));
            }
        }
    }

    fn end(&mut self, out: &mut Events) {
        match self.stop {
            Some(stop) => {
                let reply = self.reply(stop);
                out.push(ModelEvent::Finished(Box::new(reply)));
            }
            None => {
                out.push(failed(FaultKind::Interrupted, "the stream ended before the answer did"));
            }
        }
    }
}
