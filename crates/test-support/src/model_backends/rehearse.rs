//! The fakes without a network: the violations of a request, and the stream of a response.

use serde_json::Value;

use super::backend::Backend;
use super::findings::{Findings, Violation};
use super::heard::EventReceiver;
use super::service::events;
use super::state::Shared;
use super::step::Step;
use super::stream::encoded;
use super::{anthropic_check, chat_check, code_assist, gemini_check, responses_check};

/// Every violation of a body. `betas` are those of Anthropic; `model` is the one in a Gemini path.
pub fn violations_of(backend: Backend, model: &str, betas: &str, body: &Value) -> Vec<Violation> {
    let mut findings = Findings::default();
    let _heard = match backend {
        Backend::OpenAi | Backend::ChatGpt => {
            responses_check::check(backend, body, "", &mut findings)
        }
        Backend::Chat => chat_check::check(body, &mut findings),
        Backend::Anthropic => anthropic_check::check(body, betas, &mut findings),
        Backend::Gemini => gemini_check::check(model, body, &mut findings),
        Backend::CodeAssist => {
            let (model, request) = code_assist::open_envelope(body, &mut findings);
            gemini_check::check(model, request, &mut findings)
        }
    };
    findings.violations(backend).collect()
}

/// The bytes that a backend streams for a step, ignoring its ending. All tools that the step calls count as known.
pub fn stream_of(backend: Backend, step: &Step) -> Vec<u8> {
    let heard = EventReceiver {
        model: "model".to_owned(),
        tools: step.calls().map(|(name, _)| name.to_owned()).collect(),
        streams: true,
        gives_reasoning: true,
        includes_usage: true,
        ..EventReceiver::default()
    };
    let events = events(backend, step, &heard, &Shared::default());
    encoded(backend, events, &step.wire).flatten().collect()
}
