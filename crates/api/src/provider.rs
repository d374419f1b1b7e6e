//! Providers of models.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All providers: those of the configuration first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProviderList {
    pub providers: Vec<ProviderView>,
}

/// A provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProviderView {
    /// What sessions and turns call it.
    #[schema(example = "anthropic")]
    pub name: String,
    /// `openai`, `chatgpt`, `openai-chat`, `anthropic`, `gemini`, `code-assist` or `demo`.
    pub kind: String,
    /// The model where a session names none.
    pub model: Option<String>,
    /// Where it is; nowhere for the demo model.
    pub base_url: Option<String>,
    /// Whether it has the credentials that it needs.
    pub has_credentials: bool,
    /// `configuration` or `built-in`.
    pub source: String,
}
