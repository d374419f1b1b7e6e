//! Events of a stream, read where they lie: what comes with every delta is neither copied nor put on the heap.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

/// Reads an event. All of it is seen to be text at once, which is much quicker than string by string; what is no text
/// may still be readable where nobody looks.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    match str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(data),
    }
}

/// A string of a JSON text, copied only if it has escapes. An optional `Cow` of its own is always copied.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

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

/// The first of a list, if there is one. The others are passed over, and no list is made for it.
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
        let text =
            |json: &'static str| read::<Option<Text<'_>>>(json.as_bytes()).unwrap().unwrap().0;
        assert!(matches!(text(r#""plain""#), Cow::Borrowed("plain")));
        assert_eq!(text(r#""\n""#), "\n");
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
