//! The text of a thought or an answer, without the blanks, emphasis and code fences around it.

/// Blanks that end a text are held back up to this size.
const MAX_PENDING: usize = 256;

/// Passes the text of one section on as it arrives. What may turn out to stand behind the text is held back.
#[derive(Debug, Default)]
pub(crate) struct TextSink {
    /// Emphasis characters that were opened before the label and are not closed yet.
    open: usize,
    is_started: bool,
    pending: String,
    /// The number of backticks directly before.
    ticks: usize,
    fences: usize,
}

/// What stands around the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    Plain,
    /// A code block that was opened before the section.
    CodeBlock,
}

impl TextSink {
    pub(crate) fn new(open: usize) -> Self {
        Self { open, ..Self::default() }
    }

    /// Whether the section has any text.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started
    }

    /// Takes one character, and appends what is certain to be text.
    pub(crate) fn push(&mut self, c: char, out: &mut String) {
        if !self.is_started {
            if c.is_whitespace() {
                return;
            }
            if self.open > 0 && is_emphasis(c) {
                self.open -= 1;
                return;
            }
            self.is_started = true;
        }
        self.ticks = if c == '`' { self.ticks + 1 } else { 0 };
        self.fences += usize::from(self.ticks == 3);
        if c.is_whitespace() || c == '`' || (self.open > 0 && is_emphasis(c)) {
            self.pending.push(c);
            if self.pending.len() < MAX_PENDING {
                return;
            }
            out.push_str(&self.pending);
        } else {
            out.push_str(&self.pending);
            out.push(c);
        }
        self.pending.clear();
    }

    /// Ends the section, and appends the rest of its text.
    pub(crate) fn end(&mut self, wrapping: Wrapping, out: &mut String) {
        let mut rest = self.pending.trim_end();
        if wrapping == Wrapping::CodeBlock && self.fences % 2 == 1 && rest.ends_with("```") {
            rest = rest.trim_end_matches('`').trim_end();
        }
        for _ in 0..self.open {
            rest = rest.strip_suffix(is_emphasis).unwrap_or(rest);
        }
        out.push_str(rest.trim_end());
        self.pending.clear();
    }
}

fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '"' | '\'')
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_stands_around_a_text_is_left_out() {
        let check = |text: &str, open, wrapping, expected: &str| {
            let (mut sink, mut out) = (TextSink::new(open), String::new());
            text.chars().for_each(|c| sink.push(c, &mut out));
            sink.end(wrapping, &mut out);
            assert_eq!(out, expected, "{text}");
        };
        check(" a  b \n\n", 0, Wrapping::Plain, "a  b");
        check("** 42", 2, Wrapping::Plain, "42");
        check("42**\n", 2, Wrapping::Plain, "42");
        check("**42** is", 0, Wrapping::Plain, "**42** is");
        check("a\n```\nb\n```\n", 0, Wrapping::Plain, "a\n```\nb\n```");
        check("a\n```\n", 0, Wrapping::CodeBlock, "a");
        check("a\n```\nb\n```\n", 0, Wrapping::CodeBlock, "a\n```\nb\n```");
        check("a\n```\nb\n```\n```", 0, Wrapping::CodeBlock, "a\n```\nb\n```");
        check(
            &format!("a{}b", " ".repeat(400)),
            0,
            Wrapping::Plain,
            &format!("a{}b", " ".repeat(400)),
        );
        check("  ", 0, Wrapping::Plain, "");
    }
}
