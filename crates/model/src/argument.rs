//! Declared arguments: what the configuration says about the arguments of a tool.

use std::fmt;

use serde_json::Value;

/// A declared argument of a tool: one element of `arguments`. What is not declared is taken from the server's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentSpec {
    pub name: String,
    /// `None` keeps the type of the server's schema.
    pub kind: Option<ArgumentType>,
    /// `None` keeps the description of the server's schema.
    pub description: Option<String>,
    /// `None` keeps what the server's schema says.
    pub required: Option<bool>,
    /// The accepted values (`enum`).
    pub choices: Option<Vec<Value>>,
    /// Sent when a caller does not give the argument.
    pub default: Option<Value>,
    /// The JSON Schema of the elements of an array.
    pub items: Option<Value>,
    /// The JSON Schemas of the members of an object, by name.
    pub properties: Option<Value>,
    /// Who gives the value.
    pub source: ArgumentSource,
}

impl ArgumentSpec {
    /// An argument that the caller gives, about which nothing but its name is declared.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: None,
            description: None,
            required: None,
            choices: None,
            default: None,
            items: None,
            properties: None,
            source: ArgumentSource::Caller,
        }
    }

    /// The value that the configuration gives in every call.
    pub fn configured_value(&self) -> Option<&Value> {
        match &self.source {
            ArgumentSource::Fixed(value) | ArgumentSource::HiddenDefault(value) => {
                Some(value.expose())
            }
            ArgumentSource::Caller | ArgumentSource::Withheld => None,
        }
    }

    /// Whether callers see the argument and may give it.
    pub fn is_shown(&self) -> bool {
        self.source == ArgumentSource::Caller
    }
}

/// Who gives the value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentSource {
    /// The caller; a declared default is sent if the caller gives none.
    Caller,
    /// The configuration. Callers neither see the argument nor can they give it.
    Fixed(FixedValue),
    /// The configuration, by the `default` of an argument with `hidden: true`. Like `Fixed`.
    HiddenDefault(FixedValue),
    /// Nobody: callers neither see the argument nor can they give it, and it is never sent.
    Withheld,
}

/// The value of a fixed argument. It prints as `***`: it may be a credential.
#[derive(Clone, PartialEq, Eq)]
pub struct FixedValue(Value);

impl FixedValue {
    /// Wraps a value.
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// The value itself, for the code that checks or sends it.
    pub fn expose(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for FixedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The types of a declared argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentType {
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array,
}

impl ArgumentType {
    /// Every type, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::String, Self::Number, Self::Integer, Self::Boolean, Self::Object, Self::Array];

    /// The JSON Schema word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    /// The type with this JSON Schema word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether a value has this type. A number without a fraction counts as an integer, as in JSON Schema.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
        }
    }
}

/// The groups and states of a tool: which turns see it, and what follows its success.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolGrouping {
    /// The groups that it belongs to; `None` means the group `default`, an empty list means no group.
    pub group: Option<Vec<String>>,
    /// The state of the conversation after a call of the tool succeeded; `None` keeps the state.
    pub state: Option<String>,
    /// The states in which it is available; `None` means all, an empty list means none.
    pub applicable_states: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_accepts_the_values_that_json_schema_accepts() {
        let values = [
            (json!("1"), "string"),
            (json!(1.5), "number"),
            (json!(1), "number integer"),
            (json!(2.0), "number integer"),
            (json!(true), "boolean"),
            (json!({}), "object"),
            (json!([]), "array"),
            (json!(null), ""),
        ];
        for (value, expected) in values {
            let accepting = ArgumentType::ALL.into_iter().filter(|kind| kind.accepts(&value));
            let words: Vec<_> = accepting.map(ArgumentType::as_str).collect();
            assert_eq!(words.join(" "), expected, "{value}");
        }
        assert_eq!(ArgumentType::from_word("array"), Some(ArgumentType::Array));
        assert_eq!(ArgumentType::from_word("text"), None);
    }

    #[test]
    fn a_fixed_value_is_never_printed() {
        let source = ArgumentSource::Fixed(FixedValue::new(json!("s3cret")));
        assert_eq!(format!("{source:?}"), "Fixed(***)");
    }
}
