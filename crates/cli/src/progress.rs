//! Shows the progress of connecting: an updated line on a terminal, occasional lines elsewhere.

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use switchboard_model::ServerState;
use switchboard_runtime::StartEvent;
use switchboard_telemetry::escape_to_line;

/// Seconds between two lines about servers that are still connecting, without a terminal.
const BETWEEN_LINES: u64 = 10;

/// A line that counts connected servers.
pub(crate) enum ConnectProgressBar {
    Bar(ProgressBar),
    /// No terminal: lines about servers that take long.
    Lines,
    /// Nothing: the log shows the progress.
    Silent,
}

impl ConnectProgressBar {
    pub(crate) fn start(servers: usize) -> Self {
        if servers == 0 {
            return Self::Silent;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(servers as u64);
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} connecting {pos}/{len} {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::Bar(bar)
    }

    pub(crate) fn note(&self, event: &StartEvent) {
        match (self, event) {
            (Self::Bar(bar), StartEvent::Attempted(status)) => {
                bar.inc(1);
                let mark = if status.state == ServerState::Ready { "✓" } else { "✗" };
                bar.set_message(format!("{mark} {}", status.name));
            }
            (Self::Bar(bar), StartEvent::Waiting(status)) => {
                if let Some(waiting) = &status.waiting {
                    bar.set_message(escape_to_line(&format!("{}: {waiting}", status.name)));
                }
            }
            (Self::Lines, StartEvent::Waiting(status)) => {
                let is_due = |seconds: u64| seconds > 0 && seconds.is_multiple_of(BETWEEN_LINES);
                if let Some(waiting) = &status.waiting
                    && is_due(waiting.elapsed.as_secs())
                {
                    let line = escape_to_line(&format!("{}: {waiting}", status.name));
                    let _nobody_listens = writeln!(anstream::stderr(), "{line}");
                }
            }
            (Self::Lines, StartEvent::Attempted(_)) | (Self::Silent, _) => {}
        }
    }

    pub(crate) fn finish(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
