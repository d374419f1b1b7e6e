//! The board, once it has started. Until then, API requests get 503, while `/healthz` responds already. MCP clients and agents
//! that ask for their servers would not retry after a 503: the MCP server holds the requests of the former, and
//! [`AwaitedSessions`] those of the latter.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts as RequestParts;
use switchboard_runtime::{Board, LiveConfig};
use switchboard_sessions::SessionService;
use switchboard_turns::Turns;

use crate::board_place::StartedParts;
use crate::problem::ProblemResponse;
use crate::server_state::Shared;

/// Extracts the board; responds 503 while it starts.
pub(crate) struct Ready(pub(crate) Arc<Board>);

impl FromRequestParts<Shared> for Ready {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let board = shared.board.started().map(|parts| Self(parts.board.clone()));
        board.ok_or_else(still_starting)
    }
}

/// Extracts the board with its sessions and turns; responds 503 while it starts.
pub(crate) struct ReadyParts(pub(crate) StartedParts);

impl FromRequestParts<Shared> for ReadyParts {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        shared.board.started().cloned().map(Self).ok_or_else(still_starting)
    }
}

/// Extracts the sessions; responds 503 while the board starts.
pub(crate) struct ReadySessions(pub(crate) Arc<SessionService>);

impl FromRequestParts<Shared> for ReadySessions {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let sessions = shared.board.started().map(|parts| Self(parts.sessions.clone()));
        sessions.ok_or_else(still_starting)
    }
}

/// How long an agent waits for the board. The SDK gives up after 30 s.
const START_WITHIN: Duration = Duration::from_secs(20);

/// Extracts the sessions; waits while the board starts, and responds 503 if that takes too long.
pub(crate) struct AwaitedSessions(pub(crate) Arc<SessionService>);

impl FromRequestParts<Shared> for AwaitedSessions {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let parts = shared.board.started_within(START_WITHIN).await;
        parts.map(|parts| Self(parts.sessions.clone())).ok_or_else(still_starting)
    }
}

/// Extracts the turns; responds 503 while the board starts.
pub(crate) struct ReadyTurns(pub(crate) Arc<Turns>);

impl FromRequestParts<Shared> for ReadyTurns {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let turns = shared.board.started().map(|parts| Self(parts.turns.clone()));
        turns.ok_or_else(still_starting)
    }
}

/// Extracts the configuration of the board; responds 503 while the board starts.
pub(crate) struct ReadyConfig(pub(crate) Arc<LiveConfig>);

impl FromRequestParts<Shared> for ReadyConfig {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        shared.board.config().cloned().map(Self).ok_or_else(still_starting)
    }
}

fn still_starting() -> ProblemResponse {
    let detail = "the board is still connecting its servers; try again in a moment";
    ProblemResponse::new("starting", StatusCode::SERVICE_UNAVAILABLE, detail)
}
