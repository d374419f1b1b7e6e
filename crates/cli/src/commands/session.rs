//! `session`: chats and connected clients, each with its own view of the tools.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use serde_json::json;
use switchboard_api::{
    NewSession, OwnServerBody, OwnTransport, SessionChange, SessionClientView, SessionTools,
    SessionView,
};

use super::session_history;
use crate::args::{
    Globals, SessionAttachArguments, SessionCommand, SessionNewArguments, SessionSwitchArguments,
};
use crate::failure::Failure;
use crate::output::{Output, cell, harmless};
use crate::session_backend::{ChangeTiming, SessionBackend, Wait};

pub(crate) async fn run(
    globals: &Globals,
    wanted: SessionCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    if let SessionCommand::History(wanted) = &wanted {
        return session_history::run(globals, wanted, output).await;
    }
    let backend = match &wanted {
        SessionCommand::List | SessionCommand::Delete { .. } => {
            SessionBackend::open_without_servers(globals, output).await?
        }
        _ => SessionBackend::open(globals, output).await?,
    };
    let done = act(&backend, wanted, output).await;
    backend.close().await;
    done.map(|()| ExitCode::SUCCESS)
}

async fn act(
    backend: &SessionBackend,
    wanted: SessionCommand,
    output: Output,
) -> Result<(), Failure> {
    match wanted {
        SessionCommand::New(wanted) => {
            let session = backend.create(beginning(wanted)?).await?;
            if output.is_json() {
                output.json(&session);
            } else {
                output.data(&session.id);
                output.note(&format!("MCP clients find it at {}", session.path));
            }
        }
        SessionCommand::List => list(backend, output).await?,
        SessionCommand::Show { id } => {
            let session = backend.show(&id).await?;
            let tools = backend.tools(&id).await?;
            if output.is_json() {
                output.json(&session);
            } else {
                show(&session, &tools, output);
            }
        }
        SessionCommand::Bind { id, servers, all, revision } => {
            let servers = Some((!all).then_some(servers));
            let tools_revision = revision;
            let change = SessionChange { servers, tools_revision, ..SessionChange::default() };
            changed(&backend.change(&id, change, ChangeTiming::NextTurn, Wait::No).await?, output);
        }
        SessionCommand::Enable(wanted) => switch(backend, wanted, true, output).await?,
        SessionCommand::Disable(wanted) => switch(backend, wanted, false, output).await?,
        SessionCommand::Attach(wanted) => attach(backend, wanted, output).await?,
        SessionCommand::Detach { id, server, now } => {
            let known = backend.show(&id).await?.own_servers;
            if !known.contains_key(&server) {
                let message = format!("session '{id}' has no server '{server}' of its own");
                return Err(Failure::usage(message));
            }
            let own_servers = BTreeMap::from([(server, None)]);
            let change = SessionChange { own_servers, ..SessionChange::default() };
            changed(&backend.change(&id, change, apply(now), Wait::No).await?, output);
        }
        // Handled before, without a board.
        SessionCommand::History(_) => {}
        SessionCommand::Delete { id } => {
            backend.delete(&id).await?;
            if output.is_json() {
                output.json(&json!({"deleted": id}));
            } else {
                output.note(&format!("session '{id}' is gone"));
            }
        }
    }
    Ok(())
}

fn beginning(wanted: SessionNewArguments) -> Result<NewSession, Failure> {
    let on = |names: Vec<String>| names.into_iter().map(|name| (name, true)).collect();
    let mut allow: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in wanted.allow {
        let (provider, tool) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--allow {pair} is not of the form provider=tool"))
        })?;
        allow.entry(provider.to_owned()).or_default().push(tool.to_owned());
    }
    Ok(NewSession {
        id: wanted.id,
        title: wanted.title,
        provider: wanted.provider,
        model: wanted.model,
        credential: wanted.credential,
        strategy: wanted.strategy,
        servers: (!wanted.server.is_empty()).then_some(wanted.server),
        toolsets: on(wanted.toolset),
        tools: on(wanted.tool),
        allow,
        ..NewSession::default()
    })
}

/// Resolves each name as a toolset first, then as a tool.
async fn switch(
    backend: &SessionBackend,
    wanted: SessionSwitchArguments,
    is_on: bool,
    output: Output,
) -> Result<(), Failure> {
    let known = backend.toolsets(&wanted.id).await?;
    let is_set = |name: &String| known.toolsets.iter().any(|set| set.name == *name);
    let mut change = SessionChange { tools_revision: wanted.revision, ..SessionChange::default() };
    for name in wanted.names {
        if !wanted.tool && is_set(&name) {
            change.toolsets.insert(name, is_on);
        } else {
            change.tools.insert(name, Some(is_on));
        }
    }
    changed(&backend.change(&wanted.id, change, apply(wanted.now), Wait::No).await?, output);
    Ok(())
}

fn apply(is_now: bool) -> ChangeTiming {
    if is_now { ChangeTiming::Now } else { ChangeTiming::NextTurn }
}

async fn attach(
    backend: &SessionBackend,
    wanted: SessionAttachArguments,
    output: Output,
) -> Result<(), Failure> {
    let header = |text: &String| {
        let (name, value) = text.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let headers: Option<BTreeMap<_, _>> = wanted.header.iter().map(header).collect();
    let headers = headers
        .ok_or_else(|| Failure::usage("--header wants the form 'Name: value'".to_owned()))?;
    let transport = if wanted.sse { OwnTransport::Sse } else { OwnTransport::StreamableHttp };
    let body = OwnServerBody { url: wanted.address, transport, headers };
    let own_servers = BTreeMap::from([(wanted.server.clone(), Some(body))]);
    let change = SessionChange { own_servers, ..SessionChange::default() };
    let wait = if wanted.no_wait { Wait::No } else { Wait::UntilConnected };
    let session = backend.change(&wanted.id, change, apply(wanted.now), wait).await?;
    changed(&session, output);
    let server = session.own_servers.get(&wanted.server);
    if let Some(server) = server.filter(|_| !output.is_json())
        && let Some(state) = server.state.as_deref().filter(|state| *state != "ready")
    {
        let error = server.error.as_deref().map(|error| format!(": {}", harmless(error)));
        let error = error.unwrap_or_default();
        output.note(&format!("server '{}' is {state}{error}", wanted.server));
    }
    Ok(())
}

fn changed(session: &SessionView, output: Output) {
    if output.is_json() {
        output.json(session);
    } else {
        let (id, revision) = (&session.id, session.tools_revision);
        output.note(&format!("session '{id}' is at revision {revision}"));
    }
}

async fn list(backend: &SessionBackend, output: Output) -> Result<(), Failure> {
    let list = backend.list().await?;
    if output.is_json() {
        output.json(&list);
        return Ok(());
    }
    if list.sessions.is_empty() {
        output.note("there are no sessions");
        return Ok(());
    }
    let header = [
        "session", "kind", "owner", "client", "protocol", "revision", "servers", "toolsets",
        "title",
    ];
    let rows = list.sessions.iter().map(|session| {
        let servers = session.servers.as_ref().map_or("all".into(), |names| names.join(","));
        let title = session.title.as_deref().unwrap_or_default();
        [
            session.id.clone(),
            session.kind.clone(),
            session.owner.clone(),
            of_clients(session, client_name),
            of_clients(session, |client| client.protocol_version.clone()),
            session.tools_revision.to_string(),
            servers,
            switched(session),
            harmless(title),
        ]
        .map(cell)
        .to_vec()
    });
    output.table(&header, rows.collect());
    Ok(())
}

/// A property of every client of a session, without duplicates.
fn of_clients(session: &SessionView, what: impl Fn(&SessionClientView) -> String) -> String {
    let of_each: BTreeSet<_> = session.clients.iter().flatten().map(what).collect();
    of_each.into_iter().collect::<Vec<_>>().join(",")
}

/// The name and version that a client reports.
fn client_name(client: &SessionClientView) -> String {
    let parts = [&client.name, &client.version].into_iter().flatten();
    parts.map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The toolsets and tools that were enabled or disabled explicitly, such as `+quotes -mail`.
fn switched(session: &SessionView) -> String {
    let on = session.enabled_toolsets.iter().map(|set| format!("+{set}"));
    let off = session.disabled_toolsets.iter().map(|set| format!("-{set}"));
    on.chain(off).collect::<Vec<_>>().join(" ")
}

fn show(session: &SessionView, tools: &SessionTools, output: Output) {
    let none = || "none".to_owned();
    let mut lines = vec![
        ("session", session.id.clone()),
        ("kind", session.kind.clone()),
        ("owner", session.owner.clone()),
        ("path", session.path.clone()),
        ("revision", session.tools_revision.to_string()),
        ("servers", session.servers.as_ref().map_or("all".into(), |names| names.join(", "))),
        ("toolsets", Some(switched(session)).filter(|text| !text.is_empty()).unwrap_or_else(none)),
    ];
    for (what, text) in [
        ("title", &session.title),
        ("provider", &session.provider),
        ("model", &session.model),
        ("credential", &session.credential),
        ("strategy", &session.strategy),
    ] {
        lines.extend(text.as_ref().map(|text| (what, harmless(text))));
    }
    for (tool, is_on) in &session.tools {
        lines.push(("tool", format!("{}{tool}", if *is_on { '+' } else { '-' })));
    }
    for client in session.clients.iter().flatten() {
        let protocol = &client.protocol_version;
        lines.push(("client", harmless(&format!("{}, MCP {protocol}", client_name(client)))));
    }
    for (provider, allowed) in &session.allow {
        lines.push(("allowed", format!("{provider}: {}", allowed.join(", "))));
    }
    for (name, server) in &session.own_servers {
        let state = server.state.as_deref().map(|state| format!(" ({state})")).unwrap_or_default();
        lines.push(("own server", format!("{name}: {}{state}", server.url)));
        lines.extend(server.error.as_ref().map(|error| ("", harmless(error))));
    }
    for (what, text) in lines {
        output.data(&format!("{what:<12}{text}"));
    }
    output.data(&format!("{:<12}{}", "tools", tools.tools.len()));
    for tool in &tools.tools {
        let away = if tool.available { "" } else { " (unavailable)" };
        output.data(&format!("  {}{away}", tool.name));
    }
}
