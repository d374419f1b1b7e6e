//! The start of a board: its servers are connecting, and clients may already be waiting.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFuture};

use crate::board::{Board, failures, warn_of_absent};
use crate::catalog_reconciler::{CatalogReconciler, ReconcilerOrder};
use crate::first_attempts::{StartEvent, grace_of_start, wait_for_all};
use crate::start_error::StartError;

/// The stages of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupStage {
    /// No catalog is published yet.
    Connecting,
    /// The tools of the servers that have connected so far are published.
    Early,
    /// All tools are published.
    Finished,
}

/// The state of a board's start.
#[derive(Debug, Default)]
pub struct Startup {
    finished: CancellationToken,
    early: CancellationToken,
    early_wanted: Notify,
}

impl Startup {
    /// Whether the tools of all servers that the start waits for are admitted.
    pub fn is_finished(&self) -> bool {
        self.finished.is_cancelled()
    }

    /// The stage of the published catalog.
    pub fn reached(&self) -> StartupStage {
        match (self.is_finished(), self.early.is_cancelled()) {
            (true, _) => StartupStage::Finished,
            (false, true) => StartupStage::Early,
            (false, false) => StartupStage::Connecting,
        }
    }

    /// Completes when the start has succeeded; never when it fails.
    pub fn finished(&self) -> WaitForCancellationFuture<'_> {
        self.finished.cancelled()
    }

    /// Publishes the tools of connected servers before the start has finished, and those of further servers as they
    /// connect.
    pub fn publish_early(&self) {
        self.early_wanted.notify_one();
    }

    /// Completes when an early catalog has been published.
    pub fn published_early(&self) -> WaitForCancellationFuture<'_> {
        self.early.cancelled()
    }
}

/// A board whose servers are connecting. Dropping it cancels the start and stops the servers.
pub struct StartingBoard {
    pub(crate) board: Arc<Board>,
    pub(crate) reconciler: CatalogReconciler,
    pub(crate) inbox: mpsc::Receiver<ReconcilerOrder>,
    pub(crate) unless_started: DropGuard,
}

impl std::fmt::Debug for StartingBoard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartingBoard").finish_non_exhaustive()
    }
}

impl StartingBoard {
    /// The board, which is not fully started yet.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Waits for the servers and admits their tools. An error lists every reason, and nothing is left running then.
    pub async fn finish(self, on_event: impl FnMut(StartEvent)) -> Result<Arc<Board>, StartError> {
        let grace = grace_of_start(self.board.around.memory);
        self.finish_within(grace, on_event).await
    }

    /// Like [`StartingBoard::finish`], but waits for servers that are not required for at most `grace`.
    pub async fn finish_within(
        self,
        grace: Duration,
        on_event: impl FnMut(StartEvent),
    ) -> Result<Arc<Board>, StartError> {
        let Self { board, mut reconciler, inbox, unless_started } = self;
        let plan = board.plan();
        let servers = reconciler.servers.clone();
        let around = &board.around;
        {
            let mut connecting = pin!(wait_for_all(&plan, &servers, grace, on_event));
            let startup = &board.startup;
            loop {
                tokio::select! {
                    () = &mut connecting => break,
                    () = startup.early_wanted.notified(), if !startup.early.is_cancelled() => {
                        reconciler.publish_early().await;
                        startup.early.cancel();
                    }
                    () = around.dirty.notified(), if startup.early.is_cancelled() => {
                        reconciler.publish_early().await;
                    }
                }
            }
        }
        let evaluation = reconciler.evaluate(&plan, &servers);
        let failures = failures(&plan, &servers, evaluation.violations());
        if !failures.is_empty() {
            around.stop.cancel();
            around.tasks.close();
            around.tasks.wait().await;
            return Err(StartError { failures });
        }
        warn_of_absent(&plan, &servers);
        reconciler.publish_first(evaluation).await;
        if let Some(writer) = &reconciler.writer {
            around.tasks.spawn(writer.clone().run(around.stop.clone()));
        }
        around.tasks.spawn(reconciler.run(inbox, around.dirty.clone(), around.stop.clone()));
        unless_started.disarm();
        board.startup.finished.cancel();
        Ok(board)
    }
}
