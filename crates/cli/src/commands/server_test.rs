//! `server test`: connects one server and shows its details.

use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use switchboard_mcp_client::{ConnectOptions, Connection};
use switchboard_model::{QuarantinedTool, ServerPlan, render_duration};
use switchboard_telemetry::escape_to_line;

use crate::args::Globals;
use crate::discovered::plan_with_discovered;
use crate::embedded::{find_server, load_config, own_program, sign_ins};
use crate::failure::Failure;
use crate::output::Output;
use crate::server_accounts::ServerAccounts;
use crate::single_connection::{NotConnected, connect};

pub(crate) async fn run(
    globals: &Globals,
    name: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let plan = plan_with_discovered(globals, &load_config(globals, output)?, output).await;
    let server = find_server(&plan, name)?;
    let sign_ins =
        sign_ins(globals, &plan.security.store_keys, std::slice::from_ref(server)).await?;
    let options = ConnectOptions { guard: own_program(), sign_ins, ..ConnectOptions::default() };
    let accounts = ServerAccounts::read(&server.spec, options.sign_ins.as_ref()).await;
    let options = match &accounts {
        None => options,
        Some(accounts) => accounts.options(&options).ok_or_else(|| {
            let (why, hint) = accounts.why_unlisted(name);
            let message = format!("MCP server '{name}' has {accounts}; {why}");
            Failure::unreachable(message).with_hint(Some(hint))
        })?,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a wall clock reading for a person, not for logic"
    )]
    let start = Instant::now();
    let (connection, list) = connect(&server.spec, &options, None).await.map_err(|error| {
        let place = &server.spec.place;
        let NotConnected::Failed(error) = error else {
            return Failure::unreachable(format!("MCP server '{name}' at {place} does not answer"));
        };
        // Continuation lines are indented, so that text from a server cannot look like output of the program.
        let message = error.message.replace('\n', "\n  ");
        Failure::unreachable(format!(
            "Failed to connect to MCP server '{name}' at {place}\nError: {message}"
        ))
        .with_hint(error.hint())
    })?;
    let took = start.elapsed();
    show(server, &connection, &list.tools, &list.quarantined, took, output);
    if let Some(accounts) = accounts.filter(|_| !output.is_json()) {
        output.data(&format!("{:<14}{accounts}", "accounts"));
    }
    connection.close().await;
    Ok(ExitCode::SUCCESS)
}

fn show(
    server: &ServerPlan,
    connection: &Connection,
    tools: &[switchboard_model::ToolDescriptor],
    quarantined: &[QuarantinedTool],
    took: std::time::Duration,
    output: Output,
) {
    let info = connection.info();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    if output.is_json() {
        return output.json(&json!({
            "server": server.spec.name.as_str(),
            "place": server.spec.place,
            "transport": server.spec.endpoint.transport().as_str(),
            "era": connection.era().as_str(),
            "protocol": info.protocol,
            "reported_name": info.name,
            "reported_version": info.version,
            "connect_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "tools": names,
            "quarantined": quarantined.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "stderr": connection.stderr(),
        }));
    }
    let called = [info.name.as_deref(), info.version.as_deref()];
    let called: Vec<_> = called.into_iter().flatten().collect();
    let line = |label: &str, text: &str| {
        output.data(&format!("{label:<14}{}", escape_to_line(text)));
    };
    line("server", server.spec.name.as_str());
    line("place", &server.spec.place);
    line("transport", server.spec.endpoint.transport().as_str());
    line("era", &format!("{} ({})", connection.era().as_str(), info.protocol));
    if !called.is_empty() {
        line("calls itself", &called.join(" "));
    }
    line("connected", &format!("in {}", render_duration(took)));
    line("tools", &format!("{}: {}", names.len(), names.join(", ")));
    for tool in quarantined {
        line("quarantined", &tool.to_string());
    }
    if let Some(stderr) = connection.stderr() {
        output.data("its error output:");
        output.data(&format!("  {}", stderr.replace('\n', "\n  ")));
    }
}
