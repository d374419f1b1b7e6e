//! Parses Anthropic's event stream.

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_chat::{
    Block, CallOrigin, FaultKind, ModelEvent, ModelFault, Reply, Source, Stop, ToolCall, Usage,
};

use super::fault::RawError;
use crate::Limits;
use crate::accumulator::{self, Full, Gathered};
use crate::borrowed::{Text, read};
use crate::parser::{Wire, failed};
use crate::scan::{self, Took};

/// All events as one struct; members that an event does not have are `None`.
#[derive(Debug, Deserialize)]
struct RawEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    index: Option<usize>,
    #[serde(borrow)]
    delta: Option<RawDelta<'a>>,
    content_block: Option<Box<RawBlock>>,
    message: Option<Box<RawMessage>>,
    usage: Option<Box<RawUsage>>,
    error: Option<Box<RawError>>,
    request_id: Option<String>,
}

/// The most frequent event, a content delta, without the members of the others.
#[derive(Debug, Deserialize)]
struct RawGrowth<'a> {
    index: Option<usize>,
    #[serde(borrow)]
    delta: Option<RawDelta<'a>>,
}

impl<'a> RawGrowth<'a> {
    fn read(data: &'a [u8]) -> serde_json::Result<Self> {
        Self::scanned(data).map_or_else(|| read(data), Ok)
    }

    /// Parses a delta with the scanner, without parsing the other members.
    fn scanned(data: &'a [u8]) -> Option<Self> {
        let mut event = Self { index: None, delta: None };
        let end = scan::each(data, |key, rest| match key {
            b"index" => scan::number(rest, &mut event.index),
            b"delta" => {
                let took = event.delta.insert(RawDelta::default()).scan(rest)?;
                Some(Took::Bytes(took))
            }
            _ => Some(Took::Unread),
        })?;
        (end == data.len()).then_some(event)
    }
}

#[derive(Debug, Default, Deserialize)]
struct RawDelta<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

impl<'a> RawDelta<'a> {
    fn scan(&mut self, delta: &'a [u8]) -> Option<usize> {
        scan::each(delta, |key, rest| {
            let place = match key {
                b"text" => &mut self.text,
                b"partial_json" => &mut self.partial_json,
                b"thinking" => &mut self.thinking,
                b"signature" => &mut self.signature,
                _ => return Some(Took::Unread),
            };
            scan::text(rest, place)
        })
    }
}

#[derive(Debug, Deserialize)]
struct RawBlock {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    name: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    input: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct RawMessage {
    usage: Option<RawUsage>,
}

#[derive(Debug, Default, Deserialize)]
struct RawUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<RawDetails>,
}

#[derive(Debug, Deserialize)]
struct RawDetails {
    thinking_tokens: Option<u64>,
}

/// A block in progress.
#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        index: usize,
        id: Option<String>,
        name: String,
        json: String,
        is_whole: bool,
    },
    /// An unknown block, or one of a tool that the provider runs itself.
    Ignored,
}

/// Parses one answer of a model in the format of Anthropic Messages, event by event.
#[derive(Debug)]
pub(crate) struct MessagesWire {
    gathered: Gathered,
    /// Blocks in the order in which they began, with the provider's index.
    blocks: Vec<(usize, Growing)>,
    usage: RawUsage,
    stop: Option<Stop>,
}

type Events = Vec<ModelEvent>;

impl MessagesWire {
    pub(crate) fn new(_source: &Source, limits: Limits) -> Self {
        let gathered = Gathered::new(limits);
        Self { gathered, blocks: Vec::new(), usage: RawUsage::default(), stop: None }
    }

    fn read(&mut self, name: &[u8], event: RawEvent<'_>, out: &mut Events) -> Result<(), Full> {
        let kind = if is_unnamed(name) { event.kind.as_str().as_bytes() } else { name };
        match kind {
            b"content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.grow(event.index.unwrap_or(0), &delta, out)?;
                }
            }
            b"content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index.unwrap_or(0), *block, out)?;
                }
            }
            b"content_block_stop" => self.close(event.index.unwrap_or(0)),
            b"message_start" => {
                if let Some(usage) = event.message.and_then(|message| message.usage) {
                    self.count(usage, out);
                }
            }
            b"message_delta" => {
                let reason = event.delta.map(|delta| delta.stop_reason).unwrap_or_default();
                if let Some(reason) = reason.filled() {
                    self.stop = Some(stop_of(reason));
                }
                if let Some(usage) = event.usage {
                    self.count(*usage, out);
                }
            }
            b"message_stop" => {
                let reply = self.reply();
                out.push(ModelEvent::Finished(Box::new(reply)));
            }
            b"error" => {
                let fault = match event.error {
                    Some(error) => error.into_fault(),
                    None => ModelFault::new(
                        FaultKind::Provider,
                        "the provider sent an error without a message",
                    ),
                };
                let fault = ModelFault { request_id: event.request_id, ..fault };
                out.push(ModelEvent::Failed(Box::new(fault)));
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, at: usize, raw: RawBlock, out: &mut Events) -> Result<(), Full> {
        self.gathered.take_block()?;
        let block = match raw.kind.as_str() {
            "text" => Growing::Text(String::new()),
            "thinking" => Growing::Thinking { text: String::new(), signature: String::new() },
            "redacted_thinking" => {
                let data = raw.data.unwrap_or_default();
                self.gathered.take(data.len())?;
                Growing::Redacted(data)
            }
            "tool_use" => {
                let index = self.gathered.take_call()?;
                let name = raw.name.unwrap_or_default();
                let id = raw.id;
                self.gathered.take(name.len() + id.as_ref().map_or(0, String::len))?;
                out.push(ModelEvent::CallBegun { index, name: name.clone() });
                // The input usually comes in deltas; some servers send it here as a whole.
                let given =
                    raw.input.filter(|input| input.as_object().is_some_and(|o| !o.is_empty()));
                let json = given.map(|input| input.to_string()).unwrap_or_default();
                self.gathered.take(json.len())?;
                if !json.is_empty() {
                    out.push(ModelEvent::CallArguments { index, delta: json.clone() });
                }
                Growing::Call { index, id, name, json, is_whole: false }
            }
            _ => Growing::Ignored,
        };
        self.blocks.push((at, block));
        let first = RawDelta {
            text: raw.text.into(),
            thinking: raw.thinking.into(),
            signature: raw.signature.into(),
            ..RawDelta::default()
        };
        self.grow(at, &first, out)
    }

    /// Appends a delta to its block. A delta that does not fit the block is of an unknown kind and is ignored.
    fn grow(&mut self, at: usize, delta: &RawDelta<'_>, out: &mut Events) -> Result<(), Full> {
        let Some(block) = find(&mut self.blocks, at) else { return Ok(()) };
        match block {
            Growing::Text(text) => {
                if let Some(more) = delta.text.filled() {
                    self.gathered.take(more.len())?;
                    text.push_str(more);
                    out.push(ModelEvent::Text(more.to_owned()));
                }
            }
            Growing::Call { index, json, is_whole: false, .. } => {
                if let Some(more) = delta.partial_json.filled() {
                    self.gathered.take(more.len())?;
                    json.push_str(more);
                    out.push(ModelEvent::CallArguments { index: *index, delta: more.to_owned() });
                }
            }
            Growing::Thinking { text, signature } => {
                if let Some(more) = delta.thinking.filled() {
                    self.gathered.take(more.len())?;
                    text.push_str(more);
                    out.push(ModelEvent::Thinking(more.to_owned()));
                }
                if let Some(more) = delta.signature.filled() {
                    self.gathered.take(more.len())?;
                    signature.push_str(more);
                }
            }
            Growing::Call { .. } | Growing::Redacted(_) | Growing::Ignored => {}
        }
        Ok(())
    }

    fn close(&mut self, at: usize) {
        if let Some(Growing::Call { is_whole, .. }) = find(&mut self.blocks, at) {
            *is_whole = true;
        }
    }

    /// Usage counts are totals: a later count replaces an earlier one.
    fn count(&mut self, new: RawUsage, out: &mut Events) {
        let usage = &mut self.usage;
        usage.input_tokens = new.input_tokens.or(usage.input_tokens);
        usage.cache_creation_input_tokens =
            new.cache_creation_input_tokens.or(usage.cache_creation_input_tokens);
        usage.cache_read_input_tokens =
            new.cache_read_input_tokens.or(usage.cache_read_input_tokens);
        usage.output_tokens = new.output_tokens.or(usage.output_tokens);
        usage.output_tokens_details =
            new.output_tokens_details.or(usage.output_tokens_details.take());
        out.extend(self.used().map(ModelEvent::Usage));
    }

    fn used(&self) -> Option<Usage> {
        let usage = &self.usage;
        usage.input_tokens.or(usage.output_tokens)?;
        let written = usage.cache_creation_input_tokens.unwrap_or(0);
        let cached = usage.cache_read_input_tokens.unwrap_or(0);
        let fresh = usage.input_tokens.unwrap_or(0);
        let details = usage.output_tokens_details.as_ref();
        Some(Usage {
            input_tokens: fresh.saturating_add(written).saturating_add(cached),
            output_tokens: usage.output_tokens.unwrap_or(0),
            cached_tokens: cached,
            cache_write_tokens: written,
            reasoning_tokens: details.and_then(|details| details.thinking_tokens).unwrap_or(0),
        })
    }

    fn reply(&mut self) -> Reply {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.sort_by_key(|(at, _)| *at);
        let said = self.stop.unwrap_or_default();
        let content = blocks.into_iter().filter_map(|(_, block)| finished(block, said));
        accumulator::reply(content.collect(), said, self.used())
    }
}

/// The finished block; `None` for an empty one, and for a call that may be incomplete.
fn finished(block: Growing, stop: Stop) -> Option<Block> {
    match block {
        Growing::Text(text) => (!text.is_empty()).then(|| Block::text(text)),
        Growing::Thinking { text, signature } if signature.is_empty() => {
            (!text.is_empty()).then_some(Block::Reasoning { text, opaque: None })
        }
        Growing::Thinking { text, signature } => {
            Some(Block::Reasoning { text, opaque: Some(json!({"signature": signature})) })
        }
        Growing::Redacted(data) => {
            Some(Block::Reasoning { text: String::new(), opaque: Some(json!({"data": data})) })
        }
        Growing::Call { is_whole: false, .. } | Growing::Ignored => None,
        Growing::Call { id, name, json, .. } => {
            let (arguments, unreadable) = accumulator::arguments(&json);
            // An empty input may mean that the call was cut before its first argument, so it is dropped too.
            let is_cut = stop == Stop::Length && (unreadable.is_some() || json.is_empty());
            let origin = Some(CallOrigin { id, ..CallOrigin::default() });
            let call =
                ToolCall { id: String::new(), name, arguments, unreadable, origin, opaque: None };
            (!is_cut).then(|| Block::ToolCall(Box::new(call)))
        }
    }
}

fn stop_of(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        "pause_turn" => Stop::Paused,
        _ => Stop::End,
    }
}

/// The block with this index; deltas are nearly always for the last one.
fn find(blocks: &mut [(usize, Growing)], at: usize) -> Option<&mut Growing> {
    blocks.iter_mut().rev().find(|(known, _)| *known == at).map(|(_, block)| block)
}

fn is_unnamed(name: &[u8]) -> bool {
    matches!(name, b"" | b"message")
}

/// Whether an event is a delta. For unnamed events, the `type` at the beginning of the data decides.
fn is_growth(name: &[u8], data: &[u8]) -> bool {
    name == b"content_block_delta"
        || is_unnamed(name) && data.starts_with(br#"{"type":"content_block_delta""#)
}

fn is_known(name: &[u8]) -> bool {
    is_unnamed(name)
        || matches!(
            name,
            b"content_block_delta"
                | b"content_block_start"
                | b"content_block_stop"
                | b"message_start"
                | b"message_delta"
                | b"message_stop"
                | b"error"
        )
}

impl Wire for MessagesWire {
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Events) {
        if !is_known(name) {
            return;
        }
        let taken = if is_growth(name, data) {
            RawGrowth::read(data).map(|event| match &event.delta {
                Some(delta) => self.grow(event.index.unwrap_or(0), delta, out),
                None => Ok(()),
            })
        } else {
            read::<RawEvent<'_>>(data).map(|event| self.read(name, event, out))
        };
        match taken {
            Ok(Ok(())) => {}
            Ok(Err(full)) => out.push(full.into()),
            Err(error) => {
                let text = format!("an event of the stream cannot be read: {error}");
                out.push(failed(FaultKind::Unreadable, text));
            }
        }
    }

    fn end(&mut self, out: &mut Events) {
        out.push(failed(FaultKind::Interrupted, "the stream ended before the answer did"));
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_delta_that_is_scanned_is_the_one_that_is_read() {
        let check = |data: &str, is_scanned: bool| {
            let scanned = RawGrowth::scanned(data.as_bytes());
            assert_eq!(scanned.is_some(), is_scanned, "{data}");
            if let Some(scanned) = scanned {
                let read: RawGrowth<'_> = read(data.as_bytes()).unwrap();
                assert_eq!(format!("{scanned:?}"), format!("{read:?}"), "{data}");
            }
        };
        let event = |delta: &str| {
            format!(r#"{{"type":"content_block_delta","index":12,"delta":{delta},"p":[{{}}]}}"#)
        };
        for delta in [
            r#"{"type":"text_delta","text":"Hello, wörld"}"#,
            r#"{"type":"text_delta","text":"a\n\"\u00e9"}"#,
            r#"{ "partial_json" : "" , "thinking":null,"signature":"x"}"#,
            "{}",
        ] {
            check(&event(delta), true);
        }
        for delta in [r#"{"text":7}"#, "null", r#"{"text":"a"#, r#"{"text":"\x"}"#] {
            check(&event(delta), false);
        }
        check(r#"{"index":-1,"delta":{}}"#, false);
        check(r#"{"index":0,"delta":{}} x"#, false);
    }
}
