//! Pairs calls with their results as providers require it: every call has one result, in the order of the calls.

use std::borrow::Cow;

use serde_json::{Map, Value};
use switchboard_chat::{Message, Reply, Source, ToolCall, ToolReturn, attachment};

use crate::{ModelRequest, Tools};

/// User message before a conversation that begins with a reply: providers require a user message first.
pub(crate) const OPENING: &str = "(The conversation begins with what you said.)";

/// Content for a missing result.
pub(crate) const UNKNOWN: &str = "The result of this call is not known.";

/// A system message as user text, for models without system messages within the conversation.
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

/// The arguments of a call, with the argument names that the provider was shown. `is_own` says that the same provider
/// and model made the call: it gets the arguments back as it wrote them.
pub(crate) fn arguments<'a>(call: &'a ToolCall, is_own: bool, tools: &Tools) -> Cow<'a, Value> {
    let own = call.origin.as_ref().and_then(|origin| origin.arguments.as_ref());
    // The first declaration is used, because thinking may be bound to the names in it.
    let tool = tools.base.tool(&call.name).or_else(|| tools.newest.tool(&call.name));
    let map = tool.and_then(|tool| tool.arguments.as_ref());
    let arguments = match (own, map) {
        _ if call.unreadable.is_some() => Cow::Owned(Value::Null),
        (Some(own), _) if is_own => Cow::Borrowed(own),
        (_, Some(map)) if !is_own => Cow::Owned(map.rename(call.arguments.clone())),
        // Without an argument mapping, the provider was shown the tool's own names.
        _ => Cow::Borrowed(&call.arguments),
    };
    if arguments.is_object() { arguments } else { Cow::Owned(Value::Object(Map::new())) }
}

pub(crate) fn is_own(reply: &Reply, source: &Source) -> bool {
    reply.source.as_ref() == Some(source)
}

/// Number of system messages at the beginning.
pub(crate) fn leading(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| matches!(message, Message::System(_))).count()
}

/// The instructions and the leading system messages.
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
