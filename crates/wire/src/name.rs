//! Valid tool names for imported conversations.

use std::borrow::Cow;

/// Maximum length of a name that every provider accepts.
const MAX_NAME_LENGTH: usize = 64;
const HASH: usize = 8;

/// Replaces what some provider rejects in a name. Exposed names are always valid; those of an imported conversation may
/// not be.
pub(crate) fn legal(name: &str) -> Cow<'_, str> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if starts && name.len() <= MAX_NAME_LENGTH && name.bytes().all(is_legal) {
        return Cow::Borrowed(name);
    }
    let hash: String = blake3::hash(name.as_bytes()).to_hex().chars().take(HASH).collect();
    let readable = name.chars().take(MAX_NAME_LENGTH - HASH - 2);
    let readable = readable.map(|c| match u8::try_from(c) {
        Ok(byte) if is_legal(byte) => c,
        _ => '_',
    });
    Cow::Owned(format!("_{}_{hash}", readable.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_views_stay_and_others_become_legal_and_stay_apart() {
        assert_eq!(legal("search__find-it"), "search__find-it");
        for name in ["", "a.b", "1st", "übung", &"x".repeat(65)] {
            let made = legal(name);
            assert!(made.len() <= MAX_NAME_LENGTH && legal(&made) == made, "{name} became {made}");
        }
        assert_ne!(legal("a.b"), legal("a b"));
    }

    proptest! {
        #[test]
        fn any_names_become_legal_once_and_stay_apart(one in ".{0,80}", other in "[a-z._ ]{0,4}|.{0,80}") {
            let (made, also) = (legal(&one), legal(&other));
            prop_assert!((1..=MAX_NAME_LENGTH).contains(&made.len()));
            prop_assert_eq!(legal(&made), made.clone());
            prop_assert_eq!(made == also, one == other);
        }
    }
}
