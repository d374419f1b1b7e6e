//! Refused requests and failed turns, in the words of each API.

use serde_json::{Value, json};

use crate::Api;
use crate::raw_json::RawObject;

/// The member of a request that names the message after which a thread goes on.
pub(crate) const PREVIOUS_MESSAGE: &str = "thread.previous_message_id";

/// Why a request is refused or a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request is not valid, or asks for something that injection does not support.
    Invalid,
    /// A request with an unknown kind of `thread`, which the app can repeat without it.
    ThreadUnsupported,
    Unauthorized,
    Forbidden,
    NotFound,
    TooLarge,
    RateLimited,
    Overloaded,
    /// The provider could not be reached or gave an answer that is no answer.
    Upstream,
    Internal,
}

/// A refusal or failure, for the app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: RefusalKind,
    pub message: String,
    /// The member of the request that is at fault.
    pub param: Option<String>,
    /// The status of the provider, if it answered.
    pub status: Option<u16>,
    /// The provider's own error body, passed on as it is.
    pub body: Option<Box<str>>,
}

impl Refusal {
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), param: None, status: None, body: None }
    }

    /// A refusal because of one member of the request.
    pub fn of_member(param: &str, message: impl Into<String>) -> Self {
        Self { param: Some(param.to_owned()), ..Self::new(RefusalKind::Invalid, message) }
    }

    pub fn status(&self) -> u16 {
        self.status.unwrap_or(match self.kind {
            RefusalKind::Invalid | RefusalKind::ThreadUnsupported => 400,
            RefusalKind::Unauthorized => 401,
            RefusalKind::Forbidden => 403,
            RefusalKind::NotFound => 404,
            RefusalKind::TooLarge => 413,
            RefusalKind::RateLimited => 429,
            RefusalKind::Overloaded => 503,
            RefusalKind::Upstream => 502,
            RefusalKind::Internal => 500,
        })
    }

    /// The body of an error response.
    pub fn to_body(&self, api: Api) -> String {
        match &self.body {
            Some(body) => body.to_string(),
            None => self.to_json(api).to_string(),
        }
    }

    /// The error object of an API: what stands in an error response, and in the last event of a stream that fails.
    pub(crate) fn to_json(&self, api: Api) -> Value {
        match api {
            Api::Responses | Api::Chat => json!({"error": {
                "message": self.message,
                "type": self.openai_type(),
                "param": self.param,
                "code": self.openai_code(),
            }}),
            Api::Messages => {
                let mut error = json!({"type": self.anthropic_type(), "message": self.message});
                if let Some(code) = self.thread_error() {
                    error["details"] = json!({"error_code": code});
                }
                json!({"type": "error", "error": error})
            }
            Api::Gemini => json!({"error": {
                "code": self.status(),
                "message": self.message,
                "status": self.google_status(),
            }}),
        }
    }

    /// The error as an event of a stream: the provider's own, or else one in the words of the API.
    pub(crate) fn to_event(&self, api: Api) -> RawObject {
        let own = || RawObject::read(&self.to_json(api).to_string()).unwrap_or_default();
        let provided = self.body.as_deref().and_then(|body| RawObject::read(body).ok());
        provided.filter(|body| body.get("error").is_some()).unwrap_or_else(own)
    }

    pub(crate) fn openai_type(&self) -> &'static str {
        match self.status() {
            400 | 404 | 413 | 422 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            _ => "server_error",
        }
    }

    pub(crate) fn openai_code(&self) -> Option<&'static str> {
        match self.status() {
            401 => Some("invalid_api_key"),
            404 => Some("not_found"),
            429 => Some("rate_limit_exceeded"),
            500.. => Some("server_error"),
            _ => None,
        }
    }

    /// The code by which a client sees that it can repeat a request of a thread in another way.
    fn thread_error(&self) -> Option<&'static str> {
        let is_of_thread = || self.param.as_deref() == Some(PREVIOUS_MESSAGE);
        match self.kind {
            RefusalKind::ThreadUnsupported => Some("thread_unsupported_request"),
            RefusalKind::NotFound if is_of_thread() => Some("thread_not_found"),
            _ => None,
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.status() {
            400 | 422 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 | 529 => "overloaded_error",
            _ => "api_error",
        }
    }

    fn google_status(&self) -> &'static str {
        match self.status() {
            400 | 413 | 422 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            502 | 503 => "UNAVAILABLE",
            _ => "INTERNAL",
        }
    }
}
