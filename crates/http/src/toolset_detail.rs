//! One toolset, and which tools a toolset would have.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_api::{ToolsetDetail, ToolsetMembers, ToolsetRules};
use switchboard_auth::Principal;
use switchboard_model::{CanonicalName, ServerName, ToolsetPlan};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_runtime::Snapshot;
use switchboard_view::toolset_members;

use crate::answers::{BadRequest, Guarded, TakesBody, UnknownToolset, WrongShape};
use crate::extract::{FromBody, FromPath};
use crate::inspect::may_reach;
use crate::problem::ProblemResponse;
use crate::ready::ReadySessions;

/// The providers whose cost is shown.
const PROVIDERS: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];

/// Names a toolset.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ToolsetName {
    /// The name of the toolset.
    #[param(min_length = 1, max_length = 256, example = "demo")]
    toolset: String,
}

/// Show a toolset
///
/// Its tools, as far as the caller may see them, their cost in tokens, and for operators the rules that it is made by.
#[utoipa::path(
    get,
    path = "/api/v1/toolsets/{toolset}",
    operation_id = "getToolset",
    tag = "sessions",
    params(ToolsetName),
    responses(
        (status = 200, description = "The toolset.", body = ToolsetDetail),
        Guarded,
        BadRequest,
        UnknownToolset,
    )
)]
pub(crate) async fn show(
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(ToolsetName { toolset }): FromPath<ToolsetName>,
) -> Result<Json<ToolsetDetail>, ProblemResponse> {
    let sets = sessions.toolsets(&principal.access).into_iter();
    let found = sets.into_iter().find(|(set, _)| set.name == toolset);
    let (set, members) = found.ok_or_else(|| {
        let shown: String = toolset.chars().take(256).collect();
        let detail = format!("there is no toolset '{shown}'");
        ProblemResponse::new("unknown_toolset", StatusCode::NOT_FOUND, detail)
    })?;
    let snapshot = sessions.board().snapshot();
    let plan = snapshot.plan().toolsets.iter().find(|plan| plan.name == set.name);
    let rules = plan.filter(|_| principal.oversees()).map(|plan| ToolsetRules {
        tools: plan.tools.clone(),
        servers: plan.servers.iter().map(ToString::to_string).collect(),
    });
    let names = members.iter().map(ToString::to_string).collect();
    let tokens = cost(snapshot.clone(), members).await;
    Ok(Json(ToolsetDetail {
        name: set.name,
        description: set.description,
        when_to_use: set.when_to_use,
        members: names,
        tokens,
        rules,
    }))
}

/// Preview a toolset
///
/// The tools that a toolset of these rules would have, as far as the caller may see them, and their cost in tokens.
#[utoipa::path(
    post,
    path = "/api/v1/toolset-previews",
    operation_id = "previewToolset",
    tag = "sessions",
    request_body(content = ToolsetRules, description = "The rules, as `toolsets` of the configuration has them."),
    responses(
        (status = 200, description = "The tools.", body = ToolsetMembers),
        Guarded,
        TakesBody,
        WrongShape,
    )
)]
pub(crate) async fn preview(
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromBody(rules): FromBody<ToolsetRules>,
) -> Json<ToolsetMembers> {
    let snapshot = sessions.board().snapshot();
    let plan = ToolsetPlan {
        name: String::new(),
        description: String::new(),
        when_to_use: None,
        servers: rules.servers.iter().map(|name| ServerName::new(name.as_str())).collect(),
        tools: rules.tools,
    };
    let members: Vec<CanonicalName> = toolset_members(snapshot.catalog(), &plan)
        .filter(|tool| may_reach(&sessions, &principal, tool.name.as_str()))
        .map(|tool| tool.name.clone())
        .collect();
    let names = members.iter().map(ToString::to_string).collect();
    Json(ToolsetMembers { members: names, tokens: cost(snapshot, members).await })
}

/// The cost of tools for the usual providers.
async fn cost(
    snapshot: std::sync::Arc<Snapshot>,
    members: Vec<CanonicalName>,
) -> BTreeMap<String, usize> {
    // Counting the tokens of many tools takes long: it must not block the async runtime.
    let counted = tokio::task::spawn_blocking(move || {
        let tools: Vec<_> =
            members.iter().filter_map(|name| snapshot.catalog().exactly(name).ok()).collect();
        let of = |provider: Provider| {
            let named = tools
                .iter()
                .map(|tool| NamedTool { name: tool.name.tool(), descriptor: &tool.descriptor });
            (provider.as_str().to_owned(), Rendering::new(provider, named).cost().total)
        };
        PROVIDERS.into_iter().map(of).collect()
    });
    counted.await.unwrap_or_default()
}
