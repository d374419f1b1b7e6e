//! Text of an event where it lies.

use std::borrow::Cow;

use serde::Deserialize;

/// A string of a JSON text, copied only if it has escapes. An optional `Cow` of its own is always copied.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        let read = |text| serde_json::from_str::<Option<Text<'_>>>(text).unwrap().unwrap().0;
        assert!(matches!(read(r#""plain""#), Cow::Borrowed("plain")));
        assert_eq!(read(r#""\n""#), "\n");
    }
}
