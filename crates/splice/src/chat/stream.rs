//! Joins the answers of several rounds of Chat Completions.
//!
//! The app sees one completion: one id, one role, one finish reason, and its own calls numbered from 0. Session calls are
//! hidden, because this API has no words for calls that ran elsewhere; an app that asked for it finds them in
//! `delta.switchboard`. An answer in one piece is read as a stream of one chunk.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use switchboard_chat::ToolReturn;

use super::call::{self, CallInProgress, Fragment};
use super::message::{MessageSoFar, merge};
use crate::app_request::RequestFacts;
use crate::minted_ids::MintedIds;
use crate::openai::{add_usage, readable_arguments, result_text, stream_error};
use crate::raw_json::{Raw, RawObject, elements, raw, to_raw};
use crate::request_format::ShownReply;
use crate::splicer::{FinishReason, PendingCall, SplicedRound, Splicer, ToolOwner};
use crate::{Api, Refusal, RefusalKind, TurnOptions};

/// Between the texts of two rounds, which become one text.
const BETWEEN_TEXTS: &str = "\n\n";

type Owner<'a> = &'a dyn Fn(&str) -> ToolOwner;

/// The splicer of Chat Completions.
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
#[derive(Debug)]
pub(crate) struct ChatSplicer {
    ids: MintedIds,
    id: Raw,
    created: Raw,
    /// As the provider names it in its first chunk; until then as the app did.
    model: Raw,
    is_model_known: bool,
    /// Whether text waits for the end of its round, so that an app that parses it gets the text of the last round only.
    holds_text: bool,
    wants_usage: bool,
    shows_calls: bool,
    has_sent_role: bool,
    /// What the app was shown.
    message: MessageSoFar,
    calls: Vec<CallInProgress>,
    logprobs: Value,
    /// Session calls that the app was told of.
    told_calls: usize,
    usage: Value,
    used_ids: HashSet<String>,
    round: Round,
    /// The last chunk of the last round: it becomes the last one of the answer.
    last: Chunk,
    finish: String,
}

/// What was read of the current round.
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
#[derive(Debug, Default)]
struct Round {
    message: MessageSoFar,
    calls: Vec<CallInProgress>,
    held: Vec<(Chunk, Map<String, Value>)>,
    finish: Option<String>,
    usage: Option<Value>,
    last: Option<Chunk>,
    has_begun: bool,
    is_done: bool,
    has_shown: bool,
    has_shown_text: bool,
}

/// A chunk and its choice, without delta, usage and finish reason.
#[derive(Debug, Clone, Default)]
struct Chunk {
    members: RawObject,
    choice: RawObject,
}

impl ChatSplicer {
    pub(crate) fn new(facts: &RequestFacts, options: &TurnOptions) -> Self {
        let mut ids = MintedIds::new(&options.seed);
        let id = to_raw(&ids.next("chatcmpl-"));
        Self {
            ids,
            id,
            created: to_raw(&options.now),
            model: to_raw(&facts.model),
            is_model_known: false,
            holds_text: facts.wants_format,
            wants_usage: facts.wants_usage,
            shows_calls: options.shows_calls.unwrap_or(facts.shows_calls),
            has_sent_role: false,
            message: MessageSoFar::default(),
            calls: Vec::new(),
            logprobs: Value::Null,
            told_calls: 0,
            usage: Value::Null,
            used_ids: HashSet::new(),
            round: Round::default(),
            last: Chunk::default(),
            finish: "stop".to_owned(),
        }
    }

    fn chunk(&mut self, data: &str, owner: Owner<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut members = RawObject::read(data).map_err(|error| {
            let text = format!("a chunk of the provider's stream cannot be read: {error}");
            Refusal::new(RefusalKind::Upstream, text)
        })?;
        if members.get("error").is_some_and(|error| error.get() != "null") {
            return Err(stream_error(data));
        }
        if let Some(usage @ Value::Object(_)) = members.parsed("usage") {
            self.round.usage = Some(usage);
        }
        members.remove("usage");
        let choices = members.get("choices").and_then(elements).unwrap_or_default();
        members.remove("choices");
        if !self.is_model_known
            && let Some(model) = members.get("model").filter(|model| model.get() != "null")
        {
            self.model = model.to_owned();
            self.is_model_known = true;
        }
        for choice in choices {
            let choice: RawObject = serde_json::from_str(choice.get()).unwrap_or_default();
            // Only one choice is asked for.
            if choice.parsed::<u64>("index").unwrap_or(0) == 0 {
                self.choice(&members, choice, owner, out);
            }
        }
        Ok(())
    }

    fn choice(
        &mut self,
        members: &RawObject,
        mut choice: RawObject,
        owner: Owner<'_>,
        out: &mut Vec<u8>,
    ) {
        self.round.has_begun = true;
        let mut delta: Map<String, Value> = choice.parsed("delta").unwrap_or_default();
        let finish = choice.parsed::<String>("finish_reason").filter(|reason| !reason.is_empty());
        for member in ["delta", "finish_reason", "index"] {
            choice.remove(member);
        }
        let fragments = delta.shift_remove("tool_calls");
        let chunk = Chunk { members: members.clone(), choice };
        if finish.is_some() {
            self.round.finish = finish;
            let mut last = chunk.clone();
            last.choice.remove("logprobs");
            self.round.last = Some(last);
        }
        if let Some(Value::Array(fragments)) = fragments {
            if !delta.is_empty() {
                self.delta(chunk.clone(), delta, out);
            }
            let mut shown = Vec::new();
            for fragment in fragments.into_iter().filter_map(Fragment::read) {
                shown.extend(self.fragment(&fragment, owner));
            }
            if !shown.is_empty() {
                let mut bare = chunk;
                bare.choice.remove("logprobs");
                self.round.has_shown = true;
                let mut delta = Map::new();
                delta.insert("tool_calls".to_owned(), shown.into());
                self.show(&bare, delta, out);
            }
        } else {
            self.delta(chunk, delta, out);
        }
    }

    /// A delta without calls.
    fn delta(&mut self, mut chunk: Chunk, mut delta: Map<String, Value>, out: &mut Vec<u8>) {
        self.round.message.add(delta.clone());
        if self.holds_text {
            let mut text = Map::new();
            for name in ["content", "refusal"] {
                if delta.get(name).is_some_and(|value| !is_empty(value)) {
                    text.extend(delta.shift_remove_entry(name));
                }
            }
            if !text.is_empty() {
                self.round.held.push((chunk.clone(), text));
                chunk.choice.remove("logprobs");
            }
        }
        let is_filled = |(name, value): (&String, &Value)| name != "role" && !is_empty(value);
        let has_logprobs = chunk.choice.get("logprobs").is_some_and(|it| it.get() != "null");
        let says_something = delta.iter().any(is_filled) || has_logprobs;
        self.round.has_shown |= says_something;
        if says_something || !self.has_sent_role {
            self.show(&chunk, delta, out);
        }
    }

    /// Reads a fragment of a call, and returns what the app gets of it.
    fn fragment(&mut self, fragment: &Fragment, owner: Owner<'_>) -> Option<Value> {
        let at = call::add(&mut self.round.calls, fragment);
        let call = self.round.calls.get_mut(at)?;
        if let (Some(ToolOwner::App), Some(index)) = (call.owner, call.shown_as) {
            let is_empty = fragment.arguments.is_empty() && fragment.more.is_empty();
            return (!is_empty).then(|| call.next_fragment(index, fragment));
        }
        if call.owner.is_some() || call.name.is_empty() {
            return None;
        }
        let found = owner(&call.name);
        // A session tool takes an object: a call with free text is never one.
        let found = if call.is_custom() { ToolOwner::App } else { found };
        call.owner = Some(found);
        if call.id.is_empty() || !self.used_ids.insert(call.id.clone()) {
            call.id = self.ids.next("call_");
            self.used_ids.insert(call.id.clone());
        }
        match found {
            ToolOwner::Session => None,
            ToolOwner::App => {
                let index = self.round.calls.iter().filter(|call| call.shown_as.is_some()).count();
                let call = self.round.calls.get_mut(at)?;
                call.shown_as = Some(index);
                Some(call.first_fragment(index))
            }
        }
    }

    /// Writes a chunk, and remembers what the app sees of it.
    fn show(&mut self, chunk: &Chunk, mut delta: Map<String, Value>, out: &mut Vec<u8>) {
        delta.shift_remove("role");
        if !self.has_sent_role {
            delta.shift_insert(0, "role".to_owned(), "assistant".into());
            self.has_sent_role = true;
        }
        if let Some(Value::String(text)) = delta.get_mut("content")
            && !text.is_empty()
        {
            let is_after = !self.round.has_shown_text && !self.message.text.is_empty();
            if is_after && !self.message.text.ends_with(char::is_whitespace) {
                text.insert_str(0, BETWEEN_TEXTS);
            }
            self.round.has_shown_text = true;
        }
        if let Some(logprobs) = chunk.choice.parsed("logprobs") {
            merge(&mut self.logprobs, logprobs);
        }
        self.write(chunk, &delta, None, out);
        self.message.add(delta);
    }

    fn write(
        &self,
        chunk: &Chunk,
        delta: &Map<String, Value>,
        finish: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let mut choice = RawObject::default();
        choice.set("index", raw("0".to_owned()));
        choice.set("delta", to_raw(delta));
        choice.set("finish_reason", to_raw(&finish));
        for (name, value) in chunk.choice.members() {
            choice.set(name, value.to_owned());
        }
        self.write_frame(&chunk.members, "[", choice.to_json().as_str(), out);
    }

    fn write_frame(&self, members: &RawObject, open: &str, choice: &str, out: &mut Vec<u8>) {
        let mut chunk = self.head(members, "chat.completion.chunk");
        chunk.set("choices", raw(format!("{open}{choice}]")));
        frame(&chunk.to_json(), out);
    }

    /// The members of the answer beside its choices and its usage.
    fn head(&self, members: &RawObject, object: &str) -> RawObject {
        let mut head = RawObject::default();
        head.set("id", self.id.clone());
        head.set("object", to_raw(&object));
        head.set("created", self.created.clone());
        head.set("model", self.model.clone());
        let known = ["id", "object", "created", "model"];
        for (name, value) in members.members().filter(|(name, _)| !known.contains(name)) {
            head.set(name, value.to_owned());
        }
        head
    }

    fn end_of_answer(&self, why: FinishReason) -> &str {
        match why {
            FinishReason::OutputLimit | FinishReason::RoundLimit => "length",
            // The calls were hidden.
            FinishReason::Model if self.finish == "tool_calls" && self.calls.is_empty() => "stop",
            FinishReason::Model => &self.finish,
        }
    }
}

impl Splicer for ChatSplicer {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        owner: Owner<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        match (name, data.trim()) {
            (_, "") => Ok(()),
            (_, "[DONE]") => {
                self.round.is_done = true;
                Ok(())
            }
            ("error", data) => Err(stream_error(data)),
            (_, data) => self.chunk(data, owner, out),
        }
    }

    fn whole(&mut self, body: &str, owner: Owner<'_>) -> Result<(), Refusal> {
        let unreadable = |text: &str| Refusal::new(RefusalKind::Upstream, text);
        let mut completion = RawObject::read(body).map_err(|error| {
            unreadable(&format!("the provider's answer cannot be read: {error}"))
        })?;
        if completion.get("error").is_some_and(|error| error.get() != "null") {
            return Err(stream_error(body));
        }
        let choices = completion.get("choices").and_then(elements).unwrap_or_default();
        let Some(Ok(mut choice)) = choices.first().map(|choice| RawObject::read(choice.get()))
        else {
            return Err(unreadable("the provider's answer has no choice"));
        };
        let mut message: Map<String, Value> = choice.parsed("message").unwrap_or_default();
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            for (index, call) in calls.iter_mut().enumerate() {
                call["index"] = index.into();
            }
        }
        choice.remove("message");
        choice.set("delta", to_raw(&message));
        completion.set("choices", raw(format!("[{}]", choice.to_json())));
        self.round.is_done = true;
        self.chunk(&completion.to_json(), owner, &mut Vec::new())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<SplicedRound, Refusal> {
        let is_whole = self.round.finish.is_some() || self.round.is_done && self.round.has_begun;
        if !is_whole {
            let text = "the provider's stream ended before the answer did";
            return Err(Refusal::new(RefusalKind::Upstream, text));
        }
        let mut round = std::mem::take(&mut self.round);
        self.finish = round.finish.take().unwrap_or_else(|| {
            if round.calls.is_empty() { "stop" } else { "tool_calls" }.to_owned()
        });
        // Arguments of an answer that was cut may be incomplete.
        let is_cut = matches!(&*self.finish, "length" | "content_filter");
        let is_session = |call: &CallInProgress| call.owner == Some(ToolOwner::Session);
        round.calls.retain(|call| call.owner.is_some() && !(is_cut && is_session(call)));
        let pending = round.calls.iter().filter(|call| is_session(call)).map(|call| PendingCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let calls: Vec<_> = pending.collect();
        if calls.is_empty() {
            self.round.has_shown_text = round.has_shown_text;
            for (chunk, delta) in std::mem::take(&mut round.held) {
                self.show(&chunk, delta, out);
            }
            self.round.has_shown_text = false;
        }
        let replay = round.calls.iter().map(|call| {
            let written = &call.arguments;
            let arguments = if call.is_custom() { written } else { readable_arguments(written) };
            Value::Object(call.to_json(arguments))
        });
        let replay = to_raw(&round.message.to_replay(replay.collect()));
        self.calls = round.calls.into_iter().filter(|call| call.shown_as.is_some()).collect();
        self.last = round.last.unwrap_or_default();
        let output_tokens =
            round.usage.as_ref().and_then(|usage| usage["completion_tokens"].as_u64());
        add_usage(&mut self.usage, round.usage.unwrap_or_default());
        Ok(SplicedRound {
            calls,
            app_calls: self.calls.len(),
            replay: vec![replay],
            output_tokens,
            upstream_id: None,
        })
    }

    fn call_ended(&mut self, call: &PendingCall, result: &ToolReturn, out: &mut Vec<u8>) {
        if !self.shows_calls {
            return;
        }
        let told = json!({"calls": [{
            "index": self.told_calls,
            "id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "output": result_text(result).0,
            "is_error": result.is_error,
        }]});
        self.told_calls += 1;
        let mut delta = Map::new();
        delta.insert("switchboard".to_owned(), told);
        self.show(&Chunk::default(), delta, out);
    }

    fn finish(&mut self, why: FinishReason, out: &mut Vec<u8>) {
        let mut delta = Map::new();
        if !self.has_sent_role {
            delta.insert("role".to_owned(), "assistant".into());
        }
        self.write(&self.last, &delta, Some(self.end_of_answer(why)), out);
        if self.wants_usage && !self.usage.is_null() {
            let mut chunk = self.head(&self.last.members, "chat.completion.chunk");
            chunk.set("choices", raw("[]".to_owned()));
            chunk.set("usage", to_raw(&self.usage));
            frame(&chunk.to_json(), out);
        }
        frame("[DONE]", out);
    }

    fn finish_whole(&mut self, why: FinishReason) -> String {
        let calls = self.calls.iter().map(|call| Value::Object(call.to_json(&call.arguments)));
        let mut choice = RawObject::default();
        choice.set("index", raw("0".to_owned()));
        choice.set("message", to_raw(&self.message.to_json(calls.collect())));
        choice.set("logprobs", to_raw(&self.logprobs));
        choice.set("finish_reason", to_raw(&self.end_of_answer(why)));
        let known = ["index", "message", "logprobs", "finish_reason"];
        for (name, value) in self.last.choice.members().filter(|(name, _)| !known.contains(name)) {
            choice.set(name, value.to_owned());
        }
        let mut completion = self.head(&self.last.members, "chat.completion");
        completion.set("choices", raw(format!("[{}]", choice.to_json())));
        if !self.usage.is_null() {
            completion.set("usage", to_raw(&self.usage));
        }
        completion.to_json()
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        frame(&refusal.to_body(Api::Chat), out);
    }

    fn shown(&self) -> ShownReply {
        let calls = self.calls.iter().map(|call| (call.name.clone(), call.arguments.clone()));
        ShownReply { text: self.message.text.clone(), calls: calls.collect() }
    }

    fn handles(&self) -> Vec<String> {
        self.calls.iter().map(|call| call.id.clone()).collect()
    }

    fn has_shown_of_round(&self) -> bool {
        self.round.has_shown
    }

    fn abandon_round(&mut self) {
        self.round = Round::default();
    }

    fn keep_alive(&self) -> &'static [u8] {
        b": keep-alive\n\n"
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Writes an SSE frame without a name.
fn frame(data: &str, out: &mut Vec<u8>) {
    // The provider's pretty-printed JSON may have line ends, which begin new fields.
    out.extend_from_slice(b"data: ");
    for (index, line) in data.split('\n').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\ndata: ");
        }
        out.extend_from_slice(line.trim_end_matches('\r').as_bytes());
    }
    out.extend_from_slice(b"\n\n");
}
