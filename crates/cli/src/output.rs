//! Output of commands: data on standard output, messages on standard error; tables and colour on terminals only.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use owo_colors::OwoColorize;
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_telemetry::{LogFormat, escape_controls, escape_to_line};

use crate::failure::Failure;

/// Minimum width of a table; a narrower terminal gets unwrapped lines.
const NARROWEST: u16 = 40;

/// How a command writes its output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    /// Whether messages are written as JSON log lines.
    logs_json: bool,
}

#[expect(clippy::unused_self, reason = "only who was handed the output may write")]
impl Output {
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json, logs_json: false }
    }

    /// The same output for a command with this log format: with a JSON log, everything else on standard error is JSON
    /// too.
    pub(crate) fn with_log(self, format: LogFormat) -> Self {
        Self { logs_json: format == LogFormat::Json, ..self }
    }

    /// Whether `--json` was given: one JSON document on standard output.
    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// The JSON document.
    pub(crate) fn json(self, document: &impl Serialize) {
        // Our own types and JSON values always serialise.
        let text = serde_json::to_string_pretty(document).unwrap_or_default();
        self.document(&text);
    }

    /// Writes text for programs, unchanged.
    pub(crate) fn document(self, text: &str) {
        // A closed pipe, such as `head`, is no failure.
        let _reader_is_gone = writeln!(anstream::stdout(), "{}", text.trim_end_matches('\n'));
    }

    /// Writes lines of data. Control characters are escaped.
    pub(crate) fn data(self, text: &str) {
        if self.is_json {
            return self.document(text);
        }
        self.document(&escape_controls(text));
    }

    /// The same after a prefix, which may be coloured.
    pub(crate) fn marked(self, mark: &str, text: &str) {
        self.document(&format!("{mark} {}", escape_controls(text)));
    }

    /// Writes text from a server: unchanged to a pipe, with control characters escaped to a terminal.
    pub(crate) fn foreign(self, text: &str) {
        let mut stdout = std::io::stdout();
        let text = if stdout.is_terminal() { harmless(text) } else { text.to_owned() };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let _reader_is_gone = write!(stdout, "{text}{end}");
    }

    /// Writes a part of a line of untrusted data and flushes it.
    pub(crate) fn piece(self, text: &str) {
        let mut stdout = std::io::stdout();
        let text = if stdout.is_terminal() { harmless(text) } else { text.to_owned() };
        let _reader_is_gone = write!(stdout, "{text}").and_then(|()| stdout.flush());
    }

    /// Writes a part of a line to standard error and flushes it.
    pub(crate) fn aside(self, text: &str) {
        let mut stderr = anstream::stderr();
        let _nobody_listens = write!(stderr, "{text}").and_then(|()| stderr.flush());
    }

    /// Raw bytes of data.
    pub(crate) fn bytes(self, bytes: &[u8]) {
        let _reader_is_gone = std::io::stdout().write_all(bytes);
    }

    /// Writes a message to standard error. Control characters are escaped.
    pub(crate) fn note(self, text: &str) {
        self.say("INFO", text);
    }

    /// Writes a warning to standard error.
    pub(crate) fn warn(self, text: &str) {
        self.say("WARN", text);
    }

    fn say(self, level: &str, text: &str) {
        if self.logs_json {
            return log_line(level, json!({ "message": text }));
        }
        self.styled_note(&escape_controls(text));
    }

    /// Writes a message with colour codes. The caller escapes untrusted text.
    pub(crate) fn styled_note(self, text: &str) {
        let _nobody_listens = writeln!(anstream::stderr(), "{text}");
    }

    /// A table for people.
    pub(crate) fn table(self, header: &[&str], rows: Vec<Vec<Cell>>) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        // Only a terminal with a known width limits the table; a file or a pipe gets each row on one line.
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

    /// Shows the failure and returns its exit code.
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

/// Escapes control characters in untrusted text, so that it cannot move the cursor, change colours, write elsewhere or
/// change the text direction. [`Output::data`] and [`Output::note`] do this themselves.
pub(crate) fn harmless(text: &str) -> String {
    escape_controls(text)
}

/// A cell of a table, with control characters escaped.
#[expect(clippy::disallowed_methods, reason = "every other cell is made by this function")]
#[allow(clippy::needless_pass_by_value, reason = "callers hand over texts and numbers alike")]
pub(crate) fn cell(content: impl ToString) -> Cell {
    Cell::new(escape_to_line(&content.to_string()))
}

/// A state, coloured by its meaning.
pub(crate) fn state_cell(state: &str) -> Cell {
    // The state of an account, as sentences spell it.
    let state = if state == "needs_sign_in" { "needs sign-in" } else { state };
    let color = match state {
        "ready" | "ok" | "active" | "automatic" => Color::Green,
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
