//! Model providers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All model providers, the configured ones first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProviderList {
    pub providers: Vec<ProviderView>,
}

/// A model provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProviderView {
    /// The name by which sessions and turns choose it.
    #[schema(example = "anthropic")]
    pub name: String,
    /// `openai`, `chatgpt`, `openai-chat`, `anthropic`, `gemini`, `code-assist` or `demo`.
    pub kind: String,
    /// The default model of sessions that choose none.
    pub model: Option<String>,
    /// The base URL of its API; absent for the demo model.
    pub base_url: Option<String>,
    /// Whether the credentials that it needs are there.
    pub has_credentials: bool,
    /// The kind of its credential: `api_key`, `bearer`, `oauth` or `token_file`. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The names of its further credentials, of which a session can choose one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// How its models use tools unless a session or a turn says otherwise: `native` or `react`.
    #[schema(pattern = "^(native|react)$")]
    pub strategy: String,
    /// Whether its models have native tool calls, as far as the configuration says.
    pub native_tools: bool,
    /// `configuration` or `built-in`.
    pub source: String,
}

/// The models of a provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ModelList {
    /// In the order of the provider.
    pub models: Vec<ModelView>,
}

/// A model, as far as the list of its provider describes it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ModelView {
    /// The name by which sessions and turns choose it.
    #[schema(example = "claude-opus-5-5")]
    pub id: String,
    /// Its name for people, where it has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The largest number of tokens of a request with its response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The largest number of tokens of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}
