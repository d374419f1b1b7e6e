//! LLM providers: kinds, credentials, and settings of requests.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;
use wildmatch::WildMatch;

use crate::{DescribedIssuer, Secret, TokenFile};

/// The kind of a provider: a wire format together with a kind of account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// OpenAI Responses with an API key.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI Responses behind a ChatGPT account.
    #[serde(rename = "chatgpt")]
    ChatGpt,
    /// Chat Completions: OpenAI, Ollama, vLLM, llama.cpp and many others.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// Anthropic Messages, with an API key or a bearer token.
    Anthropic,
    /// Gemini with an API key.
    Gemini,
    /// Gemini behind a Google account.
    CodeAssist,
    /// A scripted model that needs no key and no network.
    Demo,
}

/// The configured kind of provider does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider kind `{word}`; known are {}", ProviderKind::ALL.map(ProviderKind::as_str).join(", "))]
pub struct UnknownProviderKind {
    pub word: String,
}

impl ProviderKind {
    pub const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::ChatGpt,
        Self::OpenAiChat,
        Self::Anthropic,
        Self::Gemini,
        Self::CodeAssist,
        Self::Demo,
    ];

    /// The word in the configuration file and in stored histories.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::ChatGpt => "chatgpt",
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::CodeAssist => "code-assist",
            Self::Demo => "demo",
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProviderKind {
    type Err = UnknownProviderKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| UnknownProviderKind { word: word.to_owned() })
    }
}

/// The names of the providers that exist without a configuration.
pub const BUILT_IN_PROVIDERS: [&str; 5] = ["demo", "openai", "anthropic", "gemini", "ollama"];

/// The credential for requests to a provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProviderAuth {
    /// No credential is sent.
    #[default]
    None,
    /// Sent in the API key header of the provider kind.
    ApiKey(Secret),
    /// Sent as `Authorization: Bearer`.
    Bearer(Secret),
    /// The access token of a sign-in at this issuer, sent as `Authorization: Bearer`.
    OAuth(Box<DescribedIssuer>),
    /// A token that another program keeps in a file, sent as `Authorization: Bearer`.
    TokenFile(Box<TokenFile>),
}

impl ProviderAuth {
    /// The word for the kind of credential in the configuration; `None` if there is none.
    pub fn as_str(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::ApiKey(_) => Some("api_key"),
            Self::Bearer(_) => Some("bearer"),
            Self::OAuth(_) => Some("oauth"),
            Self::TokenFile(_) => Some("token_file"),
        }
    }
}

/// The name of the credential that `auth`, `api_key` or `bearer` of a provider describes.
pub const DEFAULT_CREDENTIAL: &str = "default";

/// Reasoning effort, for models that support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Minimal,
    Low,
    Medium,
    High,
}

impl Effort {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Settings of a model request. A setting that is `None` is not sent, so that the provider's default applies: some
/// models reject parameters that others need.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelSettings {
    /// The system prompt.
    pub instructions: Option<String>,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub effort: Option<Effort>,
    /// Whether to request readable reasoning ("thoughts") from the model.
    pub show_thinking: bool,
    /// Texts before the instructions, each as a block of its own, for Anthropic.
    pub system_blocks: Vec<String>,
    pub declaration_keys: DeclarationKeys,
}

/// The key under which tools are declared to Gemini.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeclarationKeys {
    /// `functionDeclarations`
    #[default]
    Camel,
    /// `functionDeclarations` and `function_declarations`, for backends that read either of them.
    Both,
}

impl DeclarationKeys {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Camel => "camel",
            Self::Both => "both",
        }
    }
}

/// The field in which tool schemas are sent to Gemini.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolSchemaForm {
    /// `parametersJsonSchema`; falls back to `parameters` when the backend rejects it.
    #[default]
    Auto,
    /// `parametersJsonSchema`, always.
    JsonSchema,
    /// `parameters`, the older field, which supports fewer keywords.
    Parameters,
}

impl ToolSchemaForm {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::JsonSchema => "json_schema",
            Self::Parameters => "parameters",
        }
    }
}

/// How a model uses tools in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStrategy {
    /// By the native tool calls of its provider.
    Native,
    /// By text: the prompt lists the tools, and the model writes `Action:` and `Args:`.
    React,
}

/// The word names no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy `{word}`; known are native and react")]
pub struct UnknownStrategy {
    pub word: String,
}

impl ToolStrategy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::React => "react",
        }
    }
}

impl fmt::Display for ToolStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ToolStrategy {
    type Err = UnknownStrategy;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "native" => Ok(Self::Native),
            "react" => Ok(Self::React),
            _ => Err(UnknownStrategy { word: word.to_owned() }),
        }
    }
}

/// One entry of `providers`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderPlan {
    /// The name by which sessions and commands select it.
    pub name: String,
    pub kind: ProviderKind,
    /// `None` means the provider's own address.
    pub base_url: Option<Url>,
    pub auth: ProviderAuth,
    /// Further credentials by name, of which a session can choose one.
    pub credentials: BTreeMap<String, ProviderAuth>,
    /// Default model, for sessions that set none.
    pub model: Option<String>,
    /// Sent with every request.
    pub headers: BTreeMap<String, Secret>,
    pub settings: ModelSettings,
    /// The account id of a ChatGPT login.
    pub account: Option<String>,
    /// The project of a Google account; if `None`, the backend is asked for it.
    pub project: Option<String>,
    /// The field in which tool schemas are sent to Gemini.
    pub tool_schema: ToolSchemaForm,
    /// The strategy of sessions and turns that choose none; `None` follows from `has_native_tools`.
    pub strategy: Option<ToolStrategy>,
    /// The strategies of single models.
    pub models: Vec<ModelRule>,
    /// Whether its models have native tool calls.
    pub has_native_tools: bool,
    /// The template of the prompt of ReACT turns; `None` is the built-in one.
    pub react_template: Option<String>,
    /// Whether an app's own credential is sent in the place of the board's, for requests of apps.
    pub passes_app_credentials: bool,
    /// How long the provider may send nothing during a response.
    pub idle_timeout: Duration,
    /// How long one response may take.
    pub total_timeout: Duration,
}

/// Default of `idle_timeout`.
pub const DEFAULT_PROVIDER_IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// Default of `total_timeout`.
pub const DEFAULT_PROVIDER_TOTAL_TIMEOUT: Duration = Duration::from_mins(15);

impl ProviderPlan {
    /// A provider with default settings.
    pub fn new(name: impl Into<String>, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            auth: ProviderAuth::None,
            credentials: BTreeMap::new(),
            model: None,
            headers: BTreeMap::new(),
            settings: ModelSettings::default(),
            account: None,
            project: None,
            tool_schema: ToolSchemaForm::Auto,
            strategy: None,
            models: Vec::new(),
            has_native_tools: true,
            react_template: None,
            passes_app_credentials: false,
            idle_timeout: DEFAULT_PROVIDER_IDLE_TIMEOUT,
            total_timeout: DEFAULT_PROVIDER_TOTAL_TIMEOUT,
        }
    }

    /// The settings of a credential. A name that the configuration does not have is a further sign-in at the issuer of
    /// `auth`; without an issuer there is no such credential.
    pub fn credential(&self, name: Option<&str>) -> Option<&ProviderAuth> {
        let Some(name) = name.filter(|name| *name != DEFAULT_CREDENTIAL) else {
            return Some(&self.auth);
        };
        let own = self.credentials.get(name);
        own.or_else(|| matches!(self.auth, ProviderAuth::OAuth(_)).then_some(&self.auth))
    }

    /// The strategy that the configuration names for a model: that of its rule, else that of the provider. The longest
    /// pattern decides, because it is the most specific one.
    pub fn named_strategy(&self, model: Option<&str>) -> Option<ToolStrategy> {
        let rule = model.and_then(|model| {
            let matching = self.models.iter().filter(|rule| rule.matches(model));
            matching.max_by_key(|rule| (rule.pattern == model, rule.pattern.len()))
        });
        rule.map(|rule| rule.strategy).or(self.strategy)
    }

    /// The strategy of sessions and turns that choose none.
    pub fn default_strategy(&self, model: Option<&str>) -> ToolStrategy {
        let fallback =
            if self.has_native_tools { ToolStrategy::Native } else { ToolStrategy::React };
        self.named_strategy(model).unwrap_or(fallback)
    }
}

/// The settings of the models whose names match a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRule {
    /// A name, in which `*` stands for any text.
    pub pattern: String,
    pub strategy: ToolStrategy,
}

impl ModelRule {
    fn matches(&self, model: &str) -> bool {
        WildMatch::new(&self.pattern).matches(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_it_is_written() {
        for kind in ProviderKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert!("claude".parse::<ProviderKind>().is_err());
        for strategy in [ToolStrategy::Native, ToolStrategy::React] {
            assert_eq!(strategy.as_str().parse(), Ok(strategy));
            assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.as_str());
        }
        let unknown = "ReACT".parse::<ToolStrategy>().unwrap_err().to_string();
        assert_eq!(unknown, "there is no strategy `ReACT`; known are native and react");
    }

    #[test]
    fn a_provider_without_native_tools_uses_react_unless_it_says_otherwise() {
        let check = |strategy, has_native_tools, expected| {
            let plan = ProviderPlan::new("p", ProviderKind::OpenAiChat);
            let plan = ProviderPlan { strategy, has_native_tools, ..plan };
            assert_eq!(plan.default_strategy(None), expected);
        };
        check(None, true, ToolStrategy::Native);
        check(None, false, ToolStrategy::React);
        check(Some(ToolStrategy::React), true, ToolStrategy::React);
    }

    #[test]
    fn the_most_specific_rule_of_a_model_stands_before_the_provider() {
        let rule = |pattern: &str, strategy| ModelRule { pattern: pattern.into(), strategy };
        let plan = ProviderPlan {
            models: vec![
                rule("llama3*", ToolStrategy::React),
                rule("llama3.3-tools*", ToolStrategy::Native),
                rule("*", ToolStrategy::Native),
                rule("gemma", ToolStrategy::React),
            ],
            has_native_tools: false,
            ..ProviderPlan::new("p", ProviderKind::OpenAiChat)
        };
        let check = |model, expected| assert_eq!(plan.named_strategy(model), expected, "{model:?}");
        check(Some("llama3:8b"), Some(ToolStrategy::React));
        check(Some("llama3.3-tools:8b"), Some(ToolStrategy::Native));
        check(Some("gemma"), Some(ToolStrategy::React));
        check(Some("gemma2"), Some(ToolStrategy::Native));
        check(None, None);
        assert_eq!(plan.default_strategy(None), ToolStrategy::React);
    }

    #[test]
    fn a_credential_is_named_in_the_configuration_or_a_further_sign_in() {
        let token = |text: &str| ProviderAuth::Bearer(Secret::new(text));
        let mut plan = ProviderPlan::new("p", ProviderKind::Anthropic);
        plan.auth = token("first");
        plan.credentials.insert("work".into(), token("second"));
        for name in [None, Some("default")] {
            assert_eq!(plan.credential(name), Some(&token("first")));
        }
        assert_eq!(plan.credential(Some("work")), Some(&token("second")));
        assert_eq!(plan.credential(Some("home")), None);
    }

    #[test]
    fn words_of_settings_are_those_of_the_configuration() {
        let efforts = [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
        for effort in efforts {
            let written = serde_json::to_value(effort).unwrap();
            assert_eq!(written, effort.as_str());
        }
        let forms = [ToolSchemaForm::Auto, ToolSchemaForm::JsonSchema, ToolSchemaForm::Parameters];
        assert_eq!(forms.map(ToolSchemaForm::as_str), ["auto", "json_schema", "parameters"]);
        let keys = [DeclarationKeys::Camel, DeclarationKeys::Both];
        assert_eq!(keys.map(DeclarationKeys::as_str), ["camel", "both"]);
    }
}
