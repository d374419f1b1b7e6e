//! One JSON-RPC message.

use std::borrow::Cow;

use crate::depth::is_too_deep;
use crate::members::Members;

/// A JSON-RPC message; its parts are kept as JSON text.
#[derive(Debug, Clone)]
pub enum RpcMessage<'a> {
    Request {
        id: &'a str,
        method: Cow<'a, str>,
        params: Option<&'a str>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a str>,
    },
    /// A response to a request of ours: the text of `result`, or that of `error`.
    Response {
        id: &'a str,
        outcome: Result<&'a str, &'a str>,
    },
}

/// Why a text is not a JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// Invalid JSON, or nested too deep: error code -32700.
    NotJson(String),
    /// JSON, but not a JSON-RPC message: error code -32600. `id` is the message's id, if it has a valid one.
    NotAMessage { id: Option<String>, reason: String },
}

/// Parses a message.
pub fn read_message(body: &[u8]) -> Result<RpcMessage<'_>, Unreadable> {
    if is_too_deep(body) {
        return Err(Unreadable::NotJson("the message is nested too deep".into()));
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| Unreadable::NotJson("the message is not UTF-8".into()))?;
    let members = Members::read(text).map_err(|error| unreadable(text, &error))?;
    let id = members.get("id");
    let refuse = |reason: &str| {
        let id = id.filter(|id| is_valid_id(id)).map(str::to_owned);
        Err(Unreadable::NotAMessage { id, reason: reason.into() })
    };
    if members.string("jsonrpc").as_deref() != Some("2.0") {
        return refuse("\"jsonrpc\" must be \"2.0\"");
    }
    let params = members.get("params");
    if params.is_some_and(|params| !params.starts_with('{')) {
        return refuse("\"params\" must be an object");
    }
    match (members.get("method"), id) {
        (Some(_), Some(id)) if !is_valid_id(id) => refuse("\"id\" must be a string or an integer"),
        (Some(_), id) => match (members.string("method"), id) {
            (None, _) => refuse("\"method\" must be a string"),
            (Some(method), Some(id)) => Ok(RpcMessage::Request { id, method, params }),
            (Some(method), None) => Ok(RpcMessage::Notification { method, params }),
        },
        (None, Some(id)) => match (members.get("result"), members.get("error")) {
            (Some(result), None) => Ok(RpcMessage::Response { id, outcome: Ok(result) }),
            (None, Some(error)) => Ok(RpcMessage::Response { id, outcome: Err(error) }),
            _ => refuse("neither a request nor a response"),
        },
        (None, None) => refuse("neither a request nor a response"),
    }
}

fn unreadable(text: &str, error: &serde_json::Error) -> Unreadable {
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Unreadable::NotJson(format!("the message is not JSON: {error}"));
    }
    let reason = if text.trim_start().starts_with('[') {
        "batches are not supported".into()
    } else {
        format!("not a JSON-RPC message: {error}")
    };
    Unreadable::NotAMessage { id: None, reason }
}

/// An id is a string or an integer, never null.
pub fn is_valid_id(id: &str) -> bool {
    id.starts_with('"')
        || (id.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && !id.contains(['.', 'e', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let shown = match read_message(body.as_bytes()) {
            Ok(RpcMessage::Request { id, method, params }) => {
                format!("request {id} {method} {}", params.unwrap_or("-"))
            }
            Ok(RpcMessage::Notification { method, params }) => {
                format!("notification {method} {}", params.unwrap_or("-"))
            }
            Ok(RpcMessage::Response { id, outcome }) => format!("response {id} {outcome:?}"),
            Err(Unreadable::NotJson(_)) => "not json".into(),
            Err(Unreadable::NotAMessage { id, reason }) => format!("{id:?}: {reason}"),
        };
        assert_eq!(shown, expected, "{body}");
    }

    #[test]
    fn messages_are_told_apart() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping -");
        check(
            r#"{"jsonrpc":"2.0","id":"a","method":"tools\/list","params":{}}"#,
            r#"request "a" tools/list {}"#,
        );
        check(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "notification notifications/x -");
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#, r#"response 7 Ok("{\"a\":1}")"#);
        check(r#"{"jsonrpc":"2.0","id":7,"error":{}}"#, r#"response 7 Err("{}")"#);
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        check("{", "not json");
        check("\u{0}", "not json");
        check(&"[".repeat(10_000), "not json");
        check("[]", "None: batches are not supported");
        check(
            "null",
            "None: not a JSON-RPC message: invalid type: null, expected an object at line 1 column 4",
        );
        check(
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            "Some(\"1\"): \"jsonrpc\" must be \"2.0\"",
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            "None: \"id\" must be a string or an integer",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            "None: \"id\" must be a string or an integer",
        );
        check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "Some(\"1\"): \"method\" must be a string");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#,
            "Some(\"1\"): \"params\" must be an object",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":2}"#,
            "Some(\"1\"): neither a request nor a response",
        );
        check(r#"{"jsonrpc":"2.0"}"#, "None: neither a request nor a response");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_comes_in_panics(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _whatever = read_message(&body);
        }
    }
}
