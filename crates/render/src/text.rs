//! Removes invisible characters from texts that a model reads.

use std::borrow::Cow;

/// Maximum length of a description in characters; the rest is cut, because every model request carries it.
pub(crate) const MAX_TEXT_CHARS: usize = 16_384;

/// The result of cleaning a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cleaned {
    AsItWas,
    Changed { text: String, what: &'static str },
}

/// Removes control characters, bidirectional controls and hidden characters, and cuts the text to [`MAX_TEXT_CHARS`],
/// so that `render --explain` shows to a person exactly what the model reads.
pub(crate) fn clean(text: &str) -> Cleaned {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let is_short = text.len() <= MAX_TEXT_CHARS;
    if is_short && text.as_bytes().iter().all(is_plain) {
        return Cleaned::AsItWas;
    }
    let kept = |c: char| match c {
        '\u{2028}' | '\u{2029}' => Some('\n'),
        c => (!is_hidden(c)).then_some(c),
    };
    let visible: Cow<'_, str> = if text.chars().all(|c| kept(c) == Some(c)) {
        text.into()
    } else {
        text.chars().filter_map(kept).collect::<String>().into()
    };
    if visible.chars().nth(MAX_TEXT_CHARS).is_some() {
        let mut text: String = visible.chars().take(MAX_TEXT_CHARS - 1).collect();
        text.push('…');
        return Cleaned::Changed { text, what: "text cut" };
    }
    match visible {
        Cow::Borrowed(_) => Cleaned::AsItWas,
        Cow::Owned(text) => Cleaned::Changed { text, what: "invisible characters removed" },
    }
}

/// Control characters except line feed and tab, bidirectional controls, zero-width spaces, tags and the variation
/// selectors that carry hidden bytes. Joiners stay: scripts and emoji need them.
pub(crate) fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{061C}'
        | '\u{200B}'
        | '\u{200E}'
        | '\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E01EF}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        match clean(text) {
            Cleaned::AsItWas => text.to_owned(),
            Cleaned::Changed { text, .. } => text,
        }
    }

    #[test]
    fn what_a_person_cannot_see_is_removed() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("größer 👩\u{200D}👧", "größer 👩\u{200D}👧"),
            ("a\u{0}b\u{7}c\r\nd\u{85}", "abc\nd"),
            ("safe\u{202E}txt.exe\u{202C}", "safetxt.exe"),
            ("\u{FEFF}a\u{200B}b\u{2066}c\u{2069}", "abc"),
            ("tag\u{E0041}\u{E0042}s", "tags"),
            ("one\u{2028}two", "one\ntwo"),
        ];
        for (given, expected) in cases {
            assert_eq!(cleaned(given), expected);
            assert_eq!(clean(expected), Cleaned::AsItWas, "{expected:?}");
        }
    }

    #[test]
    fn a_document_is_cut() {
        let text = cleaned(&"é".repeat(MAX_TEXT_CHARS + 5));
        assert_eq!(text.chars().count(), MAX_TEXT_CHARS);
        assert!(text.ends_with('…'));
        assert_eq!(clean(&"é".repeat(MAX_TEXT_CHARS)), Cleaned::AsItWas);
    }
}
