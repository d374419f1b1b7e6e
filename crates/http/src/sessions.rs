//! Session endpoints and toolsets over the API.

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_api::{NewSession, SessionList, SessionView, ToolsetList, ToolsetView};
use switchboard_auth::{Principal, Role};
use switchboard_gateway::{SessionError, SessionInfo};

use crate::answers::{
    BadRequest, Guarded, SessionExists, StoreFailed, TakesBody, TooManySessions, UnknownSession,
    WrongShape,
};
use crate::extract::{FromBody, FromPath};
use crate::problem::ProblemResponse;
use crate::ready::ReadyGateway;

/// The session endpoint that is meant.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SessionId {
    /// The id of the session endpoint.
    #[param(min_length = 1, max_length = 64, example = "work")]
    pub(crate) id: String,
}

/// List the toolsets
///
/// The toolsets that MCP clients may switch, how many tools each has, and what clients see at first and why.
#[utoipa::path(
    get,
    path = "/api/v1/toolsets",
    operation_id = "listToolsets",
    tag = "sessions",
    responses((status = 200, description = "All toolsets.", body = ToolsetList), Guarded)
)]
pub(crate) async fn toolsets(ReadyGateway(gateway): ReadyGateway) -> Json<ToolsetList> {
    let exposure = gateway.exposure();
    let sets = gateway.toolsets().into_iter();
    let toolsets = sets.map(|(name, description, tools)| ToolsetView { name, description, tools });
    Json(ToolsetList {
        exposure: exposure.mode.as_str().into(),
        reason: exposure.reason,
        toolsets: toolsets.collect(),
    })
}

/// List the session endpoints
///
/// An operator sees all of them, others their own.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    operation_id = "listSessions",
    tag = "sessions",
    responses((status = 200, description = "Those that may be seen.", body = SessionList), Guarded, StoreFailed)
)]
pub(crate) async fn list(
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
) -> Result<Json<SessionList>, ProblemResponse> {
    let sessions = gateway.list_sessions(owner(&principal)).await?;
    Ok(Json(SessionList { sessions: sessions.into_iter().map(view).collect() }))
}

/// Make a session endpoint
///
/// MCP clients connect to its `path`. It stays until it is deleted, also over restarts, and remembers the toolsets that
/// its clients switched on. It belongs to the credentials that made it.
#[utoipa::path(
    post,
    path = "/api/v1/sessions",
    operation_id = "createSession",
    tag = "sessions",
    request_body(content = NewSession, description = "What it is to be; `{}` will do."),
    responses(
        (
            status = 201,
            description = "It is made.",
            body = SessionView,
            links(("end" = (operation_id = "endSession", parameters(("id" = "$response.body#/id")))))
        ),
        Guarded,
        TakesBody,
        SessionExists,
        WrongShape,
        TooManySessions,
        StoreFailed,
    )
)]
pub(crate) async fn create(
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
    FromBody(wanted): FromBody<NewSession>,
) -> Result<(StatusCode, Json<SessionView>), ProblemResponse> {
    let session = gateway.new_session(wanted.id.as_deref(), &principal.id).await?;
    Ok((StatusCode::CREATED, Json(view(session))))
}

/// End a session endpoint
///
/// Its clients are told that it is gone. An operator ends any, others their own.
#[utoipa::path(
    delete,
    path = "/api/v1/sessions/{id}",
    operation_id = "endSession",
    tag = "sessions",
    params(SessionId),
    responses(
        (status = 204, description = "It is gone."),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn end(
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
    FromPath(SessionId { id }): FromPath<SessionId>,
) -> Result<StatusCode, ProblemResponse> {
    gateway.end_session(&id, owner(&principal)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn owner(principal: &Principal) -> Option<&str> {
    (principal.role < Role::Operator).then_some(&principal.id)
}

fn view(session: SessionInfo) -> SessionView {
    SessionView {
        path: format!("/mcp/sessions/{}", session.id),
        id: session.id,
        owner: session.owner,
        enabled_toolsets: session.enabled,
        created_at_ms: session.created_at_ms,
    }
}

impl From<SessionError> for ProblemResponse {
    fn from(error: SessionError) -> Self {
        let (kind, status) = match &error {
            SessionError::Unknown(_) => ("unknown_session", StatusCode::NOT_FOUND),
            SessionError::Taken(_) => ("session_exists", StatusCode::CONFLICT),
            SessionError::BadName(_) => ("bad_request", StatusCode::UNPROCESSABLE_ENTITY),
            SessionError::TooMany => ("too_many_sessions", StatusCode::TOO_MANY_REQUESTS),
            SessionError::Store(_) => ("store", StatusCode::INTERNAL_SERVER_ERROR),
        };
        if let SessionError::Store(error) = &error {
            tracing::error!(%error, "the store failed");
            return Self::new(kind, status, "the store failed; the log says why");
        }
        Self::new(kind, status, error.to_string())
    }
}
