//! The tools of a session in the format of a provider.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use switchboard_api::RenderingAnswer;
use switchboard_render::{Provider, UnknownRenderTarget};

use crate::answers::{BadRequest, Guarded, StoreFailed, UnknownSession};
use crate::extract::FromQuery;
use crate::made_answers::{AnswerKey, AnswerStamp, SessionKey};
use crate::present_sessions as present;
use crate::problem::{ProblemResponse, bad_query};
use crate::render_targets::ProviderName;
use crate::server_state::Shared;
use crate::sessions::{SessionId, SessionPath};

/// Options of the rendering.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RenderQuery {
    /// The provider whose format is used.
    #[param(value_type = ProviderName, inline, example = "anthropic")]
    provider: String,
    /// Whether to include, for each tool, its cost in tokens and what was rewritten and why.
    #[serde(default)]
    #[param(default = false)]
    explain: bool,
    /// An earlier revision: the response then also has the changes since it.
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_u64, nullable = false)]
    since: Option<u64>,
    /// Whether to respond with the value of `tools` only.
    #[serde(default)]
    #[param(default = false)]
    bare: bool,
}

/// The largest integer that every JSON reader represents exactly.
const MAX_REVISION: u64 = 9_007_199_254_740_991;

/// Render the tools of a session
///
/// The tools as the provider gets them in the next request, the tools that it does not get and why, and the cost in tokens.
/// With `bare`, the response is the value of `tools` only, byte for byte as it is cached.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/render",
    operation_id = "renderSession",
    tag = "sessions",
    params(SessionId, RenderQuery, ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the client has.")),
    responses(
        (
            status = 200,
            description = "The rendering, or only its tools.",
            body = RenderingAnswer,
            headers(
                ("x-tools-revision" = u64, description = "The revision that was rendered; with `bare` only."),
                ("etag" = String, description = "The version of the answer, without `bare` and `since`.")
            )
        ),
        (status = 304, description = "The client has the present version, which `If-None-Match` names."),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn render(
    State(shared): State<Shared>,
    meant: SessionPath,
    FromQuery(query): FromQuery<RenderQuery>,
    request_headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let provider = query.provider.parse();
    let provider: Provider =
        provider.map_err(|unknown: UnknownRenderTarget| bad_query(unknown.to_string()))?;
    if query.since.is_some_and(|since| since == 0 || since > MAX_REVISION) {
        return Err(bad_query(format!("`since` is 1 to {MAX_REVISION}")));
    }
    let now = meant.now();
    if query.bare {
        let kind = HeaderValue::from_static("application/json");
        let json = now.cached.rendering(provider).json();
        let revision = HeaderValue::from(now.revision);
        let headers = [(header::CONTENT_TYPE, kind), (present::REVISION_HEADER, revision)];
        return Ok((headers, json).into_response());
    }
    let (session, explain) = (SessionKey::of(&meant.session), query.explain);
    let key = AnswerKey::Rendering { session, provider, explain };
    let stamp = AnswerStamp::of_view(&now);
    let answers = shared.answers.clone();
    // What has changed since a revision depends on the steps that are still known.
    let is_kept = query.since.is_none();
    if let Some(answer) = answers.get(&key, stamp).filter(|_| is_kept) {
        return Ok(answer.respond(&request_headers));
    }
    // Counting the tokens of many tools takes long: it must not block the async runtime.
    let session = meant.session;
    let made = tokio::task::spawn_blocking(move || {
        let make = || present::rendering(&session, &now, provider, explain, query.since);
        if is_kept {
            return answers.get_or_make(key, stamp, make).respond(&request_headers);
        }
        Json(make()).into_response()
    });
    made.await.map_err(|error| {
        tracing::error!(%error, ?provider, "the rendering of the tools of a session failed");
        let detail = "the tools could not be rendered: an internal error of Switchboard";
        ProblemResponse::new("internal_error", StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}
