//! What a change of a session would do, and copies of sessions.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_api::{SessionChange, SessionCopy, SessionPreview, SessionView, TokenChange};
use switchboard_render::Provider;
use switchboard_sessions::{Change, Session, SessionState, Summary};

use crate::answers::{
    Guarded, Refused, SessionConflict, StaleRevision, StoreFailed, TakesBody, TooManySessions,
    UnknownSession,
};
use crate::extract::{FromBody, FromQuery};
use crate::present_sessions as present;
use crate::problem::ProblemResponse;
use crate::render_targets::{ProviderNames, providers_of};
use crate::sessions::{SessionId, SessionPath, WaitQuery, wait_of};

/// The providers whose cost a preview shows unless the request names others.
const USUAL: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];

/// Options of a preview.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PreviewQuery {
    /// The providers whose cost in tokens is computed, separated by commas. If absent, `openai`, `anthropic` and `gemini`.
    #[serde(default)]
    #[param(value_type = Option<ProviderNames>, inline, nullable = false, style = Form, explode = false, example = json!(["anthropic"]))]
    providers: Option<String>,
}

/// Preview a change of a session
///
/// The tools that the change would add, remove and change, and the cost of all tools in tokens before and after it. Nothing is
/// changed. Servers that the change attaches are not connected: their tools are not known before.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/preview",
    operation_id = "previewSession",
    tag = "sessions",
    params(SessionId, PreviewQuery),
    request_body(content = SessionChange, description = "The change, as `PATCH` takes it."),
    responses(
        (status = 200, description = "What the change would do.", body = SessionPreview),
        Guarded,
        TakesBody,
        UnknownSession,
        StaleRevision,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn preview(
    meant: SessionPath,
    FromQuery(query): FromQuery<PreviewQuery>,
    FromBody(wanted): FromBody<SessionChange>,
) -> Result<Json<SessionPreview>, ProblemResponse> {
    let providers = providers_of(query.providers.as_deref(), &USUAL)?;
    let (expected, change) = present::change(wanted);
    let sessions = meant.sessions.sessions();
    let (before, after) = sessions.preview(&meant.session, expected, change)?;
    // Counting the tokens of many tools takes long: it must not block the async runtime.
    let made = tokio::task::spawn_blocking(move || previewed(&before, &after, &providers));
    made.await.map(Json).map_err(|error| {
        tracing::error!(%error, "the preview of a session failed");
        let detail = "the change could not be previewed: an internal error of Switchboard";
        ProblemResponse::new("internal_error", StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}

fn previewed(
    before: &SessionState,
    after: &SessionState,
    providers: &[Provider],
) -> SessionPreview {
    let difference = after.cached.since(&before.cached).difference.clone();
    let names = |names: &[std::sync::Arc<str>]| names.iter().map(ToString::to_string).collect();
    let tokens = providers.iter().map(|provider| {
        let cost = |state: &SessionState| state.cached.rendering(*provider).cost().total;
        let change = TokenChange { before: cost(before), after: cost(after) };
        (provider.as_str().to_owned(), change)
    });
    SessionPreview {
        tools_revision: before.revision,
        added: names(&difference.added),
        removed: names(&difference.removed),
        changed: names(&difference.changed),
        tokens: tokens.collect::<BTreeMap<_, _>>(),
    }
}

/// Copy a session
///
/// A new session of the caller with the same settings: provider, model, servers, toolsets, tools and allowed tools. Its attached
/// servers are copied if the session is the caller's own. The conversation is not copied.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/clone",
    operation_id = "cloneSession",
    tag = "sessions",
    params(SessionId, WaitQuery),
    request_body(content = SessionCopy, description = "The id and the title of the copy; both are optional."),
    responses(
        (
            status = 201,
            description = "The new session.",
            body = SessionView,
            links(("end" = (operation_id = "endSession", parameters(("id" = "$response.body#/id")))))
        ),
        Guarded,
        TakesBody,
        UnknownSession,
        SessionConflict,
        Refused,
        TooManySessions,
        StoreFailed,
    )
)]
pub(crate) async fn clone(
    meant: SessionPath,
    FromQuery(query): FromQuery<WaitQuery>,
    FromBody(copy): FromBody<SessionCopy>,
) -> Result<(StatusCode, Json<SessionView>), ProblemResponse> {
    let is_own = meant.session.owner == meant.principal.id;
    let change = settings_of(&meant.session, copy.title, is_own);
    let (id, wait) = (copy.id, wait_of(query.wait));
    let owner = &meant.principal.id;
    let session = meant.sessions.new_session(id.as_deref(), owner, change, wait).await?;
    let view = present::session(&meant.sessions, Summary::of(&session));
    Ok((StatusCode::CREATED, Json(view)))
}

/// The settings of a session as a change of a new one.
fn settings_of(session: &Session, title: Option<String>, with_servers: bool) -> Change {
    let draft = session.now().draft;
    let (about, selection) = (draft.about, draft.selection);
    let own_servers = draft.servers.into_iter().filter(|_| with_servers);
    Change {
        title: Some(title.or(about.title)),
        provider: Some(about.provider),
        model: Some(about.model),
        credential: Some(about.credential),
        strategy: Some(about.strategy.map(|strategy| strategy.as_str().to_owned())),
        servers: Some(selection.servers),
        toolsets: selection.toolsets,
        tools: selection.tools.into_iter().map(|(tool, is_on)| (tool, Some(is_on))).collect(),
        allow: selection.allow.into_iter().map(|(to, tools)| (to, Some(tools))).collect(),
        own_servers: own_servers.map(|(name, server)| (name, Some(server))).collect(),
    }
}
