//! Joins the messages of several rounds into one message.
//!
//! The app gets one `message_start`, blocks whose indexes have no gap, one `message_delta` with the usage of all rounds, and
//! one `message_stop`. A call that runs here is hidden, or shown as `mcp_tool_use` and `mcp_tool_result`.

use serde_json::json;
use serde_json::value::RawValue;
use switchboard_chat::ToolReturn;

use super::block::BlockBuilder;
use super::tool_result::shown_result;
use super::usage::{RoundUsage, UsageSum};
use crate::app_request::RequestFacts;
use crate::frames::named_frame;
use crate::minted_ids::MintedIds;
use crate::raw_json::{Raw, RawObject, array, raw, to_raw};
use crate::request_format::ShownReply;
use crate::splicer::{FinishReason, PendingCall, SplicedRound, Splicer, ToolOwner};
use crate::{Api, Refusal, RefusalKind, TurnOptions};

/// Members of the last round's message that the app's message has, besides `delta` and `usage`.
const LAST_MEMBERS: [&str; 5] =
    ["stop_reason", "stop_sequence", "stop_details", "container", "context_management"];

#[expect(clippy::struct_excessive_bools, reason = "independent properties of the request")]
#[derive(Debug)]
pub(crate) struct MessagesSplicer {
    id: String,
    server_label: String,
    shows_calls: bool,
    holds_text: bool,
    is_beta: bool,
    is_streamed: bool,
    /// The message of the first round.
    head: Option<RawObject>,
    next_index: usize,
    /// The complete blocks that the app was shown, if it asked for no stream.
    content: Vec<Raw>,
    shown: ShownReply,
    /// The ids of the calls that the app was shown.
    shown_ids: Vec<String>,
    usage: UsageSum,
    /// The id of the container of the last round.
    container: Option<Raw>,
    round: Round,
    /// The round that ended last.
    last: Ending,
}

/// What was read of the current round.
#[derive(Debug, Default)]
struct Round {
    blocks: Vec<BlockState>,
    usage: RoundUsage,
    ending: Ending,
    has_shown: bool,
}

#[derive(Debug)]
struct BlockState {
    /// The index in the provider's message.
    index: u64,
    block: BlockBuilder,
    place: Place,
    is_done: bool,
}

/// Where a block of the provider is in the message of the app.
#[derive(Debug)]
enum Place {
    Shown(usize),
    /// Its events wait for the end of the round.
    Held(Vec<RawObject>),
    Hidden,
}

/// The end of a message.
#[derive(Debug, Default, Clone)]
struct Ending {
    /// The last `message_delta`.
    event: RawObject,
    stop_reason: Option<String>,
    usage: RoundUsage,
    app_calls: usize,
}

impl MessagesSplicer {
    pub(crate) fn new(facts: &RequestFacts, options: &TurnOptions) -> Self {
        Self {
            id: MintedIds::new(&options.seed).next("msg_"),
            server_label: options.server_label.clone(),
            shows_calls: options.shows_calls.unwrap_or(facts.shows_calls),
            holds_text: facts.wants_format,
            is_beta: facts.is_beta,
            is_streamed: facts.is_streamed,
            head: None,
            next_index: 0,
            content: Vec::new(),
            shown: ShownReply::default(),
            shown_ids: Vec::new(),
            usage: UsageSum::default(),
            container: None,
            round: Round::default(),
            last: Ending::default(),
        }
    }

    fn message_start(&mut self, event: &RawObject, out: &mut Vec<u8>) {
        let Some(mut message) = event.parsed::<RawObject>("message") else { return };
        self.round.usage.take(&message, false);
        if self.head.is_some() {
            return;
        }
        message.set("id", to_raw(&self.id));
        let mut event = event.clone();
        event.set("message", message.to_raw());
        self.head = Some(message);
        named_frame("message_start", &event, out);
    }

    fn block_start(
        &mut self,
        event: RawObject,
        owner: &dyn Fn(&str) -> ToolOwner,
        out: &mut Vec<u8>,
    ) {
        let block = event.parsed::<RawObject>("content_block").unwrap_or_default();
        let block = BlockBuilder::new(block);
        let is_text = block.kind == "text";
        let is_held = self.round.blocks.iter().any(|state| matches!(state.place, Place::Held(_)));
        let place = if block.kind == "tool_use" && owner(&block.name()) == ToolOwner::Session {
            Place::Hidden
        } else if self.holds_text && (is_text || is_held) {
            Place::Held(Vec::new())
        } else {
            Place::Shown(self.open_block())
        };
        let index = event.parsed("index").unwrap_or_default();
        self.round.blocks.push(BlockState { index, block, place, is_done: false });
        let at = self.round.blocks.len() - 1;
        self.pass(at, event, out);
    }

    fn open_block(&mut self) -> usize {
        let index = self.next_index;
        self.next_index += 1;
        self.round.has_shown = true;
        index
    }

    /// Passes an event of a block on, unless the block is hidden.
    fn pass(&mut self, at: usize, mut event: RawObject, out: &mut Vec<u8>) {
        match self.round.blocks.get_mut(at).map(|state| &mut state.place) {
            Some(Place::Shown(index)) => {
                event.set("index", to_raw(index));
                event_frame(&event, out);
            }
            Some(Place::Held(events)) => events.push(event),
            Some(Place::Hidden) | None => {}
        }
    }

    fn block_of(&self, event: &RawObject) -> Option<usize> {
        let index: u64 = event.parsed("index")?;
        self.round.blocks.iter().rposition(|state| state.index == index && !state.is_done)
    }

    fn block_delta(&mut self, event: RawObject, out: &mut Vec<u8>) {
        let Some(at) = self.block_of(&event) else { return };
        if let Some(delta) = event.parsed::<RawObject>("delta") {
            self.round.blocks[at].block.apply(&delta);
        }
        self.pass(at, event, out);
    }

    fn block_stop(&mut self, event: RawObject, out: &mut Vec<u8>) {
        let Some(at) = self.block_of(&event) else { return };
        self.pass(at, event, out);
        self.round.blocks[at].is_done = true;
        if matches!(self.round.blocks[at].place, Place::Shown(_)) {
            self.note_shown(at);
        }
    }

    /// Notes a complete block that the app was shown.
    fn note_shown(&mut self, at: usize) {
        let block = &self.round.blocks[at].block;
        self.shown.text.push_str(block.text());
        if block.kind == "tool_use" {
            self.shown.calls.push((block.name(), block.arguments()));
            self.shown_ids.push(block.id());
            self.round.ending.app_calls += 1;
        }
        if !self.is_streamed {
            self.content.push(block.build());
        }
    }

    fn message_delta(&mut self, event: RawObject) {
        self.round.usage.take(&event, true);
        let delta = event.parsed::<RawObject>("delta").unwrap_or_default();
        let reason = delta.parsed("stop_reason");
        self.round.ending.stop_reason = reason.or(self.round.ending.stop_reason.take());
        self.round.ending.event = event;
    }

    /// An event of an unknown type, which may belong to a block.
    fn unknown(&mut self, name: &str, event: &RawObject, out: &mut Vec<u8>) {
        match self.block_of(event) {
            Some(at) => self.pass(at, event.clone(), out),
            None => named_frame(name, event, out),
        }
    }

    /// Shows or drops the blocks that waited for the end of the round.
    fn release(&mut self, has_calls: bool, out: &mut Vec<u8>) {
        for at in 0..self.round.blocks.len() {
            let Place::Held(events) = &mut self.round.blocks[at].place else { continue };
            let events = std::mem::take(events);
            if has_calls && self.round.blocks[at].block.kind == "text" {
                self.round.blocks[at].place = Place::Hidden;
                continue;
            }
            let index = self.open_block();
            self.round.blocks[at].place = Place::Shown(index);
            for event in events {
                self.pass(at, event, out);
            }
            self.note_shown(at);
        }
    }

    /// Ends blocks that the provider left open.
    fn close_blocks(&mut self, out: &mut Vec<u8>) {
        for at in 0..self.round.blocks.len() {
            let state = &self.round.blocks[at];
            if state.is_done || matches!(state.place, Place::Hidden) {
                continue;
            }
            let index = state.index;
            let stop = to_raw(&json!({"type": "content_block_stop", "index": index}));
            self.block_stop(RawObject::read(stop.get()).unwrap_or_default(), out);
        }
    }

    /// Shows a block that the provider did not send.
    fn show_block(&mut self, block: &serde_json::Value, out: &mut Vec<u8>) {
        let index = self.open_block();
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let stop = json!({"type": "content_block_stop", "index": index});
        for event in [start, stop] {
            event_frame(&RawObject::read(&event.to_string()).unwrap_or_default(), out);
        }
        if !self.is_streamed {
            self.content.push(to_raw(block));
        }
    }

    fn stop_reason(&self, why: FinishReason) -> Option<&'static str> {
        match why {
            FinishReason::OutputLimit => Some("max_tokens"),
            // The app sends the reply back, and the model goes on from the results.
            FinishReason::RoundLimit => Some("pause_turn"),
            FinishReason::Model => {
                let is_call = self.last.stop_reason.as_deref() == Some("tool_use");
                (is_call && self.last.app_calls == 0).then_some("end_turn")
            }
        }
    }

    /// The `delta` of the last event, with the reason that the app sees.
    fn last_delta(&self, why: FinishReason) -> RawObject {
        let mut delta = self.last.event.parsed::<RawObject>("delta").unwrap_or_default();
        if let Some(reason) = self.stop_reason(why) {
            delta.set("stop_reason", to_raw(&reason));
            delta.set("stop_sequence", raw("null".to_owned()));
        }
        delta
    }
}

impl Splicer for MessagesSplicer {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        owner: &dyn Fn(&str) -> ToolOwner,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let event = RawObject::read(data).map_err(|error| {
            let message = format!("the provider sent an event that is not JSON: {error}");
            Refusal::new(RefusalKind::Upstream, message)
        })?;
        let kind = event.parsed::<String>("type").unwrap_or_else(|| name.to_owned());
        match kind.as_str() {
            "message_start" => self.message_start(&event, out),
            "content_block_start" => self.block_start(event, owner, out),
            "content_block_delta" => self.block_delta(event, out),
            "content_block_stop" => self.block_stop(event, out),
            "message_delta" => self.message_delta(event),
            "message_stop" => {}
            "error" => return Err(provider_error(&event, data)),
            _ if self.head.is_none() => {}
            _ => self.unknown(&kind, &event, out),
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, owner: &dyn Fn(&str) -> ToolOwner) -> Result<(), Refusal> {
        let message = RawObject::read(body).ok().filter(|body| body.get("content").is_some());
        let Some(message) = message else {
            return Err(Refusal::new(
                RefusalKind::Upstream,
                "the provider's answer is not a message",
            ));
        };
        let unused = &mut Vec::new();
        for (index, block) in
            message.parsed::<Vec<RawObject>>("content").into_iter().flatten().enumerate()
        {
            let index = to_raw(&index);
            let mut event = RawObject::default();
            event.set("index", index);
            event.set("content_block", block.to_raw());
            self.block_start(event.clone(), owner, unused);
            self.block_stop(event, unused);
        }
        self.round.usage.take(&message, true);
        let reason = message.parsed("stop_reason");
        self.round.ending.stop_reason = Some(reason.unwrap_or_else(|| "end_turn".to_owned()));
        let mut event = RawObject::default();
        let mut delta = RawObject::default();
        for name in LAST_MEMBERS {
            if let Some(value) = message.get(name) {
                delta.set(name, value.to_owned());
            }
        }
        event.set("delta", delta.to_raw());
        self.round.ending.event = event;
        self.head.get_or_insert(message);
        Ok(())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<SplicedRound, Refusal> {
        let Some(stop_reason) = self.round.ending.stop_reason.clone() else {
            return Err(Refusal::new(
                RefusalKind::Upstream,
                "the provider's stream ended before its message was complete",
            ));
        };
        self.close_blocks(out);
        // The last call of a message that was cut has only a part of its arguments.
        let is_cut = matches!(
            stop_reason.as_str(),
            "max_tokens" | "model_context_window_exceeded" | "refusal"
        );
        let is_call = |state: &&BlockState| {
            state.block.kind == "tool_use" && matches!(state.place, Place::Hidden)
        };
        let hidden = self.round.blocks.iter().filter(is_call).filter(|_| !is_cut);
        let calls: Vec<_> = hidden
            .map(|state| PendingCall {
                id: state.block.id(),
                name: state.block.name(),
                arguments: state.block.arguments(),
            })
            .collect();
        self.release(!calls.is_empty(), out);
        let round = std::mem::take(&mut self.round);
        if self.shows_calls {
            for call in round.blocks.iter().filter(is_call).filter(|_| !is_cut) {
                let block = shown_call(&call.block, &self.server_label);
                self.shown_ids.push(shown_id(&call.block.id()));
                self.show_block(&block, out);
            }
        }
        let content: Vec<Raw> = round
            .blocks
            .iter()
            .filter(|state| !(is_cut && is_call(state)))
            .filter(|state| state.block.kind != "text" || !state.block.text().trim().is_empty())
            .map(|state| state.block.build())
            .collect();
        let content = array(content.iter().map(|block| block.get()));
        let replay = raw(format!(r#"{{"role":"assistant","content":{}}}"#, content.get()));
        self.usage.add(&round.usage);
        let output_tokens = round.usage.output_tokens();
        let app_calls = round.ending.app_calls;
        let delta = round.ending.event.parsed::<RawObject>("delta").unwrap_or_default();
        let container = delta.parsed::<RawObject>("container");
        let container = container.and_then(|one| one.get("id").map(ToOwned::to_owned));
        self.container = container.or(self.container.take());
        self.last = Ending { usage: round.usage, ..round.ending };
        Ok(SplicedRound {
            calls,
            app_calls,
            replay: (content.get() != "[]").then_some(replay).into_iter().collect(),
            output_tokens,
            upstream_id: None,
        })
    }

    fn call_ended(&mut self, call: &PendingCall, result: &ToolReturn, out: &mut Vec<u8>) {
        if self.shows_calls {
            self.show_block(&shown_result(&shown_id(&call.id), result), out);
        }
    }

    fn finish(&mut self, why: FinishReason, out: &mut Vec<u8>) {
        let mut event = self.last.event.clone();
        event.set("delta", self.last_delta(why).to_raw());
        event.set("usage", self.usage.of_delta(&self.last.usage, self.is_beta));
        event_frame(&event, out);
        out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    }

    fn finish_whole(&mut self, why: FinishReason) -> String {
        let mut message = self.head.take().unwrap_or_default();
        message.set("id", to_raw(&self.id));
        message.set("content", array(self.content.iter().map(|block| block.get())));
        let delta = self.last_delta(why);
        for name in LAST_MEMBERS {
            if let Some(value) = delta.get(name) {
                message.set(name, value.to_owned());
            }
        }
        if let Some(usage) = self.usage.of_message(self.is_beta) {
            message.set("usage", usage);
        }
        message.to_json()
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        let mut event = refusal.to_event(Api::Messages);
        event.set("type", to_raw(&"error"));
        named_frame("error", &event, out);
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
        b"event: ping\ndata: {\"type\":\"ping\"}\n\n"
    }

    fn container(&self) -> Option<&RawValue> {
        self.container.as_deref()
    }

    fn answer_id(&self) -> Option<&str> {
        Some(&self.id)
    }
}

/// A call that runs here, whole: some clients do not collect deltas of such a block.
fn shown_call(call: &BlockBuilder, server_label: &str) -> serde_json::Value {
    json!({
        "type": "mcp_tool_use",
        "id": shown_id(&call.id()),
        "name": call.name(),
        "server_name": server_label,
        "input": call.input(),
    })
}

fn shown_id(id: &str) -> String {
    format!("mcptoolu_{}", id.strip_prefix("toolu_").unwrap_or(id))
}

fn event_frame(event: &RawObject, out: &mut Vec<u8>) {
    named_frame(&event.parsed::<String>("type").unwrap_or_default(), event, out);
}

/// The error that a provider sends within a stream.
fn provider_error(event: &RawObject, data: &str) -> Refusal {
    let error = event.parsed::<RawObject>("error").unwrap_or_default();
    let (kind, status) = match error.parsed::<String>("type").as_deref() {
        Some("invalid_request_error") => (RefusalKind::Invalid, 400),
        Some("authentication_error") => (RefusalKind::Unauthorized, 401),
        Some("permission_error" | "billing_error") => (RefusalKind::Forbidden, 403),
        Some("not_found_error") => (RefusalKind::NotFound, 404),
        Some("request_too_large") => (RefusalKind::TooLarge, 413),
        Some("rate_limit_error") => (RefusalKind::RateLimited, 429),
        Some("timeout_error") => (RefusalKind::Upstream, 504),
        Some("overloaded_error") => (RefusalKind::Overloaded, 529),
        _ => (RefusalKind::Upstream, 500),
    };
    let message = error.parsed("message").unwrap_or_else(|| "the provider failed".to_owned());
    Refusal { status: Some(status), body: Some(data.into()), ..Refusal::new(kind, message) }
}
