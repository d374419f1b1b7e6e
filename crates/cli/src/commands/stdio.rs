//! `stdio`: serves one MCP client over standard input and output; with `--url` it forwards to a running instance.

use std::process::ExitCode;
use std::time::Duration;

use switchboard_discovery::Discovery;
use switchboard_mcp_server::Gateway;
use switchboard_runtime::{LiveConfig, Memory, SERVING_WAIT, follow_discovery, watch_config};
use switchboard_sessions::SessionService;
use tokio_util::task::TaskTracker;

use crate::args::{Globals, StdioArguments};
use crate::commands::serve::stop_on_signals;
use crate::commands::stdio_bridge;
use crate::discovered::discovery_context;
use crate::embedded::{config_source, finish_start, load_config, open_board, open_store};
use crate::failure::Failure;
use crate::output::Output;

/// How long calls may take to finish after the client has disconnected.
const DRAIN: Duration = Duration::from_secs(5);

/// Why serving ended.
enum Ended {
    /// The client's input ended, or cannot be read.
    Served(std::io::Result<()>),
    /// The board could not start.
    Failed(Failure),
    /// A signal came.
    Stopped,
}

pub(crate) async fn run(
    globals: &Globals,
    wanted: &StdioArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    if let Some(url) = globals.instance() {
        if wanted.exposure.is_given() {
            let hint = "end the address with /mcp/toolsets/NAMES to see less";
            return Err(Failure::usage("a running instance decides what it shows")
                .with_hint(Some(hint.into())));
        }
        return stdio_bridge::run(url).await;
    }
    let loaded = load_config(globals, output)?;
    let plan = loaded.plan.clone();
    wanted.exposure.resolve(&plan)?;
    let store = open_store(globals).await?;
    let tasks = TaskTracker::new();
    let stop = stop_on_signals(&tasks)?;
    let starting = open_board(plan, store.clone(), Memory::Keep, wanted.exposure.rule()).await?;
    let board = starting.board().clone();
    let discovery =
        Discovery::start(&loaded.plan.discovery, discovery_context(globals).with_store(store));
    let sessions = SessionService::start(board.clone());
    let gateway = Gateway::start(sessions.clone());
    // The client is served while servers connect; requests that need their tools wait.
    let failing = async {
        match finish_start(starting, SERVING_WAIT).await {
            Ok(board) => {
                let config = LiveConfig::new(board, config_source(globals), loaded);
                tasks.spawn(watch_config(config.clone(), stop.clone()));
                tasks.spawn(follow_discovery(config, discovery, stop.clone()));
                std::future::pending().await
            }
            Err(failure) => failure,
        }
    };
    let mut failing = std::pin::pin!(failing);
    let mut serving = std::pin::pin!(gateway.serve_lines(tokio::io::stdin(), tokio::io::stdout()));
    let ended = tokio::select! {
        served = &mut serving => Ended::Served(served),
        failure = &mut failing => Ended::Failed(failure),
        () = stop.cancelled() => Ended::Stopped,
    };
    let served = match ended {
        Ended::Served(served) => {
            // If the client leaves early, the start is still completed, so that its failure is reported.
            let failure = if board.startup().is_finished() {
                None
            } else {
                tokio::time::timeout(DRAIN, &mut failing).await.ok()
            };
            match failure {
                Some(failure) => Err(failure),
                None => served.map_err(|error| {
                    Failure::start(format!("standard input cannot be read: {error}"))
                }),
            }
        }
        Ended::Stopped | Ended::Failed(_) => {
            // Streams are closed in order, and calls may finish.
            gateway.end_streams();
            let _unfinished = tokio::time::timeout(DRAIN, serving).await;
            match ended {
                Ended::Failed(failure) => Err(failure),
                Ended::Served(_) | Ended::Stopped => Ok(()),
            }
        }
    };
    stop.cancel();
    gateway.shutdown().await;
    sessions.shutdown().await;
    board.shutdown(DRAIN).await;
    served?;
    // A thread that blocks on standard input cannot be joined.
    #[expect(clippy::exit, reason = "the thread that reads standard input would keep us alive")]
    std::process::exit(0)
}
