//! The text at which a ReACT reply stops, and the answers of backends that refuse the parameter for it.

use switchboard_chat::ModelFault;

/// A model that goes on after its action would make up the result. The line break keeps the word in an answer harmless.
pub const REACT_STOP: &str = "\nObservation:";

/// Parts of messages, in lower case, with which backends refuse a parameter.
const MESSAGES: &[&str] = &[
    // Names the parameter: OpenAI, xAI, Anthropic, Gemini.
    "stop",
    // Checks of a body that name the parameter elsewhere.
    "extra inputs are not permitted",
    "unsupported parameter",
    "unknown parameter",
    "unrecognized request argument",
    "unknown field",
];

/// Whether a backend refused a request because it has a stop sequence, as far as the message tells.
pub fn refuses_stop(fault: &ModelFault) -> bool {
    let message = fault.message.to_ascii_lowercase();
    matches!(fault.status, Some(400 | 422)) && MESSAGES.iter().any(|part| message.contains(part))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use switchboard_chat::{FaultKind, Message};
    use switchboard_model::ProviderKind;
    use switchboard_render::Provider;

    use super::*;
    use crate::samples::{Asking, rendering, source};
    use crate::{Tools, request};

    #[test]
    fn each_api_that_has_a_stop_sequence_gets_it() {
        let messages = [Message::user("hi")];
        let sent = |kind, model: &str, stop| {
            let none = Tools::only(rendering(Provider::OpenAi, &[]));
            let asking = Asking {
                project: Some("p"),
                stop,
                ..Asking::new(source(kind, model), none, &messages)
            };
            asking.send(request).1
        };
        let stops = json!([REACT_STOP]);
        let rows = [
            (ProviderKind::OpenAiChat, "llama3", "/stop", true),
            (ProviderKind::OpenAiChat, "openai/gpt-5.1", "/stop", false),
            (ProviderKind::OpenAiChat, "o3-mini", "/stop", false),
            (ProviderKind::Anthropic, "claude-haiku-4-5", "/stop_sequences", true),
            (ProviderKind::Gemini, "gemma-3", "/generationConfig/stopSequences", true),
            (
                ProviderKind::CodeAssist,
                "gemini-2.5-pro",
                "/request/generationConfig/stopSequences",
                true,
            ),
            (ProviderKind::OpenAi, "gpt-4.1", "/stop", false),
        ];
        for (kind, model, place, is_sent) in rows {
            let body = sent(kind, model, Some(REACT_STOP));
            assert_eq!(body.pointer(place), is_sent.then_some(&stops), "{model}: {body:#}");
            assert_eq!(body.to_string().contains("Observation"), is_sent, "{model}: {body:#}");
            assert!(!sent(kind, model, None).to_string().contains("stop"), "{model}");
        }
    }

    #[test]
    fn backends_that_refuse_a_stop_sequence_are_recognised() {
        let check = |status, message: &str, expected: bool| {
            let fault = ModelFault { status, ..ModelFault::new(FaultKind::BadRequest, message) };
            assert_eq!(refuses_stop(&fault), expected, "{message}");
        };
        let openai = "Unsupported parameter: 'stop' is not supported with this model.";
        check(Some(400), openai, true);
        check(Some(400), "Model grok-4 does not support parameter stop.", true);
        check(Some(422), "Extra inputs are not permitted", true);
        check(Some(400), "Unknown name \"stopSequences\": Cannot find field.", true);
        check(Some(400), "maximum context length is 8192 tokens", false);
        check(Some(500), openai, false);
        check(None, openai, false);
    }
}
