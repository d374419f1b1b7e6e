//! Events of a stream, read where they lie: what comes with every delta is neither copied nor put on the heap.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

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

/// Reads an event. Its text is checked once as a whole, which is faster than each string for itself.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, String> {
    let text = std::str::from_utf8(data).map_err(|error| error.to_string())?;
    serde_json::from_str(text).map_err(|error| error.to_string())
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
        assert!(read::<Text<'_>>(b"\"\xff\"").is_err());
    }

    #[test]
    fn lists_of_any_length_are_read() {
        for list in ["[]", "[1]", "[1,2,3]"] {
            let few: Few<u8> = read(list.as_bytes()).unwrap();
            let all: Vec<u8> = few.first.into_iter().chain(few.rest).collect();
            assert_eq!(serde_json::to_string(&all).unwrap(), list);
        }
    }
}
