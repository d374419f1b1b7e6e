//! Who answers in a chat.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::Secret;

/// A backend that speaks one wire format behind one kind of account.
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

/// A word that is no kind of provider.
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

    /// The word of the configuration file and of stored histories.
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

/// How a provider is to be convinced that it may answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProviderAuth {
    /// Nothing is sent.
    #[default]
    None,
    /// In the header that the kind of provider wants.
    ApiKey(Secret),
    /// As `Authorization: Bearer`.
    Bearer(Secret),
}

/// How hard a model is to think, where it can be told.
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

/// What a request asks of the model. What is not said is left to the provider: some models refuse a parameter that
/// others want.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelSettings {
    /// Stands before the conversation.
    pub instructions: Option<String>,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub effort: Option<Effort>,
    /// Whether thoughts are asked for, to be shown.
    pub show_thinking: bool,
}

/// The field in which Gemini is told what a tool takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolSchemaForm {
    /// `parametersJsonSchema`, until the backend does not know it.
    #[default]
    Auto,
    /// `parametersJsonSchema`, always.
    JsonSchema,
    /// `parameters`, the older field, which knows fewer keywords.
    Parameters,
}

impl ToolSchemaForm {
    /// The word that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::JsonSchema => "json_schema",
            Self::Parameters => "parameters",
        }
    }
}

/// One entry of `providers`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderPlan {
    /// What sessions and commands call it.
    pub name: String,
    pub kind: ProviderKind,
    /// `None` is the provider's own address.
    pub base_url: Option<Url>,
    pub auth: ProviderAuth,
    /// The model where a session names none.
    pub model: Option<String>,
    /// Sent with every request.
    pub headers: BTreeMap<String, Secret>,
    pub settings: ModelSettings,
    /// The account of a ChatGPT login.
    pub account: Option<String>,
    /// The project of a Google account; without one it is asked for.
    pub project: Option<String>,
    /// How Gemini is told what tools take.
    pub tool_schema: ToolSchemaForm,
    /// How long the provider may be silent.
    pub idle_timeout: Duration,
    /// How long one answer may take.
    pub total_timeout: Duration,
}

/// How long a provider may be silent unless it is said.
pub const DEFAULT_PROVIDER_IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// How long one answer of a model may take unless it is said.
pub const DEFAULT_PROVIDER_TOTAL_TIMEOUT: Duration = Duration::from_mins(15);

impl ProviderPlan {
    /// A provider of which nothing is said but what it is.
    pub fn new(name: impl Into<String>, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            auth: ProviderAuth::None,
            model: None,
            headers: BTreeMap::new(),
            settings: ModelSettings::default(),
            account: None,
            project: None,
            tool_schema: ToolSchemaForm::Auto,
            idle_timeout: DEFAULT_PROVIDER_IDLE_TIMEOUT,
            total_timeout: DEFAULT_PROVIDER_TOTAL_TIMEOUT,
        }
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
    }
}
