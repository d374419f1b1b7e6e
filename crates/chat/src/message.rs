//! What was said, by whom, in no provider's words.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_model::ProviderKind;
use utoipa::ToSchema;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System(Said),
    User(Said),
    /// One answer of a model, whole.
    Assistant(Reply),
    /// What came of one call of the reply before it.
    Tool(ToolReturn),
}

impl Message {
    /// A user's message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(Said { content: vec![Part::text(text)] })
    }

    /// A system message of one text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System(Said { content: vec![Part::text(text)] })
    }
}

/// What a person, or who set the conversation up, has said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Said {
    pub content: Vec<Part>,
}

/// A piece of content that is not the model's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
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

/// Something that is not text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Media {
    pub media_type: String,
    #[serde(flatten)]
    pub place: Place,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Here, in base64.
    Data(String),
    /// At an address that the provider can read.
    Url(String),
}

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Reply {
    /// In the order in which the model gave it.
    pub content: Vec<Block>,
    /// Who gave it. Whatever is opaque in it goes back there and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default)]
    pub stop: Stop,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The revision of the tools that the model saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_revision: Option<u64>,
    /// The turn in which it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

impl Reply {
    /// The calls, in their order.
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

/// A piece of a reply. What is `opaque` only the source of the reply understands: it is kept and given back as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    Reasoning {
        /// What of it may be read; often nothing.
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    ToolCall(Box<ToolCall>),
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), opaque: None }
    }
}

/// The model wants a tool to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    /// Ours, unique in the conversation, the same for every provider that reads of it.
    pub id: String,
    /// The exposed name, as the model wrote it.
    pub name: String,
    /// A JSON object, under the names that the tool itself knows.
    pub arguments: Value,
    /// What the model wrote where that is no JSON object: such a call is answered, and never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// How the source of the reply knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<CallOrigin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// A call as the provider that made it wrote it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct CallOrigin {
    /// Its id there, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id of the item that held it, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The arguments, where the provider knows them by other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolReturn {
    /// The id of the call, ours.
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
    /// A call that was not run, or of which nothing is known, and why.
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

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Source {
    #[schema(value_type = String, example = "anthropic")]
    pub kind: ProviderKind,
    /// The name of the provider in the configuration: another account cannot read what this one has sealed.
    pub provider: String,
    pub model: String,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said what it had to say.
    #[default]
    End,
    /// It wants its calls answered.
    ToolCalls,
    /// It was cut off: no more tokens.
    Length,
    /// It, or a filter, refused.
    Refused,
    /// It wants to go on when it is asked again.
    Paused,
    /// It was interrupted by us.
    Cancelled,
}

/// What a reply cost, the same way for all providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// All that was read, from a cache or not.
    pub input_tokens: u64,
    /// All that was written, thoughts included.
    pub output_tokens: u64,
    /// Of the input: read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Of the input: put into a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Of the output: thoughts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Both together: what several requests of a turn cost.
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
