//! Requests that come while the board still connects its servers.
//!
//! A client that is refused at its first request has no tools for its whole life. So its request waits until the tools
//! are there, for at most `startup_wait`; then it gets those that are there, and `list_changed` announces the rest.

use switchboard_runtime::StartupStage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::service::SessionService;

/// Which catalog of a starting board sessions see.
#[derive(Debug, Default)]
pub(crate) struct CatalogShown {
    /// The tools of all servers that the start waits for.
    whole: CancellationToken,
    /// At least the tools of the servers that were ready when a request had waited long enough.
    part: CancellationToken,
}

impl CatalogShown {
    /// Whether sessions see any tools.
    pub(crate) fn any(&self) -> bool {
        self.part.is_cancelled()
    }

    /// The catalog of this stage is shown now.
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

/// The board could not start, or was stopped before it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartFailed;

impl StartFailed {
    pub const MESSAGE: &str = "the board did not start; its log says why";
}

impl SessionService {
    /// Whether servers that the start waits for are still being connected.
    pub fn is_starting(&self) -> bool {
        !self.shown.whole.is_cancelled()
    }

    /// Waits until the tools of all servers are there, or `deadline` has passed.
    pub async fn catalog_within(&self, deadline: Instant) -> Result<(), StartFailed> {
        tokio::select! {
            biased;
            () = self.shown.whole.cancelled() => Ok(()),
            () = self.stop.cancelled() => Err(StartFailed),
            () = tokio::time::sleep_until(deadline) => Ok(()),
        }
    }

    /// The same; after the deadline the tools of the servers that are ready by then are there.
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
