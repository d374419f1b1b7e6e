//! The fields of a text log line: `message key=value`. Messages and values may quote servers and callers, so they can
//! neither start a log line nor control a terminal.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use crate::plain_text::{escape_controls, escape_value};

/// Indents each further line of a message, so that it is not mistaken for another log line.
const CONTINUATION: &str = "\n    ";

pub(crate) struct PlainFields;

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = PlainVisitor { writer, is_first: true, written: Ok(()) };
        fields.record(&mut visitor);
        visitor.written
    }
}

struct PlainVisitor<'w> {
    writer: Writer<'w>,
    is_first: bool,
    written: fmt::Result,
}

impl PlainVisitor<'_> {
    fn write(&mut self, name: &str, value: &str) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        if name == "message" {
            let lines = escape_controls(value);
            return self.writer.write_str(&lines.trim_end().replace('\n', CONTINUATION));
        }
        let value = escape_value(value);
        if self.writer.has_ansi_escapes() {
            write!(self.writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
        } else {
            write!(self.writer, "{name}={value}")
        }
    }
}

impl Visit for PlainVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = field.name();
        // Fields that the `log` crate adds for a record's origin are left out.
        if self.written.is_ok() && !name.starts_with("log.") {
            self.written = self.write(name.trim_start_matches("r#"), &format!("{value:?}"));
        }
    }
}
