//! Builds Anthropic's `messages`: alternating user and assistant messages, with system messages between them where the
//! API allows these.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_chat::{Block, Message, Reply, Stop, attachment};
use switchboard_render::ApplyDelta;

use super::content::{CacheControl, Content, Marked, MessageParam, SystemBlock};
use super::{binds_thoughts, takes_tool_changes};
use crate::call_ids::CallIds;
use crate::tool_results::{self, OPENING};
use crate::{ModelRequest, ToolChange, name};

/// The `messages` of a request.
pub(super) fn turns<'a>(ask: &'a ModelRequest<'a>, ids: &'a CallIds<'a>) -> Vec<MessageParam<'a>> {
    let mut turns = MessageBuilder { ask, ids, all: Vec::new(), waiting: Vec::new() };
    let takes_system = takes_tool_changes(&ask.source.model);
    let leading = tool_results::leading(ask.messages);
    for (index, message) in ask.messages.iter().enumerate() {
        turns.wait_for(|before| before == index);
        match message {
            Message::System(_) if index < leading => {}
            Message::System(said) if takes_system => {
                turns.waiting.extend(
                    Content::text(attachment::as_text(&said.content)).map(SystemBlock::Said),
                );
            }
            Message::System(said) => {
                let text = attachment::as_text(&said.content);
                if !text.is_empty() {
                    turns.user(Content::text(tool_results::from_operator(&text)));
                }
            }
            Message::User(said) => turns.user(said.content.iter().filter_map(Content::part)),
            Message::Assistant(reply) => turns.assistant(index, reply),
            // Sent together with their reply.
            Message::Tool(_) => {}
        }
    }
    turns.wait_for(|before| before >= ask.messages.len());
    turns.place_waiting();
    if turns.all.is_empty() {
        turns.user(Content::text(OPENING));
    }
    mark_last(&mut turns.all);
    turns.all
}

/// Whether the last calls have results but no thinking before them. Models with a token budget for thinking reject such
/// a conversation.
pub(super) fn acts_without_thought(turns: &[MessageParam<'_>]) -> bool {
    let last = turns.iter().rev().find_map(|turn| match turn {
        MessageParam::Assistant { content } => Some(content),
        MessageParam::User { .. } | MessageParam::System { .. } => None,
    });
    let is_thought = |block: &Marked<'_>| !block.content.takes_mark();
    let is_call = |block: &Marked<'_>| matches!(block.content, Content::ToolUse { .. });
    last.is_some_and(|last| last.iter().any(is_call) && !last.first().is_some_and(is_thought))
}

struct MessageBuilder<'a> {
    ask: &'a ModelRequest<'a>,
    ids: &'a CallIds<'a>,
    all: Vec<MessageParam<'a>>,
    /// Blocks for the next position at which a system message is allowed.
    waiting: Vec<SystemBlock<'a>>,
}

impl<'a> MessageBuilder<'a> {
    fn wait_for(&mut self, is_here: impl Fn(usize) -> bool) {
        let here = self.ask.tools.changes.iter().filter(|change| is_here(change.before));
        self.waiting.extend(here.flat_map(notices));
    }

    /// Adds the waiting system message. It must follow a user message, and be last or followed by an assistant message.
    fn place_waiting(&mut self) {
        if !self.waiting.is_empty() && matches!(self.all.last(), Some(MessageParam::User { .. })) {
            self.all.push(MessageParam::System { content: std::mem::take(&mut self.waiting) });
        }
    }

    fn user(&mut self, new: impl IntoIterator<Item = Content<'a>>) {
        let mut new = new.into_iter().map(Marked::from).peekable();
        if new.peek().is_none() {
            return;
        }
        match self.all.last_mut() {
            Some(MessageParam::User { content }) => content.extend(new),
            _ => self.all.push(MessageParam::User { content: new.collect() }),
        }
    }

    fn assistant(&mut self, index: usize, reply: &'a Reply) {
        let new = self.blocks(index, reply);
        if new.is_empty() {
            return;
        }
        if self.all.is_empty() {
            self.user(Content::text(OPENING));
        }
        self.place_waiting();
        let new = new.into_iter().map(Marked::from);
        match self.all.last_mut() {
            Some(MessageParam::Assistant { content }) => content.extend(new),
            _ => self.all.push(MessageParam::Assistant { content: new.collect() }),
        }
        let answered = tool_results::answered(self.ask.messages, index, reply);
        let ids = self.ids;
        let results =
            answered.into_iter().map(|(call, result)| Content::result(ids.of(&call.id), result));
        self.user(results);
    }

    fn blocks(&self, index: usize, reply: &'a Reply) -> Vec<Content<'a>> {
        let is_own = tool_results::is_own(reply, self.ask.source);
        let stands = !binds_thoughts(&self.ask.source.model) || self.ask.replay.contains(&index);
        let replays = is_own && stands;
        let blocks = reply.content.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Content::text(text),
            Block::Reasoning { text, opaque } => {
                thought(text, opaque.as_ref()?).filter(|_| replays)
            }
            Block::ToolCall(call) => Some(Content::ToolUse {
                id: self.ids.of(&call.id),
                name: name::legal(&call.name),
                input: tool_results::arguments(call, is_own, self.ask.tools),
            }),
        });
        let mut blocks: Vec<_> = blocks.collect();
        // A message must not end with thinking, unless the model paused and continues it.
        while reply.stop != Stop::Paused && blocks.last().is_some_and(|last| !last.takes_mark()) {
            blocks.pop();
        }
        blocks
    }
}

/// A thinking block as it was received; `None` without a signature, because the API rejects it then.
fn thought<'a>(thinking: &'a str, opaque: &'a Value) -> Option<Content<'a>> {
    let sealed = |key: &str| opaque.get(key).and_then(Value::as_str);
    match (sealed("signature"), sealed("data")) {
        (Some(signature), _) => Some(Content::Thinking { thinking, signature }),
        (None, Some(data)) => Some(Content::RedactedThinking { data }),
        (None, None) => None,
    }
}

/// The blocks of the system messages of a change.
fn notices(change: &ToolChange) -> impl Iterator<Item = SystemBlock<'_>> {
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let items = match &change.delta.apply {
        ApplyDelta::Append { items, .. } => items.as_slice(),
        ApplyDelta::Nothing | ApplyDelta::Resend { .. } => &[],
    };
    let items = items.iter().filter_map(|item| serde_json::from_str::<Item<'_>>(item.get()).ok());
    items.flat_map(|item| item.content).map(SystemBlock::ToolChange)
}

/// Puts a cache breakpoint on the last block: the next request begins with everything in this one.
fn mark_last(turns: &mut [MessageParam<'_>]) {
    let contents = turns.iter_mut().rev().filter_map(|turn| match turn {
        MessageParam::User { content } | MessageParam::Assistant { content } => Some(content),
        MessageParam::System { .. } => None,
    });
    let mut blocks = contents.flat_map(|content| content.iter_mut().rev());
    if let Some(last) = blocks.find(|block| block.content.takes_mark()) {
        last.cache_control = Some(CacheControl::EPHEMERAL);
    }
}
