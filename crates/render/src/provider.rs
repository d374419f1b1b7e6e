//! The targets of renderings.

use std::fmt;
use std::str::FromStr;

/// A format in which tools are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// `tools` of an MCP `tools/list`.
    Mcp,
    /// `tools` of the OpenAI Responses API.
    OpenAi,
    /// `tools` of the OpenAI Chat Completions API and of compatible servers.
    OpenAiChat,
    /// `tools` of the Anthropic Messages API.
    Anthropic,
    /// `tools` of Gemini, with `parametersJsonSchema`.
    Gemini,
    /// `tools` of Gemini, with the older `parameters`, for models that do not accept `parametersJsonSchema`.
    GeminiParameters,
    /// A list with the arguments of LangChain's `StructuredTool`.
    LangChain,
    /// A list of Semantic Kernel function metadata.
    SemanticKernel,
    /// The tools of a ReACT prompt, for models without native tool calls.
    React,
}

/// The error for an unknown provider name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{name}`; known are {}", known())]
pub struct UnknownRenderTarget {
    pub name: String,
}

fn known() -> String {
    Provider::ALL.map(Provider::as_str).join(", ")
}

impl Provider {
    pub const ALL: [Self; 9] = [
        Self::Mcp,
        Self::OpenAi,
        Self::OpenAiChat,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiParameters,
        Self::LangChain,
        Self::SemanticKernel,
        Self::React,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::GeminiParameters => "gemini-parameters",
            Self::LangChain => "langchain",
            Self::SemanticKernel => "semantic-kernel",
            Self::React => "react",
        }
    }

    /// Maximum number of tools in one request. With more, the provider rejects the whole request.
    pub fn max_tools(self) -> Option<usize> {
        match self {
            Self::OpenAi | Self::OpenAiChat => Some(128),
            Self::Gemini | Self::GeminiParameters => Some(512),
            Self::Mcp | Self::Anthropic | Self::LangChain | Self::SemanticKernel | Self::React => {
                None
            }
        }
    }

    /// The text before the first entry and after the last one.
    pub(crate) fn frame(self) -> (&'static str, &'static str) {
        match self {
            Self::Gemini | Self::GeminiParameters => (r#"[{"functionDeclarations":["#, "]}]"),
            Self::Mcp
            | Self::OpenAi
            | Self::OpenAiChat
            | Self::Anthropic
            | Self::LangChain
            | Self::SemanticKernel
            | Self::React => ("[", "]"),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = UnknownRenderTarget;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|provider| provider.as_str() == name);
        found.ok_or_else(|| UnknownRenderTarget { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_read_as_it_is_written() {
        for provider in Provider::ALL {
            assert_eq!(provider.to_string().parse(), Ok(provider));
        }
    }

    #[test]
    fn an_unknown_provider_is_answered_with_the_known_ones() {
        insta::assert_snapshot!("OpenAI".parse::<Provider>().unwrap_err(), @"there is no provider `OpenAI`; known are mcp, openai, openai-chat, anthropic, gemini, gemini-parameters, langchain, semantic-kernel, react");
    }
}
