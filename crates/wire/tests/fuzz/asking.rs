//! Builds the request of every provider for a conversation and validates it with the fake providers.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_chat::Message;
use switchboard_model::{JsonText, ModelSettings, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_test_support::model_backends::{Backend, violations_of};
use switchboard_wire::{ModelRequest, Tools, request};

use crate::{PROVIDERS, source};

fn rendering(backend: Backend) -> Arc<Rendering> {
    let form = match backend {
        Backend::OpenAi | Backend::ChatGpt => Provider::OpenAi,
        Backend::Chat => Provider::OpenAiChat,
        Backend::Anthropic => Provider::Anthropic,
        Backend::Gemini | Backend::CodeAssist => Provider::Gemini,
    };
    let schema = json!({"type": "object", "properties": {"a b": {"type": "string"}, "n": {"type": "number"}}});
    let tools = ["find", "drop"].map(|name| ToolDescriptor {
        description: Some("does it".into()),
        input_schema: JsonText::from(&schema),
        ..ToolDescriptor::named(name)
    });
    let declared = tools.iter().map(|tool| NamedTool { name: &tool.name, descriptor: tool });
    Arc::new(Rendering::new(form, declared))
}

/// Builds all requests. A conversation without content may be refused; a request that is built must break no rule of
/// its provider.
#[track_caller]
pub(crate) fn check(messages: &[Message]) {
    for (kind, backend, model) in PROVIDERS {
        let source = source(kind, model);
        let tools = Tools::only(rendering(backend));
        let ask = ModelRequest {
            source: &source,
            messages,
            replay: 0..messages.len(),
            tools: &tools,
            settings: &ModelSettings::default(),
            stop: Some("\nObservation:"),
            session: "session-1",
            turn: "turn-1",
            project: Some("project-1"),
            is_bearer: false,
        };
        let name = backend.word();
        let sent = match request(&ask) {
            Ok(sent) => sent,
            Err(fault) => {
                assert!(!says_something(messages), "{name} is not asked: {fault:?}\n{messages:#?}");
                continue;
            }
        };
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        let betas = sent.headers.iter().find(|(name, _)| *name == "anthropic-beta");
        let betas = betas.map_or("", |(_, betas)| betas);
        let broken = violations_of(backend, model, betas, &body);
        assert!(broken.is_empty(), "{name} says {broken:#?}\nto {body:#}");
    }
}

/// Whether the conversation has content that a model could answer.
fn says_something(messages: &[Message]) -> bool {
    messages.iter().any(|message| match message {
        Message::User(said) => said.content.iter().any(|part| match part {
            switchboard_chat::Part::Text { text } => !text.trim().is_empty(),
            switchboard_chat::Part::Image(_) | switchboard_chat::Part::File { .. } => false,
        }),
        Message::System(_) | Message::Assistant(_) | Message::Tool(_) => false,
    })
}
