//! Holds requests that arrive while the board still connects its servers.
//!
//! A client whose first request is refused often never asks again. So the request waits for the tools, for at most
//! `startup_wait`; then it gets those that are there, and `list_changed` announces the rest.

use switchboard_runtime::StartupStage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::service::SessionService;

/// Which part of the catalog the sessions see while the board starts.
#[derive(Debug, Default)]
pub(crate) struct CatalogShown {
    /// Cancelled when sessions see the tools of all servers that the start waits for.
    whole: CancellationToken,
    /// Cancelled when sessions see at least the tools of the servers that were ready at the deadline of a request.
    part: CancellationToken,
}

impl CatalogShown {
    /// Whether sessions see any tools.
    pub(crate) fn any(&self) -> bool {
        self.part.is_cancelled()
    }

    /// Notes that sessions see the catalog of this stage.
    pub(crate) fn note(&self, stage: StartupStage) {
        match stage {
            StartupStage::Connecting => {}
            StartupStage::Early => self.part.cancel(),
            StartupStage::Finished => {
                self.whole.cancel();
                self.part.cancel();
            }
        }
    }
}

/// The board could not start, or was stopped before it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartFailed;

impl StartFailed {
    pub const MESSAGE: &str = "the board did not start; its log says why";
}

impl SessionService {
    /// Whether the board is still connecting servers that the start waits for.
    pub fn is_starting(&self) -> bool {
        !self.shown.whole.is_cancelled()
    }

    /// Waits until the tools of all servers are there, or until `deadline`.
    pub async fn catalog_within(&self, deadline: Instant) -> Result<(), StartFailed> {
        tokio::select! {
            biased;
            () = self.shown.whole.cancelled() => Ok(()),
            () = self.stop.cancelled() => Err(StartFailed),
            () = tokio::time::sleep_until(deadline) => Ok(()),
        }
    }

    /// As [`Self::catalog_within`]; after the deadline, sessions see the tools of the servers that are ready by then.
    pub async fn catalog_by(&self, deadline: Instant) -> Result<(), StartFailed> {
        self.catalog_within(deadline).await?;
        if !self.is_starting() {
            return Ok(());
        }
        self.board.startup().publish_early();
        tokio::select! {
            biased;
            () = self.shown.part.cancelled() => Ok(()),
            () = self.stop.cancelled() => Err(StartFailed),
        }
    }
}
