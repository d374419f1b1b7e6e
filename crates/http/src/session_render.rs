//! The tools of a session as a provider gets them.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use switchboard_api::RenderingView;
use switchboard_render::Provider;
use switchboard_sessions::SessionError;

use crate::answers::{BadRequest, Guarded, StoreFailed, UnknownSession, WrongShape};
use crate::extract::FromQuery;
use crate::present_sessions as present;
use crate::problem::ProblemResponse;
use crate::sessions::{Meant, SessionId};

/// What to render.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RenderQuery {
    /// `mcp`, `openai`, `openai-chat`, `anthropic`, `gemini`, `gemini-parameters`, `langchain` or `semantic-kernel`.
    #[param(example = "anthropic")]
    provider: String,
    /// Whether to say of each tool what it costs and what was rewritten, and why.
    #[serde(default)]
    explain: bool,
    /// Whether to say what changed since this revision, too.
    #[param(minimum = 1)]
    since: Option<u64>,
    /// Whether the answer is to be nothing but the value of `tools`; the header `x-tools-revision` has the revision then.
    #[serde(default)]
    bare: bool,
}

/// Render the tools of a session
///
/// What a provider would get in the next request, what it would not get and why, and what it costs in tokens.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/render",
    operation_id = "renderSession",
    tag = "sessions",
    params(SessionId, RenderQuery),
    responses(
        (status = 200, description = "The rendering.", body = RenderingView),
        Guarded,
        BadRequest,
        UnknownSession,
        WrongShape,
        StoreFailed,
    )
)]
pub(crate) async fn render(
    meant: Meant,
    FromQuery(query): FromQuery<RenderQuery>,
) -> Result<Response, ProblemResponse> {
    let provider: Provider =
        query.provider.parse().map_err(|unknown: switchboard_render::UnknownProvider| {
            SessionError::Refused(unknown.to_string())
        })?;
    let now = meant.now();
    if query.bare {
        let kind = HeaderValue::from_static("application/json");
        let json = now.look.rendering(provider).json();
        let revision = HeaderValue::from(now.revision);
        let headers = [(header::CONTENT_TYPE, kind), (present::REVISION_HEADER, revision)];
        return Ok((headers, json).into_response());
    }
    // Counting tokens of a thousand tools takes a while; others are served meanwhile.
    let session = meant.session;
    let made = tokio::task::spawn_blocking(move || {
        present::rendering(&session, &now, provider, query.explain, query.since)
    });
    let made = made.await.map_err(|error| SessionError::Store(error.to_string()))?;
    Ok(Json(made).into_response())
}
