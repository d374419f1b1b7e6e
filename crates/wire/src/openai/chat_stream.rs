//! Parses the stream of Chat Completions, as sent by OpenAI and compatible servers.
//!
//! Calls arrive in fragments. A fragment's `index` names its call; where servers omit it or use the same one for all
//! calls, a new id or name begins a new call.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_chat::{Block, CallOrigin, FaultKind, ModelEvent, Source, Stop, ToolCall, Usage};

use super::faults;
use crate::accumulator::{self, Gathered};
use crate::borrowed::{Text, read};
use crate::parser::{Limits, Wire, failed};
use crate::scan::{self, Took};

/// Maximum length of arguments for which completeness is checked with every fragment.
const MAX_REPARSED_BYTES: usize = 16 << 10;

/// Parses one answer of a model in the format of OpenAI Chat Completions, event by event.
#[derive(Debug)]
pub(crate) struct ChatWire {
    gathered: Gathered,
    text: String,
    thoughts: String,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish: Option<Stop>,
    /// Whether any chunk of an answer arrived.
    has_begun: bool,
}

/// A call in progress.
#[derive(Debug)]
struct Call {
    /// The server's index of the call in this stream.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    has_been_shown: bool,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<ChoiceDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize, Default)]
struct ChoiceDelta<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Fragment<'a>>>,
}

impl<'a> Choice<'a> {
    /// Parses a chunk that has one choice and nothing else with the scanner, without parsing the other members.
    fn scanned(chunk: &'a [u8]) -> Option<Self> {
        let mut read = None;
        scan::each(chunk, |key, rest| match key {
            b"choices" => {
                let mut choice = Self { index: None, delta: None, finish_reason: Text::default() };
                let took = scan::only(rest, |element| choice.scan(element))?;
                read = Some(choice);
                Some(Took::Bytes(took))
            }
            b"usage" | b"error" => scan::null(rest),
            _ => Some(Took::Unread),
        })?;
        read
    }

    fn scan(&mut self, choice: &'a [u8]) -> Option<usize> {
        scan::each(choice, |key, rest| match key {
            b"index" => rest.starts_with(b"0").then_some(Took::Bytes(1)),
            b"finish_reason" => scan::null(rest),
            b"delta" => {
                let mut delta = ChoiceDelta::default();
                let took = delta.scan(rest)?;
                self.delta = Some(delta);
                Some(Took::Bytes(took))
            }
            _ => Some(Took::Unread),
        })
    }
}

impl<'a> ChoiceDelta<'a> {
    fn scan(&mut self, delta: &'a [u8]) -> Option<usize> {
        scan::each(delta, |key, rest| {
            let place = match key {
                b"content" => &mut self.content,
                b"refusal" => &mut self.refusal,
                b"reasoning_content" => &mut self.reasoning_content,
                b"reasoning" => &mut self.reasoning,
                b"tool_calls" if rest.starts_with(b"[") => {
                    let mut fragment = Fragment::default();
                    let took = scan::only(rest, |element| fragment.scan(element))?;
                    self.tool_calls = Some(vec![fragment]);
                    return Some(Took::Bytes(took));
                }
                b"tool_calls" => return scan::null(rest),
                _ => return Some(Took::Unread),
            };
            scan::text(rest, place)
        })
    }
}

impl<'a> Fragment<'a> {
    fn scan(&mut self, fragment: &'a [u8]) -> Option<usize> {
        scan::each(fragment, |key, rest| match key {
            b"index" => scan::number(rest, &mut self.index),
            b"id" => scan::text(rest, &mut self.id),
            b"function" => {
                let mut function = Function::default();
                let took = function.scan(rest)?;
                self.function = Some(function);
                Some(Took::Bytes(took))
            }
            _ => Some(Took::Unread),
        })
    }
}

impl<'a> Function<'a> {
    fn scan(&mut self, function: &'a [u8]) -> Option<usize> {
        scan::each(function, |key, rest| match key {
            b"name" => scan::text(rest, &mut self.name),
            b"arguments" => {
                let mut written = Text::default();
                let took = scan::text(rest, &mut written)?;
                self.arguments = Some(Arguments::Text(written));
                Some(took)
            }
            _ => Some(Took::Unread),
        })
    }
}

#[derive(Deserialize, Default)]
struct Fragment<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize, Default)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    /// A string; some servers send the object itself.
    #[serde(borrow, default)]
    arguments: Option<Arguments<'a>>,
}

/// Arguments, as an object or as a string.
#[derive(Deserialize)]
#[serde(from = "&'a RawValue", bound(deserialize = "'de: 'a"))]
enum Arguments<'a> {
    Text(Text<'a>),
    Other(&'a RawValue),
}

impl<'a> From<&'a RawValue> for Arguments<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Text::written(raw.get().as_bytes()).map_or(Self::Other(raw), Self::Text)
    }
}

impl Wire for ChatWire {
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Vec<ModelEvent>) {
        let data = data.trim_ascii();
        let read = match (name, data) {
            (_, b"") => Ok(()),
            (_, b"[DONE]") => {
                self.finish_up(out);
                Ok(())
            }
            (b"error", data) => Err(faults::in_stream(data)),
            (_, data) => self.chunk(data, out),
        };
        out.extend(read.err());
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if self.finish.is_some() {
            self.finish_up(out);
        } else {
            out.push(interrupted());
        }
    }
}

impl ChatWire {
    pub(crate) fn new(_source: &Source, limits: Limits) -> Self {
        Self {
            gathered: Gathered::new(limits),
            text: String::new(),
            thoughts: String::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
            has_begun: false,
        }
    }

    fn chunk(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelEvent> {
        if let Some(choice) = Choice::scanned(data) {
            return self.choice(&choice, out);
        }
        let chunk: Chunk<'_> = read(data).map_err(|error| {
            let text = format!("a chunk of the stream is not valid in Chat Completions: {error}");
            failed(FaultKind::Unreadable, text)
        })?;
        if chunk.error.is_some() {
            return Err(faults::in_stream(data));
        }
        for choice in chunk.choices.into_iter().flatten() {
            // Only one answer is requested.
            if choice.index.unwrap_or(0) == 0 {
                self.choice(&choice, out)?;
            }
        }
        if let Some(usage) = chunk.usage.and_then(usage)
            && self.usage != Some(usage)
        {
            self.usage = Some(usage);
            out.push(ModelEvent::Usage(usage));
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Choice<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelEvent> {
        self.has_begun = true;
        if let Some(delta) = &choice.delta {
            let thought = delta.reasoning_content.filled().or_else(|| delta.reasoning.filled());
            if let Some(thought) = thought {
                self.gathered.take(thought.len())?;
                self.thoughts.push_str(thought);
                out.push(ModelEvent::Thinking(thought.to_owned()));
            }
            for text in [delta.content.filled(), delta.refusal.filled()].into_iter().flatten() {
                self.gathered.take(text.len())?;
                self.text.push_str(text);
                out.push(ModelEvent::Text(text.to_owned()));
            }
            for fragment in delta.tool_calls.iter().flatten() {
                self.fragment(fragment, out)?;
            }
        }
        match choice.finish_reason.filled() {
            None => {}
            Some("length" | "max_tokens") => self.finish = Some(Stop::Length),
            Some("content_filter") => self.finish = Some(Stop::Refused),
            Some("error") => {
                let text = "the provider ended the answer with an error and gave no reason";
                return Err(failed(FaultKind::Provider, text));
            }
            Some("abort" | "cancelled") => return Err(interrupted()),
            Some("insufficient_system_resource") => {
                let text = "the provider ran out of resources during the answer";
                return Err(failed(FaultKind::Overloaded, text));
            }
            Some(_) => self.finish = Some(Stop::End),
        }
        Ok(())
    }

    fn fragment(
        &mut self,
        fragment: &Fragment<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelEvent> {
        let id = fragment.id.as_str();
        let name = fragment.function.as_ref().map_or("", |function| function.name.as_str());
        let given = fragment.function.as_ref().and_then(|function| function.arguments.as_ref());
        let at = if let Some(at) = self.place(fragment.index, id, name) {
            at
        } else {
            self.calls.push(Call::new(fragment.index));
            self.gathered.take_call()?
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.id.is_empty() {
            self.gathered.take(id.len())?;
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            self.gathered.take(name.len())?;
            name.clone_into(&mut call.name);
        }
        if !call.has_been_shown && !call.name.is_empty() {
            call.has_been_shown = true;
            out.push(ModelEvent::CallBegun { index: at, name: call.name.clone() });
        }
        let Some(delta) = given.and_then(arguments_in) else { return Ok(()) };
        self.gathered.take(delta.len())?;
        call.arguments.push_str(&delta);
        if call.has_been_shown {
            out.push(ModelEvent::CallArguments { index: at, delta });
        }
        Ok(())
    }

    /// The position of the call that a fragment continues; `None` if the fragment begins a new call.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None => self.calls.len().checked_sub(1),
        };
        let at = known?;
        let call = self.calls.get(at)?;
        let is_new_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let is_new_name = !name.is_empty() && !call.name.is_empty() && name != call.name;
        let is_new = match index {
            // Some servers repeat the name, some create an id for every fragment, and some use one index for all calls.
            Some(_) => is_new_id && (is_new_name || !name.is_empty() && call.seems_whole()),
            None if id.is_empty() || call.id.is_empty() => {
                is_new_name || !name.is_empty() && call.seems_whole()
            }
            None => is_new_id,
        };
        (!is_new).then_some(at)
    }

    fn finish_up(&mut self, out: &mut Vec<ModelEvent>) {
        // The stream ended normally without a finish reason: the answer counts as complete.
        let finish = match self.finish {
            Some(finish) => finish,
            None if self.has_begun => Stop::End,
            None => return out.push(interrupted()),
        };
        let mut content = Vec::new();
        let (thoughts, text) = (std::mem::take(&mut self.thoughts), std::mem::take(&mut self.text));
        if !thoughts.is_empty() {
            content.push(Block::Reasoning { text: thoughts, opaque: None });
        }
        if !text.is_empty() {
            content.push(Block::text(text));
        }
        let calls = std::mem::take(&mut self.calls).into_iter();
        // Incomplete calls are dropped.
        let calls = calls.filter(|call| finish == Stop::End || call.is_whole());
        content.extend(calls.map(|call| Block::ToolCall(Box::new(call.into()))));
        let reply = accumulator::reply(content, finish, self.usage);
        out.push(ModelEvent::Finished(Box::new(reply)));
    }
}

impl Call {
    fn new(index: Option<u64>) -> Self {
        let (id, name, arguments) = (String::new(), String::new(), String::new());
        Self { index, id, name, arguments, has_been_shown: false }
    }

    fn is_whole(&self) -> bool {
        !self.arguments.trim().is_empty() && accumulator::arguments(&self.arguments).1.is_none()
    }

    /// Like [`Call::is_whole`], but `false` for long arguments, so that they are not parsed with every fragment.
    fn seems_whole(&self) -> bool {
        self.arguments.len() <= MAX_REPARSED_BYTES && self.is_whole()
    }
}

impl From<Call> for ToolCall {
    fn from(call: Call) -> Self {
        let (arguments, unreadable) = accumulator::arguments(&call.arguments);
        let id = (!call.id.is_empty()).then_some(call.id);
        Self {
            id: String::new(),
            name: call.name,
            arguments,
            unreadable,
            origin: Some(CallOrigin { id, ..CallOrigin::default() }),
            opaque: None,
        }
    }
}

/// The text of the arguments, or of the object in its place.
fn arguments_in(given: &Arguments<'_>) -> Option<String> {
    match given {
        Arguments::Text(text) => text.filled().map(str::to_owned),
        Arguments::Other(raw) => {
            serde_json::from_str::<Value>(raw.get()).ok().map(|value| value.to_string())
        }
    }
}

fn interrupted() -> ModelEvent {
    failed(FaultKind::Interrupted, "the stream ended before the answer did")
}

fn usage(raw: &RawValue) -> Option<Usage> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Prompt {
        cached_tokens: Option<u64>,
        cache_write_tokens: Option<u64>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Completion {
        reasoning_tokens: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Raw {
        prompt_tokens: Option<u64>,
        completion_tokens: Option<u64>,
        prompt_tokens_details: Option<Prompt>,
        completion_tokens_details: Option<Completion>,
    }
    let raw: Raw = serde_json::from_str(raw.get()).ok()?;
    let prompt = raw.prompt_tokens_details.unwrap_or_default();
    let completion = raw.completion_tokens_details.unwrap_or_default();
    Some(Usage {
        input_tokens: raw.prompt_tokens?,
        output_tokens: raw.completion_tokens.unwrap_or(0),
        cached_tokens: prompt.cached_tokens.unwrap_or(0),
        cache_write_tokens: prompt.cache_write_tokens.unwrap_or(0),
        reasoning_tokens: completion.reasoning_tokens.unwrap_or(0),
    })
}
