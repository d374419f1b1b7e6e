//! Builds requests for Chat Completions.
//!
//! Many servers support only a part of this format. So requests are minimal: text as one string, no parameter without a
//! setting, and tool results as text only.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_chat::attachment::{self, Attachment};
use switchboard_chat::{Block, Message, ModelFault, Part, Reply, ToolReturn};

use super::content::{address, fitted, nothing_to_answer, outcome};
use crate::call_ids::CallIds;
use crate::model_request::{ModelRequest, WireRequest, declared, written};
use crate::{name, tool_results};

/// Builds the request for a conversation.
pub(crate) fn chat_request(ask: &ModelRequest<'_>) -> Result<WireRequest, ModelFault> {
    let ids = CallIds::new(ask.messages, ask.source);
    let mut lines = ChatMessages { ask, ids: &ids, said: Vec::new(), shown: Vec::new() };
    if let Some(instructions) = tool_results::instructions(ask) {
        lines.said.push(ChatMessage::said("system", ChatContent::Text(instructions.into())));
    }
    let before = lines.said.len();
    for message in ask.messages.iter().skip(tool_results::leading(ask.messages)) {
        lines.push(message);
    }
    lines.show();
    if lines.said.len() == before {
        return Err(nothing_to_answer());
    }
    let tools = ask.tools.base.json();
    let body = Body {
        model: &ask.source.model,
        messages: lines.said,
        tools: declared(&tools)?,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: ask.settings.max_output_tokens,
        temperature: ask.settings.temperature,
        top_p: ask.settings.top_p,
        reasoning_effort: ask.settings.effort.map(switchboard_model::Effort::as_str),
        stop: ask.stop.filter(|_| takes_stop(&ask.source.model)).map(|stop| [stop]),
    };
    let body = written(&body)?;
    Ok(WireRequest { path: "/chat/completions".into(), headers: Vec::new(), body })
}

/// Whether a model takes `stop`. The reasoning models of OpenAI and xAI refuse it.
fn takes_stop(model: &str) -> bool {
    let bare = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    !["o1", "o3", "o4", "gpt-5", "grok-3-mini", "grok-4"].iter().any(|it| bare.starts_with(it))
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<[&'static str; 1]>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// An entry of `messages`.
#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: ChatContent<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> ChatMessage<'a> {
    fn said(role: &'static str, content: ChatContent<'a>) -> Self {
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<Content<'a>>),
    /// No content: the message has only calls.
    Nothing,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Address<'a> },
}

#[derive(Serialize)]
struct Address<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

impl<'a> From<&'a Part> for Content<'a> {
    fn from(part: &'a Part) -> Self {
        match Attachment::of(part) {
            Attachment::Text(text) => Self::Text { text },
            Attachment::Image(file) => {
                Self::ImageUrl { image_url: Address { url: address(&file) } }
            }
            Attachment::Pdf(file) | Attachment::Other(file) => {
                Self::Text { text: file.not_shown().into() }
            }
        }
    }
}

struct ChatMessages<'a> {
    ask: &'a ModelRequest<'a>,
    ids: &'a CallIds<'a>,
    said: Vec<ChatMessage<'a>>,
    /// Images of the results since the last reply. They are sent in a user message after all results, because nothing
    /// may come between results.
    shown: Vec<Content<'a>>,
}

impl<'a> ChatMessages<'a> {
    fn push(&mut self, message: &'a Message) {
        match message {
            Message::Tool(result) => self.push_result(result),
            // Only user messages may contain images.
            Message::System(said) => {
                let text = Some(attachment::as_text(&said.content)).filter(|text| !text.is_empty());
                let text = text.map(|text| Content::Text { text: text.into() });
                self.push_said("system", text.into_iter().collect());
            }
            Message::User(said) => {
                self.push_said("user", said.content.iter().map(Content::from).collect());
            }
            Message::Assistant(reply) => self.push_reply(reply),
        }
    }

    fn push_said(&mut self, role: &'static str, contents: Vec<Content<'a>>) {
        self.show();
        if let Some(said) = joined(contents) {
            self.said.push(ChatMessage::said(role, said));
        }
    }

    fn push_reply(&mut self, reply: &'a Reply) {
        self.show();
        let is_own = tool_results::is_own(reply, self.ask.source);
        let text = texts(reply);
        let calls = reply.calls().map(|call| Call {
            id: self.ids.of(&call.id),
            r#type: "function",
            // Servers parse the arguments of earlier calls and fail if they are not JSON, so unreadable arguments are
            // sent as an empty object. The result of the call contains the error.
            function: Function {
                name: name::legal(&call.name),
                arguments: tool_results::arguments(call, is_own, self.ask.tools).to_string(),
            },
        });
        let tool_calls: Vec<Call<'a>> = calls.collect();
        let content = match text {
            Some(text) => ChatContent::Text(text),
            None if tool_calls.is_empty() => return,
            None => ChatContent::Nothing,
        };
        self.said.push(ChatMessage { tool_calls, ..ChatMessage::said("assistant", content) });
    }

    fn push_result(&mut self, result: &'a ToolReturn) {
        let (mut text, media) = outcome(result);
        let mut images = Vec::new();
        for content in media.into_iter().map(Content::from) {
            match content {
                Content::Text { text: more } => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&more);
                }
                Content::ImageUrl { .. } => images.push(content),
            }
        }
        let call = self.ids.of(&result.call);
        if !images.is_empty() {
            let name = name::legal(&result.name);
            let words = format!("Images that `{name}` gave for the call {call}:");
            self.shown.push(Content::Text { text: words.into() });
            self.shown.append(&mut images);
            if text.is_empty() {
                "The images are in the message after the results.".clone_into(&mut text);
            }
        }
        let line = ChatMessage::said("tool", ChatContent::Text(fitted(text).into()));
        self.said.push(ChatMessage { tool_call_id: Some(call), ..line });
    }

    /// Adds the user message with the images of the results.
    fn show(&mut self) {
        if !self.shown.is_empty() {
            let images = std::mem::take(&mut self.shown);
            self.said.push(ChatMessage::said("user", ChatContent::Pieces(images)));
        }
    }
}

/// The text of a reply, if it has any.
fn texts(reply: &Reply) -> Option<Cow<'_, str>> {
    let mut texts = reply.content.iter().filter_map(|block| match block {
        Block::Text { text, .. } if !text.is_empty() => Some(text.as_str()),
        Block::Text { .. } | Block::Reasoning { .. } | Block::ToolCall(_) => None,
    });
    let first = Cow::Borrowed(texts.next()?);
    Some(texts.fold(first, |all, text| all + "\n\n" + text))
}

/// Text-only content as one string, because not every server accepts content parts.
fn joined(contents: Vec<Content<'_>>) -> Option<ChatContent<'_>> {
    let are_texts = contents.iter().map(|content| match content {
        Content::Text { text } => Some(text.as_ref()),
        Content::ImageUrl { .. } => None,
    });
    let texts = are_texts.collect::<Option<Vec<_>>>();
    match texts {
        Some(texts) if texts.is_empty() => None,
        Some(texts) => Some(ChatContent::Text(texts.join("\n\n").into())),
        None => Some(ChatContent::Pieces(contents)),
    }
}
