//! The backends, their addresses, and the shape of their errors.

use serde_json::{Value, json};

use super::findings::Refusal;

/// A simulated backend. All of them are served on one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Backend {
    /// `OpenAI` Responses with an API key.
    OpenAi,
    /// The same API with a ChatGPT account, which supports less.
    ChatGpt,
    /// Chat Completions, including local servers: the key is optional.
    Chat,
    Anthropic,
    /// The public API, with a key.
    Gemini,
    /// The same with a Google account, in an envelope.
    CodeAssist,
}

impl Backend {
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::ChatGpt, Self::Chat, Self::Anthropic, Self::Gemini, Self::CodeAssist];

    /// The name in scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::ChatGpt => "chatgpt",
            Self::Chat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::CodeAssist => "code-assist",
        }
    }

    /// The path before `/responses`, `/chat/completions`, `/v1/messages`, `/models/...` or `:streamGenerateContent`.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Chat => "/v1",
            Self::ChatGpt => "/backend-api/codex",
            Self::Anthropic => "",
            Self::Gemini => "/v1beta",
            Self::CodeAssist => "/v1internal",
        }
    }

    /// The body of an error in the shape of this backend.
    pub(crate) fn error_body(self, refusal: &Refusal) -> Value {
        let Refusal { status, rule, place, message } = refusal;
        match self {
            Self::OpenAi | Self::Chat => json!({"error": {
                "message": message, "type": openai_type(*status), "param": place, "code": rule,
            }}),
            Self::ChatGpt => json!({"detail": message}),
            Self::Anthropic => json!({
                "type": "error",
                "error": {"type": anthropic_type(*status), "message": message},
                "request_id": "req_fake",
            }),
            Self::Gemini => google_error(*status, message),
            // This backend wraps streams into a list, and errors too.
            Self::CodeAssist => json!([google_error(*status, message)]),
        }
    }
}

pub(crate) fn google_error(status: u16, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": google_status(status)}})
}

fn openai_type(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

pub(crate) fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500 => "INTERNAL",
        503 => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    }
}
