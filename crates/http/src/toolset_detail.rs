//! One toolset, and which tools a toolset would have.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use switchboard_api::{ToolsetDetail, ToolsetMembers, ToolsetRules};
use switchboard_auth::Principal;
use switchboard_config::EntryList;
use switchboard_model::{CanonicalName, ServerName, ToolsetPlan};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_runtime::{LiveConfig, Snapshot};
use switchboard_sessions::SessionService;
use switchboard_view::toolset_members;

use crate::answers::{BadRequest, Guarded, TakesBody, UnknownToolset, WrongShape};
use crate::entry_edit::etag;
use crate::extract::{FromBody, FromPath};
use crate::inspect::may_reach;
use crate::problem::ProblemResponse;
use crate::ready::{ReadyConfig, ReadySessions};

/// The providers whose cost is shown.
const PROVIDERS: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];

/// Names a toolset.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ToolsetName {
    /// The name of the toolset.
    #[param(min_length = 1, max_length = 256, example = "demo")]
    pub(crate) toolset: String,
}

/// Show a toolset
///
/// Its tools, as far as the caller may see them, their cost in tokens, and for operators the rules that it is made by and its
/// entry in the configuration file.
#[utoipa::path(
    get,
    path = "/api/v1/toolsets/{toolset}",
    operation_id = "getToolset",
    tag = "sessions",
    params(ToolsetName),
    responses(
        (
            status = 200,
            description = "The toolset.",
            body = ToolsetDetail,
            headers(("etag" = String, description = "The version of its entry, for operators, if there is one."))
        ),
        Guarded,
        BadRequest,
        UnknownToolset,
    )
)]
pub(crate) async fn show(
    ReadySessions(sessions): ReadySessions,
    ReadyConfig(config): ReadyConfig,
    Extension(principal): Extension<Principal>,
    FromPath(ToolsetName { toolset }): FromPath<ToolsetName>,
) -> Result<Response, ProblemResponse> {
    answer(&sessions, &config, &principal, &toolset).await
}

/// The response that shows a toolset, with the version of its entry.
pub(crate) async fn answer(
    sessions: &SessionService,
    config: &LiveConfig,
    principal: &Principal,
    name: &str,
) -> Result<Response, ProblemResponse> {
    let snapshot = sessions.board().snapshot();
    let plan = snapshot.plan().toolsets.iter().find(|plan| plan.name == name);
    let plan = plan.filter(|_| principal.oversees());
    let shown = sessions.toolsets(&principal.access).into_iter().find(|(set, _)| set.name == name);
    let (description, when_to_use, members) = match (shown, plan) {
        (Some((set, members)), _) => (set.description, set.when_to_use, members),
        // The configuration hides it from everybody.
        (None, Some(plan)) => {
            let members = toolset_members(snapshot.catalog(), plan);
            let members = members.map(|tool| tool.name.clone()).collect();
            (plan.description.clone(), plan.when_to_use.clone(), members)
        }
        (None, None) => return Err(unknown_toolset(name)),
    };
    let rules = plan.map(|plan| ToolsetRules {
        tools: plan.tools.clone(),
        servers: plan.servers.iter().map(ToString::to_string).collect(),
    });
    // A board that is configured by its environment alone has no entries.
    let entry = plan.and_then(|_| config.entry(EntryList::Toolsets, name).ok().flatten());
    let places = entry.iter().flat_map(|entry| &entry.places);
    let origins = places
        .filter(|(pointer, _)| pointer != "/name")
        .map(|(pointer, place)| (pointer.clone(), place.to_string()))
        .collect();
    let tag = entry.as_ref().map(|entry| entry.tag.clone());
    let declared = entry.map(|mut entry| {
        entry.fields.shift_remove("name");
        Value::Object(entry.fields)
    });
    let names = members.iter().map(ToString::to_string).collect();
    let tokens = cost(snapshot.clone(), members).await;
    let detail = ToolsetDetail {
        name: name.to_owned(),
        description,
        when_to_use,
        members: names,
        tokens,
        rules,
        declared,
        origins,
        etag: tag.clone(),
    };
    let mut response = Json(detail).into_response();
    if let Some(tag) = tag.as_deref().and_then(etag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

fn unknown_toolset(name: &str) -> ProblemResponse {
    let shown: String = name.chars().take(256).collect();
    let detail = format!("there is no toolset '{shown}'");
    ProblemResponse::new("unknown_toolset", StatusCode::NOT_FOUND, detail)
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
