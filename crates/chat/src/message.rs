//! Messages of a conversation, independent of any provider's format.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_model::ProviderKind;
use utoipa::ToSchema;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System(Said),
    User(Said),
    /// One complete answer of a model.
    Assistant(Reply),
    /// The result of one call of the preceding reply.
    Tool(ToolReturn),
}

impl Message {
    /// A user message with one text part.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(Said { content: vec![Part::text(text)] })
    }

    /// A system message with one text part.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System(Said { content: vec![Part::text(text)] })
    }
}

/// The content of a user or system message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Said {
    pub content: Vec<Part>,
}

/// A part of a user message, a system message or a tool result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    expecting = "a part such as {\"type\": \"text\", \"text\": ...}"
)]
pub enum Part {
    Text {
        text: String,
    },
    Image(Media),
    File {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(flatten)]
        media: Media,
    },
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Content that is not text: an image, a document, audio or another file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Media {
    pub media_type: String,
    #[serde(flatten)]
    pub place: Place,
}

/// How the content of a file or an image is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Inline, in base64.
    Data(String),
    /// At a URL that the provider can fetch.
    Url(String),
}

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Reply {
    /// Blocks in the order in which the model produced them.
    pub content: Vec<Block>,
    /// The provider and model that gave the answer. Opaque data in the reply is sent to this source only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default)]
    pub stop: Stop,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The revision of the tools that were declared to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_revision: Option<u64>,
    /// The id of the turn that the reply belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

impl Reply {
    /// The tool calls, in their order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(&**call),
            Block::Text { .. } | Block::Reasoning { .. } => None,
        })
    }

    /// All text, joined.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            Block::Reasoning { .. } | Block::ToolCall(_) => None,
        });
        texts.collect()
    }
}

/// A block of a reply. `opaque` is data that only the source of the reply understands; it is stored and sent back
/// unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    Reasoning {
        /// The readable part; often empty.
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    ToolCall(Box<ToolCall>),
}

/// The member of `opaque` that marks a thought of a ReACT reply. No provider reads it.
const REACT: &str = "react";

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), opaque: None }
    }

    /// A thought of a ReACT reply. Unlike a model's own reasoning, it is sent again in later requests of ReACT turns.
    pub fn thought(text: impl Into<String>) -> Self {
        Self::Reasoning { text: text.into(), opaque: Some(json!({REACT: "thought"})) }
    }

    /// The text of a block made by [`Block::thought`].
    pub fn as_thought(&self) -> Option<&str> {
        match self {
            Self::Reasoning { text, opaque: Some(opaque) } if opaque.get(REACT).is_some() => {
                Some(text)
            }
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolCall(_) => None,
        }
    }
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    /// Switchboard's id of the call, unique in the conversation and independent of the provider.
    pub id: String,
    /// The exposed tool name, as the model wrote it.
    pub name: String,
    /// A JSON object with the argument names of the tool itself.
    pub arguments: Value,
    /// The arguments as the model wrote them, if they are not a JSON object. Such a call gets an error result and is
    /// never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The call in the format of the source of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<CallOrigin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// The call as its provider wrote it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct CallOrigin {
    /// The provider's id of the call, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id of the surrounding item, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The arguments as written, if the provider was shown other argument names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolReturn {
    /// Switchboard's id of the call.
    pub call: String,
    /// The exposed name of the tool, as in the call.
    pub name: String,
    pub content: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    #[serde(default)]
    pub is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
}

impl ToolReturn {
    /// An error result for a call that was not run or whose result is unknown.
    pub fn failed(call: &ToolCall, text: impl Into<String>) -> Self {
        Self {
            call: call.id.clone(),
            name: call.name.clone(),
            content: vec![Part::text(text)],
            structured: None,
            is_error: true,
            latency_ms: None,
        }
    }
}

/// The provider and model that gave an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Source {
    #[schema(value_type = String, example = "anthropic")]
    pub kind: ProviderKind,
    /// The provider's name in the configuration. Another account cannot read opaque data of this one.
    pub provider: String,
    pub model: String,
    /// The name of the credential, if the session chose one. Its account cannot read opaque data of another one either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The answer is complete.
    #[default]
    End,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The token limit cut the answer.
    Length,
    /// The model or a content filter refused to answer.
    Refused,
    /// The model paused and continues when it is called again.
    Paused,
    /// Switchboard interrupted the answer.
    Cancelled,
}

/// Token usage of a reply, counted the same way for all providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input_tokens: u64,
    /// All output tokens, thinking included.
    pub output_tokens: u64,
    /// Input tokens that were read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Input tokens that were written to a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Output tokens that were spent on thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The sum of two usages.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
