//! Selects the format of an API.

use crate::app_request::{RequestFacts, RequestTarget};
use crate::chat::{ChatRequest, ChatSplicer};
use crate::gemini::{GeminiRequest, GeminiSplicer};
use crate::messages::{MessagesRequest, MessagesSplicer};
use crate::request_format::RequestFormat;
use crate::responses::{ResponsesRequest, ResponsesSplicer};
use crate::splicer::Splicer;
use crate::{Api, Refusal, TurnOptions};

/// Reads a request in the format of an API.
pub(crate) fn format(
    api: Api,
    target: &RequestTarget,
    text: &str,
) -> Result<Box<dyn RequestFormat>, Refusal> {
    Ok(match api {
        Api::Responses => Box::new(ResponsesRequest::read(target, text)?),
        Api::Chat => Box::new(ChatRequest::read(target, text)?),
        Api::Messages => Box::new(MessagesRequest::read(target, text)?),
        Api::Gemini => Box::new(GeminiRequest::read(target, text)?),
    })
}

/// A splicer for the answers to a request.
pub(crate) fn splicer(api: Api, facts: &RequestFacts, options: &TurnOptions) -> Box<dyn Splicer> {
    match api {
        Api::Responses => Box::new(ResponsesSplicer::new(facts, options)),
        Api::Chat => Box::new(ChatSplicer::new(facts, options)),
        Api::Messages => Box::new(MessagesSplicer::new(facts, options)),
        Api::Gemini => Box::new(GeminiSplicer::new(facts, options)),
    }
}
