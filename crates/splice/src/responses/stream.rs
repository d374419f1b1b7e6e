//! Joins the answers of several rounds of Responses.
//!
//! The app sees one response: one id, one beginning and one end, items with indexes and ids that occur once, sequence numbers
//! that count on. A session call is shown as an `mcp_call` item when its round has ended, because until then the round may be
//! repeated. An answer in one piece is read as if all its items came with its end.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use switchboard_chat::ToolReturn;

use super::item::{Item, id_prefix};
use super::round::{Ending, ItemPlace, Round, RoundItem};
use super::{ANSWER_PREFIX, mcp_call, whole_item};
use crate::app_request::RequestFacts;
use crate::minted_ids::MintedIds;
use crate::openai::{add_usage, stream_error};
use crate::raw_json::{Raw, RawObject, array, elements, raw, to_raw};
use crate::request_format::ShownReply;
use crate::splicer::{FinishReason, PendingCall, SplicedRound, Splicer, ToolOwner};
use crate::{Refusal, RefusalKind, TurnOptions};

type Owner<'a> = &'a dyn Fn(&str) -> ToolOwner;

/// Members of the response object that tell what the app asked for. Later requests differ in them.
const ASKED: [&str; 4] = ["tools", "tool_choice", "max_output_tokens", "max_tool_calls"];

/// The splicer of Responses.
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
#[derive(Debug)]
pub(crate) struct ResponsesSplicer {
    ids: MintedIds,
    id: String,
    created_at: u64,
    model: String,
    previous: Option<String>,
    is_stored: bool,
    shows_calls: bool,
    /// Whether messages wait for the end of their round, so that an app that parses them gets those of the last round only.
    holds_text: bool,
    label: String,
    sequence: u64,
    /// The response object of the first round.
    base: Option<RawObject>,
    has_begun: bool,
    has_progress: bool,
    /// What the app was shown, by its index: items at their end, and items that are open.
    output: BTreeMap<u64, Raw>,
    open: BTreeMap<u64, Raw>,
    used_ids: HashSet<String>,
    /// The indexes of shown session calls that run.
    running: Vec<(String, u64)>,
    usage: Value,
    round: Round,
    last: Option<(Ending, RawObject)>,
}

impl ResponsesSplicer {
    pub(crate) fn new(facts: &RequestFacts, options: &TurnOptions) -> Self {
        let mut ids = MintedIds::new(&options.seed);
        let id = ids.next(ANSWER_PREFIX);
        Self {
            ids,
            id,
            created_at: options.now,
            model: facts.model.clone(),
            previous: facts.previous_answer.clone(),
            is_stored: facts.is_stored,
            shows_calls: options.shows_calls.unwrap_or(facts.shows_calls),
            holds_text: facts.wants_format,
            label: options.server_label.clone(),
            sequence: 0,
            base: None,
            has_begun: false,
            has_progress: false,
            output: BTreeMap::new(),
            open: BTreeMap::new(),
            used_ids: HashSet::new(),
            running: Vec::new(),
            usage: Value::Null,
            round: Round::default(),
            last: None,
        }
    }

    /// Writes an event with the next sequence number.
    fn write(&mut self, kind: &str, mut event: RawObject, out: &mut Vec<u8>) {
        event.set("sequence_number", to_raw(&self.sequence));
        self.sequence += 1;
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\ndata: ");
        // A line end outside of a text is a blank.
        out.extend(event.to_json().bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
        out.extend_from_slice(b"\n\n");
    }

    fn write_response(&mut self, kind: &str, response: &RawObject, out: &mut Vec<u8>) {
        let mut event = RawObject::default();
        event.set("type", to_raw(&kind));
        event.set("response", response.to_raw());
        self.write(kind, event, out);
    }

    /// Writes the beginning, if it was not.
    fn begin(&mut self, out: &mut Vec<u8>) {
        for (kind, has_been) in
            [("response.created", self.has_begun), ("response.in_progress", self.has_progress)]
        {
            if !has_been {
                let response = self.response(None, "in_progress");
                self.write_response(kind, &response, out);
            }
        }
        (self.has_begun, self.has_progress) = (true, true);
    }

    /// Keeps the response object of the first round.
    fn keep_base(&mut self, response: Option<RawObject>, owner: Owner<'_>) {
        let (None, Some(mut base)) = (&self.base, response) else { return };
        // The app did not declare the session's tools.
        if let Some(tools) = base.get("tools").and_then(elements) {
            let of_app = tools.iter().map(|tool| tool.get()).filter(|tool| {
                let tool = Item::read(tool);
                let name = tool.name.filter(|_| tool.r#type == "function");
                name.is_none_or(|name| owner(&name) == ToolOwner::App)
            });
            base.set("tools", array(of_app));
        }
        self.base = Some(base);
    }

    /// The response object: the provider's, with what differs between the rounds replaced.
    fn response(&self, last: Option<&RawObject>, status: &str) -> RawObject {
        let mut response = last.or(self.base.as_ref()).cloned().unwrap_or_default();
        response.set("id", to_raw(&self.id));
        response.set("object", to_raw(&"response"));
        response.set("created_at", to_raw(&self.created_at));
        response.set("status", to_raw(&status));
        response.set("previous_response_id", to_raw(&self.previous));
        for (name, value) in [
            ("model", to_raw(&self.model)),
            ("error", raw("null".to_owned())),
            ("incomplete_details", raw("null".to_owned())),
            ("instructions", raw("null".to_owned())),
            ("metadata", raw("{}".to_owned())),
            ("parallel_tool_calls", raw("true".to_owned())),
            ("tool_choice", raw("\"auto\"".to_owned())),
            ("tools", raw("[]".to_owned())),
        ] {
            if response.get(name).is_none() {
                response.set(name, value);
            }
        }
        for name in ASKED {
            if let Some(value) = self.base.as_ref().and_then(|base| base.get(name)) {
                response.set(name, value.to_owned());
            }
        }
        let shown = self.output.iter().chain(&self.open).collect::<BTreeMap<_, _>>();
        response.set("output", array(shown.into_values().map(|item| item.get())));
        let usage = self.last.as_ref().map_or(&Value::Null, |_| &self.usage);
        response.set("usage", to_raw(usage));
        response
    }

    fn added(&mut self, event: RawObject, owner: Owner<'_>, out: &mut Vec<u8>) {
        let Some(added) = event.get("item").map(ToOwned::to_owned) else { return };
        let index = event.parsed("output_index").unwrap_or_else(|| self.round.next_index());
        if self.round.items.contains_key(&index) {
            return;
        }
        let item = Item::read(added.get());
        let is_session = item.r#type == "function_call"
            && item.namespace.is_none()
            && owner(item.name.as_deref().unwrap_or_default()) == ToolOwner::Session;
        let is_text =
            self.holds_text && item.is_message() && item.phase.as_deref() != Some("commentary");
        let place = if is_session {
            ItemPlace::Hidden
        } else if is_text || self.round.is_holding() {
            ItemPlace::Held { is_text }
        } else {
            let place = self.place(&item);
            self.round.has_shown = true;
            place
        };
        self.round.items.insert(index, RoundItem::new(place, added));
        self.item_event(index, event, out);
    }

    /// A new place in the answer. The provider's id is kept where it can be: the app sends it back.
    fn place(&mut self, item: &Item) -> ItemPlace {
        let index = self.output.len() + self.open.len();
        let known = item.id.clone().filter(|id| !id.is_empty() && !self.used_ids.contains(id));
        let id = known.unwrap_or_else(|| self.ids.next(id_prefix(&item.r#type)));
        self.used_ids.insert(id.clone());
        ItemPlace::Shown { index: u64::try_from(index).unwrap_or(u64::MAX), id }
    }

    fn done(&mut self, event: RawObject, owner: Owner<'_>, out: &mut Vec<u8>) {
        let Some(done) = event.get("item").map(ToOwned::to_owned) else { return };
        let last = || self.round.items.last_key_value().map(|(index, _)| *index);
        let index = event.parsed("output_index").or_else(last);
        match index.and_then(|index| self.round.items.get_mut(&index).map(|item| (index, item))) {
            Some((_, item)) if item.done.is_some() => {}
            Some((index, item)) => {
                item.done = Some(done);
                self.item_event(index, event, out);
            }
            None => self.whole_item(index, &done, owner, out),
        }
    }

    /// An item that was not announced.
    fn whole_item(&mut self, index: Option<u64>, item: &Raw, owner: Owner<'_>, out: &mut Vec<u8>) {
        let index = index.unwrap_or_else(|| self.round.next_index());
        for mut event in whole_item::events(item) {
            event.set("output_index", to_raw(&index));
            match event.parsed::<String>("type").as_deref() {
                Some("response.output_item.added") => self.added(event, owner, out),
                Some("response.output_item.done") => self.done(event, owner, out),
                _ => self.item_event(index, event, out),
            }
        }
    }

    /// An event of an item.
    fn item_event(&mut self, index: u64, event: RawObject, out: &mut Vec<u8>) {
        let Some(item) = self.round.items.get_mut(&index) else { return };
        match &item.place {
            ItemPlace::Hidden => {
                let kind: String = event.parsed("type").unwrap_or_default();
                if kind == "response.function_call_arguments.delta" {
                    item.arguments.push_str(&event.parsed::<String>("delta").unwrap_or_default());
                } else if kind == "response.function_call_arguments.done" {
                    item.arguments = event.parsed("arguments").unwrap_or_default();
                }
            }
            ItemPlace::Held { .. } => self.round.held.push((index, event)),
            ItemPlace::Shown { index, id } => {
                let (index, id) = (*index, id.clone());
                self.show(index, &id, event, out);
            }
        }
    }

    /// Writes an event of an item that the app sees.
    fn show(&mut self, index: u64, id: &str, mut event: RawObject, out: &mut Vec<u8>) {
        self.begin(out);
        let kind: String = event.parsed("type").unwrap_or_default();
        event.set("output_index", to_raw(&index));
        if event.get("item_id").is_some() {
            event.set("item_id", to_raw(&id));
        }
        if let Some(mut item) = event.parsed::<RawObject>("item") {
            item.set("id", to_raw(&id));
            let item = item.to_raw();
            event.set("item", item.clone());
            if kind == "response.output_item.done" {
                self.open.remove(&index);
                self.output.insert(index, item);
            } else {
                self.open.insert(index, item);
            }
        }
        self.write(&kind, event, out);
    }

    /// The end of the provider's answer.
    fn ended(&mut self, ending: Ending, response: RawObject, owner: Owner<'_>, out: &mut Vec<u8>) {
        let output = response.get("output").and_then(elements).unwrap_or_default();
        // Some servers send items only here, or do not end them.
        let is_unseen = self.round.items.is_empty();
        for (index, item) in (0..).zip(&output) {
            let open = self.round.items.get(&index).is_some_and(|item| item.done.is_none());
            if is_unseen {
                self.whole_item(Some(index), item, owner, out);
            } else if open {
                let mut event = RawObject::default();
                event.set("type", to_raw(&"response.output_item.done"));
                event.set("output_index", to_raw(&index));
                event.set("item", item.clone());
                self.done(event, owner, out);
            }
        }
        self.round.end = Some((ending, response));
    }

    /// Ends items that the provider left open: an app accepts no end of an answer with open items.
    fn close_items(&mut self, out: &mut Vec<u8>) {
        let open: Vec<_> = self.open.iter().map(|(index, item)| (*index, item.clone())).collect();
        for (index, item) in open {
            let mut item = RawObject::read(item.get()).unwrap_or_default();
            item.set("status", to_raw(&"incomplete"));
            let id: String = item.parsed("id").unwrap_or_default();
            let mut event = RawObject::default();
            event.set("type", to_raw(&"response.output_item.done"));
            event.set("item", item.to_raw());
            self.show(index, &id, event, out);
        }
    }

    /// Shows what waited for the end of the round; without messages, if the round goes on.
    fn release(&mut self, round: &mut Round, has_calls: bool, out: &mut Vec<u8>) {
        for (index, event) in std::mem::take(&mut round.held) {
            let Some(item) = round.items.get_mut(&index) else { continue };
            if let ItemPlace::Held { is_text } = item.place {
                if is_text && has_calls {
                    continue;
                }
                item.place = self.place(&Item::read(item.added.get()));
            }
            if let ItemPlace::Shown { index, id } = item.place.clone() {
                self.show(index, &id, event, out);
            }
        }
    }

    /// The end of the answer: its status, and its response object.
    fn end_of_answer(&self, why: FinishReason) -> (&'static str, RawObject) {
        let (ending, last) = match &self.last {
            Some((ending, last)) => (*ending, Some(last)),
            None => (Ending::Completed, None),
        };
        let status = match (why, ending) {
            (FinishReason::Model, Ending::Completed) => "completed",
            _ => "incomplete",
        };
        let mut response = self.response(last, status);
        if why != FinishReason::Model {
            let reason = json!({"reason": "max_output_tokens"});
            response.set("incomplete_details", to_raw(&reason));
        }
        (status, response)
    }

    fn items(&self) -> impl Iterator<Item = Item> {
        self.output.values().map(|item| Item::read(item.get()))
    }
}

impl Splicer for ResponsesSplicer {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        owner: Owner<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let data = data.trim();
        if matches!(data, "" | "[DONE]") {
            return Ok(());
        }
        let event = RawObject::read(data).map_err(|error| {
            let text = format!("an event of the provider's stream cannot be read: {error}");
            Refusal::new(RefusalKind::Upstream, text)
        })?;
        let kind = event.parsed::<String>("type").unwrap_or_else(|| name.to_owned());
        let response = || event.parsed::<RawObject>("response");
        match &*kind {
            "response.created" => {
                self.keep_base(response(), owner);
                if !self.has_begun {
                    self.has_begun = true;
                    let response = self.response(None, "in_progress");
                    self.write_response(&kind, &response, out);
                }
            }
            "response.in_progress" | "response.queued" => {
                self.keep_base(response(), owner);
                self.begin(out);
            }
            "response.output_item.added" => self.added(event, owner, out),
            "response.output_item.done" => self.done(event, owner, out),
            "response.completed" | "response.incomplete" => {
                let is_whole = kind == "response.completed";
                let ending = if is_whole { Ending::Completed } else { Ending::Incomplete };
                self.keep_base(response(), owner);
                self.ended(ending, response().unwrap_or_default(), owner, out);
            }
            "response.failed" | "error" => return Err(stream_error(data)),
            _ => self.other_event(&kind, event, out),
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, owner: Owner<'_>) -> Result<(), Refusal> {
        let response = RawObject::read(body).map_err(|error| {
            let text = format!("the provider's answer cannot be read: {error}");
            Refusal::new(RefusalKind::Upstream, text)
        })?;
        let status: String = response.parsed("status").unwrap_or_default();
        let has_error = response.get("error").is_some_and(|error| error.get() != "null");
        if has_error || status == "failed" {
            return Err(stream_error(body));
        }
        if response.get("output").is_none() {
            let text = "the provider's answer has no output";
            return Err(Refusal::new(RefusalKind::Upstream, text));
        }
        self.keep_base(Some(response.clone()), owner);
        let ending = if status == "incomplete" { Ending::Incomplete } else { Ending::Completed };
        self.ended(ending, response, owner, &mut Vec::new());
        Ok(())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<SplicedRound, Refusal> {
        let Some((ending, last)) = self.round.end.take() else {
            let text = "the provider's stream ended before the answer did";
            return Err(Refusal::new(RefusalKind::Upstream, text));
        };
        let mut round = std::mem::take(&mut self.round);
        self.begin(out);
        // Arguments of an answer that was cut may be incomplete.
        let mut calls = match ending {
            Ending::Completed => round.session_calls(),
            Ending::Incomplete => Vec::new(),
        };
        for (_, call) in &mut calls {
            if call.id.is_empty() || !self.used_ids.insert(call.id.clone()) {
                call.id = self.ids.next("call_");
                self.used_ids.insert(call.id.clone());
            }
        }
        self.release(&mut round, !calls.is_empty(), out);
        self.close_items(out);
        let app_calls = round.items.values().filter(|item| {
            let is_shown = matches!(item.place, ItemPlace::Shown { .. });
            is_shown && Item::read(item.whole().get()).as_app_call().is_some()
        });
        let app_calls = app_calls.count();
        let usage: Value = last.parsed("usage").unwrap_or_default();
        let output_tokens = usage["output_tokens"].as_u64();
        add_usage(&mut self.usage, usage);
        // A server that does not store says nothing of it, whatever it is asked for.
        let is_kept = self.is_stored && last.parsed::<bool>("store").unwrap_or(false);
        let upstream_id = last.parsed::<String>("id").filter(|_| is_kept);
        let replay = round.replay(&calls, is_kept);
        self.last = Some((ending, last));
        let calls: Vec<_> = calls.into_iter().map(|(_, call)| call).collect();
        if self.shows_calls {
            for call in &calls {
                self.show_call(call, out);
            }
        }
        Ok(SplicedRound { calls, app_calls, replay, output_tokens, upstream_id })
    }

    fn call_ended(&mut self, call: &PendingCall, result: &ToolReturn, out: &mut Vec<u8>) {
        let Some(at) = self.running.iter().position(|(id, _)| *id == call.id) else { return };
        let (_, index) = self.running.swap_remove(at);
        let Some(item) = self.open.get(&index).and_then(|item| RawObject::read(item.get()).ok())
        else {
            return;
        };
        let id: String = item.parsed("id").unwrap_or_default();
        for event in mcp_call::ended(item, call, result) {
            self.show(index, &id, event, out);
        }
    }

    fn finish(&mut self, why: FinishReason, out: &mut Vec<u8>) {
        self.begin(out);
        let (status, response) = self.end_of_answer(why);
        self.write_response(&format!("response.{status}"), &response, out);
    }

    fn finish_whole(&mut self, why: FinishReason) -> String {
        self.end_of_answer(why).1.to_json()
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        self.begin(out);
        let last = self.last.as_ref().map(|(_, last)| last);
        let mut response = self.response(last, "failed");
        let body = refusal.body.as_ref().and_then(|body| serde_json::from_str::<Value>(body).ok());
        let code = body.as_ref().and_then(|body| body["error"]["code"].as_str());
        let code = code.or(refusal.openai_code()).unwrap_or("server_error");
        response.set("error", to_raw(&json!({"code": code, "message": refusal.message})));
        self.write_response("response.failed", &response, out);
    }

    fn shown(&self) -> ShownReply {
        let mut shown = ShownReply::default();
        for item in self.items() {
            if item.is_message() {
                shown.text.push_str(&item.text());
            }
            shown.calls.extend(item.as_app_call());
        }
        shown
    }

    fn handles(&self) -> Vec<String> {
        let items: Vec<_> = self.items().collect();
        let calls = items.iter().filter(|item| item.as_app_call().is_some());
        let others = items.iter().filter(|item| item.as_app_call().is_none());
        let calls = calls.filter_map(|item| item.call_id.clone());
        calls.chain(others.filter_map(|item| item.id.clone())).collect()
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

    fn stored_answer(&self, why: FinishReason) -> Option<Raw> {
        Some(self.end_of_answer(why).1.to_raw())
    }

    fn answer_id(&self) -> Option<&str> {
        Some(&self.id)
    }
}

impl ResponsesSplicer {
    /// Shows that a session call begins.
    fn show_call(&mut self, call: &PendingCall, out: &mut Vec<u8>) {
        let item = Item { r#type: "mcp_call".to_owned(), ..Item::default() };
        let ItemPlace::Shown { index, id } = self.place(&item) else { return };
        for event in mcp_call::begun(&id, &self.label, call) {
            self.show(index, &id, event, out);
        }
        self.running.push((call.id.clone(), index));
    }

    /// An event that is not known here. One of an item goes where its item is, others pass.
    fn other_event(&mut self, kind: &str, event: RawObject, out: &mut Vec<u8>) {
        let by_id = || {
            let id = event.parsed::<String>("item_id")?;
            let mut items = self.round.items.iter();
            let found =
                items.find(|(_, item)| Item::read(item.added.get()).id.as_deref() == Some(&*id));
            found.map(|(index, _)| *index)
        };
        match event.parsed("output_index").or_else(by_id) {
            Some(index) => {
                let is_shown = self
                    .round
                    .items
                    .get(&index)
                    .is_some_and(|item| matches!(item.place, ItemPlace::Shown { .. }));
                self.round.has_shown |= is_shown;
                self.item_event(index, event, out);
            }
            None if event.get("item_id").is_some() => {}
            None => {
                self.begin(out);
                self.write(kind, event, out);
            }
        }
    }
}
