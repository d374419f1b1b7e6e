//! Data to standard output, words to standard error; tables and colour for people only.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use owo_colors::OwoColorize;
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_telemetry::{LogFormat, escape_controls, escape_to_line};

use crate::failure::Failure;

/// A table that is squeezed into fewer columns than this cannot be read.
const NARROWEST: u16 = 40;

/// Where and how a command shows what it found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    /// Words for people are lines of a log that programs read.
    logs_json: bool,
}

#[expect(clippy::unused_self, reason = "only who was handed the output may write")]
impl Output {
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json, logs_json: false }
    }

    /// The same for a command with a log of this format: where the log is JSON, so is everything else on standard
    /// error.
    pub(crate) fn with_log(self, format: LogFormat) -> Self {
        Self { logs_json: format == LogFormat::Json, ..self }
    }

    /// Whether one JSON document is wanted on standard output.
    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// The JSON document.
    pub(crate) fn json(self, document: &impl Serialize) {
        // Our own types and JSON values always serialise.
        let text = serde_json::to_string_pretty(document).unwrap_or_default();
        self.document(&text);
    }

    /// A text that programs read: it is written as it is.
    pub(crate) fn document(self, text: &str) {
        // A reader that has seen enough, such as `head`, is no failure.
        let _reader_is_gone = writeln!(anstream::stdout(), "{}", text.trim_end_matches('\n'));
    }

    /// A line, or several, of data. What servers wrote in it cannot steer a terminal.
    pub(crate) fn data(self, text: &str) {
        if self.is_json {
            return self.document(text);
        }
        self.document(&escape_controls(text));
    }

    /// The same after a mark of ours, which may be coloured.
    pub(crate) fn marked(self, mark: &str, text: &str) {
        self.document(&format!("{mark} {}", escape_controls(text)));
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

    /// A line for people, beside the data. What servers wrote in it cannot steer a terminal.
    pub(crate) fn note(self, text: &str) {
        self.say("INFO", text);
    }

    /// A line that warns of something.
    pub(crate) fn warn(self, text: &str) {
        self.say("WARN", text);
    }

    fn say(self, level: &str, text: &str) {
        if self.logs_json {
            return log_line(level, json!({ "message": text }));
        }
        self.styled_note(&escape_controls(text));
    }

    /// The same with colours of ours. The caller escapes everything else.
    pub(crate) fn styled_note(self, text: &str) {
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
        table.set_header(header.iter().map(|name| cell(name.to_uppercase())));
        table.add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let lines: Vec<_> =
            table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
        self.document(&lines.join("\n"));
    }

    /// Shows why the command failed; gives the exit code that says so.
    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        if self.is_json {
            self.json(&failure.json());
        } else if self.logs_json {
            log_line("ERROR", failure.json()["error"].take());
        } else {
            let text = escape_controls(&failure.text());
            let text = match text.strip_prefix("error: ") {
                Some(rest) => format!("{} {rest}", "error:".red().bold()),
                None => text,
            };
            self.styled_note(&text);
        }
        ExitCode::from(failure.code)
    }
}

/// One line on standard error in the shape of the JSON log.
fn log_line(level: &str, fields: Value) {
    let mut line = json!({"timestamp": jiff::Timestamp::now().to_string(), "level": level});
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
        line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
    let _nobody_listens = writeln!(std::io::stderr(), "{line}");
}

/// Foreign text whose control characters are escaped, so that it cannot move the cursor, recolour, write elsewhere or
/// change the direction of writing. [`Output::data`] and [`Output::note`] do it themselves.
pub(crate) fn harmless(text: &str) -> String {
    escape_controls(text)
}

/// A cell of a table. What could steer a terminal is written as an escape, so that it can be seen.
#[expect(clippy::disallowed_methods, reason = "every other cell is made by this function")]
#[allow(clippy::needless_pass_by_value, reason = "callers hand over texts and numbers alike")]
pub(crate) fn cell(content: impl ToString) -> Cell {
    Cell::new(escape_to_line(&content.to_string()))
}

/// A state word, coloured by what it means.
pub(crate) fn state_cell(state: &str) -> Cell {
    let color = match state {
        "ready" | "ok" => Color::Green,
        "unavailable" => Color::Red,
        _ => Color::Yellow,
    };
    cell(state).fg(color)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_what_could_steer_a_terminal() {
        let text = "a\u{1b}[31mb\u{202e}c\u{2066}d\u{9b}e\nf\tg";
        assert_eq!(cell(text).content(), r"a\u{1b}[31mb\u{202e}c\u{2066}d\u{9b}e f g");
        assert_eq!(harmless("a\u{1b}b\u{202e}c\nd"), "a\\u{1b}b\\u{202e}c\nd");
    }
}
