//! Which wire format a provider speaks.

use switchboard_chat::{FaultKind, ModelEvent, ModelFault, Source};
use switchboard_model::ProviderKind;

use crate::parser::Wire;
use crate::{Answer, Ask, Limits, Parser, WireRequest};

/// What is sent for a request.
pub fn request(ask: &Ask<'_>) -> Result<WireRequest, ModelFault> {
    match ask.source.kind {
        ProviderKind::OpenAi
        | ProviderKind::ChatGpt
        | ProviderKind::OpenAiChat
        | ProviderKind::Anthropic
        | ProviderKind::Gemini
        | ProviderKind::CodeAssist
        | ProviderKind::Demo => Err(missing(ask.source.kind)),
    }
}

impl Parser {
    /// Reads the answer of a model.
    pub fn new(source: &Source, limits: Limits) -> Self {
        match source.kind {
            ProviderKind::OpenAi
            | ProviderKind::ChatGpt
            | ProviderKind::OpenAiChat
            | ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::CodeAssist
            | ProviderKind::Demo => Self::over(Box::new(Missing(source.kind)), limits),
        }
    }
}

/// What an answer means that is no stream.
pub fn fault(kind: ProviderKind, answer: &Answer<'_>) -> ModelFault {
    match kind {
        ProviderKind::OpenAi
        | ProviderKind::ChatGpt
        | ProviderKind::OpenAiChat
        | ProviderKind::Anthropic
        | ProviderKind::Gemini
        | ProviderKind::CodeAssist
        | ProviderKind::Demo => by_status(answer),
    }
}

/// What the status alone says.
fn by_status(answer: &Answer<'_>) -> ModelFault {
    let kind = match answer.status {
        401 => FaultKind::Credentials,
        403 => FaultKind::Forbidden,
        404 => FaultKind::NotFound,
        429 => FaultKind::RateLimited,
        503 | 529 => FaultKind::Overloaded,
        500.. => FaultKind::Provider,
        _ => FaultKind::BadRequest,
    };
    let body = String::from_utf8_lossy(answer.body);
    let body: String = body.chars().take(200).collect();
    let seconds = (answer.header)("retry-after").and_then(|text| text.parse().ok());
    ModelFault {
        status: Some(answer.status),
        retry_after: seconds.map(std::time::Duration::from_secs),
        ..ModelFault::new(kind, format!("status {}: {body}", answer.status))
    }
}

fn missing(kind: ProviderKind) -> ModelFault {
    ModelFault::new(FaultKind::BadRequest, format!("requests of kind `{kind}` are not built in"))
}

/// A format that nobody reads.
#[derive(Debug)]
struct Missing(ProviderKind);

impl Wire for Missing {
    fn event(&mut self, _: &[u8], _: &[u8], out: &mut Vec<ModelEvent>) {
        self.end(out);
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        out.push(ModelEvent::Failed(Box::new(missing(self.0))));
    }
}
