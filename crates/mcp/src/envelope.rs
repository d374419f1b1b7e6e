//! JSON-RPC messages as they are written: the envelope is read, what is inside stays text.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_model::{Era, JsonText};

use crate::error::{ConnectError, ConnectErrorKind};
use crate::exchange::{Ask, RawResult, RpcError};

/// Deeper JSON than this is refused by the parser.
pub(crate) const MAX_DEPTH: usize = 127;

/// What a modern request says about us in its `_meta`, up to the caller's capabilities.
const MODERN_META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"switchboard","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""},"io.modelcontextprotocol/clientCapabilities":"#
);

/// How the ids of our own requests begin. rmcp counts in plain numbers on the same connection.
const OURS: &str = "sb-";

/// Why a request has no result, before it is known whether a child is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    Lost(ConnectError),
    Rpc(RpcError),
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::Lost(error)
    }
}

pub(crate) type Outcome = Result<RawResult, Failure>;

/// A message of a server.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The number of our request that this answers.
    pub(crate) fn answers(&self) -> Option<u64> {
        if self.method.is_some() {
            return None;
        }
        number_of(self.id?)
    }

    /// The answer in it. `whole` is what the message was read from.
    pub(crate) fn outcome(&self, whole: &Bytes) -> Outcome {
        match (self.result, self.error) {
            (_, Some(error)) => Err(Failure::Rpc(read_error(error))),
            (Some(result), None) if is_too_deep(result.get()) => Err(too_deep().into()),
            (Some(result), None) => Ok(RawResult(whole.slice_ref(result.get().as_bytes()))),
            (None, None) => {
                let message = "the answer has neither a result nor an error";
                Err(ConnectError::new(ConnectErrorKind::Protocol, message).into())
            }
        }
    }

    /// The number of our request that this is progress of.
    pub(crate) fn progress_of(&self) -> Option<u64> {
        #[derive(Deserialize)]
        struct Token<'a> {
            #[serde(borrow, rename = "progressToken")]
            token: Option<&'a RawValue>,
        }
        number_of(serde_json::from_str::<Token<'_>>(self.params?.get()).ok()?.token?)
    }

    /// The `params`, kept. What is too deep to be parsed again is as good as absent.
    pub(crate) fn kept_params(&self) -> Option<JsonText> {
        self.params.filter(|params| !is_too_deep(params.get())).map(JsonText::from)
    }
}

pub(crate) fn our_id(number: u64) -> String {
    format!("{OURS}{number}")
}

fn number_of(id: &RawValue) -> Option<u64> {
    id.get().strip_prefix('"')?.strip_prefix(OURS)?.strip_suffix('"')?.parse().ok()
}

/// An error as far as it can be read: a server that fails to fail properly still failed.
pub(crate) fn read_error(error: &RawValue) -> RpcError {
    #[derive(Deserialize)]
    struct Written<'a> {
        code: Option<i64>,
        message: Option<String>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    match serde_json::from_str::<Written<'_>>(error.get()) {
        Ok(read) => RpcError {
            code: read.code.unwrap_or(-32603),
            message: read.message.unwrap_or_default(),
            data: read.data.filter(|data| !is_too_deep(data.get())).map(JsonText::from),
        },
        Err(_) => RpcError::internal(error.get()),
    }
}

/// A request on its way out, as text.
pub(crate) fn request_text(ask: &Ask, id: &str, era: Era) -> String {
    let own = if era == Era::Modern { MODERN_META.len() + 160 } else { 0 };
    let size = 128 + ask.params.len() + ask.meta.len() + own;
    let mut text = String::with_capacity(size);
    let parts =
        [r#"{"jsonrpc":"2.0","id":""#, id, r#"","method":""#, ask.method, r#"","params":{"#];
    parts.iter().for_each(|part| text.push_str(part));
    text.push_str(&ask.params);
    let has_meta = era == Era::Modern || ask.wants_progress || !ask.meta.is_empty();
    if has_meta {
        text.push_str(if ask.params.is_empty() { r#""_meta":{"# } else { r#","_meta":{"# });
        push_meta(&mut text, ask, id, era);
        text.push('}');
    }
    text.push_str("}}");
    text
}

fn push_meta(text: &mut String, ask: &Ask, id: &str, era: Era) {
    let mut separator = "";
    if era == Era::Modern {
        text.push_str(MODERN_META);
        text.push_str(ask.capabilities.as_deref().unwrap_or("{}"));
        if let Some(level) = &ask.log_level {
            text.push_str(r#","io.modelcontextprotocol/logLevel":"#);
            text.push_str(&quoted(level));
        }
        separator = ",";
    }
    if ask.wants_progress {
        [separator, r#""progressToken":""#, id, "\""].iter().for_each(|part| text.push_str(part));
        separator = ",";
    }
    if !ask.meta.is_empty() {
        [separator, &ask.meta].iter().for_each(|part| text.push_str(part));
    }
}

/// The answer to a question of a server. `id` is JSON, as the server wrote it.
pub(crate) fn response_text(id: &str, reply: &Result<JsonText, RpcError>) -> String {
    match reply {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.as_str()),
        Err(error) => {
            let (code, message) = (error.code, quoted(&error.message));
            let data = error.data.as_ref().map(|data| format!(r#","data":{}"#, data.as_str()));
            let data = data.unwrap_or_default();
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#
            )
        }
    }
}

pub(crate) fn cancellation_text(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{id}","reason":"the caller no longer waits"}}}}"#
    )
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether brackets outside of strings are nested deeper than the parser goes.
pub(crate) fn is_too_deep(json: &str) -> bool {
    // Each level takes two brackets.
    if json.len() <= 2 * MAX_DEPTH {
        return false;
    }
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest > MAX_DEPTH
}

pub(crate) fn too_deep() -> ConnectError {
    let message = format!("the answer is nested deeper than {MAX_DEPTH} levels");
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_strings() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!is_too_deep(&nested(MAX_DEPTH)));
        assert!(is_too_deep(&nested(MAX_DEPTH + 1)));
        assert!(!is_too_deep(&format!(r#"{{"a\"{}":1}}"#, "[{".repeat(200))));
        assert!(!is_too_deep(&"[],".repeat(500)));
        // The parser goes exactly as far.
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH)).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH + 1)).is_err());
    }
}
