//! Ctrl-C, which cancels a turn before it ends the program.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptAction {
    /// Stop what is being done.
    Stop,
    /// End the program.
    End,
}

/// The signals, from now on.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(super) fn listen() -> Result<Self, Failure> {
        let cannot = |error| Failure::start(format!("cannot hear signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    /// Whoever stops waiting loses nothing.
    pub(super) async fn next(&mut self) -> InterruptAction {
        tokio::select! {
            _ = self.interrupt.recv() => InterruptAction::Stop,
            _ = self.terminate.recv() => InterruptAction::End,
        }
    }
}
