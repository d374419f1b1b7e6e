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
    /// The canonical name, `server.tool`; `null` for a meta-tool.
    #[serde(default)]
    #[schema(required)]
    pub canonical_name: Option<String>,
    /// The declaration of the tool, as the provider gets it.
    #[serde(default)]
    #[schema(required, value_type = Object)]
    pub declaration: Value,
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

/// The tools of a session as several providers get them, all at one revision.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RenderingList {
    pub tools_revision: u64,
    pub renderings: Vec<RenderingView>,
}

/// One tool as each provider gets it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolRenderings {
    /// The canonical name, `server.tool`.
    pub name: String,
    /// The revision of the catalog.
    pub revision: u64,
    /// The JSON Schema of its arguments, from which the declarations are made.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    pub renderings: Vec<ToolRendering>,
}

/// One tool as one provider gets it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolRendering {
    pub provider: String,
    /// The exposed name.
    pub name: String,
    /// The declaration; `null` if the provider does not get the tool.
    #[schema(required, value_type = Option<Object>)]
    pub declaration: Option<Value>,
    pub tokens: usize,
    pub rewrites: Vec<RewriteView>,
    /// Why the provider does not get the tool.
    #[schema(required)]
    pub not_shown: Option<String>,
}

/// The formats in which tools are declared to providers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RendererList {
    pub renderers: Vec<RendererView>,
}

/// A format in which tools are declared.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RendererView {
    /// The name by which renderings choose it.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The maximum number of tools in one request; `null` without one.
    #[schema(required)]
    pub max_tools: Option<usize>,
    /// How tokens are counted.
    pub tokens: TokenBasis,
}
