//! `server show` and `server reconnect`: one server, its state and its entry.

use std::process::ExitCode;

use serde_json::Value;
use switchboard_api::{ServerDetail, ServerView};
use switchboard_http::server_detail;
use switchboard_runtime::LiveConfig;

use crate::args::Globals;
use crate::backend::Backend;
use crate::discovered::plan_with_discovered;
use crate::embedded::{config_source, find_server, load_config};
use crate::entry_fields::show_fields;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;

pub(crate) async fn show(
    globals: &Globals,
    name: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let detail = match globals.instance() {
        Some(url) => Remote::new(url)?.get(&["servers", name], &[]).await?,
        None => embedded(globals, name, output).await?,
    };
    if output.is_json() {
        output.json(&detail);
    } else {
        print(&detail, output);
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn reconnect(
    globals: &Globals,
    name: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let Some(url) = globals.instance() else {
        let hint = "give --url; `server test NAME` connects a server from here";
        return Err(Failure::usage("only a running instance has connections to renew")
            .with_hint(Some(hint.into())));
    };
    let path = ["servers", name, "reconnect"];
    let server: ServerView = Remote::new(url)?.post(&path, &serde_json::json!({})).await?;
    if output.is_json() {
        output.json(&server);
    } else {
        output.data(&format!("{}: {}, {} tools", server.name, server.state, server.tools));
    }
    match &server.error {
        Some(error) => Err(Failure::unreachable(format!("{name}: {error}")).with_hint(server.hint)),
        None => Ok(ExitCode::SUCCESS),
    }
}

async fn embedded(globals: &Globals, name: &str, output: Output) -> Result<ServerDetail, Failure> {
    let loaded = load_config(globals, output)?;
    if find_server(&loaded.plan, name).is_err() {
        find_server(&plan_with_discovered(globals, &loaded, output).await, name)?;
    }
    let backend = Backend::open_to_look(globals, output, Some(name)).await?;
    let found = match &backend {
        Backend::Remote(remote) => remote.get(&["servers", name], &[]).await,
        Backend::Embedded(board) => {
            let config = LiveConfig::new(board.clone(), config_source(globals), loaded);
            server_detail(&config, name).map_err(|problem| (*problem).into())
        }
    };
    backend.close().await;
    found
}

fn print(detail: &ServerDetail, output: Output) {
    let server = &detail.server;
    let line = |label: &str, text: &str| output.data(&format!("{label:<15}{text}"));
    line("server", &server.name);
    line("state", &server.state);
    line("place", &server.place);
    line("transport", &server.transport);
    line("mode", &server.mode);
    if let Some(source) = &server.source {
        let original = server.original_name.as_ref();
        let original = original.map(|name| format!(", where it is called '{name}'"));
        line("source", &format!("{source}{}", original.unwrap_or_default()));
    }
    line("required", if server.required { "yes" } else { "no" });
    line("tools", &format!("{} of {}", server.tools, server.offered_tools));
    if let Some(error) = &server.error {
        line("error", &error.replace('\n', "\n  "));
    }
    for tool in &detail.refused {
        line(
            "refused",
            &format!("{}: {}", tool.tool.as_deref().unwrap_or("(no name)"), tool.reason),
        );
    }
    let Some(Value::Object(declared)) = &detail.declared else { return };
    output.data("\nin the file:");
    show_fields(declared, &detail.origins, output);
}
