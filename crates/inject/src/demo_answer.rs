//! Answers of the demo model in the format of an app's API, so that an app can be tried without a key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_chat::{Message, ModelEvent, ModelFault, Part, Said, ToolReturn};
use switchboard_model::ModelSettings;
use switchboard_providers::ProviderEndpoint;
use switchboard_render::Rendering;
use switchboard_splice::{AnswerPart, Api, ConversationText, ProviderAnswer, TextAuthor};
use switchboard_wire::{ModelRequest, Tools};

use crate::Failure;
use crate::turn_records::now_ms;

/// The delay between two frames of a stream.
const PAUSE: Duration = Duration::from_millis(15);

/// What the demo model needs of a round.
#[derive(Debug, Clone)]
pub(crate) struct DemoRound {
    pub(crate) api: Api,
    pub(crate) texts: Vec<ConversationText>,
    pub(crate) rendering: Arc<Rendering>,
    pub(crate) session: Arc<str>,
    pub(crate) turn: String,
    /// The number of the round.
    pub(crate) round: u32,
}

/// The frames of a streamed answer.
#[derive(Debug)]
pub(crate) struct DemoFrames(VecDeque<String>);

impl DemoFrames {
    /// The next frame; `None` after the last one. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Option<Bytes> {
        if self.0.is_empty() {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
        self.0.pop_front().map(Bytes::from)
    }
}

impl DemoRound {
    pub(crate) async fn streamed(
        &self,
        endpoint: &ProviderEndpoint,
    ) -> Result<DemoFrames, Failure> {
        Ok(DemoFrames(self.ask(endpoint).await?.frames(self.api).into()))
    }

    pub(crate) async fn whole(&self, endpoint: &ProviderEndpoint) -> Result<Bytes, Failure> {
        Ok(self.ask(endpoint).await?.whole(self.api).into())
    }

    async fn ask(&self, endpoint: &ProviderEndpoint) -> Result<ProviderAnswer, Failure> {
        let source = endpoint.source(None, None)?;
        let messages = self.messages();
        let tools = Tools::only(self.rendering.clone());
        let asked = ModelRequest {
            source: &source,
            messages: &messages,
            replay: 0..0,
            tools: &tools,
            settings: &ModelSettings::default(),
            stop: None,
            session: &self.session,
            turn: &self.turn,
            project: None,
            is_bearer: false,
        };
        let mut stream = endpoint.ask(&asked).await?;
        let mut answer = ProviderAnswer {
            id: format!("demo{}r{}", self.turn, self.round),
            model: source.model.clone(),
            created: u64::try_from(now_ms() / 1000).unwrap_or_default(),
            ..ProviderAnswer::default()
        };
        while let Some(events) = stream.next().await {
            for event in events {
                add(&mut answer, event).map_err(Failure::from)?;
            }
        }
        Ok(answer)
    }

    /// The last message of the user, and the results after the last reply: that is all that the demo model reads.
    fn messages(&self) -> Vec<Message> {
        let said = self.texts.iter().rev().find(|text| text.author == TextAuthor::User);
        let content = vec![Part::text(said.map(|text| text.text.clone()).unwrap_or_default())];
        let results = self
            .texts
            .iter()
            .rev()
            .take_while(|text| text.author == TextAuthor::Assistant && !text.is_reply);
        let mut results: Vec<_> = results.map(|text| Message::Tool(result(&text.text))).collect();
        results.push(Message::User(Said { content }));
        results.reverse();
        results
    }
}

fn result(text: &str) -> ToolReturn {
    ToolReturn {
        call: String::new(),
        name: "The tool".to_owned(),
        content: vec![Part::text(text)],
        structured: None,
        is_error: false,
        latency_ms: None,
    }
}

/// Adds an event of the demo model to its answer. Thoughts are left out.
fn add(answer: &mut ProviderAnswer, event: ModelEvent) -> Result<(), ModelFault> {
    match event {
        ModelEvent::Text(piece) => match answer.parts.last_mut() {
            Some(AnswerPart::Text(pieces)) => pieces.push(piece),
            _ => answer.parts.push(AnswerPart::Text(vec![piece])),
        },
        ModelEvent::CallBegun { name, .. } => {
            answer.parts.push(AnswerPart::Call { name, arguments: String::new() });
        }
        ModelEvent::CallArguments { delta, .. } => {
            if let Some(AnswerPart::Call { arguments, .. }) = answer.parts.last_mut() {
                arguments.push_str(&delta);
            }
        }
        ModelEvent::Finished(reply) => {
            let usage = reply.usage.unwrap_or_default();
            (answer.input_tokens, answer.output_tokens) = (usage.input_tokens, usage.output_tokens);
        }
        ModelEvent::Failed(fault) => return Err(*fault),
        _ => {}
    }
    Ok(())
}
