//! The tools and toolsets of a session: list, enable, disable, call.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use switchboard_api::{
    CallView, SessionCallBody, SessionChange, SessionTools, SessionToolsets, SessionView, Switch,
};
use switchboard_model::Face;
use switchboard_sessions::SessionError;

use crate::answers::{
    BadRequest, CallFaulted, CallForbidden, CallRateLimited, CallTimedOut, CallUnavailable,
    Guarded, InvalidArguments, Refused, StaleRevision, StoreFailed, TakesBody, UnknownInSession,
    UnknownSession, UpstreamFailed,
};
use crate::extract::{FromBody, FromPath, FromQuery};
use crate::made_answers::{AnswerKey, AnswerStamp, SessionKey};
use crate::present_sessions as present;
use crate::problem::ProblemResponse;
use crate::ready::Ready;
use crate::server_state::Shared;
use crate::session_call;
use crate::session_standing::all_session_tools;
use crate::sessions::{ApplyQuery, Asker, SessionId, SessionPath};

/// Names a tool of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ToolOfSession {
    /// The id of the session.
    #[param(min_length = 1, max_length = 256, example = "work")]
    pub(crate) id: String,
    /// The exposed name of the tool in the session, or its canonical name.
    #[param(min_length = 1, max_length = 512, example = "demo__echo")]
    pub(crate) tool: String,
}

/// Names a toolset of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ToolsetOfSession {
    /// The id of the session.
    #[param(min_length = 1, max_length = 256, example = "work")]
    pub(crate) id: String,
    /// The name of the toolset.
    #[param(min_length = 1, max_length = 256, example = "demo")]
    pub(crate) toolset: String,
}

/// Selects tools of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AllToolsQuery {
    /// Whether to list also the tools that the session could have.
    #[serde(default)]
    #[param(default = false)]
    all: bool,
}

/// List the tools of a session
///
/// In the order in which all models and clients get them: a tool that was declared keeps its place, new tools follow. With
/// `all`, the tools that the session could have come after them, and each says why it is there or not.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/tools",
    operation_id = "listSessionTools",
    tag = "sessions",
    params(SessionId, AllToolsQuery, ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the client has.")),
    responses(
        (
            status = 200,
            description = "The tools.",
            body = SessionTools,
            headers(("etag" = String, description = "The version of the answer.")),
        ),
        (status = 304, description = "The client has the present version, which `If-None-Match` names."),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn list(
    State(shared): State<Shared>,
    Ready(board): Ready,
    meant: SessionPath,
    FromQuery(AllToolsQuery { all }): FromQuery<AllToolsQuery>,
    headers: HeaderMap,
) -> Response {
    let sees_policy = meant.principal.oversees();
    let now = meant.now();
    let make = || {
        if all {
            return all_session_tools(&board, &meant.session, &now, sees_policy);
        }
        present::session_tools(&board, &meant.session.id, &now)
    };
    // The state of servers of its own has no number that says when it has changed.
    if meant.session.has_servers() {
        return Json(make()).into_response();
    }
    let session = SessionKey::of(&meant.session);
    let key = AnswerKey::SessionTools { session, all, sees_policy };
    let stamp = AnswerStamp::of_session(&board, &now);
    shared.answers.get_or_make(key, stamp, make).respond(&headers)
}

/// List the toolsets of a session
///
/// The toolsets that the session can enable and disable, with the number of tools in each, and whether it is enabled.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/toolsets",
    operation_id = "listSessionToolsets",
    tag = "sessions",
    params(SessionId),
    responses(
        (status = 200, description = "The toolsets.", body = SessionToolsets),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn toolsets(meant: SessionPath) -> Json<SessionToolsets> {
    Json(present::session_toolsets(&meant.now()))
}

/// Enable or disable a toolset of a session
///
/// The MCP clients of the session are notified that their tools have changed.
#[utoipa::path(
    put,
    path = "/api/v1/sessions/{id}/toolsets/{toolset}",
    operation_id = "switchSessionToolset",
    tag = "sessions",
    params(ToolsetOfSession, ApplyQuery),
    request_body(content = Switch, description = "Whether the toolset is enabled."),
    responses(
        (status = 200, description = "The session after the change.", body = SessionView),
        Guarded,
        TakesBody,
        UnknownSession,
        StaleRevision,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn switch_toolset(
    asker: Asker,
    FromPath(ToolsetOfSession { id, toolset }): FromPath<ToolsetOfSession>,
    FromQuery(apply): FromQuery<ApplyQuery>,
    FromBody(Switch { enabled, tools_revision }): FromBody<Switch>,
) -> Result<Json<SessionView>, ProblemResponse> {
    let meant = asker.session(&id).await?;
    let Some(enabled) = enabled else {
        let reason = "`enabled` of a toolset must be true or false";
        let path = "/enabled".to_owned();
        return Err(SessionError::Invalid { path, reason: reason.into() }.into());
    };
    let toolsets = BTreeMap::from([(toolset, enabled)]);
    let change = SessionChange { toolsets, tools_revision, ..SessionChange::default() };
    meant.change(change, apply).await
}

/// Enable or disable a single tool of a session
///
/// This takes precedence over its toolsets. `null` removes the setting.
#[utoipa::path(
    put,
    path = "/api/v1/sessions/{id}/tools/{tool}",
    operation_id = "switchSessionTool",
    tag = "sessions",
    params(ToolOfSession, ApplyQuery),
    request_body(content = Switch, description = "Whether the tool is enabled; `null` removes the setting."),
    responses(
        (status = 200, description = "The session after the change.", body = SessionView),
        Guarded,
        TakesBody,
        UnknownSession,
        StaleRevision,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn switch_tool(
    asker: Asker,
    FromPath(ToolOfSession { id, tool }): FromPath<ToolOfSession>,
    FromQuery(apply): FromQuery<ApplyQuery>,
    FromBody(Switch { enabled, tools_revision }): FromBody<Switch>,
) -> Result<Json<SessionView>, ProblemResponse> {
    let meant = asker.session(&id).await?;
    let tools = BTreeMap::from([(tool, enabled)]);
    let change = SessionChange { tools, tools_revision, ..SessionChange::default() };
    meant.change(change, apply).await
}

/// Call a tool of a session
///
/// As `POST /api/v1/tools/{name}/call`, with the tools of the session: a tool that the session does not see is not called,
/// a name of an earlier revision still leads to its tool, and meta-tools can be called too. With `provider`, the arguments
/// are taken as that provider's model wrote them: keys that were renamed for the provider get their own names back.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/tools/{tool}/call",
    operation_id = "callSessionTool",
    tag = "sessions",
    params(ToolOfSession),
    request_body(content = SessionCallBody, description = "The arguments."),
    responses(
        (status = 200, description = "The result of the tool.", body = CallView),
        Guarded,
        CallForbidden,
        TakesBody,
        UnknownInSession,
        InvalidArguments,
        CallRateLimited,
        CallFaulted,
        UpstreamFailed,
        CallUnavailable,
        CallTimedOut,
    )
)]
pub(crate) async fn call(
    asker: Asker,
    FromPath(ToolOfSession { id, tool }): FromPath<ToolOfSession>,
    FromBody(body): FromBody<SessionCallBody>,
) -> Result<Json<CallView>, ProblemResponse> {
    let meant = asker.session_to_call(&id).await?;
    let caller = meant.principal.caller(Face::Http);
    let called = session_call::call(&meant.sessions, &meant.session, tool, body, caller).await;
    called.map(Json).map_err(ProblemResponse)
}
