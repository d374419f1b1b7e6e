//! Builds Gemini's `contents`: a model turn with calls is followed by one turn with all results and nothing else.

use serde_json::Value;
use switchboard_chat::{Block, Message, Reply, attachment};

use super::content::{Content, ContentRole, PartData, RawPart, answer};
use super::model;
use crate::call_ids::CallIds;
use crate::tool_results::{self, OPENING};
use crate::{ModelRequest, name};

/// Placeholder signature for a call without one; Gemini skips the validation.
const BYPASS: &str = "skip_thought_signature_validator";

/// Builds the `contents` of a request. `model` has no `models/` prefix.
pub(super) fn contents<'a>(
    ask: &'a ModelRequest<'a>,
    model: &str,
    ids: &'a CallIds<'a>,
) -> Vec<Content<'a>> {
    let mut contents = Contents {
        ask,
        ids,
        nests_media: model::nests_media(model),
        signed_from: model::wants_signatures(model).then(|| current_turn(ask.messages)),
        all: Vec::new(),
    };
    let leading = tool_results::leading(ask.messages);
    for (index, message) in ask.messages.iter().enumerate().skip(leading) {
        match message {
            Message::System(said) => {
                let text = attachment::as_text(&said.content);
                if !text.is_empty() {
                    contents.user(PartData::text(tool_results::from_operator(&text)));
                }
            }
            Message::User(said) => contents.user(said.content.iter().filter_map(PartData::part)),
            Message::Assistant(reply) => contents.model(index, reply),
            // Sent together with their reply.
            Message::Tool(_) => {}
        }
    }
    if contents.all.is_empty() {
        contents.user(PartData::text(OPENING));
    }
    contents.all
}

/// Index of the last user message, where the current turn begins.
fn current_turn(messages: &[Message]) -> usize {
    let last = messages.iter().rposition(|message| match message {
        Message::User(said) => said.content.iter().any(|part| PartData::part(part).is_some()),
        Message::System(_) | Message::Assistant(_) | Message::Tool(_) => false,
    });
    last.unwrap_or(0)
}

struct Contents<'a> {
    ask: &'a ModelRequest<'a>,
    ids: &'a CallIds<'a>,
    nests_media: bool,
    /// From this message on, the first call of each reply needs a signature.
    signed_from: Option<usize>,
    all: Vec<Content<'a>>,
}

impl<'a> Contents<'a> {
    fn user(&mut self, new: impl IntoIterator<Item = PartData<'a>>) {
        self.push(ContentRole::User, new.into_iter().map(RawPart::from).collect());
    }

    /// Appends parts. Consecutive messages of one role become one turn, but tool results stay separate.
    fn push(&mut self, role: ContentRole, parts: Vec<RawPart<'a>>) {
        if parts.is_empty() {
            return;
        }
        match self.all.last_mut() {
            Some(last) if last.role == role && !last.is_answer => last.parts.extend(parts),
            _ => self.all.push(Content { role, parts, is_answer: false }),
        }
    }

    fn model(&mut self, index: usize, reply: &'a Reply) {
        let parts = self.parts(index, reply);
        if self.all.is_empty() && !parts.is_empty() {
            self.user(PartData::text(OPENING));
        }
        self.push(ContentRole::Model, parts);
        let (ids, nests_media) = (self.ids, self.nests_media);
        let answered = tool_results::answered(self.ask.messages, index, reply);
        let parts: Vec<_> = answered
            .into_iter()
            .flat_map(|(call, result)| answer(call, ids.of(&call.id), result, nests_media))
            .map(RawPart::from)
            .collect();
        if !parts.is_empty() {
            self.all.push(Content { role: ContentRole::User, parts, is_answer: true });
        }
    }

    fn parts(&self, index: usize, reply: &'a Reply) -> Vec<RawPart<'a>> {
        let is_own = tool_results::is_own(reply, self.ask.source);
        let sealed = |opaque: &'a Option<Value>| {
            let signature = opaque.as_ref()?.get("thoughtSignature")?.as_str();
            signature.filter(|_| is_own)
        };
        let parts = reply.content.iter().filter_map(|block| match block {
            Block::Text { text, opaque } => match sealed(opaque) {
                // An empty text is kept if it carries a signature.
                Some(signature) => Some(RawPart {
                    piece: PartData::Text(text.into()),
                    thought_signature: Some(signature),
                }),
                None => PartData::text(text).map(RawPart::from),
            },
            Block::Reasoning { .. } => None,
            Block::ToolCall(call) => Some(RawPart {
                piece: PartData::FunctionCall {
                    id: self.ids.of(&call.id),
                    name: name::legal(&call.name),
                    args: tool_results::arguments(call, is_own, self.ask.tools),
                },
                thought_signature: sealed(&call.opaque),
            }),
        });
        let mut parts: Vec<_> = parts.collect();
        let mut calls =
            parts.iter_mut().filter(|part| matches!(part.piece, PartData::FunctionCall { .. }));
        if self.signed_from.is_some_and(|from| index >= from)
            && let Some(first) = calls.next()
        {
            first.thought_signature.get_or_insert(BYPASS);
        }
        parts
    }
}
