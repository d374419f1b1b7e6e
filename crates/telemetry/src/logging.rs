//! Log lines: `time LEVEL: message key=value`, with the level names of seed 000.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt};

use crate::spans::Tracing;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One readable line each.
    #[default]
    Text,
    /// One JSON object each.
    Json,
}

/// What is logged and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogOptions {
    pub format: LogFormat,
    /// Each step shows more: warnings, then the news, then details, then everything.
    pub verbosity: i8,
}

/// Libraries that are not logged in detail. rmcp quotes codes, token answers and what servers say, with the secrets in it;
/// our own lines say the same without them. The others tell of every change in the watched directory: where the log is there
/// too, each line would be news of the next one.
const UNHEARD: [&str; 3] = ["rmcp=off", "notify=warn", "notify_debouncer_full=warn"];

/// Starts logging to standard error, and tracing to a collector where one is named. `RUST_LOG` overrides the
/// verbosity of the log. Only the first call counts. Dropping what it returns sends the last spans.
pub fn init_logging(options: LogOptions) -> Tracing {
    let level = match options.verbosity {
        ..=-2 => "off",
        -1 => "error",
        0 => "warn",
        1 => "info",
        2 => "debug",
        3.. => "trace",
    };
    // Libraries speak of their own matters: they are heard only when somebody asks for everything.
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
        LogFormat::Text => lines.event_format(PlainLine { colored }).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_target(false).boxed(),
    };
    let (spans, tracing) = Tracing::from_environment();
    let set = tracing_subscriber::registry().with(lines.with_filter(filter)).with(spans).try_init();
    // Somebody else, such as a test, already listens.
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
