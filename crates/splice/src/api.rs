//! The APIs that an app may speak.

use switchboard_render::Provider;

/// The format of an app's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Anthropic Messages.
    Messages,
    /// Gemini `generateContent`.
    Gemini,
}

impl Api {
    pub const ALL: [Self; 4] = [Self::Responses, Self::Chat, Self::Messages, Self::Gemini];

    /// The rendering of tools that this API takes.
    pub fn provider(self) -> Provider {
        match self {
            Self::Responses => Provider::OpenAi,
            Self::Chat => Provider::OpenAiChat,
            Self::Messages => Provider::Anthropic,
            Self::Gemini => Provider::Gemini,
        }
    }

    /// The name in logs and in stored records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
        }
    }
}
