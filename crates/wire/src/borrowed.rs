//! Deserialises stream events by borrowing, so that a delta needs no copy and no allocation.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Deserialises an event. UTF-8 is validated once for the whole event, which is much faster than string by string.
/// Invalid UTF-8 is accepted in members that are not read.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    match str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(data),
    }
}

/// An optional string. Servers send `null`, numbers or objects in the place of a string; these count as absent. It is
/// copied only if it contains escapes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// Parses a JSON string or `null`; `None` for other values.
    pub(crate) fn written(value: &'a [u8]) -> Option<Self> {
        if value == b"null" {
            return Some(Self(None));
        }
        let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if memchr::memchr(b'\\', inner).is_none() {
            return Some(Self(Some(Cow::Borrowed(std::str::from_utf8(inner).ok()?))));
        }
        serde_json::from_slice(value).ok()
    }

    /// The string; empty if absent.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The string by value; empty if absent.
    pub(crate) fn into_cow(self) -> Cow<'a, str> {
        self.0.unwrap_or_default()
    }

    /// The string, unless it is absent or empty.
    pub(crate) fn filled(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

impl From<Option<String>> for Text<'_> {
    fn from(text: Option<String>) -> Self {
        Self(text.map(Cow::Owned))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(number.to_string()))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(number.to_string()))))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }
}

/// A list that nearly always has one element.
#[derive(Debug)]
pub(crate) struct Few<T> {
    pub(crate) first: Option<T>,
    pub(crate) rest: Vec<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
        let first = list.next_element()?;
        let mut rest = Vec::new();
        while let Some(next) = list.next_element()? {
            rest.push(next);
        }
        Ok(Few { first, rest })
    }
}

/// The first element of a list. The others are skipped without allocating a list.
#[derive(Debug)]
pub(crate) struct First<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

struct FirstVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = First<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let first = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        let read = |json: &'static str| read::<Text<'_>>(json.as_bytes()).unwrap();
        let written = |json: &'static str| Text::written(json.as_bytes()).unwrap();
        for text in [read(r#""plain""#), written(r#""plain""#)] {
            assert!(matches!(text.into_cow(), Cow::Borrowed("plain")));
        }
        for text in [read(r#""\n""#), written(r#""\n""#)] {
            assert_eq!((text.filled(), text.as_str()), (Some("\n"), "\n"));
        }
        for odd in ["null", "true", "1.5", "[1]", r#"{"a":1}"#, r#""""#] {
            assert_eq!((read(odd).filled(), read(odd).as_str()), (None, ""), "{odd}");
        }
        assert_eq!((read("7").as_str(), read("-7").as_str()), ("7", "-7"));
        assert!(Text::written(b"7").is_none());
    }

    #[test]
    fn lists_of_any_length_are_read() {
        for list in ["[]", "[1]", "[1,2,3]"] {
            let few: Few<u8> = read(list.as_bytes()).unwrap();
            let all: Vec<u8> = few.first.into_iter().chain(few.rest).collect();
            assert_eq!(serde_json::to_string(&all).unwrap(), list);
        }
    }

    #[test]
    fn the_first_of_a_list_is_read_and_the_others_need_only_be_json() {
        let check = |list: &str, expected: Option<u64>| {
            assert_eq!(read::<First<u64>>(list.as_bytes()).unwrap().0, expected);
        };
        check("[]", None);
        check(r#"[1, "a", {"b": [2]}]"#, Some(1));
        assert!(read::<First<u64>>(b"[1, 2").is_err());
        assert!(read::<First<u64>>(b"{}").is_err());
    }

    #[test]
    fn what_is_no_text_is_an_error_only_where_it_is_looked_at() {
        #[derive(Deserialize)]
        struct Seen {
            seen: String,
        }
        let hidden = b"{\"other\": \"\xff\", \"seen\": \"a\"}";
        assert_eq!(read::<Seen>(hidden).unwrap().seen, "a");
        assert!(read::<Seen>(b"{\"seen\": \"\xff\"}").is_err());
    }
}
