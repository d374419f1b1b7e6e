//! Requests that come while the board still connects its servers are held.

use std::time::Duration;

use http::StatusCode;
use switchboard_protocol::{Headers, code};
use switchboard_sessions::StartFailed;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::http_answer::{HttpResponse, refuse};
use crate::http_endpoint::HttpRequest;

/// How long an answer that is complete without tools, such as that to `initialize` over stdio, waits for what servers say
/// about themselves. Claude Code gives `server/discover` 5 seconds before it takes the server for one of the older era.
pub(crate) const INTRODUCTION_WAIT: Duration = Duration::from_secs(1);

impl Gateway {
    /// Holds an HTTP request while the board starts; the error is the answer when it does not start.
    pub(crate) async fn hold(&self, request: &HttpRequest) -> Result<(), HttpResponse> {
        // Its `initialize` has been held.
        let session = request.headers.get(Headers::SESSION).and_then(|id| id.to_str().ok());
        if session.is_some_and(|id| self.clients().contains_key(id)) {
            return Ok(());
        }
        let (now, most) = (Instant::now(), self.plan().startup_wait);
        let method = request.headers.get(Headers::METHOD);
        let held = if method.is_some_and(|method| method == "server/discover") {
            self.service.catalog_within(now + INTRODUCTION_WAIT.min(most)).await
        } else {
            self.service.catalog_by(now + most).await
        };
        held.map_err(|StartFailed| {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            refuse(status, None, code::INTERNAL_ERROR, StartFailed::MESSAGE)
        })
    }
}
