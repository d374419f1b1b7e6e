//! Tools in the format of a provider.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The tools of a session in the format of one provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RenderingView {
    pub provider: String,
    pub tools_revision: u64,
    /// The value of `tools` in a request to the provider.
    #[schema(value_type = Vec<Object>)]
    pub tools: Value,
    /// The number of declared tools.
    pub count: usize,
    /// The cost of the tools in every request.
    pub tokens: TokenCost,
    /// Tools that are left out because the provider would refuse the whole request because of them.
    pub quarantined: Vec<NotShownView>,
    /// Tools that are left out because of the provider's limits.
    pub left_out: Vec<NotShownView>,
    /// Each tool with its cost and its rewrites; only with `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Vec<RenderedToolView>>,
    /// The changes since the revision `since`, in the provider's own append-only form if it has one; only with `since`.
    /// `null` if that revision is no longer known: use the whole list instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub delta: Option<Value>,
}

/// A rendering, or only its tools with `bare`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RenderingAnswer {
    Whole(Box<RenderingView>),
    #[schema(value_type = Vec<Object>)]
    Tools(Value),
}

/// A number of tokens, and how exact it is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenCost {
    pub total: usize,
    pub basis: TokenBasis,
}

/// How a number of tokens was computed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenBasis {
    pub tokenizer: String,
    /// `exact_for_the_text` or `estimate`.
    pub precision: String,
    pub note: String,
}

/// A tool that the provider does not get.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NotShownView {
    pub name: String,
    pub reason: String,
}

/// A tool as a provider gets it, and how its schema differs from the server's.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RenderedToolView {
    pub name: String,
    pub tokens: usize,
    pub rewrites: Vec<RewriteView>,
}

/// One difference between the server's schema and the rendered one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RewriteView {
    /// A JSON pointer into the server's schema; empty for the whole schema.
    pub path: String,
    pub what: String,
    pub reason: String,
}
