//! Requests that come while the servers of the board are still being connected.
//!
//! A client that is turned away at its first request has no tools for its whole life. So it waits until the tools are
//! there, for at most `startup_wait`; then it gets those that are there, and `list_changed` tells it of the rest.

use std::time::Duration;

use http::StatusCode;
use switchboard_protocol::{Headers, code};
use switchboard_runtime::StartupStage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::http_answer::{Answer, refuse};
use crate::http_face::HttpRequest;

/// How long an answer that is complete without tools, such as that to `initialize` over stdio, waits for what servers say
/// about themselves. Claude Code gives `server/discover` 5 seconds before it takes the server for one of the older era.
pub(crate) const INTRODUCTION_WAIT: Duration = Duration::from_secs(1);

/// What the gateway shows of a board that starts.
#[derive(Debug, Default)]
pub(crate) struct CatalogShown {
    /// Everything that the start waits for.
    whole: CancellationToken,
    /// At least what was there when somebody had waited long enough.
    part: CancellationToken,
}

impl CatalogShown {
    /// Whether anything is shown.
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

/// The board could not start, or was told to stop before it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartFailed;

impl StartFailed {
    pub(crate) const MESSAGE: &str = "the board did not start; its log says why";
}

impl Gateway {
    /// Whether servers that the start waits for are still being connected.
    pub(crate) fn is_starting(&self) -> bool {
        !self.shown.whole.is_cancelled()
    }

    /// Waits until the tools of all servers are there, or `deadline` has passed.
    pub(crate) async fn catalog_within(&self, deadline: Instant) -> Result<(), StartFailed> {
        tokio::select! {
            biased;
            () = self.shown.whole.cancelled() => Ok(()),
            () = self.stop.cancelled() => Err(StartFailed),
            () = tokio::time::sleep_until(deadline) => Ok(()),
        }
    }

    /// The same; after the deadline the tools of the servers that are ready by then are there.
    pub(crate) async fn catalog_by(&self, deadline: Instant) -> Result<(), StartFailed> {
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

    /// Holds an HTTP request while the board starts; the error is the answer when it does not start.
    pub(crate) async fn hold(&self, request: &HttpRequest) -> Result<(), Answer> {
        // Its `initialize` has been held.
        let session = request.headers.get(Headers::SESSION).and_then(|id| id.to_str().ok());
        if session.is_some_and(|id| self.clients().contains_key(id)) {
            return Ok(());
        }
        let (now, most) = (Instant::now(), self.plan().startup_wait);
        let method = request.headers.get(Headers::METHOD);
        let held = if method.is_some_and(|method| method == "server/discover") {
            self.catalog_within(now + INTRODUCTION_WAIT.min(most)).await
        } else {
            self.catalog_by(now + most).await
        };
        held.map_err(|StartFailed| {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            refuse(status, None, code::INTERNAL_ERROR, StartFailed::MESSAGE)
        })
    }
}
