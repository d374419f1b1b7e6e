//! The fakes without a network: what they would say to a request, and what they would stream.

use serde_json::Value;

use super::backend::Backend;
use super::findings::{Findings, Violation};
use super::heard::EventReceiver;
use super::service::events;
use super::state::Shared;
use super::step::Step;
use super::stream::encoded;
use super::{anthropic_check, chat_check, code_assist, gemini_check, responses_check};

/// Every rule that a body breaks. `betas` are those of Anthropic; `model` is the one that a path of Gemini names.
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

/// The bytes that a backend streams for a step, its endings left aside. All tools that the step calls are known.
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
