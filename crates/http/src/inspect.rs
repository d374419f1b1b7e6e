//! Servers and tools, to look at.

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use switchboard_api::{ServerList, ToolList, ToolView};

use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::Ready;

pub(crate) async fn servers(Ready(board): Ready) -> Json<ServerList> {
    Json(present::servers(&board))
}

pub(crate) async fn tools(Ready(board): Ready) -> Json<ToolList> {
    Json(present::tools(&board))
}

pub(crate) async fn tool(
    Ready(board): Ready,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ToolView>, ProblemResponse> {
    let Path(name) = name?;
    present::tool(&board, &name).map(Json).map_err(|nearest| {
        let detail = format!("there is no tool '{name}'");
        let mut response = ProblemResponse::new("unknown_tool", StatusCode::NOT_FOUND, detail);
        response.0.hint = nearest;
        response
    })
}
