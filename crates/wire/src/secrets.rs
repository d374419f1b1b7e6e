//! Masks keys that a provider repeats in its error messages.

/// Prefixes of keys and tokens.
const KEY_PREFIXES: [&str; 4] = ["sk-", "sess-", "eyJ", "AIza"];
/// Words that are followed by a key.
const WORDS_BEFORE_A_KEY: [&str; 3] = ["bearer", "provided", "key"];
/// Minimum length of a string that is treated as a key.
const MIN_KEY_LENGTH: usize = 8;

/// Replaces the keys in a text by `***`.
pub(crate) fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut before = String::new();
    let mut gap = String::new();
    let is_of_word =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.' | '+' | '/' | '=');
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let Some((word, after)) = rest.split_at_checked(end) else { break };
        let plain = word.trim_end_matches('.');
        let prefix = KEY_PREFIXES.iter().find(|prefix| plain.starts_with(*prefix));
        let is_named = WORDS_BEFORE_A_KEY.contains(&before.as_str())
            && matches!(gap.as_str(), ": " | " " | ":" | "=" | "='" | ": '");
        // A key contains a digit or an asterisk; an ordinary word does not.
        let is_keylike =
            plain.len() >= MIN_KEY_LENGTH && plain.chars().any(|c| c.is_ascii_digit() || c == '*');
        match prefix {
            Some(prefix) if plain.len() > prefix.len() => masked.push_str("***"),
            _ if is_named && is_keylike => masked.push_str("***"),
            _ => masked.push_str(plain),
        }
        masked.extend(word.chars().skip(plain.chars().count()));
        if !word.is_empty() {
            before = plain.to_ascii_lowercase();
        }
        let next = after.find(is_of_word).unwrap_or(after.len());
        let Some((between, after)) = after.split_at_checked(next) else { break };
        masked.push_str(between);
        between.clone_into(&mut gap);
        rest = after;
    }
    masked
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn keys_are_not_repeated_and_words_are() {
        let cases = [
            (
                "Incorrect API key provided: sk-abc***xyz. See https://a/b.",
                "Incorrect API key provided: ***. See https://a/b.",
            ),
            ("Incorrect API key provided: my0wnkey9.", "Incorrect API key provided: ***."),
            ("bad token Bearer abc.def0123456", "bad token Bearer ***"),
            ("`sk-proj-1_2-3`", "`***`"),
            (
                "the key provided is wrong; sk- is the prefix",
                "the key provided is wrong; sk- is the prefix",
            ),
            ("größer als 4096", "größer als 4096"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(masked(text), expected);
        }
    }
}
