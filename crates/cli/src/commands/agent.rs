//! `agent`: shows the agent profiles, and their servers as frameworks take them.

use std::process::ExitCode;

use reqwest::Url;
use switchboard_agent365::Framework;
use switchboard_api::{AgentFrameworkView, AgentLimitsView, AgentList, AgentView, Problem};
use switchboard_http::present_agents as present;
use switchboard_model::LiveAccess;
use switchboard_sessions::{AgentUser, SessionService};

use crate::args::{AgentCommand, Globals};
use crate::failure::Failure;
use crate::output::{Output, cell, harmless, state_cell};
use crate::session_backend::{LOCAL_OWNER, SessionBackend, local_caller};

/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.7;

/// The address of `serve`, unless `--listen` or `gateway.public_url` names another one.
const USUAL_ADDRESS: &str = "http://127.0.0.1:8420";

pub(crate) async fn run(
    globals: &Globals,
    wanted: AgentCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = SessionBackend::open(globals, output).await?;
    let shown = match &wanted {
        AgentCommand::List => list(&backend, output).await,
        AgentCommand::Show { name, framework: None } => show(&backend, name, output).await,
        AgentCommand::Show { name, framework: Some(framework) } => {
            render(&backend, name, (*framework).into(), output).await
        }
    };
    backend.close().await;
    shown?;
    Ok(ExitCode::SUCCESS)
}

async fn list(backend: &SessionBackend, output: Output) -> Result<(), Failure> {
    let list = match backend {
        SessionBackend::Remote(remote) => remote.get(&["agents"], &[]).await?,
        SessionBackend::Embedded(_, sessions, _) => {
            present::agents(sessions, everyone(&LiveAccess::default()))
        }
    };
    if output.is_json() {
        output.json(&list);
    } else {
        print_list(&list, output);
    }
    Ok(())
}

async fn show(backend: &SessionBackend, name: &str, output: Output) -> Result<(), Failure> {
    let agent = match backend {
        SessionBackend::Remote(remote) => remote.get(&["agents", name], &[]).await?,
        SessionBackend::Embedded(_, sessions, _) => embedded(sessions, name).await?,
    };
    if output.is_json() {
        output.json(&agent);
    } else {
        print(&agent, output);
    }
    Ok(())
}

async fn render(
    backend: &SessionBackend,
    name: &str,
    framework: Framework,
    output: Output,
) -> Result<(), Failure> {
    let rendered: AgentFrameworkView = match backend {
        SessionBackend::Remote(remote) => {
            remote.get(&["agents", name, "frameworks", framework.as_str()], &[]).await?
        }
        SessionBackend::Embedded(_, sessions, _) => {
            present::agent_framework(&embedded(sessions, name).await?, framework)
        }
    };
    if output.is_json() {
        output.json(&rendered);
    } else {
        output.data(&format!("{:#}", rendered.config));
        output.note(&format!(
            "`{}` registers these servers by itself; SWITCHBOARD_API_KEY stands for a key of this board",
            rendered.package
        ));
    }
    Ok(())
}

async fn embedded(sessions: &SessionService, name: &str) -> Result<AgentView, Failure> {
    let access = LiveAccess::default();
    let user = everyone(&access);
    let Ok(agent) = sessions.agent(name, user).await else {
        return Err(unknown(name, &present::agents(sessions, user)));
    };
    let public = sessions.board().plan().gateway.public_url.clone();
    let usual = || Url::parse(USUAL_ADDRESS).map_err(|error| Failure::start(error.to_string()));
    let base = public.map_or_else(usual, Ok)?;
    Ok(present::agent(sessions, &agent, user.access, &base))
}

/// The user of this machine, who may use every agent.
fn everyone(access: &LiveAccess) -> AgentUser<'_> {
    AgentUser { principal: LOCAL_OWNER, name: None, role: local_caller().role, access }
}

fn print_list(list: &AgentList, output: Output) {
    if list.agents.is_empty() {
        return output.note("there are no agents; add `agents` to the configuration");
    }
    let rows = list.agents.iter().map(|agent| {
        let description = agent.description.clone().unwrap_or_default();
        let texts =
            [agent.name.clone(), agent.servers.join(", "), agent.tools.to_string(), description];
        texts.map(cell).to_vec()
    });
    output.table(&["agent", "servers", "tools", "description"], rows.collect());
}

fn print(agent: &AgentView, output: Output) {
    let line = |label: &str, text: &str| output.data(&format!("{label:<15}{}", harmless(text)));
    line("agent", &agent.name);
    line("kind", &agent.kind);
    if let Some(description) = &agent.description {
        line("description", description);
    }
    line("platform", &agent.platform_endpoint);
    line("discovery", &agent.discovery_url);
    let AgentLimitsView { max_concurrent, timeout, queue_timeout, max_result_bytes } =
        &agent.limits;
    let limits = [
        max_concurrent.map(|most| format!("max_concurrent={most}")),
        timeout.as_ref().map(|time| format!("timeout={time}")),
        queue_timeout.as_ref().map(|time| format!("queue_timeout={time}")),
        max_result_bytes.map(|most| format!("max_result_bytes={most}")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        line("limits", &limits.join(", "));
    }
    if agent.servers.is_empty() {
        return output.note("the agent has no servers");
    }
    output.data("");
    let rows = agent.servers.iter().map(|server| {
        vec![
            cell(&server.name),
            state_cell(&server.state),
            cell(&server.connectivity),
            cell(server.tools),
            cell(&server.url),
        ]
    });
    output.table(&["server", "state", "connectivity", "tools", "url"], rows.collect());
}

fn unknown(name: &str, list: &AgentList) -> Failure {
    let nearest = list
        .agents
        .iter()
        .map(|agent| (strsim::jaro_winkler(name, &agent.name), &agent.name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let hint = match nearest {
        Some((_, near)) => format!("did you mean '{near}'?"),
        None => "`switchboard agent list` shows them".into(),
    };
    let problem = Problem::new("unknown_agent", 404, format!("there is no agent '{name}'"));
    Failure::from(problem).with_hint(Some(hint))
}
