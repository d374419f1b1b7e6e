//! An app's request to Anthropic Messages.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_chat::ToolReturn;

use super::cache_marks::{added_marks, marked, marked_message};
use super::identity;
use super::tool_result::tool_result;
use crate::app_request::{RequestFacts, RequestTarget};
use crate::raw_json::{Raw, RawObject, array, elements, raw, to_raw};
use crate::refusal::PREVIOUS_MESSAGE;
use crate::request_format::{ConversationUnit, RequestFormat, RoundBody};
use crate::splicer::PendingCall;
use crate::{Refusal, RefusalKind, TurnRecord};

/// With this beta feature an app knows blocks of calls that ran elsewhere.
const SHOWS_CALLS: &str = "mcp-client-";

/// The smallest `thinking.budget_tokens` that the API takes.
const MIN_THINKING: u64 = 1024;

/// What a thread keeps of the request that created it. A request that goes on with the thread does not have them.
const KEPT: [&str; 2] = ["system", "tools"];

/// Whether a conversation is held here, under the id of its last message.
enum Thread {
    None,
    Create,
    Continue(String),
}

impl Thread {
    fn of(request: &RawObject) -> Result<Self, Refusal> {
        let Some(thread) = request.get("thread").filter(|thread| thread.get() != "null") else {
            return Ok(Self::None);
        };
        let thread = RawObject::read(thread.get()).unwrap_or_default();
        let previous = thread.parsed("previous_message_id");
        match (thread.parsed::<String>("type").as_deref(), previous) {
            (Some("create"), _) => Ok(Self::Create),
            (Some("continue"), Some(id)) => Ok(Self::Continue(id)),
            _ => Err(Refusal {
                param: Some("thread".to_owned()),
                ..Refusal::new(
                    RefusalKind::ThreadUnsupported,
                    "thread: `create`, or `continue` with `previous_message_id`, is required; \
                     else send the whole conversation without it",
                )
            }),
        }
    }
}

#[derive(Debug)]
pub(crate) struct MessagesRequest {
    request: RawObject,
    messages: Vec<Raw>,
    tools: Vec<Raw>,
    /// Names of MCP servers that the provider itself calls for the app.
    own_servers: Vec<String>,
    facts: RequestFacts,
}

impl MessagesRequest {
    pub(crate) fn read(target: &RequestTarget, text: &str) -> Result<Self, Refusal> {
        let request = RawObject::read(text).map_err(|error| {
            Refusal::new(RefusalKind::Invalid, format!("the body is not a JSON object: {error}"))
        })?;
        let thread = Thread::of(&request)?;
        let mut request = request;
        // The thread is held here, so that the provider gets the whole conversation with what the app did not see.
        request.remove("thread");
        let messages = request.get("messages").and_then(elements).ok_or_else(|| {
            Refusal::of_member("messages", "messages: a list of messages is required")
        })?;
        let list = |name| request.get(name).and_then(elements).unwrap_or_default();
        let tools = list("tools");
        let facts = RequestFacts {
            model: request.parsed("model").or_else(|| target.model.clone()).unwrap_or_default(),
            is_streamed: request.parsed("stream").or(target.is_streamed).unwrap_or_default(),
            app_tools: names(&tools),
            wants_format: wants_format(&request),
            shows_calls: target.betas.iter().any(|beta| beta.starts_with(SHOWS_CALLS)),
            is_beta: !target.betas.is_empty(),
            max_output_tokens: request.parsed("max_tokens"),
            is_stored: !matches!(thread, Thread::None),
            previous_answer: match thread {
                Thread::Continue(id) => Some(id),
                Thread::None | Thread::Create => None,
            },
            ..RequestFacts::default()
        };
        let own_servers = names(&list("mcp_servers"));
        Ok(Self { request, messages, tools, own_servers, facts })
    }

    /// Later rounds get what is left of the app's maximum, no forced choice of a tool, and the container of the round before.
    fn limit_later_round(
        &self,
        body: &mut RawObject,
        output_left: Option<u64>,
        container: Option<&RawValue>,
    ) {
        let choice = body.parsed::<Value>("tool_choice").unwrap_or_default();
        if choice["type"] == "any" || choice["type"] == "tool" {
            let mut auto = json!({"type": "auto"});
            if let Some(parallel) = choice.get("disable_parallel_tool_use") {
                auto["disable_parallel_tool_use"] = parallel.clone();
            }
            body.set("tool_choice", to_raw(&auto));
        }
        if let Some(id) = container {
            // An object names skills beside the id.
            let named = body.parsed::<RawObject>("container");
            let named = named.map(|mut named| {
                named.set("id", id.to_owned());
                named.to_raw()
            });
            body.set("container", named.unwrap_or_else(|| id.to_owned()));
        }
        let Some(left) = output_left else { return };
        body.set("max_tokens", to_raw(&left));
        let Some(mut thinking) = body.parsed::<Value>("thinking") else { return };
        let Some(budget) = thinking["budget_tokens"].as_u64() else { return };
        // The budget must stay below `max_tokens`, where the app kept it there.
        let was_below = self.facts.max_output_tokens.is_some_and(|most| budget < most);
        if !was_below || budget < left {
            return;
        }
        if left > MIN_THINKING {
            thinking["budget_tokens"] = (left - 1).into();
            body.set("thinking", to_raw(&thinking));
        } else {
            body.remove("thinking");
        }
    }
}

impl RequestFormat for MessagesRequest {
    fn facts(&self) -> &RequestFacts {
        &self.facts
    }

    fn conversation(&self) -> &[Raw] {
        &self.messages
    }

    fn set_conversation(&mut self, conversation: Vec<Raw>) {
        self.messages = conversation;
    }

    fn units(&self) -> Vec<ConversationUnit> {
        identity::units(&self.messages)
    }

    fn handles(&self, unit: &[Raw]) -> Vec<String> {
        unit.iter().flat_map(identity::call_ids).collect()
    }

    fn call_ids(&self, unit: &[Raw]) -> Vec<String> {
        unit.iter().flat_map(identity::app_call_ids).collect()
    }

    fn without_claims(&self, unit: &[Raw]) -> Vec<Raw> {
        unit.iter().map(|message| identity::without_claims(message, &self.own_servers)).collect()
    }

    fn put_results(&self, conversation: &mut Vec<Raw>, after: usize, results: &[Raw]) {
        let message = conversation.get(after).and_then(|message| with_results(message, results));
        if let Some(message) = message {
            conversation[after] = message;
        } else {
            let message = user_message(results.iter().map(|block| block.get()));
            conversation.insert(after.min(conversation.len()), message);
        }
    }

    fn go_on_from(&mut self, record: Option<&TurnRecord>) -> Result<(), Refusal> {
        let Some(record) = record else {
            return Err(Refusal {
                param: Some(PREVIOUS_MESSAGE.to_owned()),
                ..Refusal::new(
                    RefusalKind::NotFound,
                    format!(
                        "{PREVIOUS_MESSAGE}: the thread is not known, or was held too long ago"
                    ),
                )
            });
        };
        let mut messages: Vec<Raw> =
            record.conversation.iter().chain(&record.real).cloned().collect();
        let after = messages.len();
        messages.append(&mut self.messages);
        if !record.pending.is_empty() {
            self.put_results(&mut messages, after, &record.pending);
        }
        self.messages = messages;
        let kept = record.kept.as_ref().and_then(|kept| RawObject::read(kept.get()).ok());
        for name in KEPT {
            if let Some(value) = kept.as_ref().and_then(|kept| kept.get(name)) {
                self.request.set(name, value.to_owned());
            }
        }
        self.tools = self.request.get("tools").and_then(elements).unwrap_or_default();
        self.facts.app_tools = names(&self.tools);
        Ok(())
    }

    fn drop_thinking(&mut self, refusal: &Refusal) -> bool {
        let text = refusal.body.as_deref().unwrap_or(&refusal.message);
        let is_about_thinking = text.contains("redacted_thinking")
            || text.contains("thinking") && text.contains("signature");
        if refusal.status() != 400 || !is_about_thinking {
            return false;
        }
        let kept: Vec<Raw> = self.messages.iter().filter_map(identity::without_thinking).collect();
        let before: usize = self.messages.iter().map(|message| message.get().len()).sum();
        let is_changed = kept.iter().map(|message| message.get().len()).sum::<usize>() != before;
        self.messages = kept;
        is_changed
    }

    fn kept_members(&self) -> Option<Raw> {
        let mut kept = RawObject::default();
        for name in KEPT {
            if let Some(value) = self.request.get(name) {
                kept.set(name, value.to_owned());
            }
        }
        Some(kept.to_raw())
    }

    fn results(&self, results: &[(PendingCall, ToolReturn)]) -> Vec<Raw> {
        results.iter().map(|(call, result)| to_raw(&tool_result(&call.id, result))).collect()
    }

    fn results_as_elements(&self, results: Vec<Raw>) -> Vec<Raw> {
        if results.is_empty() {
            return Vec::new();
        }
        vec![user_message(results.iter().map(|block| block.get()))]
    }

    fn body(&self, round: &RoundBody<'_>) -> Bytes {
        let mut body = self.request.clone();
        let marks = if round.tools.is_empty() {
            super::cache_marks::AddedMarks::default()
        } else {
            added_marks(&self.request, &self.messages, round.is_first)
        };
        if !round.tools.is_empty() {
            let last = marks.tool.and_then(|mark| Some(marked(round.tools.last()?, mark)));
            let plain = round.tools.len() - usize::from(last.is_some());
            let tools = self.tools.iter().map(|tool| tool.get());
            let tools = tools.chain(round.tools.iter().take(plain).map(|tool| &**tool));
            body.set("tools", array(tools.chain(last.iter().map(|tool| tool.get()))));
        }
        if !round.is_first {
            self.limit_later_round(&mut body, round.output_left, round.container);
        }
        let last = round.appended.last().zip(marks.result);
        let last = last.map(|(message, mark)| marked_message(message, mark));
        let plain = round.appended.len() - usize::from(last.is_some());
        let messages = self.messages.iter().chain(round.appended.iter().take(plain)).chain(&last);
        body.set("messages", array(messages.map(|message| message.get())));
        body.to_json().into()
    }

    fn renamed(&self, declaration: &str, name: &str) -> Option<Box<str>> {
        let mut tool = RawObject::read(declaration).ok()?;
        tool.set("name", to_raw(&name));
        Some(tool.to_json().into())
    }
}

/// The names of tools or servers.
fn names(list: &[Raw]) -> Vec<String> {
    let objects = list.iter().filter_map(|one| RawObject::read(one.get()).ok());
    objects.filter_map(|one| one.parsed("name")).collect()
}

fn wants_format(request: &RawObject) -> bool {
    let is_set =
        |holder: &RawObject, name| holder.get(name).is_some_and(|format| format.get() != "null");
    let config = request.parsed::<RawObject>("output_config");
    is_set(request, "output_format") || config.is_some_and(|config| is_set(&config, "format"))
}

/// A user message with results before its own content. `None` if it is no user message.
fn with_results(message: &Raw, results: &[Raw]) -> Option<Raw> {
    let mut message = RawObject::read(message.get()).ok()?;
    if message.parsed::<String>("role").as_deref() != Some("user") {
        return None;
    }
    let content = message.get("content")?;
    let content = match elements(content) {
        Some(blocks) => blocks,
        None => vec![raw(format!(r#"{{"type":"text","text":{}}}"#, content.get()))],
    };
    message.set("content", array(results.iter().chain(&content).map(|block| block.get())));
    Some(message.to_raw())
}

fn user_message<'a>(blocks: impl IntoIterator<Item = &'a str>) -> Raw {
    raw(format!(r#"{{"role":"user","content":{}}}"#, array(blocks).get()))
}
