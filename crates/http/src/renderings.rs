//! Tools as several providers get them, side by side.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use switchboard_api::{
    RendererList, RendererView, RenderingList, RewriteView, ToolRendering, ToolRenderings,
};
use switchboard_auth::Principal;
use switchboard_registry::CatalogTool;
use switchboard_render::{NamedTool, Provider, render_tool};

use crate::answers::{BadRequest, Guarded, StoreFailed, UnknownSession, UnknownTool};
use crate::extract::{FromPath, FromQuery};
use crate::inspect::{ToolName, finds_tool, may_reach, unknown_tool};
use crate::made_answers::{AnswerKey, AnswerStamp, SessionKey};
use crate::present_sessions as present;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadySessions};
use crate::render_targets::{ProviderNames, providers_of};
use crate::server_state::Shared;
use crate::sessions::{SessionId, SessionPath};

/// Selects renderings.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RenderingsQuery {
    /// The providers, separated by commas. If absent, all.
    #[serde(default)]
    #[param(value_type = Option<ProviderNames>, inline, nullable = false, style = Form, explode = false, example = json!(["anthropic", "openai"]))]
    providers: Option<String>,
}

/// Render the tools of a session for several providers
///
/// As `GET /api/v1/sessions/{id}/render` with `explain`, for several providers at one revision of the session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/renderings",
    operation_id = "listRenderings",
    tag = "sessions",
    params(SessionId, RenderingsQuery, ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the client has.")),
    responses(
        (
            status = 200,
            description = "The renderings, in the order of the request.",
            body = RenderingList,
            headers(("etag" = String, description = "The version of the answer.")),
        ),
        (status = 304, description = "The client has the present version, which `If-None-Match` names."),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn of_session(
    State(shared): State<Shared>,
    meant: SessionPath,
    FromQuery(query): FromQuery<RenderingsQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let providers = providers_of(query.providers.as_deref(), &Provider::ALL)?;
    let (now, session) = (meant.now(), meant.session);
    let key =
        AnswerKey::Renderings { session: SessionKey::of(&session), providers: providers.clone() };
    let (stamp, answers) = (AnswerStamp::of_view(&now), shared.answers.clone());
    if let Some(answer) = answers.get(&key, stamp) {
        return Ok(answer.respond(&headers));
    }
    in_background(move || {
        let rendered =
            |provider: Provider| present::rendering(&session, &now, provider, true, None);
        let make = || RenderingList {
            tools_revision: now.revision,
            renderings: providers.into_iter().map(rendered).collect(),
        };
        answers.get_or_make(key, stamp, make).respond(&headers)
    })
    .await
}

/// Render one tool for several providers
///
/// The declaration of the tool as each provider gets it, its cost in tokens, and how its schema differs from that of the tool and
/// why.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{name}/renderings",
    operation_id = "listToolRenderings",
    tag = "tools",
    params(ToolName, RenderingsQuery),
    responses(
        (status = 200, description = "The renderings, in the order of the request.", body = ToolRenderings),
        Guarded,
        BadRequest,
        UnknownTool,
    )
)]
pub(crate) async fn of_tool(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(ToolName { name }): FromPath<ToolName>,
    FromQuery(query): FromQuery<RenderingsQuery>,
) -> Result<Json<ToolRenderings>, ProblemResponse> {
    let providers = providers_of(query.providers.as_deref(), &Provider::ALL)?;
    let is_found = finds_tool(&sessions, &principal, &name).await;
    let snapshot = board.snapshot();
    let tool = snapshot.catalog().resolve(&name).map_err(|_| unknown_tool(&name))?.clone();
    if !is_found && !may_reach(&sessions, &principal, tool.name.as_str()) {
        return Err(unknown_tool(&name));
    }
    let entries = snapshot.index().entries().iter();
    let entry = entries.into_iter().find(|entry| entry.tool.name == tool.name);
    let shown = entry.and_then(|entry| entry.name.as_deref().map(str::to_owned));
    let shown = shown.unwrap_or_else(|| tool.name.tool().to_owned());
    let revision = snapshot.catalog().revision();
    in_background(move || {
        Json(ToolRenderings {
            name: tool.name.to_string(),
            revision,
            input_schema: tool.descriptor.input_schema.parse(),
            renderings: providers.into_iter().map(|to| tool_rendering(&tool, &shown, to)).collect(),
        })
    })
    .await
}

fn tool_rendering(tool: &CatalogTool, name: &str, provider: Provider) -> ToolRendering {
    let rendered = render_tool(provider, &NamedTool { name, descriptor: &tool.descriptor });
    let name = name.to_owned();
    match rendered {
        Ok(rendered) => ToolRendering {
            provider: provider.as_str().into(),
            name,
            declaration: serde_json::from_str(&rendered.json).ok(),
            tokens: rendered.tokens(),
            rewrites: rendered
                .rewrites
                .iter()
                .map(|rewrite| RewriteView {
                    path: rewrite.path.clone(),
                    what: rewrite.what.clone(),
                    reason: rewrite.reason.into(),
                })
                .collect(),
            not_shown: None,
        },
        Err(quarantine) => ToolRendering {
            provider: provider.as_str().into(),
            name,
            declaration: None,
            tokens: 0,
            rewrites: Vec::new(),
            not_shown: Some(quarantine.reason),
        },
    }
}

/// List the renderers
///
/// The formats in which tools are declared to providers, with their limits, and how their tokens are counted.
#[utoipa::path(
    get,
    path = "/api/v1/renderers",
    operation_id = "listRenderers",
    tag = "tools",
    responses((status = 200, description = "All renderers.", body = RendererList), Guarded)
)]
pub(crate) async fn renderers() -> Json<RendererList> {
    let renderers = Provider::ALL.into_iter().map(|provider| RendererView {
        name: provider.as_str().into(),
        about: about(provider).into(),
        max_tools: provider.max_tools(),
        tokens: present::token_basis(provider),
    });
    Json(RendererList { renderers: renderers.collect() })
}

fn about(provider: Provider) -> &'static str {
    match provider {
        Provider::Mcp => "MCP clients: the tools of `tools/list`",
        Provider::OpenAi => "the Responses API of OpenAI",
        Provider::OpenAiChat => "the Chat Completions API of OpenAI, and compatible servers",
        Provider::Anthropic => "the Messages API of Anthropic",
        Provider::Gemini => "Gemini, with `parametersJsonSchema`",
        Provider::GeminiParameters => "Gemini models that take only the older `parameters`",
        Provider::LangChain => "LangChain: the arguments of `StructuredTool`",
        Provider::SemanticKernel => "Semantic Kernel: function metadata",
        Provider::React => "models without native tool calls: the tools of a ReACT prompt",
    }
}

/// Counting the tokens of many tools takes long: it must not block the async runtime.
async fn in_background<T: Send + 'static>(
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProblemResponse> {
    tokio::task::spawn_blocking(make).await.map_err(|error| {
        tracing::error!(%error, "a rendering failed");
        let detail = "the tools could not be rendered: an internal error of Switchboard";
        ProblemResponse::new("internal_error", StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}
