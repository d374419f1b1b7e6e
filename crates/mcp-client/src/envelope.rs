//! JSON-RPC messages as text: only the envelope is parsed, params and results stay as they are.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_model::{ConnectError, ConnectErrorKind, Era, JsonText};
use switchboard_outbound::Redactor;
use switchboard_protocol::{MAX_DEPTH, is_too_deep, quoted};

use crate::request::{RawResult, RpcError, UpstreamRequest};
use crate::request_ids::RequestIds;

/// The `_meta` members of a request of the stateless era, up to the caller's capabilities.
const MODERN_META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"switchboard","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""},"io.modelcontextprotocol/clientCapabilities":"#
);

/// Why a request has no result, before the state of the child is considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResponseError {
    Lost(ConnectError),
    Rpc(RpcError),
}

impl ResponseError {
    /// The failure without the secrets of the server.
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        match self {
            Self::Lost(error) => Self::Lost(redactor.redact_error(error)),
            Self::Rpc(RpcError { code, message, data }) => Self::Rpc(RpcError {
                code,
                message: redactor.redact_text(&message),
                data: data.and_then(|data| redactor.redact_json(data)),
            }),
        }
    }
}

impl From<ConnectError> for ResponseError {
    fn from(error: ConnectError) -> Self {
        Self::Lost(error)
    }
}

pub(crate) type ResponseResult = Result<RawResult, ResponseError>;

/// A message of a server.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerMessage<'a> {
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

impl<'a> ServerMessage<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The number of the request that this message answers.
    pub(crate) fn answers(&self, ids: &RequestIds) -> Option<u64> {
        if self.method.is_some() {
            return None;
        }
        ids.number(self.id?)
    }

    /// The result or error in it. `whole` is the text that the message was read from.
    pub(crate) fn outcome(&self, whole: &Bytes) -> ResponseResult {
        match (self.result, self.error) {
            (_, Some(error)) => Err(ResponseError::Rpc(read_error(error))),
            (Some(result), None) if is_too_deep(result.get().as_bytes()) => Err(too_deep().into()),
            (Some(result), None) => Ok(RawResult(whole.slice_ref(result.get().as_bytes()))),
            (None, None) => {
                let message = "the answer has neither a result nor an error";
                Err(ConnectError::new(ConnectErrorKind::Protocol, message).into())
            }
        }
    }

    /// The number of the request that this progress notification belongs to.
    pub(crate) fn progress_of(&self, ids: &RequestIds) -> Option<u64> {
        #[derive(Deserialize)]
        struct Token<'a> {
            #[serde(borrow, rename = "progressToken")]
            token: Option<&'a RawValue>,
        }
        ids.number(serde_json::from_str::<Token<'_>>(self.params?.get()).ok()?.token?)
    }

    /// The `params`, as owned text. Params that are nested too deeply count as absent.
    pub(crate) fn kept_params(&self) -> Option<JsonText> {
        self.params.filter(|params| !is_too_deep(params.get().as_bytes())).map(JsonText::from)
    }
}

/// Reads a JSON-RPC error as far as possible: a malformed error is still an error.
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
            message: shortened(&read.message.unwrap_or_default()),
            data: read.data.filter(|data| !is_too_deep(data.get().as_bytes())).map(JsonText::from),
        },
        Err(_) => RpcError::internal(error.get()),
    }
}

/// The text of a request.
pub(crate) fn request_text(ask: &UpstreamRequest, id: &str, era: Era) -> String {
    let own = if era == Era::Modern { MODERN_META.len() + 160 } else { 0 };
    let size = 128 + ask.params.len() + ask.meta.len() + own;
    let mut text = String::with_capacity(size);
    let parts =
        [r#"{"jsonrpc":"2.0","id":""#, id, r#"","method":""#, ask.method, r#"","params":{"#];
    text.extend(parts);
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

fn push_meta(text: &mut String, ask: &UpstreamRequest, id: &str, era: Era) {
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
        text.extend([separator, r#""progressToken":""#, id, "\""]);
        separator = ",";
    }
    if !ask.meta.is_empty() {
        text.extend([separator, &ask.meta]);
    }
}

/// The text of the response to a server's request. `id` is JSON, as the server wrote it.
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

/// The server's error message, cut to a maximum length.
fn shortened(message: &str) -> String {
    const PAGE: usize = 4000;
    match message.char_indices().nth(PAGE) {
        None => message.to_owned(),
        Some((end, _)) => {
            let head = message.get(..end).unwrap_or_default();
            format!("{head}… ({} bytes in all)", message.len())
        }
    }
}

pub(crate) fn too_deep() -> ConnectError {
    let message = format!("the answer is nested deeper than {MAX_DEPTH} levels");
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &'static str) -> ResponseResult {
        let whole = Bytes::from_static(text.as_bytes());
        ServerMessage::read(&whole).unwrap().outcome(&whole)
    }

    #[test]
    fn a_result_is_a_slice_of_what_came_in() {
        let ids = RequestIds::default();
        let text = r#"{"result" : { "b":1.0 , "a":2 }, "new": [], "id":"ID"}"#;
        let whole = Bytes::from(text.replace("ID", &ids.id(7)));
        let message = ServerMessage::read(&whole).unwrap();
        assert_eq!(message.answers(&ids), Some(7));
        let result = message.outcome(&whole).unwrap();
        assert_eq!(result.as_str(), r#"{ "b":1.0 , "a":2 }"#);
        assert!(whole.as_ptr_range().contains(&result.0.as_ptr()), "nothing was copied");
    }

    #[test]
    fn an_error_is_read_as_far_as_it_can_be() {
        let error = |text: &'static str| match outcome(text) {
            Err(ResponseError::Rpc(error)) => error,
            other => panic!("{other:?}"),
        };
        let whole = error(r#"{"error":{"code":-1,"message":"no","data":{ "a":1 }}}"#);
        assert_eq!((whole.code, whole.message.as_str()), (-1, "no"));
        assert_eq!(whole.data.unwrap().as_str(), r#"{ "a":1 }"#);
        assert_eq!(error(r#"{"error":{}}"#).code, -32603);
        assert_eq!(error(r#"{"error":"broken"}"#).message, r#""broken""#);
        assert!(matches!(outcome(r#"{"id":1}"#), Err(ResponseError::Lost(_))));
    }

    #[test]
    fn only_ids_of_ours_are_ours() {
        let ids = RequestIds::default();
        let answers = |text: &str| {
            let text = text.replace("ID", &ids.id(12));
            ServerMessage::read(text.as_bytes()).unwrap().answers(&ids)
        };
        assert_eq!(answers(r#"{"id":"ID","result":{}}"#), Some(12));
        for other in [
            r#"{"id":12,"result":{}}"#,
            r#"{"id":"sb-12","result":{}}"#,
            r#"{"id":null,"error":{}}"#,
            r#"{"id":"ID","method":"ping"}"#,
        ] {
            assert_eq!(answers(other), None, "{other}");
        }
    }

    #[test]
    fn a_request_is_written_in_the_words_of_its_era() {
        let ask = |params: &str, meta: &str, wants_progress| UpstreamRequest {
            method: "tools/call",
            params: params.into(),
            meta: meta.into(),
            wants_progress,
            ..UpstreamRequest::default()
        };
        let legacy = |ask: UpstreamRequest| request_text(&ask, "sb-1", Era::Legacy);
        let start = r#"{"jsonrpc":"2.0","id":"sb-1","method":"tools/call","params":"#;
        assert_eq!(legacy(ask("", "", false)), format!("{start}{{}}}}"));
        assert_eq!(
            legacy(ask(r#""name":"a""#, r#""k":1"#, true)),
            format!(r#"{start}{{"name":"a","_meta":{{"progressToken":"sb-1","k":1}}}}}}"#)
        );
        assert_eq!(
            legacy(ask("", r#""k":1"#, false)),
            format!(r#"{start}{{"_meta":{{"k":1}}}}}}"#)
        );
        let modern = request_text(&ask(r#""name":"a""#, r#""k":1"#, true), "sb-1", Era::Modern);
        let modern: serde_json::Value = serde_json::from_str(&modern).unwrap();
        let meta = &modern["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], serde_json::json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "switchboard");
        assert_eq!((&meta["progressToken"], &meta["k"]), (&"sb-1".into(), &1.into()));
    }
}
