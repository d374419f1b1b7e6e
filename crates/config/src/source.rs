//! The text of a configuration file, for the locations and snippets of problems.

use std::collections::BTreeSet;

use crate::place::{Extent, SourceLocation, ValueOrigin};
use crate::problem::{ConfigProblem, Snippet};
use crate::secret_line;

/// Longer lines are cut in a snippet.
const SHOWN_CHARACTERS: usize = 160;

/// Replaces a line with a secret in a snippet.
const HIDDEN_LINE: &str = "(not shown: this line may hold a secret)";

/// The text of the file.
#[derive(Debug)]
pub(crate) struct SourceText<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
    /// Lines that are known to hold a secret; others are judged by their text.
    hidden: BTreeSet<usize>,
}

impl<'a> SourceText<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, lines: text.lines().collect(), hidden: BTreeSet::new() }
    }

    /// Hides the lines of a secret value from every snippet.
    pub(crate) fn hide(&mut self, extent: Extent) {
        self.hidden.extend(extent.line..=extent.end_line.max(extent.line));
    }

    /// The location for display.
    pub(crate) fn place(&self, origin: &ValueOrigin) -> SourceLocation {
        match origin {
            ValueOrigin::File(at) => {
                SourceLocation::File { name: self.name.into(), line: at.line, column: at.column }
            }
            ValueOrigin::Environment(variable) => {
                SourceLocation::Environment { variable: variable.to_string() }
            }
            ValueOrigin::Nowhere => SourceLocation::Default,
        }
    }

    /// Adds the location and the snippet to a problem.
    pub(crate) fn locate(&self, origin: &ValueOrigin, problem: ConfigProblem) -> ConfigProblem {
        match origin {
            ValueOrigin::Nowhere => problem,
            ValueOrigin::Environment(_) => {
                ConfigProblem { place: Some(self.place(origin)), ..problem }
            }
            ValueOrigin::File(at) => ConfigProblem {
                place: Some(self.place(origin)),
                snippet: self.snippet(*at),
                ..problem
            },
        }
    }

    /// A line, from 1, as it may be shown.
    pub(crate) fn shown_line(&self, number: usize) -> &'a str {
        let Some(index) = number.checked_sub(1) else { return "" };
        if self.hides(index) {
            return HIDDEN_LINE;
        }
        self.lines.get(index).copied().unwrap_or_default()
    }

    fn hides(&self, index: usize) -> bool {
        self.hidden.contains(&(index + 1)) || secret_line::looks_secret(&self.lines, index)
    }

    fn snippet(&self, at: Extent) -> Option<Snippet> {
        let index = at.line.checked_sub(1)?;
        let line = self.lines.get(index)?;
        if self.hides(index) {
            return Some(Snippet { text: HIDDEN_LINE.into(), indent: 0, width: 0 });
        }
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = line.chars().take(SHOWN_CHARACTERS).map(shown).collect();
        let indent = at.column.saturating_sub(1);
        let left = text.chars().count().saturating_sub(indent);
        // An error at the end of a line is marked with one character.
        let width = if left == 0 && indent < SHOWN_CHARACTERS {
            1
        } else {
            let marked: String = text.chars().skip(indent).take(at.width).collect();
            value_width(&marked)
        };
        Some(Snippet { text: text.trim_end().into(), indent, width })
    }
}

/// The width of a value; the parser includes trailing spaces and a comment after a quoted value.
fn value_width(marked: &str) -> usize {
    let quote = marked.chars().next().filter(|c| matches!(c, '"' | '\''));
    let closing = quote.and_then(|quote| marked.char_indices().skip(1).find(|(_, c)| *c == quote));
    match closing {
        Some((end, quote)) => {
            marked.get(..end).map_or(0, |text| text.chars().count()) + quote.len_utf8()
        }
        None => marked.split(" #").next().unwrap_or_default().trim_end().chars().count(),
    }
}
