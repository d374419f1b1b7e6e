//! The board, once it has started. Until then who asks for it is told to come back, and `/healthz` already answers. MCP
//! clients are not told to come back, because they do not: the gateway lets them wait.

use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts as RequestParts;
use switchboard_gateway::Gateway;
use switchboard_runtime::Board;
use switchboard_turns::Turns;

use crate::problem::ProblemResponse;
use crate::server::Shared;

/// A place for a board that is still starting. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct BoardPlace(Arc<Places>);

#[derive(Debug, Default)]
struct Places {
    gateway: OnceLock<Arc<Gateway>>,
    started: OnceLock<Parts>,
}

#[derive(Debug)]
struct Parts {
    board: Arc<Board>,
    gateway: Arc<Gateway>,
    turns: Arc<Turns>,
}

impl BoardPlace {
    /// The place of a board that still connects its servers, behind this gateway.
    pub fn starting(gateway: Arc<Gateway>) -> Self {
        let place = Self::default();
        let _it_is_empty = place.0.gateway.set(gateway);
        place
    }

    /// Puts the board, its gateway and its turns there. Only the first ones count.
    pub fn fill(&self, board: Arc<Board>, gateway: Arc<Gateway>, turns: Arc<Turns>) {
        let _it_is_known = self.0.gateway.set(gateway.clone());
        let _there_is_one = self.0.started.set(Parts { board, gateway, turns });
    }

    pub(crate) fn board(&self) -> Option<&Arc<Board>> {
        self.started().map(|parts| &parts.board)
    }

    /// What answers MCP clients, also while the board starts.
    pub(crate) fn gateway(&self) -> Option<&Arc<Gateway>> {
        self.0.gateway.get()
    }

    fn started(&self) -> Option<&Parts> {
        self.0.started.get()
    }
}

/// The board, for handlers that cannot do without.
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

/// The gateway, for handlers that cannot do without.
pub(crate) struct ReadyGateway(pub(crate) Arc<Gateway>);

impl FromRequestParts<Shared> for ReadyGateway {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        _: &mut RequestParts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let gateway = shared.board.started().map(|parts| Self(parts.gateway.clone()));
        gateway.ok_or_else(still_starting)
    }
}

/// The turns, for handlers that cannot do without.
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

pub(crate) fn still_starting() -> ProblemResponse {
    let detail = "the board is still connecting its servers; try again in a moment";
    ProblemResponse::new("starting", StatusCode::SERVICE_UNAVAILABLE, detail)
}
