//! JSON that is stored as text, for documents that are passed on far more often than inspected.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON document as its text. A parsed schema takes about ten times the memory of its text, and most schemas are only
/// passed on. Equal texts are equal documents; equal documents may have different texts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Wraps a text after checking that it is JSON.
    pub fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Value>(text)?;
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The document as a tree.
    pub fn parse(&self) -> Value {
        // Cannot fail: every constructor takes a document that was parsed or built.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// Keeps the bytes as written. A `RawValue` has no depth limit: callers that take one from an untrusted source must
/// limit its depth first.
impl From<&RawValue> for JsonText {
    fn from(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Length of a value's JSON text, computed without building the text.
pub fn json_length(value: &impl Serialize) -> u64 {
    struct Counter(u64);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // Neither JSON values nor this writer can fail; an unexpected error counts as too large.
        Err(_) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_comes_back_as_it_was() {
        let value = json!({"b": 1, "a": [true, null, 0.1]});
        let text = JsonText::from(&value);
        assert_eq!((text.as_str(), text.parse()), (r#"{"b":1,"a":[true,null,0.1]}"#, value));
        assert_eq!(JsonText::from_text(text.as_str()).unwrap(), text);
        assert_eq!(format!("{text:?}"), text.as_str());
        assert!(JsonText::from_text("{").is_err());
        let spaced: &RawValue = serde_json::from_str(r#" {"a" : 1.0} "#).unwrap();
        assert_eq!(JsonText::from(spaced).as_str(), r#"{"a" : 1.0}"#);
        assert_eq!(json_length(&text.parse()), text.as_str().len() as u64);
    }
}
