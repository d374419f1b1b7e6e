//! `doctor`: checks everything that could be wrong and shows one line per check; with `--url`, for a running instance.

mod instance;
mod keys;
mod sources;

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesOrdered;
use owo_colors::OwoColorize;
use serde::Serialize;
use switchboard_config::Loaded;
use switchboard_http::{load_tls, source_list};
use switchboard_mcp_client::ConnectOptions;
use switchboard_model::{
    FailurePolicy, Plan, ProviderKind, QuarantinedTool, ServerName, ServerPlan, Sharing, StorePlan,
    TlsPlan, UpstreamToolList, redact_url, render_duration,
};
use switchboard_providers::{ProviderInfo, ProviderOrigin, Providers};
use switchboard_runtime::{
    Board, BoardOptions, COMMAND_WAIT, ExposureRule, LocalTools, Memory, StartFailure,
    reach_check_endpoint,
};
use switchboard_store::Store;

use super::auth::CLEAR_TEXT;
use super::check::toolset_warnings;
use crate::args::Globals;
use crate::data_dir::data_directory;
use crate::discovered::discover;
use crate::embedded::{
    config_source, end_board, open_planned_store, open_store_with, own_program, sign_ins,
    store_settings,
};
use crate::failure::{EXIT_START, Failure};
use crate::output::Output;
use crate::server_accounts::ServerAccounts;
use crate::single_connection::{NotConnected, connect};

/// The connect timeout in the admission check for servers that could not be reached before.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// The hint for a certificate that is not valid.
const RENEW: &str = "renew the certificate, or correct the clock of this machine";

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    subject: String,
    is_well: bool,
    /// Whether it is a warning, which does not prevent a start.
    is_warning: bool,
    says: String,
    hint: Option<String>,
}

impl Finding {
    fn well(subject: impl Into<String>, says: impl Into<String>) -> Self {
        let (subject, says) = (subject.into(), says.into());
        Self { subject, is_well: true, is_warning: false, says, hint: None }
    }

    fn warning(subject: impl Into<String>, says: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::well(subject, says) }
    }

    fn ill(subject: impl Into<String>, says: impl Into<String>, hint: Option<String>) -> Self {
        Self { is_well: false, hint, ..Self::well(subject, says) }
    }
}

pub(crate) async fn run(globals: &Globals, output: Output) -> Result<ExitCode, Failure> {
    let findings = match globals.instance() {
        Some(url) => instance::look_at_instance(url).await?,
        None => look_here(globals).await?,
    };
    let is_well = findings.iter().all(|finding| finding.is_well);
    if output.is_json() {
        output.json(&serde_json::json!({"is_well": is_well, "findings": findings}));
    } else {
        for finding in &findings {
            show(finding, output);
        }
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(EXIT_START) })
}

/// Checks the local configuration and everything that a start with it needs.
async fn look_here(globals: &Globals) -> Result<Vec<Finding>, Failure> {
    let (mut findings, loaded) = look_at_configuration(globals);
    // A configuration that cannot be loaded does not say where the data is.
    let store = loaded.as_ref().map(|loaded| loaded.plan.store.clone()).unwrap_or_default();
    findings.push(look_at_store(globals, &store).await);
    if let Some(loaded) = loaded {
        findings.extend(loaded.plan.tls.as_ref().map(look_at_certificate));
        let discovered = discover(globals, &loaded).await;
        let plan = &discovered.plan;
        let list = source_list(&discovered.sources, plan, &discovered.left_out);
        findings.extend(sources::about_sources(&list));
        let sign_ins =
            sign_ins(globals, &plan.security.store_keys, &plan.servers).await.ok().flatten();
        let options =
            ConnectOptions { guard: own_program(), sign_ins, ..ConnectOptions::default() };
        let looks: FuturesOrdered<_> =
            plan.servers.iter().map(|server| look_at_server(server, &options)).collect();
        let mut away = HashSet::new();
        for (server, found) in plan.servers.iter().zip(looks.collect::<Vec<_>>().await) {
            if found.is_away {
                away.insert(server.spec.name.clone());
            }
            findings.extend(found.findings);
        }
        findings.extend(keys::about_keys(globals).await);
        findings.extend(look_at_sign_ins(globals, plan).await);
        findings.extend(look_at_providers(plan));
        findings.extend(look_at_threat_protection(plan).await);
        findings.extend(look_at_admission(&loaded, plan, &away).await?);
    }
    Ok(findings)
}

fn show(finding: &Finding, output: Output) {
    let mark = match (finding.is_well, finding.is_warning) {
        (true, false) => "ok  ".green().to_string(),
        (true, true) => "warn".yellow().to_string(),
        (false, _) => "FAIL".red().to_string(),
    };
    let says = finding.says.replace('\n', "\n     ");
    output.marked(&mark, &format!("{}: {says}", finding.subject));
    if let Some(hint) = &finding.hint {
        output.data(&format!("     hint: {hint}"));
    }
}

fn look_at_certificate(tls: &TlsPlan) -> Finding {
    match load_tls(tls) {
        Ok(loaded) if loaded.validity.is_well() => {
            Finding::well("certificate", loaded.validity.to_string())
        }
        Ok(loaded) if loaded.validity.is_now() => {
            Finding::warning("certificate", format!("{}; renew it", loaded.validity))
        }
        Ok(loaded) => Finding::ill("certificate", loaded.validity.to_string(), Some(RENEW.into())),
        Err(error) => {
            Finding::ill("certificate", error.to_string(), error.hint().map(str::to_owned))
        }
    }
}

fn look_at_configuration(globals: &Globals) -> (Vec<Finding>, Option<Loaded>) {
    let source = config_source(globals);
    let subject = source.path().map_or_else(
        || "configuration".to_owned(),
        |path| format!("configuration {}", path.display()),
    );
    match source.load() {
        Ok(loaded) => {
            let plan = &loaded.plan;
            let says = format!("{} servers, {} tool entries", plan.servers.len(), plan.tools.len());
            let mut findings = vec![Finding::well(subject, says)];
            findings.extend(
                loaded
                    .warnings
                    .iter()
                    .map(|warning| Finding::warning("configuration", warning.message.clone())),
            );
            (findings, Some(loaded))
        }
        Err(error) => (vec![Finding::ill(subject, error.to_string(), None)], None),
    }
}

async fn look_at_store(globals: &Globals, plan: &StorePlan) -> Finding {
    let place = match store_settings(plan).map(|settings| settings.location()) {
        Some(Ok(location)) => location.to_string(),
        Some(Err(_)) => "of `store.url`".into(),
        None => data_directory(globals.data_dir.clone()).display().to_string(),
    };
    let subject = format!("store {place}");
    match open_planned_store(globals, plan).await {
        Ok(store) => {
            store.close().await;
            Finding::well(subject, "opens")
        }
        Err(error) => Finding::ill(subject, error.with_cause(), error.hint()),
    }
}

/// Whether the stored sign-ins are encrypted, and can be decrypted.
async fn look_at_sign_ins(globals: &Globals, plan: &Plan) -> Option<Finding> {
    let keys = &plan.security.store_keys;
    let store = open_store_with(globals, keys).await.ok()?;
    let grants = store.grants().await.unwrap_or_default();
    store.close().await;
    let uses_oauth = plan.servers.iter().any(|server| server.spec.endpoint.oauth().is_some());
    if grants.is_empty() && !uses_oauth {
        return None;
    }
    let locked = grants.iter().find_map(|row| {
        let lock = row.content.as_ref().err()?;
        Some(store.locked(&row.id, lock.clone()))
    });
    Some(match locked {
        Some(error) => Finding::ill("sign-ins", error.to_string(), error.hint()),
        None if keys.current.is_none() => Finding::warning("sign-ins", CLEAR_TEXT),
        None if grants.iter().all(|row| row.is_encrypted) => Finding::well("sign-ins", "encrypted"),
        None => Finding::well("sign-ins", "the next start encrypts those that are in clear text"),
    })
}

/// Whether something answers at the threat-protection endpoint, if one is configured.
async fn look_at_threat_protection(plan: &Plan) -> Option<Finding> {
    let reached = reach_check_endpoint(plan).await?;
    let settings = &plan.threat_protection;
    let subject = format!("threat protection at {}", redact_url(settings.endpoint.as_ref()?));
    Some(match reached {
        Ok(()) => Finding::well(subject, "reachable"),
        Err(reason) => {
            let says = format!("away: {reason}");
            let hint = match settings.on_failure {
                FailurePolicy::Closed => "hooks that block stop all work meanwhile",
                FailurePolicy::Open => "nothing is checked meanwhile",
            };
            Finding { hint: Some(hint.into()), ..Finding::warning(subject, says) }
        }
    })
}

/// The result of checking one server.
struct ServerLook {
    findings: Vec<Finding>,
    is_away: bool,
}

async fn look_at_server(server: &ServerPlan, options: &ConnectOptions) -> ServerLook {
    let from = server.discovered.as_ref().map(|from| format!(", from source {}", from.source));
    let from = from.unwrap_or_default();
    let subject = format!("server {} at {}{from}", server.spec.name, server.spec.place);
    let start = tokio::time::Instant::now();
    let limit = (!server.required).then_some(COMMAND_WAIT);
    let away = |finding| ServerLook { findings: vec![finding], is_away: true };
    let accounts = ServerAccounts::read(&server.spec, options.sign_ins.as_ref()).await;
    let options = match &accounts {
        None => options.clone(),
        Some(accounts) => {
            let Some(options) = accounts.options(options) else {
                let (why, hint) = accounts.why_unlisted(server.spec.name.as_str());
                let says = format!("{accounts}; {why}");
                return away(Finding { hint: Some(hint), ..Finding::warning(subject, says) });
            };
            options
        }
    };
    match connect(&server.spec, &options, limit).await {
        Ok((connection, list)) => {
            let took = render_duration(Duration::from_millis(
                u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            ));
            let era = connection.era().as_str();
            connection.close().await;
            let mut says = format!("{} tools, {era} era, connected in {took}", list.tools.len());
            if let Sharing::PerSession { most, .. } = server.spec.sharing {
                says.push_str(", a connection for each session, at most ");
                says.push_str(&most.to_string());
            }
            if let Some(accounts) = &accounts {
                says.push_str(", ");
                says.push_str(&accounts.to_string());
            }
            let mut findings = vec![Finding::well(subject, says)];
            findings.extend(look_at_definitions(server, &list));
            ServerLook { findings, is_away: false }
        }
        Err(NotConnected::Failed(error)) if !server.required => {
            let hint = error.hint();
            away(Finding { hint, ..Finding::warning(subject, format!("away: {}", error.message)) })
        }
        Err(NotConnected::Failed(error)) => {
            away(Finding::ill(subject, error.message.clone(), error.hint()))
        }
        Err(NotConnected::StillConnecting(waiting)) => {
            let name = &server.spec.name;
            let hint = format!(
                "`switchboard server test {name}` waits until the server has connected or failed"
            );
            let says = format!("still connecting: {waiting}");
            away(Finding { hint: Some(hint), ..Finding::warning(subject, says) })
        }
    }
}

/// Findings about quarantined tools and about tools that lists show repaired. Other tools are not affected.
fn look_at_definitions(server: &ServerPlan, list: &UpstreamToolList) -> Vec<Finding> {
    let name = &server.spec.name;
    let quarantined = list.quarantined.iter().map(|it| {
        let tool = it.tool.as_deref().unwrap_or("(no name)");
        Finding::warning(format!("tool {name}.{tool}"), format!("quarantined: {}", it.reason))
    });
    let repaired = list.tools.iter().filter(|tool| !tool.repairs.is_empty()).map(|tool| {
        let says = format!("listed in a repaired form: {}", tool.repairs.join("; "));
        Finding::warning(format!("tool {name}.{}", tool.name), says)
    });
    quarantined.chain(repaired).collect()
}

/// Checks which providers have credentials. No request is sent, because it could cost money.
fn look_at_providers(plan: &Plan) -> Vec<Finding> {
    let all = Providers::new(&plan.providers, &|name| std::env::var(name).ok()).list();
    let (configured, built_in): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|provider| provider.source == ProviderOrigin::Configured);
    let configured = configured.into_iter().map(|provider| {
        let subject = format!("provider {}", provider.name);
        match (provider.has_credentials, provider.model) {
            (false, _) => Finding::warning(subject, "has no credentials, and needs some"),
            (true, None) => Finding::warning(subject, "ready for sessions that name a model"),
            (true, Some(model)) => Finding::well(subject, format!("ready, with model {model}")),
        }
    });
    // Whether a local server runs at its default address is not checked.
    let is_ready = |provider: &ProviderInfo| {
        provider.has_credentials && provider.kind != ProviderKind::OpenAiChat
    };
    let ready: Vec<_> = built_in.into_iter().filter(is_ready).map(|info| info.name).collect();
    let mut findings: Vec<_> = configured.collect();
    if !ready.is_empty() {
        findings.push(Finding::well("built-in providers", format!("ready: {}", ready.join(", "))));
    }
    findings
}

/// Checks the admission of the servers' tools, declarations that contradict their server, and toolset patterns that match
/// no tool. A server that was not reached does not hide the findings about the others.
async fn look_at_admission(
    loaded: &Loaded,
    plan: &Plan,
    away: &HashSet<ServerName>,
) -> Result<Vec<Finding>, Failure> {
    let mut plan = plan.clone();
    let mut would_start = true;
    // Servers that could not be reached before get a short timeout.
    for server in plan.servers.iter_mut().filter(|server| away.contains(&server.spec.name)) {
        server.spec.connect_timeout = server.spec.connect_timeout.min(SECOND_LOOK);
        would_start &= !std::mem::take(&mut server.required);
    }
    let options = BoardOptions {
        // A store in memory: the check leaves nothing behind.
        store: Store::in_memory().await?,
        memory: Memory::ReadOnly,
        local_tools: LocalTools::built_in(),
        exposure: ExposureRule::default(),
        guard: own_program(),
    };
    match Board::start(plan, options, |_| {}).await {
        Ok(board) => {
            let says = format!("{} tools would be registered", board.catalog().tools().len());
            let mut findings = Vec::new();
            if would_start {
                findings.push(Finding::well("admission", says));
            }
            findings.extend(look_at_declarations(&board));
            findings.extend(toolset_warnings(loaded, &board).into_iter().map(|warning| {
                let place = warning.place.map(|place| format!("{place}: ")).unwrap_or_default();
                let hint = warning.help;
                let says = format!("{place}{}", warning.message);
                Finding { hint, ..Finding::warning("toolsets", says) }
            }));
            end_board(&board).await;
            Ok(findings)
        }
        // Connections are `look_at_server`'s to report.
        Err(error) => Ok(error
            .failures
            .iter()
            .filter(|failure| matches!(failure, StartFailure::Violation(_)))
            .map(|failure| Finding::ill("admission", failure.to_string(), None))
            .collect()),
    }
}

/// Findings about tools that are left out because their declaration contradicts their server.
fn look_at_declarations(board: &Board) -> Vec<Finding> {
    let snapshot = board.snapshot();
    let finding = |(server, it): &(ServerName, QuarantinedTool)| {
        let name = format!("{server}.{}", it.tool.as_deref().unwrap_or("(no name)"));
        Finding::warning(format!("tool {name}"), format!("quarantined: {}", it.reason))
    };
    snapshot.quarantined().iter().map(finding).collect()
}
