//! Tools as a provider gets them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The tools of a session in the shape of one provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RenderingView {
    pub provider: String,
    pub tools_revision: u64,
    /// The value of `tools` in a request to the provider.
    #[schema(value_type = Vec<Object>)]
    pub tools: Value,
    /// How many tools it declares.
    pub count: usize,
    /// What it costs in every request.
    pub tokens: TokenCost,
    /// Tools that the provider would refuse, and everything with them.
    pub quarantined: Vec<NotShownView>,
    /// Tools for which the provider has no room.
    pub left_out: Vec<NotShownView>,
    /// Each tool with its cost and what was rewritten; only where `explain` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Vec<RenderedToolView>>,
    /// What changed since another revision, in the provider's own append-only form where it has one; only where `since`
    /// asks for it. `null` when that revision is no longer known: then the whole list is the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub delta: Option<Value>,
}

/// A rendering, or nothing but its tools where that is all that was asked for.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RenderingAnswer {
    Whole(Box<RenderingView>),
    #[schema(value_type = Vec<Object>)]
    Tools(Value),
}

/// A number of tokens, and what it is worth.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenCost {
    pub total: usize,
    pub basis: TokenBasis,
}

/// Where a number of tokens comes from.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenBasis {
    pub tokenizer: String,
    /// `exact_for_the_text` or `estimate`.
    pub precision: String,
    pub note: String,
}

/// A tool that a provider does not see.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NotShownView {
    pub name: String,
    pub reason: String,
}

/// A tool, with what was done to it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RenderedToolView {
    pub name: String,
    pub tokens: usize,
    pub rewrites: Vec<RewriteView>,
}

/// One thing that the provider gets in another way than the server said it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RewriteView {
    /// A JSON pointer into the server's schema; empty for the whole.
    pub path: String,
    pub what: String,
    pub reason: String,
}
