//! The sources of servers.

use axum::Json;
use switchboard_api::{LeftOutView, SourceList, SourceServerView, SourceView};
use switchboard_discovery::SourceStatus;
use switchboard_model::{LeftOutServer, Plan, ServerPlan, render_duration};

use crate::answers::Guarded;
use crate::ready::ReadyConfig;

/// List the sources of servers
///
/// Where servers are looked for besides the configuration file: the state of each source, the servers that it adds, and what
/// it names and does not add, with the reason. Needs the role operator.
#[utoipa::path(
    get,
    path = "/api/v1/sources",
    operation_id = "listSources",
    tag = "servers",
    responses((status = 200, description = "All sources.", body = SourceList), Guarded)
)]
pub(crate) async fn list(ReadyConfig(config): ReadyConfig) -> Json<SourceList> {
    Json(source_list(&config.sources(), &config.board().plan(), &config.left_out()))
}

/// The sources with the servers of `plan` that they added, and what they named besides.
pub fn source_list(
    sources: &[SourceStatus],
    plan: &Plan,
    left_out: &[LeftOutServer],
) -> SourceList {
    let sources = sources.iter().map(|source| view(source, plan, left_out));
    SourceList { sources: sources.collect() }
}

fn view(source: &SourceStatus, plan: &Plan, left_out: &[LeftOutServer]) -> SourceView {
    let failure = source.failure.as_ref();
    let server = |server: &ServerPlan| {
        let from = server.discovered.as_ref().filter(|from| from.source == source.name)?;
        Some(SourceServerView {
            name: server.spec.name.to_string(),
            original_name: from.original_name.clone(),
            place: server.spec.place.clone(),
        })
    };
    let by_policy = left_out.iter().filter(|it| it.source == source.name);
    let by_policy = by_policy.map(|it| (&it.name, &it.reason));
    let unusable = source.unusable.iter().map(|it| (&it.name, &it.reason));
    let left_out = unusable.chain(by_policy);
    let left_out =
        left_out.map(|(name, reason)| LeftOutView { name: name.clone(), reason: reason.clone() });
    SourceView {
        name: source.name.clone(),
        kind: source.kind.into(),
        place: source.place.clone(),
        state: source.state().into(),
        chosen_because: source.chosen_because.clone(),
        refresh: render_duration(source.refresh),
        last_success_ms: source.succeeded_at_ms,
        error: failure.map(|failure| failure.message.clone()),
        hint: failure.and_then(|failure| failure.hint.clone()),
        error_at_ms: failure.map(|failure| failure.at_ms),
        failures: failure.map_or(0, |failure| failure.count),
        servers: plan.servers.iter().filter_map(server).collect(),
        left_out: left_out.collect(),
        warnings: source.warnings.clone(),
    }
}
