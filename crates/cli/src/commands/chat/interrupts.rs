//! Signal handling: the first Ctrl-C cancels a turn, the next one ends the program.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The effect of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptAction {
    /// Cancel the running turn.
    Stop,
    /// End the program.
    End,
}

/// Receives signals from its creation on.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(super) fn listen() -> Result<Self, Failure> {
        let cannot = |error| Failure::start(format!("cannot register signal handlers: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> InterruptAction {
        tokio::select! {
            _ = self.interrupt.recv() => InterruptAction::Stop,
            _ = self.terminate.recv() => InterruptAction::End,
        }
    }
}
