//! Requests of Chat Completions.
//!
//! The conversation is `messages`. Session calls are hidden from the app, so a reply of the app's conversation stands for
//! all messages of its turn.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_chat::{Part, ToolReturn};

use crate::app_request::{RequestFacts, RequestTarget};
use crate::openai::{is_forced, not_shown, result_text, tool_names, url};
use crate::raw_json::{Raw, RawObject, array, elements, raw, to_raw};
use crate::request_format::{ConversationUnit, RequestFormat, RoundBody, ShownReply, sorted};
use crate::splicer::PendingCall;
use crate::{Refusal, RefusalKind};

/// The members that limit the output. A request has one of them.
const OUTPUT_LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// A request of Chat Completions.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    body: RawObject,
    messages: Vec<Raw>,
    is_changed: bool,
    app_tools: Vec<Raw>,
    facts: RequestFacts,
}

/// A message of a conversation, as far as it identifies the message.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<CalledFunction>,
    #[serde(default)]
    custom: Option<CalledFunction>,
}

#[derive(Deserialize)]
struct CalledFunction {
    #[serde(default)]
    name: String,
    #[serde(default, alias = "input")]
    arguments: String,
}

impl ChatRequest {
    pub(crate) fn read(target: &RequestTarget, text: &str) -> Result<Self, Refusal> {
        let body = RawObject::read(text).map_err(|error| {
            Refusal::new(RefusalKind::Invalid, format!("the body is not a JSON object: {error}"))
        })?;
        let messages = body.get("messages").and_then(elements).ok_or_else(|| {
            Refusal::of_member("messages", "`messages` must be an array of messages")
        })?;
        if body.parsed::<u64>("n").is_some_and(|count| count > 1) {
            let text = "`n` must be 1 while the tools of a session are added: calls of several choices cannot be answered in one request. Send `x-switchboard-inject: off` for several choices";
            return Err(Refusal::of_member("n", text));
        }
        for member in ["functions", "function_call"] {
            if body.get(member).is_some_and(|value| value.get() != "null") {
                let text = format!(
                    "`{member}` cannot be combined with the tools of a session: use `tools` and `tool_choice`, or send `x-switchboard-inject: off`"
                );
                return Err(Refusal::of_member(member, text));
            }
        }
        let app_tools = body.get("tools").and_then(elements).unwrap_or_default();
        let facts = facts(&body, target, &app_tools);
        Ok(Self { body, messages, is_changed: false, app_tools, facts })
    }

    fn messages_of(&self, appended: &[Raw]) -> Option<Raw> {
        let all = self.messages.iter().chain(appended).map(|message| message.get());
        (self.is_changed || !appended.is_empty()).then(|| array(all))
    }
}

fn facts(body: &RawObject, target: &RequestTarget, app_tools: &[Raw]) -> RequestFacts {
    #[derive(Deserialize)]
    struct Format {
        r#type: String,
    }
    #[derive(Deserialize)]
    struct StreamOptions {
        include_usage: Option<bool>,
    }
    let format = body.parsed::<Format>("response_format");
    let options = body.parsed::<StreamOptions>("stream_options");
    RequestFacts {
        model: body.parsed("model").or_else(|| target.model.clone()).unwrap_or_default(),
        is_streamed: body.parsed("stream").or(target.is_streamed).unwrap_or(false),
        app_tools: tool_names(app_tools),
        wants_format: format.is_some_and(|format| format.r#type != "text"),
        wants_usage: options.and_then(|options| options.include_usage).unwrap_or(false),
        shows_calls: false,
        is_beta: false,
        is_json_array: false,
        max_tool_calls: None,
        max_output_tokens: OUTPUT_LIMITS.iter().find_map(|name| body.parsed(name)),
        previous_answer: None,
        is_stored: false,
    }
}

impl RequestFormat for ChatRequest {
    fn facts(&self) -> &RequestFacts {
        &self.facts
    }

    fn conversation(&self) -> &[Raw] {
        &self.messages
    }

    fn set_conversation(&mut self, conversation: Vec<Raw>) {
        let is_same = self.messages.len() == conversation.len()
            && self.messages.iter().zip(&conversation).all(|(old, new)| old.get() == new.get());
        self.is_changed |= !is_same;
        self.messages = conversation;
    }

    fn units(&self) -> Vec<ConversationUnit> {
        let units = self.messages.iter().enumerate().map(|(index, message)| {
            let read = serde_json::from_str::<Message>(message.get());
            let (is_reply, identity) = match read {
                Ok(message) if message.role == "assistant" => (true, shown(&message).identity()),
                Ok(message) => (false, said(&message)),
                Err(_) => (false, message.get().to_owned()),
            };
            ConversationUnit { range: index..index + 1, is_reply, identity }
        });
        units.collect()
    }

    fn handles(&self, unit: &[Raw]) -> Vec<String> {
        let read = unit.first().map(|message| serde_json::from_str::<Message>(message.get()));
        let Some(Ok(message)) = read else { return Vec::new() };
        message.tool_calls.into_iter().flatten().filter_map(|call| call.id).collect()
    }

    fn without_claims(&self, unit: &[Raw]) -> Vec<Raw> {
        // Session calls are never shown as messages, so an app cannot send them back.
        unit.to_vec()
    }

    fn put_results(&self, conversation: &mut Vec<Raw>, after: usize, results: &[Raw]) {
        // A message with the images of results comes after all results, of the app's calls too.
        let (own, images): (Vec<_>, Vec<_>) = results.iter().cloned().partition(is_tool_message);
        let at = after.min(conversation.len());
        conversation.splice(at..at, own);
        let rest = conversation.get(at..).unwrap_or_default();
        let end = at + rest.iter().take_while(|message| is_tool_message(message)).count();
        conversation.splice(end..end, images);
    }

    fn results(&self, results: &[(PendingCall, ToolReturn)]) -> Vec<Raw> {
        let mut messages = Vec::with_capacity(results.len());
        let mut images = Vec::new();
        for (call, result) in results {
            let (mut text, media) = result_text(result);
            for part in media {
                match part {
                    Part::Image(media) => {
                        let image = json!({"type": "image_url", "image_url": {"url": url(media)}});
                        images.push(image);
                    }
                    Part::File { name, media } => text.push_str(&not_shown(name.as_deref(), media)),
                    Part::Text { .. } => {}
                }
            }
            messages
                .push(to_raw(&json!({"role": "tool", "tool_call_id": call.id, "content": text})));
        }
        if !images.is_empty() {
            images.insert(0, json!({"type": "text", "text": "Images of the tool results:"}));
            messages.push(to_raw(&json!({"role": "user", "content": images})));
        }
        messages
    }

    fn results_as_elements(&self, results: Vec<Raw>) -> Vec<Raw> {
        results
    }

    fn body(&self, round: &RoundBody<'_>) -> Bytes {
        let mut body = self.body.clone();
        if let Some(messages) = self.messages_of(round.appended) {
            body.set("messages", messages);
        }
        if !round.tools.is_empty() {
            let declared = self.app_tools.iter().map(|tool| tool.get());
            body.set("tools", array(declared.chain(round.tools.iter().map(|tool| &**tool))));
        }
        if !round.is_first && body.get("tool_choice").is_some_and(is_forced) {
            body.set("tool_choice", raw(r#""auto""#.to_owned()));
        }
        if let Some(left) = round.output_left {
            for name in self.body.names().filter(|name| OUTPUT_LIMITS.contains(name)) {
                body.set(name, raw(left.to_string()));
            }
        }
        // The limit of the whole answer is kept by counting the output of each round.
        if self.facts.is_streamed && self.facts.max_output_tokens.is_some() {
            let options = body.parsed::<RawObject>("stream_options");
            let mut options = options.unwrap_or_default();
            options.set("include_usage", raw("true".to_owned()));
            body.set("stream_options", options.to_raw());
        }
        body.to_json().into()
    }

    fn renamed(&self, declaration: &str, name: &str) -> Option<Box<str>> {
        let mut tool = RawObject::read(declaration).ok()?;
        let mut function = tool.parsed::<RawObject>("function")?;
        function.set("name", to_raw(&name));
        tool.set("function", function.to_raw());
        Some(tool.to_json().into())
    }
}

fn is_tool_message(message: &Raw) -> bool {
    serde_json::from_str::<Message>(message.get()).is_ok_and(|message| message.role == "tool")
}

fn shown(message: &Message) -> ShownReply {
    let calls = message.tool_calls.iter().flatten().filter_map(|call| {
        let called = call.function.as_ref().or(call.custom.as_ref())?;
        Some((called.name.clone(), called.arguments.clone()))
    });
    ShownReply { text: text_of(&message.content).unwrap_or_default(), calls: calls.collect() }
}

/// What identifies a message that is no reply.
fn said(message: &Message) -> String {
    let content = text_of(&message.content).unwrap_or_else(|| sorted(&message.content));
    format!("{}\n{content}", message.role)
}

/// Content that is nothing but text, joined.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
