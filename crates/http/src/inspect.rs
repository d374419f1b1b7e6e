//! Servers and tools, to look at.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use switchboard_api::{ServerList, ToolList, ToolView};
use switchboard_auth::{Principal, Role};
use switchboard_gateway::Gateway;

use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadyGateway};

pub(crate) async fn servers(Ready(board): Ready) -> Json<ServerList> {
    Json(present::servers(&board))
}

/// A client sees the tools that it may call, an operator all of them.
pub(crate) async fn tools(
    Ready(board): Ready,
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
) -> Json<ToolList> {
    let mut list = present::tools(&board);
    list.tools.retain(|tool| may_reach(&gateway, &principal, &tool.name));
    Json(list)
}

/// What `gateway.deny_toolsets` hides is hidden in every face; operators see what is behind it.
pub(crate) fn may_reach(gateway: &Gateway, principal: &Principal, tool: &str) -> bool {
    principal.role >= Role::Operator || gateway.permits(tool)
}

pub(crate) fn unknown_tool(name: &str) -> ProblemResponse {
    let detail = format!("there is no tool '{name}'");
    ProblemResponse::new("unknown_tool", StatusCode::NOT_FOUND, detail)
}

pub(crate) async fn tool(
    Ready(board): Ready,
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ToolView>, ProblemResponse> {
    let Path(name) = name?;
    let found = present::tool(&board, &name);
    if found.is_ok() && !may_reach(&gateway, &principal, &name) {
        return Err(unknown_tool(&name));
    }
    found.map(Json).map_err(|nearest| {
        let mut response = unknown_tool(&name);
        response.0.hint = nearest.filter(|_| principal.role >= Role::Operator);
        response
    })
}
