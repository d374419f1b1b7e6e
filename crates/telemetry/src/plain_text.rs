//! Text of servers and callers in a form that terminals and log lines may show: control characters become visible
//! escapes.

/// Whether a character moves the cursor, changes colours or the direction of writing, or breaks a line.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// Escapes control characters; keeps line breaks and tabs.
pub fn escape_controls(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), "\n", "\t")
}

/// Escapes control characters; line breaks and tabs become blanks.
pub fn escape_to_line(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n").replace('\r', "\n"), " ", " ")
}

/// Escapes control characters, line breaks and tabs, for the value of a field of a log line.
pub(crate) fn escape_value(text: &str) -> String {
    escaped(text, "\\n", "\\t")
}

fn escaped(text: &str, line_break: &str, tab: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str(line_break),
            '\t' => shown.push_str(tab),
            c if steers(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_shown() {
        let text = "a\u{1b}[31mb\u{202e}c\u{2066}d\u{9b}e\r\nf\tg\rh é";
        let start = r"a\u{1b}[31mb\u{202e}c\u{2066}d\u{9b}e";
        assert_eq!(escape_controls(text), format!("{start}\nf\tg\\u{{d}}h é"));
        assert_eq!(escape_to_line(text), format!("{start} f g h é"));
        assert_eq!(escape_value(text), format!("{start}\\u{{d}}\\nf\\tg\\u{{d}}h é"));
    }
}
