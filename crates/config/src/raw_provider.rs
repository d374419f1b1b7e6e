//! The type of an entry of `providers`. As in [`crate::raw`], its doc comments become the JSON Schema that users read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_model as model;

use crate::raw::RawDuration;
use crate::raw_provider_auth::RawProviderAuth;

/// An LLM provider for chats: its API, its address and its credentials.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Provider")]
pub(crate) struct RawProvider {
    /// The name by which sessions and commands select it; unique in this file.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["claude"]))]
    pub(crate) name: Option<String>,
    /// The API of the provider: `openai` (Responses), `chatgpt` (Responses with a ChatGPT account), `openai-chat` (Chat
    /// Completions: Ollama, vLLM, llama.cpp and many others), `anthropic`, `gemini`, `code-assist` (Gemini with a
    /// Google account), or `demo`, a scripted model that needs no key and no network.
    #[schemars(required)]
    pub(crate) kind: Option<RawProviderKind>,
    /// The base URL: the part before `/responses`, `/chat/completions`, `/v1/messages`, `/v1beta/...` or `/v1internal`.
    /// Default: the provider's own; `openai-chat` has no default.
    #[schemars(extend("format" = "uri"), extend("examples" = ["http://127.0.0.1:11434/v1"]))]
    pub(crate) base_url: Option<String>,
    /// The API key. A secret: use `${VAR}` or `file:/path`. If `api_key`, `bearer` and `base_url` are all absent, it
    /// comes from the environment: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`.
    #[schemars(length(min = 1), extend("examples" = ["${ANTHROPIC_API_KEY}", "file:/run/secrets/key"]))]
    pub(crate) api_key: Option<String>,
    /// Sent as `Authorization: Bearer ...` instead of an API key. A secret: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${TOKEN}", "file:/run/secrets/token"]))]
    pub(crate) bearer: Option<String>,
    /// A credential that is not written here: a sign-in (`kind: oauth`) or the token file of another program
    /// (`kind: token_file`). It replaces `api_key` and `bearer`.
    pub(crate) auth: Option<RawProviderAuth>,
    /// Further credentials by name. A session uses the one that it names as its `credential`, else that of `auth`,
    /// `api_key` or `bearer`.
    #[schemars(extend("examples" = [{"work": {"kind": "api_key", "value": "${WORK_KEY}"}}]))]
    pub(crate) credentials: Option<BTreeMap<String, RawProviderAuth>>,
    /// Default model, for sessions that set none. `code-assist` has the default `gemini-2.5-pro`.
    #[schemars(length(min = 1), extend("examples" = ["claude-sonnet-5-5"]))]
    pub(crate) model: Option<String>,
    /// HTTP headers that are sent with every request. Values are secrets: use `${VAR}` or `file:/path`. `${session}`
    /// stands for the id of the session.
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// The system prompt of every conversation.
    pub(crate) instructions: Option<String>,
    /// For `anthropic`: texts before the instructions, each as a system block of its own.
    pub(crate) system_blocks: Option<Vec<String>>,
    /// Maximum number of tokens in one answer.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [8192]))]
    pub(crate) max_output_tokens: Option<u32>,
    /// Sampling temperature. Some models refuse it; it is sent only if set.
    #[schemars(range(min = 0, max = 2), extend("examples" = [0.7]))]
    pub(crate) temperature: Option<f64>,
    /// Nucleus sampling. Some models refuse it; it is sent only if set.
    #[schemars(range(min = 0, max = 1), extend("examples" = [0.9]))]
    pub(crate) top_p: Option<f64>,
    /// Reasoning effort, for models that support it.
    pub(crate) effort: Option<RawEffort>,
    /// Whether to request and show the model's reasoning.
    #[schemars(extend("default" = false))]
    pub(crate) show_thinking: Option<bool>,
    /// The account id of a `chatgpt` login. Default: the one in the token file or in the token.
    #[schemars(length(min = 1))]
    pub(crate) account: Option<String>,
    /// The Google Cloud project of `code-assist`. Default: `GOOGLE_CLOUD_PROJECT`, else the one that Google assigns.
    #[schemars(length(min = 1), extend("examples" = ["my-project"]))]
    pub(crate) project: Option<String>,
    /// The field in which tool schemas are sent to `gemini` and `code-assist`: `json_schema` uses
    /// `parametersJsonSchema`, `parameters` uses the older field of that name, which supports fewer keywords, and
    /// `auto` uses the first until the backend rejects it.
    #[schemars(extend("default" = "auto"))]
    pub(crate) tool_schema: Option<RawToolSchema>,
    /// The key under which tools are declared to `gemini` and `code-assist`: `camel` sends `functionDeclarations`, `both`
    /// sends `function_declarations` too, for backends that read only that one. Google's own backend wants one of them.
    #[schemars(extend("default" = "camel"))]
    pub(crate) declaration_keys: Option<RawDeclarationKeys>,
    /// How its models use tools, for sessions and turns that set nothing else: `native` uses the tool calls of the API,
    /// `react` lists the tools in the prompt and reads actions from the text of the answers. Default: `native`, and
    /// `react` if `native_tools` is false.
    pub(crate) strategy: Option<RawStrategy>,
    /// Settings of single models, by the name of the model. `*` stands for any text; the longest pattern that matches decides.
    #[schemars(extend("examples" = [{"llama3*": {"strategy": "react"}}]))]
    pub(crate) models: Option<BTreeMap<String, RawModelRule>>,
    /// Whether its models have native tool calls. A backend that refuses a request because of its tools is noticed without
    /// this setting.
    #[schemars(extend("default" = true))]
    pub(crate) native_tools: Option<bool>,
    /// The template of the prompt of `react`, in the syntax of Jinja. It sees `tools`, a list of `name`, `description` and
    /// `arguments` (each `name`, `type`, `required`, `description`), and `tool_names`. Default: the built-in one.
    #[schemars(length(min = 1))]
    pub(crate) react_template: Option<String>,
    /// What happens to the credential that an app sends for this provider in a request to `/openai/v1`, `/anthropic/v1` or
    /// `/gemini/v1beta`: `ignore` uses the provider's own credential, `pass` sends the app's in its place.
    #[schemars(extend("default" = "ignore"))]
    pub(crate) app_credentials: Option<RawAppCredentials>,
    /// How long the provider may send nothing during an answer.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_PROVIDER_IDLE_TIMEOUT)))]
    pub(crate) idle_timeout: Option<RawDuration>,
    /// How long one answer may take.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_PROVIDER_TOTAL_TIMEOUT)))]
    pub(crate) total_timeout: Option<RawDuration>,
}

/// The settings of the models of a provider whose names match a pattern.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelRule")]
pub(crate) struct RawModelRule {
    /// How these models use tools: as `strategy` of the provider, which it replaces.
    #[schemars(required)]
    pub(crate) strategy: Option<RawStrategy>,
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
pub(crate) enum RawDeclarationKeys {
    Camel,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawAppCredentials {
    Ignore,
    Pass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawStrategy {
    Native,
    React,
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
