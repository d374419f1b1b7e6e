//! The input of a model request, the HTTP request built from it, and error responses.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_chat::{FaultKind, Message, ModelFault, Source};
use switchboard_model::ModelSettings;
use switchboard_render::{Delta, Rendering};

/// One request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest<'a> {
    /// The provider and model. Opaque data of a reply is sent only if its source is this one.
    pub source: &'a Source,
    /// The whole, valid conversation: every call has a result directly after its reply.
    pub messages: &'a [Message],
    /// The messages whose encrypted thinking is still valid, because nothing before them changed. Providers that bind
    /// thinking to earlier messages reject that of others.
    pub replay: Range<usize>,
    pub tools: &'a Tools,
    pub settings: &'a ModelSettings,
    /// The model stops before it writes this text. Ignored by APIs and models that have no such parameter.
    pub stop: Option<&'static str>,
    /// Constant for a conversation.
    pub session: &'a str,
    /// Constant for all requests of a turn.
    pub turn: &'a str,
    /// The project of a Google account.
    pub project: Option<&'a str>,
    /// Whether it is sent with the bearer token of an account rather than with an API key.
    pub is_bearer: bool,
}

/// The tools that are declared to the model.
#[derive(Debug, Clone)]
pub struct Tools {
    /// The value of `tools`.
    pub base: Arc<Rendering>,
    /// Changes since `base`, in the order of their positions, for providers that accept changes within the
    /// conversation. For all other providers this is empty and `base` is current.
    pub changes: Vec<ToolChange>,
    /// The current tools, with their argument mappings.
    pub newest: Arc<Rendering>,
}

impl Tools {
    /// Tools without changes.
    pub fn only(rendering: Arc<Rendering>) -> Self {
        Self { newest: rendering.clone(), base: rendering, changes: Vec::new() }
    }
}

/// A change of tools within a conversation.
#[derive(Debug, Clone)]
pub struct ToolChange {
    /// Index of the message that the change precedes; the number of messages if it is at the end.
    pub before: usize,
    pub delta: Arc<Delta>,
}

/// An HTTP request without credentials, base address and configured headers, which the sender adds.
#[derive(Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// Path and query below the base address, such as `/responses`.
    pub path: String,
    /// Headers of the format besides `content-type` and `accept`.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl fmt::Debug for WireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body holds the whole conversation, so only its size is shown.
        f.debug_struct("WireRequest")
            .field("path", &self.path)
            .field("headers", &self.headers)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// The rendered `tools`; `None` if there are none.
pub(crate) fn declared(tools: &[u8]) -> Result<Option<&RawValue>, ModelFault> {
    let tools: &RawValue = serde_json::from_slice(tools).map_err(|error| unwritten(&error))?;
    Ok((tools.get() != "[]").then_some(tools))
}

/// Serialises a body.
pub(crate) fn written(body: &impl Serialize) -> Result<Bytes, ModelFault> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| unwritten(&error))
}

/// Serialisation does not fail in practice; an error is better than a panic.
pub(crate) fn unwritten(error: &serde_json::Error) -> ModelFault {
    ModelFault::new(FaultKind::BadRequest, format!("the request cannot be written: {error}"))
}

/// A response that is not the requested stream.
pub struct Answer<'a> {
    pub status: u16,
    /// Looks up a header by its lower-case name.
    pub header: &'a dyn Fn(&str) -> Option<String>,
    pub body: &'a [u8],
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_request_prints_without_what_was_said() {
        let body = Bytes::from_static(b"a secret");
        let request = WireRequest { path: "/p".into(), headers: vec![], body };
        let printed = format!("{request:?}");
        assert_eq!(printed, r#"WireRequest { path: "/p", headers: [], body: 8 bytes }"#);
    }
}
