//! A JSON object split into its members, each kept as JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in their order. Duplicate keys are an error: otherwise the value that is checked here could
/// differ from the one that the receiver uses.
#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Parses an object.
    pub fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The JSON text of a member.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.get())
    }

    /// The value of a member that is a string; `None` for other types.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        string_of(self.get(key)?)
    }

    /// The members of a member that is an object; `None` for other types.
    pub fn object(&self, key: &str) -> Option<Members<'a>> {
        Members::read(self.get(key)?).ok()
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(key, value)| (&**key, value.get()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The value of a JSON string; borrowed if it contains no escapes.
pub(crate) fn string_of(json: &str) -> Option<Cow<'_, str>> {
    /// Serde borrows into a `Cow` only with `#[serde(borrow)]`.
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    // Fast path: `json` is valid JSON, so a string without a backslash needs no decoding.
    let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(plain) = inner.filter(|inner| !inner.contains(['\\', '"'])) {
        return Some(plain.into());
    }
    serde_json::from_str::<Text<'_>>(json).ok().map(|text| text.0)
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(serde::Deserialize)]
                struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut members: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(4);
                while let Some(Key(key)) = map.next_key()? {
                    if members.iter().any(|(name, _)| *name == key) {
                        return Err(A::Error::custom(format!("the key \"{key}\" occurs twice")));
                    }
                    // The duplicate check above is a linear search, so the number of members is limited.
                    if members.len() == MAX_MEMBERS {
                        return Err(A::Error::custom("the object has too many members"));
                    }
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Maximum number of members; protocol objects have a handful.
const MAX_MEMBERS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text_and_their_order() {
        let members = Members::read(r#"{ "b": [1,  2], "a\u0062": "x\ny", "n": null }"#).unwrap();
        let all: Vec<_> = members.iter().collect();
        assert_eq!(all, [("b", "[1,  2]"), ("ab", r#""x\ny""#), ("n", "null")]);
        assert_eq!(members.string("ab").as_deref(), Some("x\ny"));
        assert_eq!(members.string("b"), None);
        assert!(members.object("b").is_none());
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        assert!(Members::read(r#"{"a":1,"a":2}"#).is_err());
        assert!(Members::read(r#"{"a":1,"\u0061":2}"#).is_err(), "the same key in disguise");
        assert!(Members::read("[1]").is_err());
        let many: Vec<String> = (0..300).map(|n| format!("\"k{n}\":1")).collect();
        assert!(Members::read(&format!("{{{}}}", many.join(","))).is_err());
    }
}
