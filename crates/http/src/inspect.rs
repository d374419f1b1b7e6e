//! Lists of servers and tools.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use switchboard_api::{ServerList, ToolList, ToolView};
use switchboard_auth::Principal;
use switchboard_sessions::{ApiTools, SessionService};

use crate::answers::{BadRequest, Guarded, UnknownTool};
use crate::extract::{FromPath, FromQuery};
use crate::made_answers::{AnswerKey, AnswerStamp, ToolAudience};
use crate::present;
use crate::present_absence::hidden_tools;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadySessions};
use crate::server_state::Shared;

/// Names a tool.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ToolName {
    /// The canonical name `server.tool`, or the bare name.
    #[param(min_length = 1, example = "demo.echo")]
    pub(crate) name: String,
}

/// Selects tools.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolsQuery {
    /// Whether to list also what clients do not see, and why. For operators.
    #[serde(default)]
    #[param(default = false)]
    all: bool,
}

/// List the servers
///
/// All configured MCP servers with their state, in the order of the configuration. A client sees the servers that neither
/// policy nor its access hides completely, an operator sees all of them.
#[utoipa::path(
    get,
    path = "/api/v1/servers",
    operation_id = "listServers",
    tag = "servers",
    responses((status = 200, description = "All servers.", body = ServerList), Guarded)
)]
pub(crate) async fn servers(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
) -> Json<ServerList> {
    let mut list = present::servers(&board);
    let may_see =
        |name: &str| principal.oversees() || sessions.permits_server(name, &principal.access);
    list.servers.retain(|server| may_see(&server.name));
    Json(list)
}

/// List the tools
///
/// The catalog at its current revision. A client sees the tools that it may call, an operator all of them; with `all` also those
/// that are not in the catalog or hidden from clients, with the reasons.
#[utoipa::path(
    get,
    path = "/api/v1/tools",
    operation_id = "listTools",
    tag = "tools",
    params(ToolsQuery, ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the client has.")),
    responses(
        (
            status = 200,
            description = "The catalog.",
            body = ToolList,
            headers(("etag" = String, description = "The version of the answer.")),
            links(
                ("one" = (operation_id = "getTool", parameters(("name" = "$response.body#/tools/0/name")))),
                ("call" = (operation_id = "callTool", parameters(("name" = "$response.body#/tools/0/name"))))
            )
        ),
        (status = 304, description = "The client has the present version, which `If-None-Match` names."),
        Guarded,
        BadRequest,
    )
)]
pub(crate) async fn tools(
    State(shared): State<Shared>,
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromQuery(ToolsQuery { all }): FromQuery<ToolsQuery>,
    headers: HeaderMap,
) -> Response {
    let oversees = principal.oversees();
    let all = all && oversees;
    let key = AnswerKey::Tools { audience: ToolAudience::of(&principal), all };
    let answer = shared.answers.get_or_make(key, AnswerStamp::of_board(&board), || {
        let mut list = present::tools(&board);
        list.tools.retain(|tool| may_reach(&sessions, &principal, &tool.name));
        list.quarantined.retain(|_| oversees);
        list.hidden = all.then(|| hidden_tools(&board));
        list
    });
    answer.respond(&headers)
}

/// Whether a principal may reach a tool. `gateway.deny_toolsets` hides tools from clients everywhere, and its access from
/// each principal; operators with access to everything see all.
pub(crate) fn may_reach(sessions: &SessionService, principal: &Principal, tool: &str) -> bool {
    principal.oversees() || sessions.permits(tool, &principal.access)
}

/// As [`may_reach`] for a name that may be unknown: the servers that may have the tool list their tools again first, as for
/// MCP clients.
pub(crate) async fn finds_tool(
    sessions: &SessionService,
    principal: &Principal,
    tool: &str,
) -> bool {
    let among =
        if principal.oversees() { ApiTools::All } else { ApiTools::Permitted(&principal.access) };
    sessions.finds_for_api(tool, among).await
}

pub(crate) fn unknown_tool(name: &str) -> ProblemResponse {
    ProblemResponse::new("unknown_tool", StatusCode::NOT_FOUND, no_such_tool(name))
}

pub(crate) fn no_such_tool(name: &str) -> String {
    format!("there is no tool '{name}'")
}

/// Show one tool
///
/// With its limits and the schema of its arguments. For operators, a 404 says why a tool that is configured or offered is
/// not there, and its `hint` names similar tools.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{name}",
    operation_id = "getTool",
    tag = "tools",
    params(ToolName),
    responses(
        (status = 200, description = "The tool.", body = ToolView),
        Guarded,
        BadRequest,
        UnknownTool,
    )
)]
pub(crate) async fn tool(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(ToolName { name }): FromPath<ToolName>,
) -> Result<Json<ToolView>, ProblemResponse> {
    let is_found = finds_tool(&sessions, &principal, &name).await;
    match present::tool(&board, &name) {
        Ok(mut tool) if is_found || may_reach(&sessions, &principal, &tool.name) => {
            if !principal.oversees() {
                tool.hidden_arguments = None;
            }
            Ok(Json(tool))
        }
        Err(none) if principal.oversees() => {
            let mut response =
                ProblemResponse::new("unknown_tool", StatusCode::NOT_FOUND, none.message);
            response.0.hint = none.hint;
            Err(response)
        }
        Ok(_) | Err(_) => Err(unknown_tool(&name)),
    }
}
