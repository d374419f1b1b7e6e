//! A reply with calls and what came of them, as providers want it: every call answered once, in the order of the calls.

use std::borrow::Cow;

use serde_json::{Map, Value};
use switchboard_chat::{Message, Reply, Source, ToolCall, ToolReturn};

use crate::{ModelRequest, Tools, attachment};

/// Stands before a conversation that a model began: providers want a person to begin.
pub(crate) const OPENING: &str = "(The conversation begins with what you said.)";

/// Stands for a result that nobody knows.
pub(crate) const UNKNOWN: &str = "The result of this call is not known.";

/// What was said by who set the conversation up, for models that hear only users and themselves.
pub(crate) fn from_operator(text: &str) -> String {
    format!("[Message from the operator, not from the user]\n{text}")
}

/// The calls of the reply at `index`, each with its result.
pub(crate) fn answered<'a>(
    messages: &'a [Message],
    index: usize,
    reply: &'a Reply,
) -> Vec<(&'a ToolCall, Option<&'a ToolReturn>)> {
    let after = messages.iter().skip(index + 1);
    let after = after.take_while(|message| !matches!(message, Message::Assistant(_)));
    let results: Vec<&ToolReturn> = after
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    let found = |call: &ToolCall| results.iter().copied().find(|result| result.call == call.id);
    reply.calls().map(|call| (call, found(call))).collect()
}

/// The arguments of a call, under the names by which the provider knows them.
pub(crate) fn arguments<'a>(call: &'a ToolCall, is_own: bool, tools: &Tools) -> Cow<'a, Value> {
    let own = call.origin.as_ref().and_then(|origin| origin.arguments.as_ref());
    // What was declared first stays: thoughts may be bound to what is said here.
    let tool = tools.base.tool(&call.name).or_else(|| tools.newest.tool(&call.name));
    let map = tool.and_then(|tool| tool.arguments.as_ref());
    let arguments = match (own, map) {
        _ if call.unreadable.is_some() => Cow::Owned(Value::Null),
        (Some(own), _) if is_own => Cow::Borrowed(own),
        (_, Some(map)) if !is_own => Cow::Owned(map.rename(call.arguments.clone())),
        // Without others the provider's own names are the tool's.
        _ => Cow::Borrowed(&call.arguments),
    };
    if arguments.is_object() { arguments } else { Cow::Owned(Value::Object(Map::new())) }
}

pub(crate) fn is_own(reply: &Reply, source: &Source) -> bool {
    reply.source.as_ref() == Some(source)
}

/// The messages of who set the conversation up, before anybody else said something.
pub(crate) fn leading(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| matches!(message, Message::System(_))).count()
}

/// What stands before the conversation: the instructions and all that was said before anybody else spoke.
pub(crate) fn instructions(ask: &ModelRequest<'_>) -> Option<String> {
    let leading = ask.messages.iter().take(leading(ask.messages));
    let said = leading.filter_map(|message| match message {
        Message::System(said) => Some(attachment::as_text(&said.content)),
        Message::User(_) | Message::Assistant(_) | Message::Tool(_) => None,
    });
    let texts: Vec<String> = ask.settings.instructions.iter().cloned().chain(said).collect();
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
