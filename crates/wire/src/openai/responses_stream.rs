//! Parses the stream of OpenAI Responses.
//!
//! An answer is a list of items. Each item arrives twice: as deltas, which are passed on for display, and complete when
//! it is done, which is what the reply contains. Unknown events are skipped without parsing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_chat::{Block, CallOrigin, FaultKind, ModelEvent, Source, Stop, ToolCall, Usage};

use super::faults;
use crate::accumulator::{self, Gathered};
use crate::borrowed::{Text, read};
use crate::parser::{Limits, Wire, failed};
use crate::scan::{self, Took};

/// The members of a reasoning item that are sent back.
const REASONING_MEMBERS: [&str; 5] = ["type", "id", "summary", "content", "encrypted_content"];

/// Parses one answer of a model in the format of OpenAI Responses, event by event.
#[derive(Debug)]
pub(crate) struct ResponsesWire {
    gathered: Gathered,
    /// Items by their index in the answer.
    items: BTreeMap<u64, Item>,
}

/// An item in progress.
#[derive(Debug, Default)]
struct Item {
    /// The concatenated deltas.
    gathered: String,
    is_thought: bool,
    /// Bytes counted for the item.
    counted: usize,
    /// The index of its call, if it is one.
    call: Option<usize>,
    done: Option<Done>,
}

/// A complete item.
#[derive(Debug)]
enum Done {
    Block(Block),
    Call(Box<ToolCall>, Ending),
    /// An item of another kind, which is ignored.
    Other,
}

/// The status of a complete item.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Whole,
    /// No status given.
    Unsaid,
    Cut,
}

/// The events that are processed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Thought,
    NextThought,
    Arguments,
    Begun,
    Done,
    Completed,
    Incomplete,
    Failed,
    Other,
}

impl Kind {
    fn of(name: &[u8]) -> Self {
        match name {
            b"response.output_text.delta" | b"response.refusal.delta" => Self::Text,
            b"response.reasoning_summary_text.delta" | b"response.reasoning_text.delta" => {
                Self::Thought
            }
            b"response.reasoning_summary_part.added" => Self::NextThought,
            b"response.function_call_arguments.delta" => Self::Arguments,
            b"response.output_item.added" => Self::Begun,
            b"response.output_item.done" => Self::Done,
            b"response.completed" => Self::Completed,
            b"response.incomplete" => Self::Incomplete,
            b"response.failed" | b"error" => Self::Failed,
            _ => Self::Other,
        }
    }

    /// The event type from the data, for servers that send no event names; they write the type first.
    fn within(data: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow, default, rename = "type")]
            kind: Text<'a>,
        }
        if let Some(rest) = data.strip_prefix(br#"{"type":""#)
            && let Some(end) = memchr::memchr(b'"', rest)
        {
            return Self::of(rest.get(..end).unwrap_or_default());
        }
        match read::<Named<'_>>(data) {
            Ok(named) => Self::of(named.kind.as_str().as_bytes()),
            Err(_) => Self::Other,
        }
    }
}

#[derive(Deserialize)]
struct DeltaEvent<'a> {
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    summary_index: Option<u64>,
    #[serde(borrow, default)]
    delta: Text<'a>,
}

impl<'a> DeltaEvent<'a> {
    fn read(data: &'a [u8]) -> Option<Self> {
        Self::scanned(data).or_else(|| serde_json::from_slice(data).ok())
    }

    /// Parses a delta with the scanner, without parsing the other members.
    fn scanned(data: &'a [u8]) -> Option<Self> {
        let (mut output_index, mut delta) = (None, None);
        scan::each(data, |key, rest| {
            let place = match key {
                b"output_index" => &mut output_index,
                b"delta" => &mut delta,
                _ => return Some(Took::Unread),
            };
            let value = scan::value(rest)?;
            *place = Some(value);
            let has_both = output_index.is_some() && delta.is_some();
            Some(if has_both { Took::Enough } else { Took::Bytes(value.len()) })
        })?;
        let index = std::str::from_utf8(output_index?).ok()?.parse().ok()?;
        let delta = Text::written(delta?)?;
        Some(Self { output_index: Some(index), summary_index: None, delta })
    }
}

#[derive(Deserialize)]
struct ItemEvent<'a> {
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize)]
struct RawItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    call_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default)]
    status: Text<'a>,
    #[serde(borrow, default)]
    phase: Text<'a>,
    #[serde(borrow, default)]
    content: Option<Vec<RawPart<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<RawPart<'a>>>,
}

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
}

#[derive(Deserialize)]
struct LastEvent<'a> {
    #[serde(borrow)]
    response: RawResponse<'a>,
}

#[derive(Deserialize)]
struct RawResponse<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<Details<'a>>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
}

impl Wire for ResponsesWire {
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Vec<ModelEvent>) {
        let kind = match name {
            b"" | b"message" => Kind::within(data),
            name => Kind::of(name),
        };
        let read = match kind {
            Kind::Other => Ok(()),
            Kind::Text | Kind::Thought | Kind::Arguments => self.delta(kind, data, out),
            Kind::NextThought => self.next_thought(data, out),
            Kind::Begun => self.begun(data, out),
            Kind::Done => self.done(data, out),
            Kind::Completed | Kind::Incomplete => self.last(kind, data, out),
            Kind::Failed => Err(faults::in_stream(data)),
        };
        out.extend(read.err());
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        let text = "the stream ended before the answer did";
        out.push(failed(FaultKind::Interrupted, text));
    }
}

impl ResponsesWire {
    pub(crate) fn new(_source: &Source, limits: Limits) -> Self {
        Self { gathered: Gathered::new(limits), items: BTreeMap::new() }
    }

    /// The item with this index; without an index, the last one.
    fn item(&mut self, index: Option<u64>) -> Result<(&mut Gathered, &mut Item), ModelEvent> {
        let last = || self.items.last_key_value().map_or(0, |(index, _)| *index);
        let index = index.unwrap_or_else(last);
        if !self.items.contains_key(&index) {
            self.gathered.take_block()?;
        }
        Ok((&mut self.gathered, self.items.entry(index).or_default()))
    }

    fn delta(
        &mut self,
        kind: Kind,
        data: &[u8],
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelEvent> {
        // An unreadable delta is ignored: the complete item follows.
        let Some(event) = DeltaEvent::read(data) else { return Ok(()) };
        let Some(delta) = event.delta.filled() else { return Ok(()) };
        let (gathered, item) = self.item(event.output_index)?;
        gathered.take(delta.len())?;
        item.counted += delta.len();
        item.gathered.push_str(delta);
        let delta = delta.to_owned();
        match kind {
            Kind::Thought => {
                item.is_thought = true;
                out.push(ModelEvent::Thinking(delta));
            }
            Kind::Arguments => {
                out.extend(item.call.map(|index| ModelEvent::CallArguments { index, delta }));
            }
            _ => out.push(ModelEvent::Text(delta)),
        }
        Ok(())
    }

    /// Inserts a blank line between paragraphs of reasoning, because deltas do not contain it.
    fn next_thought(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelEvent> {
        let Ok(event) = read::<DeltaEvent<'_>>(data) else { return Ok(()) };
        let (gathered, item) = self.item(event.output_index)?;
        if event.summary_index.unwrap_or(0) > 0 && !item.gathered.is_empty() {
            let space = "\n\n";
            gathered.take(space.len())?;
            item.counted += space.len();
            item.gathered.push_str(space);
            out.push(ModelEvent::Thinking(space.to_owned()));
        }
        Ok(())
    }

    fn begun(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelEvent> {
        let Ok(event) = read::<ItemEvent<'_>>(data) else { return Ok(()) };
        let Ok(raw) = serde_json::from_str::<RawItem<'_>>(event.item.get()) else { return Ok(()) };
        let next = || self.items.last_key_value().map_or(0, |(index, _)| index.saturating_add(1));
        let index = event.output_index.unwrap_or_else(next);
        let (gathered, item) = self.item(Some(index))?;
        if raw.kind.as_str() == "function_call" && item.call.is_none() {
            begin_call(gathered, item, raw.name.as_str(), out)?;
        }
        Ok(())
    }

    fn done(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelEvent> {
        let event: ItemEvent<'_> = read(data).map_err(|e| unreadable(&e))?;
        self.settle(event.output_index, event.item, out)
    }

    /// Stores a complete item, and emits what its deltas did not.
    fn settle(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelEvent> {
        let (gathered, item) = self.item(index)?;
        gathered.give_back(std::mem::take(&mut item.counted));
        let text = raw.get();
        let raw: RawItem<'_> = serde_json::from_str(text).map_err(|e| unreadable(&e))?;
        let (done, size) = match raw.kind.as_str() {
            "message" => message(item, &raw, out),
            "reasoning" => thought(item, &raw, text, out),
            "function_call" => {
                if item.call.is_none() {
                    begin_call(gathered, item, raw.name.as_str(), out)?;
                }
                call(item, &raw, out)
            }
            _ => (Done::Other, 0),
        };
        item.gathered = String::new();
        item.counted = size;
        item.done = Some(done);
        Ok(gathered.take(size)?)
    }

    fn last(
        &mut self,
        kind: Kind,
        data: &[u8],
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelEvent> {
        let event: LastEvent<'_> = read(data).map_err(|e| unreadable(&e))?;
        let response = event.response;
        // Some servers send the items only in the last event.
        if self.items.values().all(|item| item.done.is_none()) {
            for (index, raw) in (0..).zip(response.output.unwrap_or_default()) {
                self.settle(Some(index), raw, out)?;
            }
        }
        let is_cut = matches!(kind, Kind::Incomplete);
        let content = self.content(is_cut)?;
        let reason = response.incomplete_details.map(|details| details.reason).unwrap_or_default();
        let stop = match (is_cut, reason.as_str()) {
            (true, "content_filter") => Stop::Refused,
            (true, _) => Stop::Length,
            (false, _) => Stop::End,
        };
        let usage = response.usage.and_then(usage);
        out.extend(usage.map(ModelEvent::Usage));
        let reply = accumulator::reply(content, stop, usage);
        out.push(ModelEvent::Finished(Box::new(reply)));
        Ok(())
    }

    /// All blocks. Calls of a cut answer are dropped, because their arguments may be valid JSON and yet incomplete.
    fn content(&mut self, is_cut: bool) -> Result<Vec<Block>, ModelEvent> {
        let mut blocks = Vec::with_capacity(self.items.len());
        for item in std::mem::take(&mut self.items).into_values() {
            match item.done {
                Some(Done::Block(block)) => blocks.push(block),
                Some(Done::Call(call, ending)) => {
                    let is_kept = match ending {
                        Ending::Whole => !is_cut || call.unreadable.is_none(),
                        Ending::Unsaid => !is_cut || has_arguments(&call),
                        Ending::Cut => false,
                    };
                    blocks.extend(is_kept.then_some(Block::ToolCall(call)));
                }
                Some(Done::Other) => {}
                None if item.call.is_some() && !is_cut => {
                    let text = "the answer ended before a call was complete";
                    return Err(failed(FaultKind::Unreadable, text));
                }
                None if item.call.is_some() || item.gathered.is_empty() => {}
                None if item.is_thought => {
                    blocks.push(Block::Reasoning { text: item.gathered, opaque: None });
                }
                None => blocks.push(Block::text(item.gathered)),
            }
        }
        Ok(blocks)
    }
}

fn has_arguments(call: &ToolCall) -> bool {
    call.unreadable.is_none() && call.arguments.as_object().is_some_and(|given| !given.is_empty())
}

fn begin_call(
    gathered: &mut Gathered,
    item: &mut Item,
    name: &str,
    out: &mut Vec<ModelEvent>,
) -> Result<(), ModelEvent> {
    let index = gathered.take_call()?;
    item.call = Some(index);
    out.push(ModelEvent::CallBegun { index, name: name.to_owned() });
    Ok(())
}

/// A message item and its size.
fn message(item: &mut Item, raw: &RawItem<'_>, out: &mut Vec<ModelEvent>) -> (Done, usize) {
    let parts = raw.content.as_deref().unwrap_or_default();
    let mut text = String::new();
    for part in parts {
        text.push_str(part.text.as_str());
        text.push_str(part.refusal.as_str());
    }
    if text.is_empty() {
        text = std::mem::take(&mut item.gathered);
    } else if item.gathered.is_empty() {
        out.push(ModelEvent::Text(text.clone()));
    }
    let opaque = raw.id.filled().map(|id| match raw.phase.filled() {
        Some(phase) => json!({"id": id, "phase": phase}),
        None => json!({"id": id}),
    });
    let size = text.len() + raw.id.as_str().len();
    (Done::Block(Block::Text { text, opaque }), size)
}

/// A reasoning item, encrypted or not, and its size.
fn thought(
    item: &mut Item,
    raw: &RawItem<'_>,
    whole: &str,
    out: &mut Vec<ModelEvent>,
) -> (Done, usize) {
    let joined = |parts: &Option<Vec<RawPart<'_>>>| {
        let parts = parts.iter().flatten().filter_map(|part| part.text.filled());
        parts.collect::<Vec<_>>().join("\n\n")
    };
    let mut text = joined(&raw.summary);
    if text.is_empty() {
        text = joined(&raw.content);
    }
    if text.is_empty() {
        text = std::mem::take(&mut item.gathered);
    } else if item.gathered.is_empty() {
        out.push(ModelEvent::Thinking(text.clone()));
    }
    let mut opaque = serde_json::from_str::<Value>(whole).ok();
    if let Some(Value::Object(members)) = &mut opaque {
        members.retain(|key, value| REASONING_MEMBERS.contains(&key.as_str()) && !value.is_null());
        members.entry("summary").or_insert_with(|| Value::Array(Vec::new()));
    }
    let size = text.len() + whole.len();
    (Done::Block(Block::Reasoning { text, opaque }), size)
}

fn call(item: &mut Item, raw: &RawItem<'_>, out: &mut Vec<ModelEvent>) -> (Done, usize) {
    let text = raw.arguments.filled().unwrap_or(&item.gathered);
    if item.gathered.is_empty() && !text.is_empty() {
        let event = |index| ModelEvent::CallArguments { index, delta: text.to_owned() };
        out.extend(item.call.map(event));
    }
    let (arguments, unreadable) = accumulator::arguments(text);
    let size = text.len() + raw.name.as_str().len() + raw.call_id.as_str().len();
    let origin = CallOrigin {
        id: raw.call_id.filled().map(str::to_owned),
        item: raw.id.filled().map(str::to_owned),
        arguments: None,
    };
    let ending = match raw.status.as_str() {
        "completed" => Ending::Whole,
        "" => Ending::Unsaid,
        _ => Ending::Cut,
    };
    let call = ToolCall {
        id: String::new(),
        name: raw.name.as_str().to_owned(),
        arguments,
        unreadable,
        origin: Some(origin),
        opaque: None,
    };
    (Done::Call(Box::new(call), ending), size)
}

fn usage(raw: &RawValue) -> Option<Usage> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Input {
        cached_tokens: Option<u64>,
        cache_write_tokens: Option<u64>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Output {
        reasoning_tokens: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Raw {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        input_tokens_details: Option<Input>,
        output_tokens_details: Option<Output>,
    }
    let raw: Raw = serde_json::from_str(raw.get()).ok()?;
    let input = raw.input_tokens_details.unwrap_or_default();
    let output = raw.output_tokens_details.unwrap_or_default();
    Some(Usage {
        input_tokens: raw.input_tokens.unwrap_or(0),
        output_tokens: raw.output_tokens.unwrap_or(0),
        cached_tokens: input.cached_tokens.unwrap_or(0),
        cache_write_tokens: input.cache_write_tokens.unwrap_or(0),
        reasoning_tokens: output.reasoning_tokens.unwrap_or(0),
    })
}

fn unreadable(error: &serde_json::Error) -> ModelEvent {
    let text = format!("an event of the stream is not valid in OpenAI Responses: {error}");
    failed(FaultKind::Unreadable, text)
}
