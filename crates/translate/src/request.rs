//! A request, independent of its API.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_chat::{Message, Source};
use switchboard_model::{Effort, ModelSettings};
use switchboard_render::{Provider, Rendering};
use switchboard_splice::{Api, Refusal, RefusalKind};
use switchboard_wire::{ModelRequest, Tools};

use crate::{AnswerOptions, AnswerWriter, chat, gemini, messages, responses};

/// An app's request, as it is sent to a provider of another kind.
#[derive(Debug, Clone)]
pub struct TranslatedRequest {
    api: Api,
    source: Source,
    messages: Vec<Message>,
    tools: Tools,
    settings: ModelSettings,
    is_streamed: bool,
    /// Members of the request that the answer repeats.
    echoed: Map<String, Value>,
}

/// What is read of a request in the format of one API.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Rendering,
    pub(crate) settings: ModelSettings,
    pub(crate) is_streamed: bool,
    pub(crate) echoed: Map<String, Value>,
}

/// How hard the model thinks. Words that other APIs do not have stand for the nearest one; `none` leaves it to the model.
pub(crate) fn effort(word: &str) -> Option<Effort> {
    match word {
        "minimal" => Some(Effort::Minimal),
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" | "xhigh" | "max" => Some(Effort::High),
        _ => None,
    }
}

impl TranslatedRequest {
    /// Reads the body of a request. `rendering` is how the provider of `source` takes tools. Refuses what cannot be carried
    /// over to it.
    pub fn read(
        api: Api,
        body: &[u8],
        source: Source,
        rendering: Provider,
    ) -> Result<Self, Refusal> {
        let body = serde_json::from_slice::<Map<String, Value>>(body).map_err(|error| {
            Refusal::new(RefusalKind::Invalid, format!("the body is not a JSON object: {error}"))
        })?;
        let read = match api {
            Api::Chat => chat::read(&body, &source, rendering)?,
            Api::Responses => responses::read(&body, &source, rendering)?,
            Api::Messages => messages::read(&body, &source, rendering)?,
            Api::Gemini => gemini::read(&body, &source, rendering)?,
        };
        Ok(Self {
            api,
            source,
            messages: read.messages,
            tools: Tools::only(Arc::new(read.tools)),
            settings: read.settings,
            is_streamed: read.is_streamed,
            echoed: read.echoed,
        })
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the body asks for a stream. For Gemini the path of the request says it.
    pub fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// The request to the model. `session` and `turn` are constant for a conversation and for a turn.
    pub fn model_request<'a>(&'a self, session: &'a str, turn: &'a str) -> ModelRequest<'a> {
        ModelRequest {
            source: &self.source,
            messages: &self.messages,
            replay: 0..self.messages.len(),
            tools: &self.tools,
            settings: &self.settings,
            stop: None,
            session,
            turn,
            project: None,
            is_bearer: false,
        }
    }

    /// A writer for the answer.
    pub fn answer(&self, options: AnswerOptions) -> AnswerWriter {
        AnswerWriter::new(self.api, &self.source, self.tools.newest.clone(), &self.echoed, options)
    }
}
