//! The conversation of a session over the API.

use axum::Json;
use serde_json::{Map, Value};
use switchboard_chat::History;
use switchboard_turns::TurnError;

use crate::answers::{
    BadRequest, Busy, Guarded, RefusedHistory, StoreFailed, TakesConversation, UnknownSession,
};
use crate::extract::FromBody;
use crate::problem::ProblemResponse;
use crate::sessions::{SessionId, SessionPath};

/// Show the conversation of a session
///
/// The whole conversation in a format that is independent of providers: messages, calls with their ids, results, usage.
/// Data that only one provider can read is kept beside it. Use this to export a conversation.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/history",
    operation_id = "getHistory",
    tag = "turns",
    params(SessionId),
    responses(
        (status = 200, description = "The conversation.", body = History),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn show(meant: SessionPath) -> Result<Json<History>, ProblemResponse> {
    Ok(Json(meant.turns.history(&meant.session).await?))
}

/// Import a conversation into a session
///
/// Replaces the session's conversation. The import is valid as a whole, or nothing is changed. Calls without a result get
/// an error as their result. `{"version": 1, "messages": []}` empties the conversation.
#[utoipa::path(
    put,
    path = "/api/v1/sessions/{id}/history",
    operation_id = "putHistory",
    tag = "turns",
    params(SessionId),
    request_body(content = History, description = "The conversation."),
    responses(
        (status = 200, description = "The conversation as it is now.", body = History),
        Guarded,
        TakesConversation,
        UnknownSession,
        Busy,
        RefusedHistory,
        StoreFailed,
    )
)]
pub(crate) async fn replace(
    meant: SessionPath,
    FromBody(body): FromBody<Map<String, Value>>,
) -> Result<Json<History>, ProblemResponse> {
    let history = History::of_value(Value::Object(body)).map_err(TurnError::from)?;
    meant.turns.set_history(&meant.session, &history).await?;
    Ok(Json(history))
}
