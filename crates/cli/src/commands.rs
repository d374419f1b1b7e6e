//! The commands, one file each.

mod agent;
mod auth;
mod calls;
mod calls_export;
mod calls_follow;
mod calls_none;
mod calls_show;
mod calls_source;
mod chat;
mod check;
mod completions;
mod config;
mod connect;
mod connect_move;
mod demo_server;
mod discover;
mod doctor;
mod import;
mod key;
mod key_sets;
mod manual;
mod provider_list;
mod render;
mod serve;
mod serve_store;
mod server_list;
mod server_set;
mod server_show;
mod server_test;
mod session;
mod session_history;
mod stdio;
mod stdio_bridge;
mod store;
mod tool_call;
mod tool_list;
mod tool_set;
mod tool_show;
mod toolset;
mod toolset_draft;
mod toolset_set;

use std::process::ExitCode;

use switchboard_config::EntryList;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Command, CommandArguments, ProviderCommand, ServerCommand, ToolCommand};
use crate::entry_change;
use crate::failure::Failure;
use crate::instance_trust;
use crate::output::Output;

/// Runs the command.
pub(crate) async fn run(arguments: CommandArguments, output: Output) -> Result<ExitCode, Failure> {
    let globals = &arguments.globals;
    instance_trust::remember(globals);
    match arguments.command {
        // Boxed: the future is large.
        Command::Serve(wanted) => Box::pin(serve::run(globals, &wanted, output)).await,
        Command::Stdio(wanted) => Box::pin(stdio::run(globals, &wanted, output)).await,
        Command::Check(wanted) => check::run(globals, &wanted, output).await,
        Command::Config(wanted) => config::run(globals, &wanted, output),
        Command::Import(wanted) => import::run(globals, &wanted, output),
        Command::Connect(wanted) => connect::run(globals, &wanted, output),
        Command::Server(ServerCommand::List) => server_list::run(globals, output).await,
        Command::Server(ServerCommand::Show { name }) => {
            server_show::show(globals, &name, output).await
        }
        Command::Server(ServerCommand::Set(wanted)) => {
            server_set::set(globals, &wanted, output).await
        }
        Command::Server(ServerCommand::Delete(wanted)) => {
            entry_change::delete(globals, EntryList::Servers, &wanted, output).await
        }
        Command::Server(ServerCommand::Reconnect { name }) => {
            server_show::reconnect(globals, &name, output).await
        }
        Command::Server(ServerCommand::Test { name }) => {
            server_test::run(globals, &name, output).await
        }
        Command::Tool(ToolCommand::List { server, all }) => {
            tool_list::run(globals, server.as_deref(), all, output).await
        }
        Command::Tool(ToolCommand::Show { name }) => tool_show::run(globals, &name, output).await,
        Command::Tool(ToolCommand::Set(wanted)) => tool_set::set(globals, &wanted, output).await,
        Command::Tool(ToolCommand::Delete(wanted)) => {
            entry_change::delete(globals, EntryList::Tools, &wanted, output).await
        }
        Command::Tool(ToolCommand::Call(wanted)) => tool_call::run(globals, &wanted, output).await,
        Command::Toolset(wanted) => toolset::run(globals, wanted, output).await,
        Command::Agent(wanted) => agent::run(globals, wanted, output).await,
        Command::Session(wanted) => session::run(globals, wanted, output).await,
        Command::Chat(wanted) => chat::run(globals, &wanted, output).await,
        Command::Provider(ProviderCommand::List) => provider_list::run(globals, output).await,
        Command::Render(wanted) => render::run(globals, &wanted, output).await,
        Command::Calls(wanted) => calls::run(globals, &wanted, output).await,
        Command::Key(wanted) => key::run(globals, &wanted, output).await,
        Command::Store(wanted) => {
            Box::pin(store::run(globals, &wanted, output)).await.map(|()| ExitCode::SUCCESS)
        }
        Command::Auth(wanted) => Box::pin(auth::run(globals, &wanted, output)).await,
        Command::Discover => discover::run(globals, output).await,
        Command::Doctor => doctor::run(globals, output).await,
        Command::DemoServer(wanted) => demo_server::run(&wanted, output).await,
        Command::Completions { shell } => Ok(completions::run(shell, output)),
        Command::Manual { directory } => manual::run(&directory, output),
        // `main` handles it before anything else starts.
        Command::Guard(_) => Ok(ExitCode::SUCCESS),
    }
}

/// Returns on SIGINT or SIGTERM.
async fn interrupted() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
