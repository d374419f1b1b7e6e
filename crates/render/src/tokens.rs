//! Estimates the tokens of declarations.
//!
//! Only OpenAI publishes the tokenizer of its models (`o200k_base`), and no provider publishes the text that it builds
//! from declarations before it counts. So every number is an estimate; [`basis`](Provider::basis) says of which kind.
//! Use the numbers to compare tools with each other and views over time.

use std::sync::LazyLock;

use serde::Serialize;
use tiktoken::CoreBpe;

use crate::{Provider, RenderedTool, Rendering};

/// How a number of tokens is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Basis {
    pub tokenizer: &'static str,
    pub precision: Precision,
    /// The same as a sentence.
    pub note: &'static str,
}

/// The accuracy of a number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Counted with the tokenizer of the provider's models on the JSON that is sent. The text that the provider builds
    /// from it is not published.
    ExactForTheText,
    /// Counted with another provider's tokenizer.
    Estimate,
}

/// The tokens of a rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Tokens of each tool, in the order of the rendering.
    pub tools: Vec<usize>,
    /// Tokens of the whole value, brackets included.
    pub total: usize,
}

/// Longer texts are estimated by their length, because counting takes too long.
const MAX_COUNTED_BYTES: usize = 256 << 10;
/// Average number of bytes in a token of JSON.
const BYTES_PER_TOKEN: usize = 4;
const TOKENIZER: &str = "o200k_base";

impl Provider {
    /// The tokenizer that is used for this provider, and whether it is the provider's own.
    pub fn basis(self) -> Basis {
        let (precision, note) = match self {
            Self::OpenAi | Self::OpenAiChat => (
                Precision::ExactForTheText,
                "the tokenizer of OpenAI's current models, on the JSON that is sent; OpenAI rewrites declarations before it counts, so the bill differs a little",
            ),
            Self::Anthropic => (
                Precision::Estimate,
                "Anthropic publishes no tokenizer; OpenAI's o200k_base is used, and Claude models count more tokens for the same text",
            ),
            Self::Gemini | Self::GeminiParameters => (
                Precision::Estimate,
                "the tokenizer of Gemini is not used; OpenAI's o200k_base is, which counts similarly",
            ),
            Self::Mcp | Self::LangChain | Self::SemanticKernel | Self::React => (
                Precision::Estimate,
                "the model behind it is not known; OpenAI's o200k_base is used on the JSON",
            ),
        };
        Basis { tokenizer: TOKENIZER, precision, note }
    }
}

impl RenderedTool {
    /// Tokens of the entry. The first count of a process loads the tokenizer, which takes a fifth of a second.
    pub fn tokens(&self) -> usize {
        count(&self.json)
    }
}

impl Rendering {
    /// The tokens of every tool and of the whole list.
    pub fn cost(&self) -> Cost {
        let tools: Vec<usize> = self.tools.iter().map(|tool| tool.tokens()).collect();
        let (before, after) = self.provider.frame();
        let frame = if tools.is_empty() { 1 } else { count(before) + count(after) };
        // The comma between two entries usually shares a token with the brackets around it.
        let total = frame + tools.iter().sum::<usize>();
        Cost { tools, total }
    }
}

/// Named directly and not looked up by name: a look-up keeps the tables of every encoding that the library knows in the
/// binary, 9 MB of them.
static O200K_BASE: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::o200k_base);

fn count(text: &str) -> usize {
    if text.len() > MAX_COUNTED_BYTES {
        return text.len() / BYTES_PER_TOKEN;
    }
    O200K_BASE.count(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_o200k_base() {
        // The second one is `{"`, `type`, `":"`, `object`, `","`, `properties`, `":{`, `}}` and what joins them.
        assert_eq!(count("hello world"), 2);
        assert_eq!(count(r#"{"type":"object","properties":{}}"#), 9);
    }

    #[test]
    fn a_text_that_would_take_long_is_guessed() {
        assert_eq!(count(&"x".repeat(1 << 20)), (1 << 20) / BYTES_PER_TOKEN);
    }

    #[test]
    fn every_provider_says_what_its_numbers_are() {
        for provider in Provider::ALL {
            let basis = provider.basis();
            assert!(
                basis.note.contains("o200k_base") || basis.precision == Precision::ExactForTheText
            );
            assert_eq!(basis.tokenizer, TOKENIZER);
        }
    }
}
