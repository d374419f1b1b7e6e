//! Serialises JSON-RPC messages as text.

/// The `error` of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    pub code: i64,
    pub message: String,
    /// JSON text of `data`.
    pub data: Option<String>,
}

impl ErrorBody {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    #[must_use]
    pub fn with_data(self, data: impl Into<String>) -> Self {
        Self { data: Some(data.into()), ..self }
    }
}

/// Appends `text` as a JSON string.
pub fn push_string(json: &mut String, text: &str) {
    let is_plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if is_plain {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        // A string always serialises.
        json.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    json
}

/// Members as JSON text without braces, for `params`.
pub fn params_text(members: &[(&str, &str)]) -> String {
    let lengths = members.iter().map(|(key, value)| key.len() + value.len() + 4);
    let mut text = String::with_capacity(lengths.sum());
    for (key, value) in members {
        if !text.is_empty() {
            text.push(',');
        }
        push_string(&mut text, key);
        text.push(':');
        text.push_str(value);
    }
    text
}

/// The text of a response before its result; `}` ends the response.
pub fn response_frame(id: &str) -> String {
    let mut text = String::with_capacity(id.len() + 40);
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(id);
    text.push_str(r#","result":"#);
    text
}

/// A response; `id` and `result` are JSON text.
pub fn response(id: &str, result: &str) -> String {
    // Exact capacity: the string becomes a body without reallocation.
    let frame = [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#];
    let length = frame.iter().map(|part| part.len()).sum::<usize>() + result.len() + 1;
    let mut text = String::with_capacity(length);
    text.extend(frame);
    text.push_str(result);
    text.push('}');
    text
}

/// An error response. `None` is written as `null`, which JSON-RPC prescribes for a request whose id cannot be read.
pub fn error_response(id: Option<&str>, error: &ErrorBody) -> String {
    let data = error.data.as_deref().map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":{}{data}}}}}"#,
        id.unwrap_or("null"),
        error.code,
        quoted(&error.message),
    )
}

/// A notification; `params` is the text of an object.
pub fn notification(method: &str, params: Option<&str>) -> String {
    let params = params.map(|params| format!(",\"params\":{params}")).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":{}{params}}}"#, quoted(method))
}

/// A request; `id` and `params` are JSON text.
pub fn request(id: &str, method: &str, params: Option<&str>) -> String {
    let params = params.map(|params| format!(",\"params\":{params}")).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}{params}}}"#, quoted(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_as_json_rpc_wants_them() {
        assert_eq!(response("\"a\"", "{}"), r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
        let error = ErrorBody::new(-32_600, "a \"b\"\n").with_data("{\"x\":1}");
        assert_eq!(
            error_response(None, &error),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a \"b\"\n","data":{"x":1}}}"#
        );
        assert_eq!(notification("n", None), r#"{"jsonrpc":"2.0","method":"n"}"#);
        assert_eq!(
            request("1", "m", Some("{}")),
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}"#
        );
    }

    proptest::proptest! {
        #[test]
        fn every_string_comes_back(text in "\\PC*|[\\x00-\\x7f]*") {
            let back: String = serde_json::from_str(&quoted(&text)).unwrap();
            proptest::prop_assert_eq!(back, text);
        }
    }
}
