//! Puts a conversation together.

use std::collections::HashMap;

use serde_json::Value;
use switchboard_chat::{
    Block, Message, Part, Reply, Said, ToolCall, ToolReturn, answer_dangling, check, read_arguments,
};
use switchboard_splice::Refusal;

/// The messages so far.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    /// The names of called tools, by the id of the call.
    names: HashMap<String, String>,
}

impl Conversation {
    pub(crate) fn system(&mut self, content: Vec<Part>) {
        self.messages.push(Message::System(Said { content }));
    }

    pub(crate) fn user(&mut self, content: Vec<Part>) {
        self.messages.push(Message::User(Said { content }));
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        if reply.content.is_empty() {
            return;
        }
        for call in reply.calls() {
            self.names.insert(call.id.clone(), call.name.clone());
        }
        self.messages.push(Message::Assistant(reply));
    }

    /// The result of a call. `false` if there is no such call.
    pub(crate) fn result(&mut self, call: &str, content: Vec<Part>, is_error: bool) -> bool {
        let Some(name) = self.names.get(call).cloned() else { return false };
        self.messages.push(Message::Tool(ToolReturn {
            call: call.to_owned(),
            name,
            content,
            structured: None,
            is_error,
            latency_ms: None,
        }));
        true
    }

    /// The conversation, in which every call has a result.
    pub(crate) fn finish(mut self, member: &str) -> Result<Vec<Message>, Refusal> {
        answer_dangling(&mut self.messages);
        match check(&self.messages) {
            Ok(()) => Ok(self.messages),
            Err(broken) => Err(Refusal::of_member(member, format!("`{member}`: {broken}"))),
        }
    }
}

/// A call with its arguments as text.
pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Block {
    let (arguments, unreadable) = read_arguments(Value::from(arguments));
    let (id, name) = (id.to_owned(), name.to_owned());
    let call = ToolCall { id, name, arguments, unreadable, origin: None, opaque: None };
    Block::ToolCall(Box::new(call))
}

/// The arguments of a call as text, as the model wrote them if they are not an object.
pub(crate) fn arguments_of(call: &ToolCall) -> String {
    call.unreadable.clone().unwrap_or_else(|| call.arguments.to_string())
}
