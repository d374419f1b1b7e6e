//! A JSON object as its members, each still text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in their order. A key that stands twice is an error: who checks one value must not have
/// another one passed on.
#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object.
    pub fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of a member.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.get())
    }

    /// A member that is a string.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        string_of(self.get(key)?)
    }

    /// A member that is an object.
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

/// A JSON string as text; borrowed where nothing is escaped.
pub(crate) fn string_of(json: &str) -> Option<Cow<'_, str>> {
    /// Serde borrows into a `Cow` only when it is told to.
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    // The text of a value that was read before: without an escape nothing is left to be done.
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
                        return Err(A::Error::custom(format!("the key \"{key}\" stands twice")));
                    }
                    // The search above is linear, so the number of members has a bound.
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

/// Protocol objects have a handful of members.
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
