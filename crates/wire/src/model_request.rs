//! What a provider is asked, and what it answered when that is no stream.

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
    /// Who is asked. Opaque parts of a reply go back only where its source is this one.
    pub source: &'a Source,
    /// The conversation, whole and valid: every call is answered right after its reply.
    pub messages: &'a [Message],
    /// The messages whose sealed thoughts still stand for what is before them. Providers that bind thoughts to all that
    /// came before refuse others.
    pub replay: Range<usize>,
    pub tools: &'a Tools,
    pub settings: &'a ModelSettings,
    /// Stays the same for a conversation.
    pub session: &'a str,
    /// Stays the same for all requests of a turn.
    pub turn: &'a str,
    /// The project of a Google account.
    pub project: Option<&'a str>,
}

/// The tools that the model is shown.
#[derive(Debug, Clone)]
pub struct Tools {
    /// What `tools` says.
    pub base: Arc<Rendering>,
    /// What changed since, for providers that take changes as part of the conversation; in the order of their places.
    /// All the others get `base` alone, which is then the newest.
    pub changes: Vec<ToolChange>,
    /// The newest, with the arguments' names.
    pub newest: Arc<Rendering>,
}

impl Tools {
    /// Tools that did not change.
    pub fn only(rendering: Arc<Rendering>) -> Self {
        Self { newest: rendering.clone(), base: rendering, changes: Vec::new() }
    }
}

/// A change of tools within a conversation.
#[derive(Debug, Clone)]
pub struct ToolChange {
    /// It stands before the message with this index; after the last one when that is their number.
    pub before: usize,
    pub delta: Arc<Delta>,
}

/// What is sent. Credentials, the address and what the configuration adds are for who sends it.
#[derive(Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// Below the base address, with its query: `/responses`.
    pub path: String,
    /// What this format wants beside `content-type` and `accept`.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl fmt::Debug for WireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It holds the whole conversation.
        f.debug_struct("WireRequest")
            .field("path", &self.path)
            .field("headers", &self.headers)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// What `tools` says, as it was rendered; nothing where there are none.
pub(crate) fn declared(tools: &[u8]) -> Result<Option<&RawValue>, ModelFault> {
    let tools: &RawValue = serde_json::from_slice(tools).map_err(|error| unwritten(&error))?;
    Ok((tools.get() != "[]").then_some(tools))
}

/// The bytes of a body.
pub(crate) fn written(body: &impl Serialize) -> Result<Bytes, ModelFault> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| unwritten(&error))
}

/// Never seen, but nothing to panic about.
fn unwritten(error: &serde_json::Error) -> ModelFault {
    ModelFault::new(FaultKind::BadRequest, format!("the request cannot be written: {error}"))
}

/// An answer that is not the stream that was asked for.
pub struct Answer<'a> {
    pub status: u16,
    /// Looks a header up by its name in small letters.
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
