//! Data to standard output, words to standard error; tables and colour for people only.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use owo_colors::OwoColorize;
use serde::Serialize;

use crate::failure::Failure;

/// A table that is squeezed into fewer columns than this cannot be read.
const NARROWEST: u16 = 40;

/// Where and how a command shows what it found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
}

#[expect(clippy::unused_self, reason = "only who was handed the output may write")]
impl Output {
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json }
    }

    /// Whether one JSON document is wanted on standard output.
    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// The JSON document.
    pub(crate) fn json(self, document: &impl Serialize) {
        // Our own types and JSON values always serialise.
        let text = serde_json::to_string_pretty(document).unwrap_or_default();
        self.data(&text);
    }

    /// A line, or several, of data.
    pub(crate) fn data(self, text: &str) {
        // A reader that has seen enough, such as `head`, is no failure.
        let _reader_is_gone = writeln!(anstream::stdout(), "{}", text.trim_end_matches('\n'));
    }

    /// Text that a server wrote: a pipe gets it as it is, a terminal without what could steer it.
    pub(crate) fn foreign(self, text: &str) {
        let mut stdout = std::io::stdout();
        let text = if stdout.is_terminal() { harmless(text) } else { text.to_owned() };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let _reader_is_gone = write!(stdout, "{text}{end}");
    }

    /// A piece of a line of data that somebody else wrote, shown at once.
    pub(crate) fn piece(self, text: &str) {
        let mut stdout = std::io::stdout();
        let text = if stdout.is_terminal() { harmless(text) } else { text.to_owned() };
        let _reader_is_gone = write!(stdout, "{text}").and_then(|()| stdout.flush());
    }

    /// A piece of a line for people, shown at once.
    pub(crate) fn aside(self, text: &str) {
        let mut stderr = anstream::stderr();
        let _nobody_listens = write!(stderr, "{text}").and_then(|()| stderr.flush());
    }

    /// Raw bytes of data.
    pub(crate) fn bytes(self, bytes: &[u8]) {
        let _reader_is_gone = std::io::stdout().write_all(bytes);
    }

    /// A line for people, beside the data.
    pub(crate) fn note(self, text: &str) {
        let _nobody_listens = writeln!(anstream::stderr(), "{text}");
    }

    /// A table for people.
    pub(crate) fn table(self, header: &[&str], rows: Vec<Vec<Cell>>) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        // Only a terminal has a width to fit into; a file or a pipe gets every word on its line, and so does a
        // terminal that does not know how wide it is.
        let is_wide_enough = table.width().is_some_and(|width| width >= NARROWEST);
        table.set_content_arrangement(if std::io::stdout().is_terminal() && is_wide_enough {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        });
        table.set_header(header.iter().map(|name| Cell::new(name.to_uppercase())));
        table.add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let lines: Vec<_> =
            table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
        self.data(&lines.join("\n"));
    }

    /// Shows why the command failed; gives the exit code that says so.
    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        if self.is_json {
            self.json(&failure.json());
        } else {
            let text = failure.text();
            let text = match text.strip_prefix("error: ") {
                Some(rest) => format!("{} {rest}", "error:".red().bold()),
                None => text,
            };
            self.note(&text);
        }
        ExitCode::from(failure.code)
    }
}

/// Foreign text without control characters, so that it cannot move the cursor, recolour or write elsewhere.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// A state word, coloured by what it means.
pub(crate) fn state_cell(state: &str) -> Cell {
    let color = match state {
        "ready" | "ok" => Color::Green,
        "unavailable" => Color::Red,
        _ => Color::Yellow,
    };
    Cell::new(state).fg(color)
}
