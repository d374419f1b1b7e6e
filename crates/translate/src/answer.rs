//! The model's events as the answer of an API.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_chat::{ModelEvent, ModelFault, Reply, Source, Usage};
use switchboard_render::Rendering;
use switchboard_splice::Api;
use switchboard_wire::restore_arguments;

use crate::chat::ChatAnswer;
use crate::gemini::GeminiAnswer;
use crate::messages::MessagesAnswer;
use crate::responses::ResponsesAnswer;

/// What a writer of an answer has to know.
#[derive(Debug, Clone)]
pub struct AnswerOptions {
    /// Unique for this answer. All its ids are made from it.
    pub id: String,
    /// Seconds since 1970.
    pub now: u64,
}

/// Writes an answer.
#[derive(Debug)]
pub struct AnswerWriter {
    tools: Arc<Rendering>,
    format: Box<dyn AnswerFormat>,
    usage: Usage,
}

/// The answer in the format of one API.
pub(crate) trait AnswerFormat: Send + Sync + Debug {
    /// The answer begins. Called before everything else.
    fn begin(&mut self, out: &mut Vec<u8>);

    fn text(&mut self, text: &str, out: &mut Vec<u8>);

    fn thinking(&mut self, text: &str, out: &mut Vec<u8>);

    /// The end: the calls, opaque data of the provider, the reason, and the usage.
    fn finish(&mut self, reply: &Reply, usage: Usage, out: &mut Vec<u8>);

    /// The whole answer, once it is finished.
    fn whole(&self) -> Option<String>;
}

impl AnswerWriter {
    pub(crate) fn new(
        api: Api,
        source: &Source,
        tools: Arc<Rendering>,
        echoed: &Map<String, Value>,
        options: AnswerOptions,
    ) -> Self {
        let format: Box<dyn AnswerFormat> = match api {
            Api::Responses => Box::new(ResponsesAnswer::new(source, echoed.clone(), options)),
            Api::Chat => Box::new(ChatAnswer::new(source, options)),
            Api::Messages => Box::new(MessagesAnswer::new(source, options)),
            Api::Gemini => Box::new(GeminiAnswer::new(source, options)),
        };
        Self { tools, format, usage: Usage::default() }
    }

    /// Writes the beginning. Call it when the provider has accepted the request.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.format.begin(out);
    }

    /// An event of the model. What the app's API has for it is appended to `out` as frames of a stream.
    pub fn event(&mut self, event: ModelEvent, out: &mut Vec<u8>) -> Result<(), ModelFault> {
        match event {
            ModelEvent::Text(text) => self.format.text(&text, out),
            ModelEvent::Thinking(text) => self.format.thinking(&text, out),
            // Calls are written when they are complete: until then their arguments may have other names.
            ModelEvent::CallBegun { .. }
            | ModelEvent::CallArguments { .. }
            | ModelEvent::Step(_) => {}
            ModelEvent::Usage(usage) => self.usage = usage,
            ModelEvent::Finished(mut reply) => {
                restore_arguments(&mut reply, &self.tools);
                let usage = reply.usage.unwrap_or(self.usage);
                self.format.finish(&reply, usage, out);
            }
            ModelEvent::Failed(fault) => return Err(*fault),
        }
        Ok(())
    }

    /// The whole answer, once the model has finished.
    pub fn whole(&self) -> Option<String> {
        self.format.whole()
    }
}

/// A frame of a stream.
pub(crate) fn frame(name: Option<&str>, data: &str, out: &mut Vec<u8>) {
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data.as_bytes());
    out.extend_from_slice(b"\n\n");
}
