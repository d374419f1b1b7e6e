//! `server list`.

use std::process::ExitCode;

use switchboard_api::{ServerList, ServerView, SessionProcesses};

use crate::args::Globals;
use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};

pub(crate) async fn run(globals: &Globals, output: Output) -> Result<ExitCode, Failure> {
    let backend = Backend::open_to_look(globals, output, None).await?;
    let servers = backend.servers().await?;
    if output.is_json() {
        output.json(&servers);
    } else {
        show(&servers, output);
    }
    backend.close().await;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn show(list: &ServerList, output: Output) {
    if list.servers.is_empty() {
        return output.note("no servers are configured");
    }
    let mut header = vec!["server", "state", "era", "transport", "mode", "tools", "time", "place"];
    // Most boards have no source, and no use for the column.
    let has_sources = list.servers.iter().any(|server| server.source.is_some());
    if has_sources {
        header.push("source");
    }
    let rows = list.servers.iter().map(|server| {
        let mut row = vec![
            cell(&server.name),
            state_cell(&server.state),
            cell(server.era.as_deref().unwrap_or("-")),
            cell(transport(server)),
            cell(&server.mode),
            cell(server.tools),
            cell(server.connect_ms.map_or_else(|| "-".into(), |ms| format!("{ms} ms"))),
            cell(&server.place),
        ];
        if has_sources {
            row.push(cell(server.source.as_deref().unwrap_or("file")));
        }
        row
    });
    output.table(&header, rows.collect());
    for server in &list.servers {
        if let Some(error) = &server.error {
            // Continuation lines are indented, so that text from a server cannot look like a line about another server.
            output.note(&format!("{}: {}", server.name, error.replace('\n', "\n  ")));
        }
    }
}

/// The transport, and the number of per-session connections if the server has them.
fn transport(server: &ServerView) -> String {
    match &server.session_processes {
        None => server.transport.clone(),
        Some(SessionProcesses { running, most }) => {
            format!("{}, per session ({running}/{most})", server.transport)
        }
    }
}
