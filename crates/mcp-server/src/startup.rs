//! Holds requests that arrive while the board still connects its servers.

use std::time::Duration;

use http::StatusCode;
use switchboard_protocol::{Headers, code};
use switchboard_sessions::StartFailed;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::http_answer::{HttpResponse, refuse};
use crate::http_request::HttpRequest;

/// How long a response that does not need tools, such as that to `initialize` over stdio, waits for the instructions of the
/// servers. Claude Code waits 5 seconds for `server/discover` before it assumes the session era.
pub(crate) const INTRODUCTION_WAIT: Duration = Duration::from_secs(1);

impl Gateway {
    /// Holds an HTTP request while the board starts; the error is the response if it does not start in time.
    pub(crate) async fn hold(&self, request: &HttpRequest) -> Result<(), HttpResponse> {
        // This client's `initialize` has been held already.
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
