//! Log lines: `time LEVEL: message key=value`, with the level names DEBUG, INFO, WARNING and ERROR.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt};

use crate::plain_fields::PlainFields;
use crate::spans::Tracing;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One line of text per event.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The verbosity and the format of the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogOptions {
    pub format: LogFormat,
    /// 0 shows errors and warnings; each step up or down shows one level more or less.
    pub verbosity: i8,
}

/// Libraries that are logged only partly or not at all. rmcp quotes codes, token responses and server messages with the
/// secrets in them; Switchboard logs the same without them. The others log every change in the watched directory: if
/// the log file is in it, each line would cause the next one.
const UNHEARD: [&str; 3] = ["rmcp=off", "notify=warn", "notify_debouncer_full=warn"];

/// Starts logging to standard error, and tracing to a collector if one is configured. `RUST_LOG` overrides the
/// verbosity of the log. Only the first call has an effect. Dropping the returned value sends the last spans.
pub fn init_logging(options: LogOptions) -> Tracing {
    let level = match options.verbosity {
        ..=-2 => "off",
        -1 => "error",
        0 => "warn",
        1 => "info",
        2 => "debug",
        3.. => "trace",
    };
    // Log lines of libraries are shown only at the highest verbosity.
    let default =
        if options.verbosity >= 3 { level.to_owned() } else { format!("off,switchboard={level}") };
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter = wanted.and_then(|wanted| EnvFilter::try_new(wanted).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new(default));
    let unheard = UNHEARD.iter().filter_map(|directive| directive.parse().ok());
    let filter = unheard.fold(filter, EnvFilter::add_directive);
    let colored = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colored);
    let lines = match options.format {
        LogFormat::Text => {
            lines.event_format(PlainLine { colored }).fmt_fields(PlainFields).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_target(false).boxed(),
    };
    let (spans, tracing) = Tracing::from_environment();
    let set = tracing_subscriber::registry().with(lines.with_filter(filter)).with(spans).try_init();
    // A subscriber is already set, such as by a test.
    let _already_set = set;
    tracing
}

struct PlainLine {
    colored: bool,
}

impl PlainLine {
    fn level(&self, level: Level) -> (&'static str, &'static str, &'static str) {
        let (color, name) = match level {
            Level::ERROR => ("\x1b[31m", "ERROR"),
            Level::WARN => ("\x1b[33m", "WARNING"),
            Level::INFO => ("\x1b[32m", "INFO"),
            Level::DEBUG => ("\x1b[34m", "DEBUG"),
            Level::TRACE => ("\x1b[35m", "TRACE"),
        };
        if self.colored { (color, name, "\x1b[0m") } else { ("", name, "") }
    }
}

impl<S, N> FormatEvent<S, N> for PlainLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = jiff::Timestamp::now();
        let (color, level, reset) = self.level(*event.metadata().level());
        write!(writer, "{now:.3} {color}{level}{reset}: ")?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The log lines of `log`, without their times.
    fn logged(log: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .event_format(PlainLine { colored: false })
            .fmt_fields(PlainFields);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), log);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let untimed = |line: &str| match line.split_once(' ') {
            Some((time, rest)) if time.ends_with('Z') => rest.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(untimed).collect()
    }

    #[test]
    fn a_line_is_a_message_and_its_fields() {
        let lines = logged(|| {
            tracing::warn!(server = "a b", count = 3, error = %"gone", "lost");
            tracing::info!(message = "said");
        });
        assert_eq!(lines, ["WARNING: lost server=\"a b\" count=3 error=gone", "INFO: said"]);
    }

    #[test]
    fn foreign_text_begins_no_line_and_steers_no_terminal() {
        let forged = "boom\n2026-11-17T00:00:00.000Z INFO: all is well\u{1b}[2J\u{202e}";
        let shown = r"2026-11-17T00:00:00.000Z INFO: all is well\u{1b}[2J\u{202e}";
        let lines = logged(|| {
            tracing::warn!(error = %forged, "lost");
            tracing::warn!(error = forged, "lost");
            tracing::warn!("refused\n{forged}");
        });
        assert_eq!(
            lines,
            [
                format!(r"WARNING: lost error=boom\n{shown}"),
                format!("WARNING: lost error=\"boom\\n{shown}\""),
                "WARNING: refused".to_owned(),
                "    boom".to_owned(),
                format!("    {shown}"),
            ]
        );
    }
}
