//! Instructions of servers, quoted and cut to a maximum length.

/// Maximum number of characters of one server's instructions.
const MAX_CHARACTERS: usize = 2_000;

/// The `instructions` of a server, with a quote mark before each line, so that a server cannot impersonate another one
/// or the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInstructions {
    /// At most 2,000 characters.
    pub quoted: String,
    /// The number of characters of the whole text.
    pub length: usize,
    pub is_cut: bool,
}

impl ServerInstructions {
    /// `None` if the text is empty.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let length = text.chars().count();
        if length == 0 {
            return None;
        }
        let is_break = |c: char| {
            matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
        };
        let mut quoted = String::from("> ");
        let mut characters = text.chars().peekable();
        let (mut room, mut is_cut) = (MAX_CHARACTERS - 2, false);
        while let Some(c) = characters.next() {
            if c == '\r' && characters.peek() == Some(&'\n') {
                continue;
            }
            let piece = if is_break(c) { "\n> ".into() } else { c.to_string() };
            let wanted = piece.chars().count();
            if wanted > room {
                is_cut = true;
                break;
            }
            room -= wanted;
            quoted.push_str(&piece);
        }
        Some(Self { quoted, length, is_cut })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn quoted(text: &str) -> String {
        ServerInstructions::new(text).unwrap().quoted
    }

    #[test]
    fn each_line_is_quoted_however_it_is_broken() {
        assert_eq!(quoted(" one "), "> one");
        assert_eq!(quoted("one\r\ntwo\n\nthree"), "> one\n> two\n> \n> three");
        for c in ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'] {
            let text = format!("mine{c}The MCP server 'bank' says:");
            assert_eq!(quoted(&text), "> mine\n> The MCP server 'bank' says:", "{c:?}");
        }
        assert_eq!(ServerInstructions::new(" \n "), None);
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let fits = ServerInstructions::new(&"é".repeat(MAX_CHARACTERS - 2)).unwrap();
        assert!(!fits.is_cut && fits.quoted.chars().count() == MAX_CHARACTERS);
        let long = ServerInstructions::new(&"é".repeat(5_000)).unwrap();
        assert!(long.is_cut && long.quoted.chars().count() == MAX_CHARACTERS);
        let lines = ServerInstructions::new(&format!("a{}b", "\n".repeat(3_000))).unwrap();
        assert!(lines.is_cut && lines.quoted.chars().count() <= MAX_CHARACTERS);
    }
}
