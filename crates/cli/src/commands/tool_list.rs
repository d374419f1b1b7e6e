//! `tool list`.

use std::process::ExitCode;

use switchboard_api::{QuarantinedToolView, ToolView};
use switchboard_model::ServerName;

use crate::args::Globals;
use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{Output, cell, harmless};

/// Maximum number of characters of a description in the table.
const SHOWN_DESCRIPTION: usize = 60;

pub(crate) async fn run(
    globals: &Globals,
    server: Option<&str>,
    shows_quarantined: bool,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = match server {
        Some(_) => Backend::open_to_look(globals, output, server).await?,
        None => Backend::open(globals, output).await?,
    };
    let mut list = backend.tools().await?;
    if let Some(server) = server {
        let known: Vec<_> = backend.servers().await?.servers;
        let is_known = |name: &str| known.iter().any(|server| server.name == name);
        if !is_known(server) && server != ServerName::local().as_str() {
            backend.close().await;
            return Err(Failure::usage(format!("no server '{server}' is configured")));
        }
        list.tools.retain(|tool| tool.server == server);
        list.quarantined.retain(|tool| tool.server == server);
    }
    if output.is_json() {
        output.json(&list);
    } else if list.tools.is_empty() {
        output.note("no tools are registered");
    } else {
        show(&list.tools, output);
    }
    if !output.is_json() && !list.quarantined.is_empty() {
        show_quarantined(&list.quarantined, shows_quarantined, output);
    }
    backend.close().await;
    Ok(ExitCode::SUCCESS)
}

fn show(tools: &[ToolView], output: Output) {
    let header = ["tool", "limits", "configured", "description"];
    let rows = tools.iter().map(|tool| {
        let limits = format!("{} x {}", tool.limits.max_instances, tool.limits.timeout);
        let about = harmless(tool.description.as_deref().unwrap_or_default());
        let mut about: String =
            about.lines().next().unwrap_or_default().chars().take(SHOWN_DESCRIPTION).collect();
        if !tool.available {
            about = format!("(unavailable) {about}");
        }
        [tool.name.clone(), limits, tool.configured.clone(), about].map(cell).to_vec()
    });
    output.table(&header, rows.collect());
}

fn show_quarantined(tools: &[QuarantinedToolView], is_wanted: bool, output: Output) {
    if !is_wanted {
        let count = tools.len();
        return output.note(&format!("{count} more are quarantined: `tool list --all` says why"));
    }
    let rows = tools.iter().map(|tool| {
        let name = tool.tool.as_deref().unwrap_or("(no name)");
        let name = harmless(&format!("{}.{name}", tool.server));
        [name, harmless(&tool.reason)].map(cell).to_vec()
    });
    output.table(&["quarantined", "reason"], rows.collect());
}
