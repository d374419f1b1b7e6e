//! Joins the responses of several rounds into one response.
//!
//! All chunks have the response id of the first round. The reason of the end and the usage are in the last chunk only. Every
//! chunk has a part: Google's chat helpers drop a whole reply if one of its chunks is empty.

use serde_json::json;
use switchboard_chat::ToolReturn;

use super::contents::content;
use super::part::{Call, OWN_ID, Part, joined};
use super::request::shown_response;
use super::response::Chunk;
use super::usage::{UsageSum, output_tokens};
use crate::app_request::RequestFacts;
use crate::frames::data_frame;
use crate::minted_ids::MintedIds;
use crate::raw_json::{Raw, RawObject, to_raw};
use crate::request_format::ShownReply;
use crate::splicer::{FinishReason, PendingCall, SplicedRound, Splicer, ToolOwner};
use crate::{Api, Refusal, RefusalKind, TurnOptions};

/// Between the texts of two rounds, which become one text.
const BETWEEN_TEXTS: &str = "\n\n";

#[expect(clippy::struct_excessive_bools, reason = "independent properties of the request")]
#[derive(Debug)]
pub(crate) struct GeminiSplicer {
    ids: MintedIds,
    /// The response id of the first round.
    id: Option<Raw>,
    shows_calls: bool,
    holds_text: bool,
    is_streamed: bool,
    is_json_array: bool,
    has_begun_array: bool,
    /// The parts that the app was shown, if it asked for no stream.
    content: Vec<Part>,
    shown: ShownReply,
    shown_ids: Vec<String>,
    usage: UsageSum,
    has_written: bool,
    round: Round,
    /// The last chunk of the round that ended last.
    tail: Chunk,
}

/// What was read of the current round.
#[derive(Debug, Default)]
struct Round {
    parts: Vec<Part>,
    calls: Vec<PendingCall>,
    app_calls: usize,
    /// Chunks that wait for the end of the round.
    held: Vec<Chunk>,
    /// The chunk with the reason of the end.
    end: Option<Chunk>,
    usage: Option<Raw>,
    has_shown: bool,
    has_shown_text: bool,
}

impl GeminiSplicer {
    pub(crate) fn new(facts: &RequestFacts, options: &TurnOptions) -> Self {
        Self {
            ids: MintedIds::new(&options.seed),
            id: None,
            shows_calls: options.shows_calls.unwrap_or(facts.shows_calls),
            holds_text: facts.wants_format,
            is_streamed: facts.is_streamed,
            is_json_array: facts.is_json_array,
            has_begun_array: false,
            content: Vec::new(),
            shown: ShownReply::default(),
            shown_ids: Vec::new(),
            usage: UsageSum::default(),
            has_written: false,
            round: Round::default(),
            tail: Chunk::default(),
        }
    }

    fn chunk(&mut self, mut chunk: Chunk, owner: &dyn Fn(&str) -> ToolOwner, out: &mut Vec<u8>) {
        if let Some(usage) = chunk.usage.take() {
            self.round.usage = Some(usage);
        }
        if self.id.is_none() {
            self.id = chunk.id();
        }
        self.round.parts.extend(chunk.parts.iter().cloned());
        let mut shown = Vec::with_capacity(chunk.parts.len());
        for part in std::mem::take(&mut chunk.parts) {
            match part.call() {
                Some(call) if owner(&call.name) == ToolOwner::Session => {
                    self.session_call(call);
                }
                Some(_) => {
                    self.round.app_calls += 1;
                    shown.push(part);
                }
                None => shown.push(part),
            }
        }
        chunk.parts = shown;
        let is_end = chunk.finish_reason.is_some() || chunk.is_blocked;
        if let Some(earlier) = self.round.end.take() {
            // More came after the end: the end moves.
            let reason = earlier.finish_reason.clone();
            if chunk.parts.is_empty() && !is_end {
                self.round.end = Some(earlier);
                return;
            }
            self.pass(earlier.without_end(), out);
            if let Some(reason) = reason.filter(|_| !is_end) {
                chunk.set_finish_reason(&reason);
            }
            self.round.end = Some(chunk);
        } else if is_end {
            self.round.end = Some(chunk);
        } else {
            self.pass(chunk, out);
        }
    }

    fn session_call(&mut self, call: Call) {
        // Older models give no id: then one is made at the end of the round.
        let id = call.id.unwrap_or_default();
        let (name, arguments) = (call.name, call.arguments);
        self.round.calls.push(PendingCall { id, name, arguments });
    }

    /// Passes a chunk on, or holds it until it is known whether its text is the answer.
    fn pass(&mut self, chunk: Chunk, out: &mut Vec<u8>) {
        let has_text = chunk.parts.iter().any(Part::is_answer);
        if self.holds_text && (has_text || !self.round.held.is_empty()) {
            self.round.held.push(chunk);
        } else {
            self.show(chunk, out);
        }
    }

    /// Shows a chunk that has something to show.
    fn show(&mut self, mut chunk: Chunk, out: &mut Vec<u8>) {
        if chunk.parts.is_empty() {
            if !chunk.has_more() {
                return;
            }
            chunk.parts.push(Part::of_text("", false));
        }
        self.write(chunk, out);
    }

    fn write(&mut self, mut chunk: Chunk, out: &mut Vec<u8>) {
        self.note(&mut chunk);
        self.has_written = true;
        if let Some(id) = &self.id {
            chunk.set_id(id);
        }
        self.frame(&chunk.build(), out);
    }

    /// Notes what the app is shown, and sets the text of a round apart from that of the round before.
    fn note(&mut self, chunk: &mut Chunk) {
        self.round.has_shown |= !chunk.parts.is_empty();
        for part in &mut chunk.parts {
            if part.is_answer() && !part.is_empty_text() {
                let text = part.text().unwrap_or_default();
                if !self.round.has_shown_text && !self.shown.text.is_empty() && !text.is_empty() {
                    *part = part.with_text(&format!("{BETWEEN_TEXTS}{text}"));
                }
                self.round.has_shown_text |= !text.is_empty();
                self.shown.text.push_str(&part.text().unwrap_or_default());
            }
            if let Some(call) = part.call() {
                self.shown.calls.push((call.name, call.arguments));
                self.shown_ids.extend(call.id);
            }
        }
        if !self.is_streamed {
            self.content.extend(chunk.parts.iter().cloned());
        }
    }

    fn frame(&mut self, chunk: &RawObject, out: &mut Vec<u8>) {
        if !self.is_json_array {
            data_frame(chunk, out);
            return;
        }
        let before: &[u8] = if self.has_begun_array { b",\r\n" } else { b"[" };
        self.has_begun_array = true;
        out.extend_from_slice(before);
        out.extend_from_slice(chunk.to_json().as_bytes());
    }

    /// Ends the answer to an app that reads one JSON array.
    fn end_array(&self, out: &mut Vec<u8>) {
        if self.is_json_array {
            out.extend_from_slice(if self.has_begun_array { b"]" } else { b"[]" });
        }
    }

    /// The last chunk, with the reason and the usage that the app gets.
    fn last_chunk(&mut self, why: FinishReason) -> Chunk {
        let mut chunk = self.tail.clone();
        match why {
            FinishReason::Model => {}
            FinishReason::OutputLimit => chunk.set_finish_reason("MAX_TOKENS"),
            FinishReason::RoundLimit => chunk.set_finish_reason("TOO_MANY_TOOL_CALLS"),
        }
        if chunk.parts.is_empty() && self.has_written && !chunk.is_blocked {
            chunk.parts.push(Part::of_text("", false));
        }
        chunk.usage = self.usage.total();
        if let Some(id) = &self.id {
            chunk.set_id(id);
        }
        chunk
    }
}

impl Splicer for GeminiSplicer {
    fn event(
        &mut self,
        _name: &str,
        data: &str,
        owner: &dyn Fn(&str) -> ToolOwner,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let chunk = Chunk::read(data)?;
        self.chunk(chunk, owner, out);
        Ok(())
    }

    fn whole(&mut self, body: &str, owner: &dyn Fn(&str) -> ToolOwner) -> Result<(), Refusal> {
        self.event("", body, owner, &mut Vec::new())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<SplicedRound, Refusal> {
        let Some(mut end) = self.round.end.take() else {
            return Err(Refusal::new(
                RefusalKind::Upstream,
                "the provider's stream ended before its answer was complete",
            ));
        };
        // Calls of an answer that was cut or refused are not run.
        let runs = matches!(
            end.finish_reason.as_deref(),
            Some("STOP" | "FINISH_REASON_UNSPECIFIED" | "OTHER")
        );
        let calls = std::mem::take(&mut self.round.calls);
        let is_session_call = |part: &Part| {
            let name = part.call().map(|call| call.name);
            name.is_some_and(|name| calls.iter().any(|call| call.name == name))
        };
        let parts = std::mem::take(&mut self.round.parts);
        let replay = joined(parts.into_iter().filter(|part| runs || !is_session_call(part)));
        let mut calls = if runs { calls } else { Vec::new() };
        for call in calls.iter_mut().filter(|call| call.id.is_empty()) {
            call.id = self.ids.next(OWN_ID);
        }
        let mut held = std::mem::take(&mut self.round.held);
        if !calls.is_empty() && self.holds_text {
            for chunk in held.iter_mut().chain([&mut end]) {
                chunk.parts.retain(|part| !part.is_answer());
            }
        }
        for chunk in held {
            self.show(chunk, out);
        }
        self.tail = end.clone();
        if calls.is_empty() {
            let mut tail = std::mem::take(&mut self.tail);
            self.note(&mut tail);
            self.tail = tail;
        } else {
            self.tail.parts.clear();
            self.show(end.without_end(), out);
        }
        if self.shows_calls {
            for call in &calls {
                let arguments = RawObject::read(&call.arguments).unwrap_or_default().to_raw();
                let id = format!("{OWN_ID}{}", call.id);
                let part =
                    json!({"toolCall": {"id": id, "toolType": call.name, "args": arguments}});
                self.write(Chunk::of_parts(vec![Part::new(to_raw(&part))]), out);
            }
        }
        let usage = self.round.usage.take();
        let output_tokens = usage.as_ref().and_then(output_tokens);
        self.usage.add(usage);
        let app_calls = self.round.app_calls;
        self.round = Round::default();
        Ok(SplicedRound {
            calls,
            app_calls,
            replay: (!replay.is_empty()).then(|| content("model", &replay)).into_iter().collect(),
            output_tokens,
            upstream_id: None,
        })
    }

    fn call_ended(&mut self, call: &PendingCall, result: &ToolReturn, out: &mut Vec<u8>) {
        if self.shows_calls {
            let id = format!("{OWN_ID}{}", call.id);
            let part = shown_response(&id, &call.name, result);
            self.write(Chunk::of_parts(vec![Part::new(to_raw(&part))]), out);
        }
    }

    fn finish(&mut self, why: FinishReason, out: &mut Vec<u8>) {
        let chunk = self.last_chunk(why);
        self.frame(&chunk.build(), out);
        self.end_array(out);
    }

    fn finish_whole(&mut self, why: FinishReason) -> String {
        let mut chunk = self.last_chunk(why);
        if !self.content.is_empty() {
            let has_more = self.content.iter().any(|part| !part.is_empty_text());
            let content = std::mem::take(&mut self.content).into_iter();
            chunk.parts = content.filter(|part| !has_more || !part.is_empty_text()).collect();
        }
        chunk.build().to_json()
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        self.frame(&refusal.to_event(Api::Gemini), out);
        self.end_array(out);
    }

    fn shown(&self) -> ShownReply {
        self.shown.clone()
    }

    fn handles(&self) -> Vec<String> {
        self.shown_ids.clone()
    }

    fn has_shown_of_round(&self) -> bool {
        self.round.has_shown
    }

    fn abandon_round(&mut self) {
        self.round = Round::default();
    }

    fn keep_alive(&self) -> &'static [u8] {
        if self.is_json_array {
            b"\n"
        } else {
            // Google's SDK for Python fails at a comment.
            b"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"index\":0}]}\n\n"
        }
    }
}
