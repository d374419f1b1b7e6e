//! Tool arguments that are repeated in HTTP headers (`x-mcp-header`), and the encoding of header values that are not
//! plain ASCII.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
const BASE64_START: &str = "=?base64?";
const BASE64_END: &str = "?=";

/// Which arguments of a tool are repeated in which headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<Mirror>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirror {
    header: HeaderName,
    /// The keys that lead from the arguments to the value.
    path: Vec<String>,
}

impl Mirrors {
    /// Reads the `x-mcp-header` keywords of a tool's input schema. The error names the invalid one and the rule that it
    /// breaks.
    pub fn of_schema(schema: &Value) -> Result<Self, String> {
        let mut found = Collector::default();
        found.walk(schema, Some(&mut Vec::new()))?;
        Ok(Self(found.mirrors))
    }

    /// Whether no argument is repeated in a header.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers for a call with these arguments. An absent or null argument has no header.
    pub fn headers(&self, arguments: &Map<String, Value>) -> Vec<(HeaderName, HeaderValue)> {
        self.0
            .iter()
            .filter_map(|mirror| {
                let text = mirror.text(arguments)?;
                Some((mirror.header.clone(), encode_header(&text)))
            })
            .collect()
    }

    /// Checks that a request has exactly the headers that follow from its arguments.
    pub fn check(&self, headers: &HeaderMap, arguments: &Map<String, Value>) -> Result<(), String> {
        for mirror in &self.0 {
            let (name, expected) = (&mirror.header, mirror.text(arguments));
            let mut sent = headers.get_all(name).iter();
            let (first, second) = (sent.next(), sent.next());
            match (expected, first) {
                _ if second.is_some() => return Err(format!("the header {name} came twice")),
                (None, None) => {}
                (None, Some(_)) => {
                    return Err(format!("the header {name} came without its argument"));
                }
                (Some(_), None) => return Err(format!("the header {name} is missing")),
                (Some(expected), Some(sent)) => {
                    if decode_header(sent).as_ref() != Some(&expected) {
                        return Err(format!("the header {name} differs from its argument"));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Mirror {
    /// The argument as header text, before encoding.
    fn text(&self, arguments: &Map<String, Value>) -> Option<String> {
        let (last, parents) = self.path.split_last()?;
        let mut at = arguments;
        for key in parents {
            at = at.get(key)?.as_object()?;
        }
        match at.get(last)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            // Numbers and booleans. A value of another type violates the schema and fails validation anyway.
            other => Some(other.to_string()),
        }
    }
}

#[derive(Debug, Default)]
struct Collector {
    mirrors: Vec<Mirror>,
    seen: HashSet<HeaderName>,
}

impl Collector {
    /// Visits a schema and all schemas in it. `path` is `None` where the schema is not reached through `properties`
    /// alone; an annotation there is an error.
    fn walk(&mut self, schema: &Value, mut path: Option<&mut Vec<String>>) -> Result<(), String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => {
                return items.iter().try_for_each(|item| self.walk(item, None));
            }
            _ => return Ok(()),
        };
        if let Some(named) = members.get(ANNOTATION) {
            self.take(named, members, path.as_deref())?;
        }
        for (keyword, below) in members {
            match (keyword.as_str(), below) {
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        match &mut path {
                            Some(path) => {
                                path.push(name.clone());
                                self.walk(schema, Some(path))?;
                                path.pop();
                            }
                            None => self.walk(schema, None)?,
                        }
                    }
                }
                // These hold data, not schemas; an annotation inside is only a value.
                ("const" | "default" | "enum" | "examples" | ANNOTATION, _) => {}
                (
                    "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                    Value::Object(named),
                ) => {
                    named.values().try_for_each(|schema| self.walk(schema, None))?;
                }
                (_, below) => self.walk(below, None)?,
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        named: &Value,
        schema: &Map<String, Value>,
        path: Option<&Vec<String>>,
    ) -> Result<(), String> {
        let Some(name) = named.as_str().filter(|name| is_token(name)) else {
            return Err(format!("{ANNOTATION} {named} is not a valid header name"));
        };
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Err(format!(
                "{ANNOTATION} {name:?} is only allowed on a property that only `properties` lead to, not `items`, `anyOf`, `$ref` or others"
            ));
        };
        if !matches!(
            schema.get("type").and_then(Value::as_str),
            Some("string" | "integer" | "boolean")
        ) {
            return Err(format!(
                "{ANNOTATION} {name:?} is on something else than a string, integer or boolean"
            ));
        }
        let header = HeaderName::try_from(format!("{PREFIX}{name}"))
            .map_err(|_| format!("{ANNOTATION} {name:?} is not a valid header name"))?;
        if !self.seen.insert(header.clone()) {
            return Err(format!("{ANNOTATION} {name:?} is there twice"));
        }
        self.mirrors.push(Mirror { header, path: path.clone() });
        Ok(())
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Encodes a header value: unchanged if it is plain ASCII, else `=?base64?...?=`.
pub fn encode_header(text: &str) -> HeaderValue {
    let looks_encoded = text.starts_with(BASE64_START) && text.ends_with(BASE64_END);
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    let is_plain =
        text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !is_padded && !looks_encoded;
    let plain = if is_plain { HeaderValue::from_str(text).ok() } else { None };
    plain.unwrap_or_else(|| {
        let encoded = format!("{BASE64_START}{}{BASE64_END}", STANDARD.encode(text));
        // Base64 characters are always valid in a header.
        HeaderValue::from_str(&encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

/// Decodes a header value; `None` if it is neither plain nor validly encoded.
pub fn decode_header(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    match text.strip_prefix(BASE64_START).and_then(|rest| rest.strip_suffix(BASE64_END)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(arguments) => arguments,
            other => panic!("{other} is no object"),
        }
    }

    fn tenant() -> Mirrors {
        let schema = json!({"type": "object", "properties": {
            "tenant": {"type": "string", "x-mcp-header": "Tenant"},
            "deep": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "free": {"type": "string", "default": {"x-mcp-header": 1}},
        }});
        Mirrors::of_schema(&schema).unwrap()
    }

    #[test]
    fn arguments_become_headers() {
        let given = json!({"tenant": "Zürich", "deep": {"dry": true}, "count": null, "free": "x"});
        let headers: Vec<_> = tenant()
            .headers(&arguments(given))
            .into_iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, ["mcp-param-tenant: =?base64?WsO8cmljaA==?=", "mcp-param-dry: true"]);
        assert!(Mirrors::of_schema(&json!({"type": "object"})).unwrap().is_empty());
    }

    #[test]
    fn an_annotation_against_the_rules_is_named() {
        let string = |name: Value| json!({"type": "string", "x-mcp-header": name});
        for (schema, expected) in [
            (
                json!({"properties": {"a": string(json!("a b"))}}),
                "x-mcp-header \"a b\" is not a valid header name",
            ),
            (
                json!({"properties": {"a": string(json!(""))}}),
                "x-mcp-header \"\" is not a valid header name",
            ),
            (
                json!({"properties": {"a": string(json!(7))}}),
                "x-mcp-header 7 is not a valid header name",
            ),
            (
                json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
                "x-mcp-header \"A\" is on something else than a string, integer or boolean",
            ),
            (
                json!({"properties": {"a": string(json!("A")), "b": string(json!("a"))}}),
                "x-mcp-header \"a\" is there twice",
            ),
            (
                json!({"properties": {"a": {"items": string(json!("A"))}}}),
                "x-mcp-header \"A\" is only allowed on a property that only `properties` lead to, not `items`, `anyOf`, `$ref` or others",
            ),
            (
                json!({"anyOf": [{"properties": {"a": string(json!("A"))}}]}),
                "x-mcp-header \"A\" is only allowed on a property that only `properties` lead to, not `items`, `anyOf`, `$ref` or others",
            ),
            (
                json!({"$defs": {"a": string(json!("A"))}}),
                "x-mcp-header \"A\" is only allowed on a property that only `properties` lead to, not `items`, `anyOf`, `$ref` or others",
            ),
            (
                json!({"type": "string", "x-mcp-header": "A"}),
                "x-mcp-header \"A\" is only allowed on a property that only `properties` lead to, not `items`, `anyOf`, `$ref` or others",
            ),
        ] {
            assert_eq!(Mirrors::of_schema(&schema).unwrap_err(), expected, "{schema}");
        }
    }

    #[test]
    fn a_request_is_held_to_its_arguments() {
        let check = |sent: &[(&'static str, &'static str)], given: Value| {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(*name, HeaderValue::from_static(value));
            }
            tenant().check(&headers, &arguments(given)).err().unwrap_or_default()
        };
        let (a, count) = (("mcp-param-tenant", "a"), ("mcp-param-count", "7"));
        assert_eq!(check(&[a, count], json!({"tenant": "a", "count": 7})), "");
        assert_eq!(check(&[("mcp-param-tenant", "=?base64?YQ==?=")], json!({"tenant": "a"})), "");
        assert_eq!(check(&[], json!({"tenant": null})), "");
        let missing = "the header mcp-param-tenant is missing";
        assert_eq!(check(&[], json!({"tenant": "a"})), missing);
        let differs = "the header mcp-param-tenant differs from its argument";
        assert_eq!(check(&[a], json!({"tenant": "b"})), differs);
        assert_eq!(
            check(&[a, a], json!({"tenant": "a"})),
            "the header mcp-param-tenant came twice"
        );
        let alone = "the header mcp-param-count came without its argument";
        assert_eq!(check(&[count], json!({})), alone);
    }

    #[test]
    fn only_what_is_unsafe_is_encoded() {
        for (text, expected) in [
            ("plain text", "plain text"),
            ("", ""),
            (" padded", "=?base64?IHBhZGRlZA==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("tab\t", "=?base64?dGFiCQ==?="),
        ] {
            assert_eq!(encode_header(text), expected);
        }
        assert_eq!(decode_header(&HeaderValue::from_static("=?base64?!?=")), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(text in any::<String>()) {
            prop_assert_eq!(decode_header(&encode_header(&text)), Some(text));
        }
    }
}
