//! Servers and tools, to look at.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use switchboard_api::{ServerList, ToolList, ToolView};

use crate::present;
use crate::problem::ProblemResponse;
use crate::server::Shared;

pub(crate) async fn servers(State(shared): State<Shared>) -> Json<ServerList> {
    Json(present::servers(&shared.board))
}

pub(crate) async fn tools(State(shared): State<Shared>) -> Json<ToolList> {
    Json(present::tools(&shared.board))
}

pub(crate) async fn tool(
    State(shared): State<Shared>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ToolView>, ProblemResponse> {
    let Path(name) = name?;
    present::tool(&shared.board, &name).map(Json).map_err(|nearest| {
        let detail = format!("there is no tool '{name}'");
        let mut response = ProblemResponse::new("unknown_tool", StatusCode::NOT_FOUND, detail);
        response.0.hint = nearest;
        response
    })
}
