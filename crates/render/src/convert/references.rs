//! Resolves references within one document. Nothing is fetched.

use serde_json::{Map, Value};

use super::Walk;

/// A reference that is being resolved.
#[derive(Debug)]
pub(super) struct Entered {
    pointer: String,
    joined: Joined,
}

/// How a reference is used by the schema that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// The schema consists of the reference alone, apart from annotations.
    Directly,
    /// The reference is merged with other schemas.
    Beside,
}

impl Entered {
    pub(super) fn root() -> Self {
        Self { pointer: String::new(), joined: Joined::Directly }
    }
}

/// Removes and returns the reference of a schema, in the spelling of any draft.
pub(super) fn take_reference(map: &mut Map<String, Value>) -> Option<String> {
    for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
        if let Some(Value::String(_)) = map.get(keyword)
            && let Some(Value::String(reference)) = map.shift_remove(keyword)
        {
            return Some(reference);
        }
    }
    None
}

/// What remains of a schema where a cycle of references is cut: its type, title and description.
pub(super) fn shallow(map: &Map<String, Value>) -> Map<String, Value> {
    let kept = ["type", "title", "description"];
    let word = |key: &&str| map.get(*key).filter(|value| value.is_string());
    kept.iter()
        .filter_map(|key| word(key).map(|value| ((*key).to_owned(), value.clone())))
        .collect()
}

impl<'s> Walk<'s> {
    /// The path and the schema that a reference points to, or the reason why it cannot be resolved.
    pub(super) fn resolve(&mut self, reference: &str) -> Result<(String, &'s Value), &'static str> {
        const MISSING: &str = "the schema holds nothing of that name";
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let source = self.source;
        let base = if document.is_empty() || is_id(source, document) {
            Some((String::new(), source))
        } else {
            self.find(|value| is_id(value, document))
        };
        let (place, base) = base.ok_or("other documents are never fetched")?;
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() {
            return Ok((place, base));
        }
        if fragment.starts_with('/') {
            let target = base.pointer(&fragment).ok_or(MISSING)?;
            return Ok((format!("{place}{fragment}"), target));
        }
        let hashed = format!("#{fragment}");
        let is_anchor = |value: &Value| {
            ["$anchor", "$dynamicAnchor"].iter().any(|key| value[*key] == *fragment)
                || is_id(value, &hashed)
        };
        self.find(is_anchor).ok_or(MISSING)
    }

    /// Whether resolving the reference would recurse without end. A merged reference may occur a second time, because
    /// its first occurrence may be merged into a different schema.
    pub(super) fn is_cycle(&self, pointer: &str, joined: Joined) -> bool {
        let mut known = self.active.iter().filter(|entered| entered.pointer == pointer);
        match joined {
            Joined::Directly => known.any(|entered| entered.joined == Joined::Directly),
            Joined::Beside => known.count() >= 2,
        }
    }

    pub(super) fn enter(&mut self, pointer: String, joined: Joined) {
        self.active.push(Entered { pointer, joined });
    }

    /// The first object in the document for which `is_wanted` holds, and its path.
    fn find(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Option<(String, &'s Value)> {
        if !self.budget.copy_of(self.source) {
            return None;
        }
        let mut open = vec![(String::new(), self.source)];
        while let Some((place, value)) = open.pop() {
            if value.is_object() && is_wanted(value) {
                return Some((place, value));
            }
            match value {
                Value::Object(members) => open.extend(members.iter().rev().map(|(key, value)| {
                    (format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), value)
                })),
                Value::Array(values) => open.extend(
                    values
                        .iter()
                        .enumerate()
                        .rev()
                        .map(|(n, value)| (format!("{place}/{n}"), value)),
                ),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        None
    }
}

fn is_id(value: &Value, id: &str) -> bool {
    ["$id", "id"].iter().any(|key| value[*key] == *id)
}

fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                bytes = ahead;
            }
            (byte, ..) => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_percent_decoded() {
        assert_eq!(percent_decoded("/$defs/a%20b%C3%A9%"), "/$defs/a bé%");
        assert_eq!(percent_decoded("/%zz%4"), "/%zz%4");
    }
}
