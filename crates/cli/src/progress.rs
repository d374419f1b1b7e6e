//! Shows how far the connecting is, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use switchboard_model::ServerState;
use switchboard_runtime::StartEvent;

/// A line that counts connected servers; nothing at all where nobody looks.
pub(crate) struct ConnectProgress(Option<ProgressBar>);

impl ConnectProgress {
    pub(crate) fn start(servers: usize) -> Self {
        if servers == 0 || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(servers as u64);
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} connecting {pos}/{len} {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    pub(crate) fn note(&self, event: &StartEvent) {
        let StartEvent::Attempted(status) = event;
        let Some(bar) = &self.0 else { return };
        bar.inc(1);
        let mark = if status.state == ServerState::Ready { "✓" } else { "✗" };
        bar.set_message(format!("{mark} {}", status.name));
    }

    pub(crate) fn finish(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}
