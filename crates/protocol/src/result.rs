//! Results as JSON text: their type, and the small edits that differ between the protocol eras.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The `resultType` of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    Complete,
    /// The server needs more input before it can answer.
    InputRequired,
    /// The server answered with a task that the client polls.
    Task,
    /// A type of an unknown extension.
    Other(String),
}

/// The members of a tool result that Switchboard inspects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultHead {
    pub kind: ResultKind,
    /// Whether the result has a `resultType`.
    pub is_typed: bool,
    pub is_error: bool,
    pub content: ResultContent,
}

/// What a tool result contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultContent {
    /// Neither `content` nor `structuredContent`.
    Missing,
    Present,
    /// `structuredContent` that is not an object, which clients of the session era reject.
    BareStructure,
}

/// Reads the inspected members without parsing the content.
pub fn read_result_head(json: &str) -> Result<ResultHead, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow)]
        result_type: Option<Cow<'a, str>>,
        is_error: Option<bool>,
        content: Option<Vec<IgnoredAny>>,
        #[serde(borrow, default, deserialize_with = "written")]
        structured_content: Option<&'a RawValue>,
    }
    /// Keeps `null` as a value, where serde would make it `None`.
    fn written<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
        <&RawValue>::deserialize(value).map(Some)
    }
    let head: Head<'_> = serde_json::from_str(json)?;
    let structure = head.structured_content.map(RawValue::get);
    Ok(ResultHead {
        kind: match head.result_type.as_deref() {
            None | Some("complete") => ResultKind::Complete,
            Some("input_required") => ResultKind::InputRequired,
            Some("task") => ResultKind::Task,
            Some(other) => ResultKind::Other(other.into()),
        },
        is_typed: head.result_type.is_some(),
        is_error: head.is_error == Some(true),
        content: match structure {
            None | Some("null") if head.content.is_none() => ResultContent::Missing,
            Some(text) if !text.starts_with('{') => ResultContent::BareStructure,
            None | Some(_) => ResultContent::Present,
        },
    })
}

/// All members of an object without a limit, duplicate keys included: the object is only forwarded. Objects that
/// decisions depend on are parsed as [`crate::Members`].
struct Passed<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Passed<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Passed<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some((Key(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(Passed(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Adds `members` (key and JSON value) in front of the object's own; existing members are not replaced. Text that is
/// not an object stays unchanged.
pub fn with_members(object: &str, members: &[(&str, &str)]) -> String {
    let Ok(Passed(own)) = serde_json::from_str(object) else { return object.to_owned() };
    let has = |key: &str| own.iter().any(|(own, _)| own == key);
    let mut text = String::with_capacity(object.len() + 64);
    text.push('{');
    for (key, value) in members.iter().filter(|(key, _)| !has(key)) {
        crate::push_string(&mut text, key);
        text.push(':');
        text.push_str(value);
        text.push(',');
    }
    let rest = object.trim_start().get(1..).unwrap_or("}");
    if own.is_empty() {
        text.truncate(text.trim_end_matches(',').len());
    }
    text.push_str(rest);
    text
}

/// Removes one member of the object. Text that is not an object stays unchanged.
pub fn without_member(object: &str, member: &str) -> String {
    let Ok(Passed(own)) = serde_json::from_str(object) else { return object.to_owned() };
    let kept = own.iter().filter(|(key, _)| key != member);
    let kept: Vec<_> = kept.map(|(key, value)| (&**key, value.get())).collect();
    format!("{{{}}}", crate::params_text(&kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_looked_at_from_outside() {
        let head = read_result_head(r#"{"content":[{"type":"hologram"}],"x":1,"isError":true}"#);
        let head = head.unwrap();
        assert_eq!((head.kind, head.is_typed, head.is_error), (ResultKind::Complete, false, true));
        let head =
            read_result_head(r#"{"resultType":"input_required","inputRequests":{}}"#).unwrap();
        assert_eq!((head.kind, head.content), (ResultKind::InputRequired, ResultContent::Missing));
        let head = read_result_head(r#"{"resultType":"task","taskId":"1"}"#).unwrap();
        assert_eq!((head.kind, head.content), (ResultKind::Task, ResultContent::Missing));
        for (json, content) in [
            (r#"{"structuredContent":{}}"#, ResultContent::Present),
            (r#"{"structuredContent":[1]}"#, ResultContent::BareStructure),
            (r#"{"content":[],"structuredContent":null}"#, ResultContent::BareStructure),
            (r#"{"structuredContent":null}"#, ResultContent::Missing),
            (r#"{"content":[]}"#, ResultContent::Present),
            ("{}", ResultContent::Missing),
        ] {
            assert_eq!(read_result_head(json).unwrap().content, content, "{json}");
        }
        assert!(read_result_head("[1]").is_err());
        assert!(read_result_head(r#"{"content":1}"#).is_err());
    }

    #[test]
    fn members_are_added_once_and_the_rest_stays_as_it_was() {
        let typed = [("resultType", "\"complete\"")];
        let added = with_members(r#"{ "a" : 1.0, "b":[ ] }"#, &typed);
        assert_eq!(added, r#"{"resultType":"complete", "a" : 1.0, "b":[ ] }"#);
        assert_eq!(with_members("{}", &typed), r#"{"resultType":"complete"}"#);
        assert_eq!(with_members(" { }", &typed), r#"{"resultType":"complete" }"#);
        let has = r#"{"resultType":"input_required"}"#;
        assert_eq!(with_members(has, &typed), has);
        assert_eq!(without_member(r#"{"a":1,"b":2}"#, "a"), r#"{"b":2}"#);
    }

    #[test]
    fn what_stands_twice_or_is_much_is_passed_on_whole() {
        let typed = [("resultType", "\"complete\"")];
        let twice = r#"{"x":1,"x":2}"#;
        assert_eq!(with_members(twice, &typed), r#"{"resultType":"complete","x":1,"x":2}"#);
        assert_eq!(without_member(r#"{"x":1,"y":0,"x":2}"#, "y"), twice);
        assert_eq!(without_member(twice, "x"), "{}");
        let many: Vec<_> = (0..1_000).map(|number| format!("\"m{number}\":{number}")).collect();
        let many = format!("{{{}}}", many.join(","));
        assert_eq!(without_member(&with_members(&many, &typed), "resultType"), many);
        assert_eq!(with_members("[1]", &typed), "[1]");
        assert_eq!(without_member("[1]", "x"), "[1]");
    }
}
