//! Converts the board's types to those of the API. The CLI uses the same functions when it works without a server.

use std::sync::Arc;
use std::time::Duration;

use switchboard_api::{
    CallView, ContentCheckView, HiddenArgument, LimitsView, ProviderList, ProviderView,
    QuarantinedToolView, Readiness, RecordView, RecordedContentView, RecordedPolicyView,
    ServerList, ServerView, SessionProcesses, SlotHolderView, StoreTrouble, ToolList, ToolView,
};
use switchboard_model::{
    ArgumentSource, CallError, CallRecord, ConnectError, ContentCheckRecord, JsonText, NO_TOOLSET,
    RecordedContent, ServerPlan, ServerState, Sharing, ToolLimits, render_duration,
};
use switchboard_oauth::SignInState;
use switchboard_providers::Providers;
use switchboard_registry::CatalogTool;
use switchboard_runtime::{Board, CallReport, ServerStatus};
use switchboard_store::SlotHolder;

pub use crate::present_absence::{NoSuchTool, absent_tool};

/// The readiness of the board.
pub fn readiness(board: &Board) -> Readiness {
    let catalog = board.catalog();
    let unavailable: Vec<_> = board
        .servers()
        .into_iter()
        .filter(|(_, status)| status.state != ServerState::Ready)
        .map(|(_, status)| status.name.to_string())
        .collect();
    let store = board.store().outage().map(|outage| StoreTrouble {
        reason: outage.reason.into(),
        seconds: outage.since.elapsed().as_secs(),
        failed_writes: outage.failed_writes,
    });
    let is_ready = unavailable.is_empty() && store.is_none();
    Readiness {
        status: if is_ready { "ready" } else { "degraded" }.into(),
        revision: catalog.revision(),
        tools: catalog.tools().len(),
        unavailable,
        store,
        certificate: None,
    }
}

/// Every model provider, without its credentials.
pub fn providers(providers: &Providers) -> ProviderList {
    let providers = providers.list().into_iter().map(|provider| ProviderView {
        name: provider.name,
        kind: provider.kind.as_str().into(),
        model: provider.model,
        base_url: provider.base_url,
        has_credentials: provider.has_credentials,
        auth: provider.auth.map(str::to_owned),
        credentials: provider.credentials,
        strategy: provider.strategy.as_str().into(),
        native_tools: provider.has_native_tools,
        source: provider.source.as_str().into(),
    });
    ProviderList { providers: providers.collect() }
}

/// Every configured server.
pub fn servers(board: &Board) -> ServerList {
    let servers = board.servers();
    ServerList {
        servers: servers.iter().map(|(plan, status)| server(board, plan, status)).collect(),
    }
}

/// One server as the API shows it: its configuration and its state.
pub fn server(board: &Board, plan: &ServerPlan, status: &ServerStatus) -> ServerView {
    let admitted = board.catalog().tools_of(&status.name).count();
    ServerView { tools: admitted, ..offered_server(plan, status) }
}

/// One server, without the number of tools that policy admits.
fn offered_server(plan: &ServerPlan, status: &ServerStatus) -> ServerView {
    let protocol = Some(status.info.protocol.clone()).filter(|protocol| !protocol.is_empty());
    ServerView {
        name: status.name.to_string(),
        state: status.state.as_str().into(),
        transport: plan.spec.endpoint.transport().as_str().into(),
        place: plan.spec.place.clone(),
        mode: plan.mode.as_str().into(),
        required: plan.required,
        source: plan.discovered.as_ref().map(|from| from.source.clone()),
        original_name: plan
            .discovered
            .as_ref()
            .map(|from| from.original_name.clone())
            .filter(|original| *original != status.name.as_str()),
        era: status.era.map(|era| era.as_str().into()),
        protocol,
        reported_name: status.info.name.clone(),
        reported_version: status.info.version.clone(),
        offered_tools: status.offered,
        tools: 0,
        connect_ms: status.connect_time.map(whole_ms),
        since_ms: status.since_ms,
        last_error_at_ms: status.last_error_at_ms,
        retry_at_ms: status.retry_at_ms,
        in_flight: status.in_flight,
        error: status.error.as_ref().map(|error| error.message.clone()),
        hint: status.error.as_ref().and_then(ConnectError::hint),
        stderr: None,
        session_processes: match plan.spec.sharing {
            Sharing::Shared | Sharing::PerOwner { .. } => None,
            Sharing::PerSession { most, .. } => {
                Some(SessionProcesses { running: status.session_processes, most })
            }
        },
    }
}

/// The whole catalog.
pub fn tools(board: &Board) -> ToolList {
    let catalog = board.catalog();
    let away = unavailable_servers(board);
    let tools = catalog.tools().iter().map(|tool| tool_view(tool, &away)).collect();
    ToolList { revision: catalog.revision(), tools, quarantined: quarantined(board), hidden: None }
}

/// Who holds slots of tools, by the names of the tools, if boards share them. Empty if the database cannot tell.
pub async fn slot_holders(board: &Board) -> Vec<(String, SlotHolderView)> {
    if !board.store().is_shared() {
        return Vec::new();
    }
    let holders = board.store().slot_holders().await.unwrap_or_else(|error| {
        tracing::debug!(error = error.in_full(), "who holds slots could not be read");
        Vec::new()
    });
    let views = holders.into_iter().map(|holder| {
        let SlotHolder { tool, board, name, held, busy, waiting, is_live } = holder;
        (tool, SlotHolderView { board, name, held, used: busy, waiting, silent: !is_live })
    });
    views.collect()
}

/// When the token of a sign-in expires.
pub(crate) fn expiry(state: &SignInState) -> Option<String> {
    let end = state.expires_at_ms.and_then(|end| jiff::Timestamp::from_millisecond(end).ok());
    end.map(|end| format!("{end:.0}"))
}

/// The quarantined tools of all servers: their definitions, or what the configuration declares of them, cannot be used.
pub(crate) fn quarantined(board: &Board) -> Vec<QuarantinedToolView> {
    let of = |status: &ServerStatus| {
        let server = status.name.to_string();
        let tools = status.quarantined.iter().map(|it| QuarantinedToolView {
            server: server.clone(),
            tool: it.tool.clone(),
            reason: it.reason.clone(),
        });
        tools.collect::<Vec<_>>()
    };
    let snapshot = board.snapshot();
    let by_declaration = snapshot.quarantined().iter().map(|(server, it)| QuarantinedToolView {
        server: server.to_string(),
        tool: it.tool.clone(),
        reason: it.reason.clone(),
    });
    board.servers().iter().flat_map(|(_, status)| of(status)).chain(by_declaration).collect()
}

/// One tool by its canonical or bare name, or by the name that the configuration exposes it by.
pub fn tool(board: &Board, name: &str) -> Result<ToolView, NoSuchTool> {
    let catalog = board.catalog();
    let unresolved = match catalog.resolve(name) {
        Ok(tool) => {
            return Ok(ToolView {
                hidden_arguments: Some(hidden_arguments(tool)),
                ..tool_view(tool, &unavailable_servers(board))
            });
        }
        Err(unresolved) => unresolved,
    };
    if let Some(absent) = absent_tool(board, name) {
        let message = format!("there is no tool '{name}': {}", absent.message);
        return Err(NoSuchTool { message, hint: absent.hint });
    }
    let nearest: Vec<_> = unresolved.nearest.iter().map(|name| format!("'{name}'")).collect();
    let hint = (!nearest.is_empty()).then(|| format!("did you mean {}?", nearest.join(" or ")));
    Err(NoSuchTool { message: format!("there is no tool '{name}'"), hint })
}

pub(crate) fn unavailable_servers(board: &Board) -> Vec<String> {
    board
        .servers()
        .into_iter()
        .filter(|(_, status)| status.state != ServerState::Ready)
        .map(|(_, status)| status.name.to_string())
        .collect()
}

fn tool_view(tool: &CatalogTool, away: &[String]) -> ToolView {
    let server = tool.name.server().to_string();
    let descriptor = &tool.descriptor;
    ToolView {
        name: tool.name.to_string(),
        available: !away.contains(&server),
        server,
        tool: tool.name.tool().into(),
        title: descriptor.title.clone(),
        description: descriptor.description.clone(),
        mode: tool.mode.as_str().into(),
        configured: tool.configured.as_str().into(),
        limits: limits(&tool.limits),
        toolset: Some(tool.toolset.clone()).filter(|set| set != NO_TOOLSET),
        expose_as: tool.expose_as.clone(),
        input_schema: descriptor.input_schema.parse(),
        output_schema: descriptor.output_schema.as_ref().map(JsonText::parse),
        annotations: descriptor.annotations.as_ref().map(JsonText::parse),
        validates_arguments: tool.validates_arguments,
        group: tool.grouping.group.clone(),
        state: tool.grouping.state.clone(),
        applicable_states: tool.grouping.applicable_states.clone(),
        repairs: descriptor.repairs.clone(),
        hidden_arguments: None,
    }
}

fn hidden_arguments(tool: &CatalogTool) -> Vec<HiddenArgument> {
    let hidden = tool.arguments.iter().flatten().filter_map(|argument| {
        let source = match argument.source {
            ArgumentSource::Caller => return None,
            ArgumentSource::Fixed(_) => "fixed",
            ArgumentSource::HiddenDefault(_) => "hidden_default",
            ArgumentSource::Withheld => "withheld",
        };
        Some(HiddenArgument { name: argument.name.clone(), source: source.into() })
    });
    hidden.collect()
}

fn limits(limits: &ToolLimits) -> LimitsView {
    LimitsView {
        max_instances: limits.max_instances,
        timeout: render_duration(limits.timeout),
        max_timeout: render_duration(limits.max_timeout),
        queue_timeout: render_duration(limits.queue_timeout),
        inactivity_timeout: limits.inactivity_timeout.map(render_duration),
        max_result_bytes: limits.max_result_bytes,
        rate: limits.rate.map(|rate| rate.to_string()),
    }
}

/// A completed call, or the error of a failed one.
pub fn call(report: &CallReport) -> Result<CallView, &CallError> {
    let result = report.result.as_ref()?;
    Ok(CallView {
        id: report.id.to_string(),
        tool: report.tool.as_ref().map(ToString::to_string).unwrap_or_default(),
        revision: report.revision,
        outcome: if result.is_error { "tool_error" } else { "ok" }.into(),
        result: result.to_value(),
        wait_ms: whole_ms(report.wait),
        run_ms: whole_ms(report.run),
        result_handle: report.whole_result.as_ref().map(ToString::to_string),
    })
}

/// The record of a call.
pub fn record(record: &CallRecord) -> RecordView {
    let started = jiff::Timestamp::from_millisecond(record.started_at_ms).unwrap_or_default();
    RecordView {
        id: record.id.to_string(),
        started_at: format!("{started:.3}"),
        session: record.session.as_deref().map(str::to_owned),
        face: record.face.as_str().into(),
        principal: owned(record.caller.principal.as_ref()),
        person: owned(record.caller.person.as_ref()),
        owner: owned(record.caller.owner.as_ref()),
        key: owned(record.caller.key.as_ref()),
        client: owned(record.caller.client.as_ref()),
        client_version: owned(record.caller.client_version.as_ref()),
        agent: owned(record.caller.agent.as_ref()),
        requested: record.requested.clone(),
        tool: record.tool.as_ref().map(ToString::to_string),
        server: record.tool.as_ref().map(|tool| tool.server().to_string()),
        revision: record.revision,
        policy: record.policy.as_ref().map(|policy| RecordedPolicyView {
            configured: policy.configured.as_deref().map(str::to_owned),
            mode: policy.mode.as_deref().map(str::to_owned),
            digest: policy.digest.to_string(),
        }),
        argument_digest: record.argument_digest.clone(),
        outcome: record.outcome.as_str().into(),
        message: record.message.clone(),
        wait_ms: record.wait.as_secs_f64() * 1000.0,
        run_ms: record.run.as_secs_f64() * 1000.0,
        result_bytes: record.result_bytes,
        result_handle: record.result_handle.clone(),
        arguments: record.arguments.as_ref().map(content),
        result: record.result.as_ref().map(content),
    }
}

/// Records as JSON lines.
pub fn record_lines(records: &[CallRecord]) -> Vec<u8> {
    let mut lines = Vec::new();
    for call in records {
        // A record is plain data; writing it to memory does not fail.
        let _ok = serde_json::to_writer(&mut lines, &record(call));
        lines.push(b'\n');
    }
    lines
}

fn owned(text: Option<&Arc<str>>) -> Option<String> {
    text.map(ToString::to_string)
}

fn content(content: &RecordedContent) -> RecordedContentView {
    let RecordedContent { text, bytes, is_cut } = content.clone();
    RecordedContentView { text, bytes, cut: is_cut }
}

/// The record of a content check.
pub(crate) fn content_check(record: &ContentCheckRecord) -> ContentCheckView {
    let at = jiff::Timestamp::from_millisecond(record.at_ms).unwrap_or_default();
    ContentCheckView {
        id: record.id.clone(),
        at: format!("{at:.3}"),
        hook: record.hook.as_str().into(),
        verdict: record.verdict.clone(),
        blocked: record.blocked,
        reason: record.reason.clone(),
        principal: record.principal.as_deref().map(str::to_owned),
        conversation: record.conversation.clone(),
        message: record.message.clone(),
        tool: record.tool.as_ref().map(ToString::to_string),
        messages: record.messages,
        bytes: record.bytes,
        took_ms: record.took.as_secs_f64() * 1000.0,
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
