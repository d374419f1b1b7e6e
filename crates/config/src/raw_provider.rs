//! An entry of `providers` as it is written. What holds for [`crate::raw`] holds here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_model as model;

use crate::raw::RawDuration;

/// Somebody who answers in chats: which API it speaks, where it is, and how to be let in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Provider")]
pub(crate) struct RawProvider {
    /// What sessions and commands call it; unique in this file.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["claude"]))]
    pub(crate) name: Option<String>,
    /// The API that it speaks: `openai` (Responses), `chatgpt` (Responses behind a ChatGPT account), `openai-chat` (Chat
    /// Completions: Ollama, vLLM, llama.cpp and many others), `anthropic`, `gemini`, `code-assist` (Gemini behind a Google
    /// account), or `demo`, a scripted model that needs nothing.
    #[schemars(required)]
    pub(crate) kind: Option<RawProviderKind>,
    /// Its address: what comes before `/responses`, `/chat/completions`, `/v1/messages`, `/v1beta/...` or `/v1internal`.
    /// Without it, the provider's own; `openai-chat` has none.
    #[schemars(extend("format" = "uri"), extend("examples" = ["http://127.0.0.1:11434/v1"]))]
    pub(crate) base_url: Option<String>,
    /// The API key. A secret: use `${VAR}` or `file:/path`. Without `api_key`, `bearer` and `base_url` it is the one of the
    /// environment: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`.
    #[schemars(length(min = 1), extend("examples" = ["${ANTHROPIC_API_KEY}", "file:/run/secrets/key"]))]
    pub(crate) api_key: Option<String>,
    /// Sent as `Authorization: Bearer ...` instead of an API key. A secret: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${TOKEN}", "file:/run/secrets/token"]))]
    pub(crate) bearer: Option<String>,
    /// The model to ask where a session names none.
    #[schemars(length(min = 1), extend("examples" = ["claude-sonnet-5-5"]))]
    pub(crate) model: Option<String>,
    /// HTTP headers that are sent with every request. Values are secrets: use `${VAR}` or `file:/path`.
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// Stands before every conversation.
    pub(crate) instructions: Option<String>,
    /// How many tokens one answer may have.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [8192]))]
    pub(crate) max_output_tokens: Option<u32>,
    /// How freely the model chooses its words. Some models refuse it; without it, nothing is sent.
    #[schemars(range(min = 0, max = 2), extend("examples" = [0.7]))]
    pub(crate) temperature: Option<f64>,
    /// Of how many likely words the model chooses. Some models refuse it; without it, nothing is sent.
    #[schemars(range(min = 0, max = 1), extend("examples" = [0.9]))]
    pub(crate) top_p: Option<f64>,
    /// How hard the model thinks, where it can be told.
    pub(crate) effort: Option<RawEffort>,
    /// Whether what the model thinks is asked for and shown.
    #[schemars(extend("default" = false))]
    pub(crate) show_thinking: Option<bool>,
    /// The account of a `chatgpt` login. Without it, the one that the token names.
    #[schemars(length(min = 1))]
    pub(crate) account: Option<String>,
    /// The Google Cloud project of `code-assist`. Without it, `GOOGLE_CLOUD_PROJECT`, else Google is asked.
    #[schemars(length(min = 1), extend("examples" = ["my-project"]))]
    pub(crate) project: Option<String>,
    /// How `gemini` and `code-assist` are told what tools take: `json_schema` in `parametersJsonSchema`, `parameters` in the
    /// older field of that name, which knows fewer keywords, `auto` in the first until the backend does not know it.
    #[schemars(extend("default" = "auto"))]
    pub(crate) tool_schema: Option<RawToolSchema>,
    /// How long the provider may be silent.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_PROVIDER_IDLE_TIMEOUT)))]
    pub(crate) idle_timeout: Option<RawDuration>,
    /// How long one answer may take.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_PROVIDER_TOTAL_TIMEOUT)))]
    pub(crate) total_timeout: Option<RawDuration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum RawProviderKind {
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "chatgpt")]
    ChatGpt,
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    Anthropic,
    Gemini,
    CodeAssist,
    Demo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawToolSchema {
    Auto,
    JsonSchema,
    Parameters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawEffort {
    Minimal,
    Low,
    Medium,
    High,
}
