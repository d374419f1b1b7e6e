//! Selects the wire format of a provider.

use switchboard_chat::{FaultKind, ModelFault, Source};
use switchboard_model::ProviderKind;

use crate::parser::Wire;
use crate::refusal::presentable;
use crate::{Answer, Limits, ModelRequest, Parser, WireRequest, anthropic, gemini, openai};

/// Builds the HTTP request for a conversation.
pub fn request(ask: &ModelRequest<'_>) -> Result<WireRequest, ModelFault> {
    match ask.source.kind {
        ProviderKind::OpenAi | ProviderKind::ChatGpt => openai::responses_request(ask),
        ProviderKind::OpenAiChat => openai::chat_request(ask),
        ProviderKind::Anthropic => anthropic::request(ask),
        ProviderKind::Gemini | ProviderKind::CodeAssist => gemini::request(ask),
        ProviderKind::Demo => {
            Err(ModelFault::new(FaultKind::BadRequest, "the demo model has no wire format"))
        }
    }
}

/// Parses an error response.
pub fn fault(kind: ProviderKind, answer: &Answer<'_>) -> ModelFault {
    let fault = match kind {
        ProviderKind::OpenAi
        | ProviderKind::ChatGpt
        | ProviderKind::OpenAiChat
        | ProviderKind::Demo => openai::fault(answer),
        ProviderKind::Anthropic => anthropic::fault(answer),
        ProviderKind::Gemini | ProviderKind::CodeAssist => gemini::fault(answer),
    };
    presentable(fault)
}

impl Parser {
    /// A parser for the streams of this provider.
    pub fn new(source: &Source, limits: Limits) -> Self {
        let wire: Box<dyn Wire> = match source.kind {
            ProviderKind::OpenAi | ProviderKind::ChatGpt | ProviderKind::Demo => {
                Box::new(openai::ResponsesWire::new(source, limits))
            }
            ProviderKind::OpenAiChat => Box::new(openai::ChatWire::new(source, limits)),
            ProviderKind::Anthropic => Box::new(anthropic::MessagesWire::new(source, limits)),
            ProviderKind::Gemini | ProviderKind::CodeAssist => {
                Box::new(gemini::GeminiWire::new(source, limits))
            }
        };
        Self::over(wire, limits)
    }
}
