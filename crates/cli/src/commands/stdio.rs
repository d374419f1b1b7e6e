//! `stdio`: the board for one MCP client, over standard input and output; with `--url` a running one.

use std::process::ExitCode;
use std::time::Duration;

use switchboard_runtime::{Memory, watch_config};
use tokio_util::task::TaskTracker;

use crate::args::{Globals, StdioArguments, of_flag};
use crate::commands::serve::stop_on_signals;
use crate::commands::stdio_bridge;
use crate::embedded::{config_source, load_config, open_store, start_board, start_gateway};
use crate::failure::Failure;
use crate::output::Output;

/// How long calls may take to finish once the client is gone.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) async fn run(
    globals: &Globals,
    wanted: &StdioArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    // Who names a configuration means a board of its own, whatever the variable says to other commands.
    let url = match globals.config {
        Some(_) => of_flag(globals.url.as_deref(), "SWITCHBOARD_URL"),
        None => globals.url.as_deref(),
    };
    if let Some(url) = url {
        if wanted.exposure.is_given() {
            let hint = "end the address with /mcp/toolsets/NAMES to see less";
            return Err(Failure::usage("what a running board shows is not changed from here")
                .with_hint(Some(hint.into())));
        }
        return stdio_bridge::run(url).await;
    }
    let plan = load_config(globals, output)?.plan;
    wanted.exposure.resolve(&plan)?;
    let store = open_store(globals).await?;
    let tasks = TaskTracker::new();
    let stop = stop_on_signals(&tasks)?;
    let starting = start_board(plan, store, Memory::Keep);
    let Some(started) = stop.run_until_cancelled(starting).await else {
        return Ok(ExitCode::SUCCESS);
    };
    let board = started?;
    let gateway = start_gateway(&board, wanted.exposure.clone())?;
    tasks.spawn(watch_config(board.clone(), config_source(globals), stop.clone()));
    let serving = gateway.serve_lines(tokio::io::stdin(), tokio::io::stdout());
    let mut serving = std::pin::pin!(serving);
    let served = if let Some(served) = stop.run_until_cancelled(&mut serving).await {
        served
    } else {
        // Who listens is told the end, and calls may finish.
        gateway.end_streams();
        tokio::time::timeout(DRAIN, serving).await.unwrap_or(Ok(()))
    };
    stop.cancel();
    gateway.shutdown().await;
    board.shutdown(DRAIN).await;
    if let Err(error) = served {
        return Err(Failure::start(format!("standard input cannot be read: {error}")));
    }
    // A reader that blocks on standard input cannot be waited for.
    #[expect(clippy::exit, reason = "the thread that reads standard input would keep us alive")]
    std::process::exit(0)
}
