//! Content blocks in Anthropic's format.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_chat::attachment::{Attachment, File};
use switchboard_chat::{Part, Place, ToolReturn, attachment, pieces};

use crate::tool_results;

/// One entry of `messages`.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum MessageParam<'a> {
    User { content: Vec<Marked<'a>> },
    Assistant { content: Vec<Marked<'a>> },
    System { content: Vec<SystemBlock<'a>> },
}

/// A block, with an optional cache breakpoint (`cache_control`).
#[derive(Debug, Serialize)]
pub(super) struct Marked<'a> {
    #[serde(flatten)]
    pub(super) content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<CacheControl>,
}

impl<'a> From<Content<'a>> for Marked<'a> {
    fn from(content: Content<'a>) -> Self {
        Self { content, cache_control: None }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl CacheControl {
    pub(super) const EPHEMERAL: Self = Self { kind: "ephemeral" };
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Origin<'a>,
    },
    Document {
        source: Origin<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<ToolResultContent<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The content of a tool result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ToolResultContent<'a> {
    Text(String),
    Blocks(Vec<Content<'a>>),
}

/// The source of an image or a document.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Origin<'a> {
    Base64 { media_type: Cow<'a, str>, data: &'a str },
    Url { url: &'a str },
}

impl<'a> From<File<'a>> for Origin<'a> {
    fn from(file: File<'a>) -> Self {
        match file.place {
            Place::Data(data) => Self::Base64 { media_type: file.media_type, data },
            Place::Url(url) => Self::Url { url },
        }
    }
}

/// A block of a system message within the conversation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum SystemBlock<'a> {
    /// The block as rendered by [`switchboard_render::Delta`].
    ToolChange(&'a RawValue),
    Said(Content<'a>),
}

impl<'a> Content<'a> {
    /// A text block; `None` if the text is blank, which the API rejects.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self::Text { text })
    }

    pub(super) fn part(part: &'a Part) -> Option<Self> {
        match Attachment::of(part) {
            Attachment::Text(text) => Self::text(text),
            Attachment::Image(file) => Some(Self::Image { source: file.into() }),
            Attachment::Pdf(file) => Some(Self::Document { title: file.name, source: file.into() }),
            Attachment::Other(file) => Self::text(file.not_shown()),
        }
    }

    /// A tool result. An error must have content, and only text; other results may be empty.
    pub(super) fn result(id: &'a str, result: Option<&'a ToolReturn>) -> Self {
        let Some(result) = result else {
            let content = Some(ToolResultContent::Text(tool_results::UNKNOWN.into()));
            return Self::ToolResult { tool_use_id: id, content, is_error: true };
        };
        let (text, media) = pieces(result);
        let content = if result.is_error {
            let texts = [text, attachment::as_text(media)];
            let texts: Vec<_> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
            let text = if texts.is_empty() { "(no output)".into() } else { texts.join("\n") };
            Some(ToolResultContent::Text(text))
        } else if !media.is_empty() {
            let media = media.into_iter().filter_map(Content::part);
            Some(ToolResultContent::Blocks(Content::text(text).into_iter().chain(media).collect()))
        } else {
            (!text.trim().is_empty()).then_some(ToolResultContent::Text(text))
        };
        Self::ToolResult { tool_use_id: id, content, is_error: result.is_error }
    }

    /// Whether the API accepts a cache breakpoint on the block.
    pub(super) fn takes_mark(&self) -> bool {
        match self {
            Self::Thinking { .. } | Self::RedactedThinking { .. } => false,
            Self::Text { .. }
            | Self::Image { .. }
            | Self::Document { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. } => true,
        }
    }
}
