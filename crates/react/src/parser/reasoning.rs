//! The reasoning that some models write into their text, in a `<think>` block.

use super::texts::{PieceKind, emit};
use super::{ReactParser, ReactPiece};
use crate::labels::{REASONING_ENDS, REASONING_OPENS};

impl ReactParser {
    /// Takes a character of a `<think>` block.
    pub(super) fn reason(&mut self, c: char, out: &mut Vec<ReactPiece>) {
        let Some(tag) = &mut self.reasoning else { return };
        tag.push(c);
        let lower = tag.to_ascii_lowercase();
        if REASONING_ENDS.contains(&lower.as_str()) {
            (self.reasoning, self.head) = (None, Some(String::new()));
            return;
        }
        while !tag.is_empty() {
            let lower = tag.to_ascii_lowercase();
            if REASONING_ENDS.iter().any(|end| end.starts_with(&lower)) {
                break;
            }
            let first = tag.remove(0);
            emit(out, PieceKind::Reasoning, first.encode_utf8(&mut [0; 4]));
        }
    }
}

/// A reply without its `<think>` blocks.
pub fn strip_reasoning(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    loop {
        let lower = rest.to_ascii_lowercase();
        let first =
            |tags: &[&str]| tags.iter().filter_map(|tag| Some((lower.find(tag)?, tag.len()))).min();
        let (open, end) = (first(&REASONING_OPENS), first(&REASONING_ENDS));
        let (begin, after) = match (open, end) {
            (Some((open, _)), Some((end, length))) => (open.min(end), end + length),
            // A closing tag alone ends reasoning that began in the prompt.
            (None, Some((end, length))) => (0, end + length),
            (Some((open, _)), None) => (open, rest.len()),
            (None, None) => break,
        };
        kept.push_str(rest.get(..begin).unwrap_or_default());
        rest = rest.get(after..).unwrap_or_default();
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}
