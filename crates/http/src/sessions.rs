//! Session endpoints and toolsets over the API.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use switchboard_api::{NewSession, SessionList, SessionView, ToolsetList, ToolsetView};
use switchboard_auth::{Principal, Role};
use switchboard_sessions::{Change, SessionError, Summary};

use crate::problem::ProblemResponse;
use crate::ready::ReadyGateway;

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

/// An operator sees all sessions, others their own.
pub(crate) async fn list(
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
) -> Result<Json<SessionList>, ProblemResponse> {
    let sessions = gateway.sessions().list(owner(&principal)).await?;
    Ok(Json(SessionList { sessions: sessions.into_iter().map(view).collect() }))
}

pub(crate) async fn create(
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
    body: Result<Json<NewSession>, JsonRejection>,
) -> Result<(StatusCode, Json<SessionView>), ProblemResponse> {
    let Json(wanted) = body?;
    let session =
        gateway.new_session(wanted.id.as_deref(), &principal.id, Change::default()).await?;
    Ok((StatusCode::CREATED, Json(view(Summary::of(&session)))))
}

pub(crate) async fn end(
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ProblemResponse> {
    let Path(id) = id?;
    let session = gateway.sessions().of(&id, owner(&principal)).await?;
    gateway.end_session(&session).await;
    Ok(StatusCode::NO_CONTENT)
}

fn owner(principal: &Principal) -> Option<&str> {
    (principal.role < Role::Operator).then_some(&principal.id)
}

fn view(session: Summary) -> SessionView {
    SessionView {
        path: format!("/mcp/sessions/{}", session.id),
        id: session.id,
        owner: session.owner,
        enabled_toolsets: session.draft.selection.switched_on().map(str::to_owned).collect(),
        created_at_ms: session.created_at_ms,
    }
}

impl From<SessionError> for ProblemResponse {
    fn from(error: SessionError) -> Self {
        let (kind, status) = match &error {
            SessionError::Unknown(_) => ("unknown_session", StatusCode::NOT_FOUND),
            SessionError::Taken(_) => ("session_exists", StatusCode::CONFLICT),
            SessionError::Stale { .. } => ("stale_revision", StatusCode::CONFLICT),
            SessionError::BadName(_) | SessionError::Refused(_) => {
                ("bad_request", StatusCode::UNPROCESSABLE_ENTITY)
            }
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
