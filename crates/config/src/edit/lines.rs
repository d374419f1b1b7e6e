//! Lines of a text by number and by byte.

use std::ops::Range;

/// A text and the places where its lines begin.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(index, _)| index + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The byte at a line, from 1, and a column in characters, from 0.
    pub(super) fn offset(&self, line: usize, column: usize) -> Option<usize> {
        let start = *self.starts.get(line.checked_sub(1)?)?;
        let rest = self.text.get(start..)?;
        let mut characters = rest.char_indices().map(|(index, _)| index);
        characters
            .nth(column)
            .or_else(|| (rest.chars().count() == column).then_some(rest.len()))
            .map(|index| start + index)
    }

    /// The line and the column of a byte, both from 1.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let start = self.start_of(offset);
        let line = self.starts.partition_point(|first| *first <= offset);
        let column = self.text.get(start..offset).unwrap_or_default().chars().count();
        (line, column + 1)
    }

    /// The beginning of the line with this byte.
    pub(super) fn start_of(&self, offset: usize) -> usize {
        let line = self.starts.partition_point(|first| *first <= offset);
        line.checked_sub(1).and_then(|line| self.starts.get(line)).copied().unwrap_or(0)
    }

    /// The end of the line with this byte, its line break included.
    pub(super) fn end_of(&self, offset: usize) -> usize {
        let next = self.starts.partition_point(|first| *first <= offset);
        self.starts.get(next).copied().unwrap_or(self.text.len())
    }

    /// The number of characters before this byte on its line.
    pub(super) fn column(&self, offset: usize) -> usize {
        self.position(offset).1 - 1
    }

    /// What stands before this byte on its line.
    pub(super) fn before(&self, offset: usize) -> &'a str {
        self.text.get(self.start_of(offset)..offset).unwrap_or_default()
    }

    /// Whether nothing but blanks stands before this byte on its line.
    pub(super) fn is_first(&self, offset: usize) -> bool {
        self.before(offset).trim().is_empty()
    }

    /// The line breaks of this text.
    pub(super) fn line_break(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The dash of the block list item whose value begins at `start`: on the same line, or alone on an earlier one.
    pub(super) fn dash_before(&self, start: usize) -> Option<usize> {
        if let Some(dash) = last_dash(self.before(start)) {
            return Some(self.start_of(start) + dash);
        }
        let mut line = self.start_of(start);
        while line > 0 {
            line = self.start_of(line - 1);
            let text = self.text.get(line..self.end_of(line))?.trim_end();
            if text.trim_start().starts_with('-') {
                return leading_dash(text).map(|dash| line + dash);
            }
        }
        None
    }

    /// The range of a block scalar that follows the byte `lead`. `column` is that of its content; `None` if it is blank.
    pub(super) fn block_scalar(&self, lead: usize, column: Option<usize>) -> Option<Range<usize>> {
        let header = self.text.get(lead..self.end_of(lead))?;
        let mark = lead + header.find(['|', '>'])?;
        let keeps_blank_lines = self.text.get(mark..self.end_of(lead))?.contains('+');
        let trimmed = |from: usize| {
            let line = self.text.get(from..self.end_of(from)).unwrap_or_default();
            from + line.trim_end_matches(['\n', '\r']).len()
        };
        let mut end = trimmed(mark);
        let mut line = self.end_of(mark);
        let Some(column) = column else { return Some(mark..end) };
        while line < self.text.len() {
            let text = self.text.get(line..self.end_of(line))?;
            let is_blank = text.trim().is_empty();
            let indent = text.len() - text.trim_start_matches(' ').len();
            if !is_blank && indent < column {
                break;
            }
            if !is_blank || keeps_blank_lines {
                end = trimmed(line);
            }
            line = self.end_of(line);
        }
        Some(mark..end)
    }
}

/// The dash that ends this beginning of a line, before blanks.
fn last_dash(before: &str) -> Option<usize> {
    let trimmed = before.trim_end();
    let is_only_dashes = trimmed.chars().all(|c| c == ' ' || c == '-');
    (is_only_dashes && trimmed.ends_with('-')).then(|| trimmed.len() - 1)
}

/// The last of the dashes that begin a line.
fn leading_dash(line: &str) -> Option<usize> {
    let dashes = line.len() - line.trim_start_matches([' ', '-']).len();
    line.get(..dashes)?.rfind('-')
}
