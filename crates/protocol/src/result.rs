//! Results as text: what kind they are, and the little that an era asks to be changed in them.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::Members;

/// What kind of result it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    Complete,
    /// The server wants more input before it answers.
    InputRequired,
    /// The server works on it, and is asked later what has become of it.
    Task,
    /// An extension that we do not know.
    Other(String),
}

/// What is looked at in a result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultHead {
    pub kind: ResultKind,
    /// Whether `resultType` is written.
    pub is_typed: bool,
    pub is_error: bool,
    pub content: Content,
}

/// What a tool answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing that a tool may answer with.
    Missing,
    Present,
    /// With a `structuredContent` that is no object, which older clients do not take.
    BareStructure,
}

/// Looks at a result without parsing what it holds.
pub fn read_result_head(json: &str) -> Result<ResultHead, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow)]
        result_type: Option<Cow<'a, str>>,
        is_error: Option<bool>,
        content: Option<Vec<IgnoredAny>>,
        #[serde(borrow, default, deserialize_with = "even_null")]
        structured_content: Option<&'a RawValue>,
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
            None | Some("null") if head.content.is_none() => Content::Missing,
            Some(text) if !text.starts_with('{') => Content::BareStructure,
            None | Some(_) => Content::Present,
        },
    })
}

/// A member that is there, also where it says that there is nothing.
fn even_null<'a, D: Deserializer<'a>>(member: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(member).map(Some)
}

/// The object with `members` (text without braces) put before its own; those that it has already are not repeated.
pub fn with_members(object: &str, members: &[(&str, &str)]) -> String {
    let own = Members::read(object).unwrap_or_default();
    let mut text = String::with_capacity(object.len() + 64);
    text.push('{');
    for (key, value) in members.iter().filter(|(key, _)| own.get(key).is_none()) {
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

/// The object without one member.
pub fn without_member(object: &str, member: &str) -> String {
    let own = Members::read(object).unwrap_or_default();
    let kept: Vec<_> = own.iter().filter(|(key, _)| *key != member).collect();
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
        assert_eq!((head.kind, head.content), (ResultKind::InputRequired, Content::Missing));
        let head = read_result_head(r#"{"resultType":"task","taskId":"1"}"#).unwrap();
        assert_eq!((head.kind, head.content), (ResultKind::Task, Content::Missing));
        for (json, content) in [
            (r#"{"structuredContent":{}}"#, Content::Present),
            (r#"{"structuredContent":[1]}"#, Content::BareStructure),
            (r#"{"content":[],"structuredContent":null}"#, Content::BareStructure),
            (r#"{"structuredContent":null}"#, Content::Missing),
            (r#"{"content":[]}"#, Content::Present),
            ("{}", Content::Missing),
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
}
