//! `serve`: runs the board and its HTTP server until stopped.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use comfy_table::Cell;
use serde_json::json;
use switchboard_api::ServerView;
use switchboard_auth::Gatekeeper;
use switchboard_discovery::Discovery;
use switchboard_http::{
    BoardPlace, HostPolicy, ServeOptions, ServerCertificate, is_loopback, present,
};
use switchboard_mcp_server::Gateway;
use switchboard_model::{AccountScope, Plan, TlsPlan};
use switchboard_runtime::{
    Board, LiveConfig, Memory, SERVING_WAIT, follow_discovery, watch_config,
};
use switchboard_sessions::SessionService;
use switchboard_store::Store;
use switchboard_telemetry::{MetricsPage, build_info, install_metrics};
use switchboard_turns::Turns;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::auth::CLEAR_TEXT;
use super::serve_store::{OpenedStore, bind, open_store_of_board};
use crate::args::{Globals, ServeArguments};
use crate::discovered::discovery_context;
use crate::embedded::{config_source, finish_start, gatekeeper_options, load_config, open_board};
use crate::failure::Failure;
use crate::file_limit;
use crate::mcp_endpoint::GatewayEndpoint;
use crate::output::{Output, cell};
use crate::version;

/// Maximum number of bytes of an error in the table of servers; `server list` shows the whole text.
const LONGEST_ERROR: usize = 300;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &ServeArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    file_limit::raise();
    let metrics = metrics_of_this_version();
    let loaded = load_config(globals, output)?;
    let plan = loaded.plan.clone();
    // Checked before any server is connected: an unknown toolset prevents the start.
    wanted.exposure.resolve(&plan)?;
    let tasks = TaskTracker::new();
    let asked = stop_on_signals(&tasks)?;
    let is_wide = !is_loopback(&wanted.listen);
    let Some(entrance) = enter(globals, &plan, wanted.listen, &asked).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let Entrance { store, gatekeeper, tls, listener } = entrance;
    let address = listener.local_addr().map_err(|error| Failure::start(error.to_string()))?;
    let stop = CancellationToken::new();
    let exposure = wanted.exposure.rule();
    let starting = open_board(plan.clone(), store.clone(), Memory::Keep, exposure).await?;
    let board = starting.board().clone();
    // Sources are asked while servers connect; what they name is applied once the board has started.
    let discovery = Discovery::start(&plan.discovery, discovery_context(globals).with_store(store));
    let sessions = SessionService::start(board.clone());
    let gateway = Gateway::start(sessions.clone());
    let (place, drain) = (BoardPlace::default(), Duration::from_secs(wanted.drain));
    let hosts = host_policy(&plan, is_wide);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let options = ServeOptions { board: place.clone(), metrics, hosts, gatekeeper, tls, drain };
    tasks.spawn(announce_stop(asked, wanted.shutdown_delay, place.clone(), stop.clone()));
    // The HTTP server answers from the beginning, so that health checks succeed while servers connect.
    let serving = async {
        let endpoint = Arc::new(GatewayEndpoint(gateway.clone()));
        let stopped = stop.clone().cancelled_owned();
        let served = switchboard_http::serve(listener, options, endpoint, stopped).await;
        stop.cancel();
        served
    };
    let working = async {
        let started = stop.run_until_cancelled(finish_start(starting, SERVING_WAIT)).await;
        // Waiting clients get an error when the start fails.
        let Some(started) = started else {
            gateway.end_streams();
            place.abandon();
            return Ok(None);
        };
        let board = started.inspect_err(|_| {
            gateway.end_streams();
            place.abandon();
            stop.cancel();
        })?;
        let turns = Turns::start(&board, sessions.clone(), &|name| std::env::var(name).ok());
        let config = LiveConfig::new(board.clone(), config_source(globals), loaded);
        place.set_config(config.clone());
        place.fill(board.clone(), sessions.clone(), turns.clone());
        show_start(&board, &format!("{scheme}://{address}"), output);
        follow_changes(&tasks, config, discovery, &stop);
        stop.cancelled().await;
        tracing::info!("stopping; running calls may take {}s to finish", wanted.drain);
        gateway.end_streams();
        Ok::<_, Failure>(Some((turns, Instant::now())))
    };
    let (served, worked) = tokio::join!(serving, working);
    let left = match &worked {
        Ok(Some((turns, asked_at))) => end_turns(turns, drain, *asked_at).await,
        Ok(None) | Err(_) => Duration::ZERO,
    };
    gateway.shutdown().await;
    sessions.shutdown().await;
    board.shutdown(left).await;
    worked?;
    served.map_err(|error| Failure::start(format!("serving ended: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// What requests need before there is a board.
struct Entrance {
    store: Store,
    gatekeeper: Arc<Gatekeeper>,
    tls: Option<Arc<ServerCertificate>>,
    listener: TcpListener,
}

/// Opens the store and listens. `None`: the program was `asked` to stop while it waited for the database.
async fn enter(
    globals: &Globals,
    plan: &Plan,
    address: SocketAddr,
    asked: &CancellationToken,
) -> Result<Option<Entrance>, Failure> {
    let tls = plan.tls.as_ref().map(certificate).transpose()?;
    let opened = open_store_of_board(globals, &plan.store, address, tls.clone(), asked).await?;
    let Some(OpenedStore { store, listener }) = opened else { return Ok(None) };
    let gatekeeper = Gatekeeper::new(store.clone(), gatekeeper_options(plan)).await?;
    let is_wide = !is_loopback(&address);
    protect_sign_ins(plan, &store, is_wide)?;
    find_sign_in_pages(plan, is_wide)?;
    let listener = listen(address, listener, &gatekeeper).await?;
    Ok(Some(Entrance { store, gatekeeper, tls, listener }))
}

fn metrics_of_this_version() -> MetricsPage {
    let metrics = install_metrics();
    build_info(version::VERSION, version::COMMIT);
    metrics
}

/// Applies changes of the configuration and of the sources of servers until the stop.
fn follow_changes(
    tasks: &TaskTracker,
    config: Arc<LiveConfig>,
    discovery: Arc<Discovery>,
    stop: &CancellationToken,
) {
    tasks.spawn(watch_config(config.clone(), stop.clone()));
    tasks.spawn(follow_discovery(config, discovery, stop.clone()));
}

/// Ends the turns. Returns what is left of the drain time, which open requests and running calls share.
async fn end_turns(turns: &Turns, drain: Duration, asked_at: Instant) -> Duration {
    turns.shutdown(drain.saturating_sub(asked_at.elapsed())).await;
    drain.saturating_sub(asked_at.elapsed())
}

/// Reads the certificate, so that a file that cannot be used is reported before any server is connected.
fn certificate(tls: &TlsPlan) -> Result<Arc<ServerCertificate>, Failure> {
    ServerCertificate::load(tls).map_err(|error| {
        Failure::start(error.to_string()).with_hint(error.hint().map(str::to_owned))
    })
}

/// Stops the board some time after it was asked to. Until then it works on, but is not ready: a load balancer that asks
/// `/readyz` stops sending requests before they would fail.
async fn announce_stop(
    asked: CancellationToken,
    delay: u64,
    place: BoardPlace,
    stop: CancellationToken,
) {
    tokio::select! {
        () = asked.cancelled() => {}
        () = stop.cancelled() => return,
    }
    place.begin_stop();
    if delay > 0 {
        tracing::info!("not ready any more; new requests are accepted for another {delay}s");
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(delay)) => {}
            () = stop.cancelled() => {}
        }
    }
    stop.cancel();
}

fn host_policy(plan: &Plan, is_wide: bool) -> HostPolicy {
    HostPolicy {
        hosts: plan.security.allowed_hosts.clone(),
        origins: plan.security.allowed_origins.clone(),
        is_wide,
    }
}

/// Refuses to keep sign-ins in clear text on a board that other machines can reach; elsewhere it says so once.
fn protect_sign_ins(plan: &Plan, store: &Store, is_wide: bool) -> Result<(), Failure> {
    if is_wide {
        store.refuse_clear_text_grants();
    }
    let signing_in = plan.servers.iter().find(|server| server.spec.endpoint.oauth().is_some());
    let (Some(server), None) = (signing_in, &plan.security.store_keys.current) else {
        return Ok(());
    };
    if !is_wide {
        tracing::warn!("{CLEAR_TEXT}");
        return Ok(());
    }
    let name = &server.spec.name;
    Err(Failure::start(format!(
        "sign-ins such as that of '{name}' would be kept in clear text, on a board that other machines can reach",
    ))
    .with_hint(Some(
        "set `security.store_key` to `file:/path` or `${VAR}` with a key of `openssl rand -base64 32`"
            .into(),
    )))
}

/// Refuses accounts of users on a board that does not know the address at which their browsers reach it.
fn find_sign_in_pages(plan: &Plan, is_wide: bool) -> Result<(), Failure> {
    let mut servers = plan.servers.iter().map(|server| &server.spec);
    let of_users = servers.find(|spec| spec.endpoint.account_scope() != AccountScope::Board);
    let (Some(spec), true, None) = (of_users, is_wide, &plan.gateway.public_url) else {
        return Ok(());
    };
    Err(Failure::start(format!(
        "users sign in at '{}' on a page of this board, and the address of that page is not known",
        spec.name
    ))
    .with_hint(Some(
        "set `gateway.public_url` to the address at which browsers reach the board".into(),
    )))
}

/// Listens, but refuses an address that other machines can reach if no credentials are configured.
async fn listen(
    address: SocketAddr,
    bound: Option<TcpListener>,
    gatekeeper: &Gatekeeper,
) -> Result<TcpListener, Failure> {
    if !is_loopback(&address) && gatekeeper.is_open() {
        return Err(Failure::start(format!(
            "{address} can be reached from other machines, and no credentials are configured",
        ))
        .with_hint(Some(
            "listen on 127.0.0.1 or [::1], or make a key with `switchboard key add NAME`, or configure `security.jwt`"
                .into(),
        )));
    }
    match bound {
        Some(listener) => Ok(listener),
        // Before servers are connected, so that a port in use is reported at once.
        None => bind(address).await,
    }
}

/// The first signal starts an orderly shutdown, the second one exits at once.
pub(crate) fn stop_on_signals(tasks: &TaskTracker) -> Result<CancellationToken, Failure> {
    let cannot =
        |error: std::io::Error| Failure::start(format!("cannot register signal handlers: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    // SIGHUP during the start is ignored, because it would end the process; the start reads the file anyway.
    let _heard = signal(SignalKind::hangup()).map_err(cannot)?;
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tasks.spawn(async move {
        for is_first in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if is_first {
                asked.cancel();
            } else {
                #[expect(
                    clippy::exit,
                    reason = "the user asked twice; children end through their guards"
                )]
                std::process::exit(130);
            }
        }
    });
    Ok(stop)
}

fn show_start(board: &Board, url: &str, output: Output) {
    let servers = present::servers(board).servers;
    let readiness = present::readiness(board);
    if output.is_json() {
        return output.json(&json!({"url": url, "readiness": readiness, "servers": servers}));
    }
    if !servers.is_empty() {
        let header = ["server", "era", "transport", "mode", "tools", "time"];
        output.table(&header, servers.iter().map(row).collect());
        output.data("");
    }
    let local = readiness.tools - servers.iter().map(|server| server.tools).sum::<usize>();
    output.data(&format!(
        "{}: {} tools ({local} local) at revision {}, serving at {url}",
        readiness.status, readiness.tools, readiness.revision
    ));
    output.data(&format!("people open {url} in a browser"));
    output.data(&format!("MCP clients connect to {url}/mcp"));
}

fn row(server: &ServerView) -> Vec<Cell> {
    let time = match (&server.error, server.connect_ms) {
        (Some(error), _) => format!("unavailable: {}", in_short(error)),
        (None, Some(ms)) => format!("{ms} ms"),
        (None, None) => String::new(),
    };
    let era = server.era.as_deref().unwrap_or("-");
    let tools = server.tools.to_string();
    [&server.name, era, &server.transport, &server.mode, &tools, &time].map(cell).to_vec()
}

/// The beginning of an error and its last line, where a program that ended usually says why.
fn in_short(error: &str) -> String {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let said = match (lines.next_back(), lines.next()) {
        (None, _) => first.to_owned(),
        (Some(last), None) => format!("{first} {last}"),
        (Some(last), Some(_)) => format!("{first} … {last}"),
    };
    let end = said.floor_char_boundary(LONGEST_ERROR);
    if end == said.len() { said } else { format!("{}…", said.get(..end).unwrap_or_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_several_lines_is_told_in_one() {
        for (error, expected) in [
            ("gone", "gone"),
            ("it ended; it said:\nboom\n", "it ended; it said: boom"),
            ("it ended; it said:\n\n  at x\n  at y\nboom", "it ended; it said: … boom"),
            ("", ""),
        ] {
            assert_eq!(in_short(error), expected);
        }
        assert_eq!(in_short(&"é".repeat(LONGEST_ERROR)).chars().count(), LONGEST_ERROR / 2 + 1);
    }
}
