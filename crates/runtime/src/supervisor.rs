//! The supervisor of a server: keeps one server connected for as long as it is configured.
//!
//! Only the supervisor opens and closes the supervised connection. It reports by changing the [`Server`]'s state and
//! waking the reconciler; it never touches the catalog.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use switchboard_mcp_client::{ConnectOptions, ConnectProgress, Connection, UpstreamNews};
use switchboard_model::{
    ConnectError, ConnectErrorKind as Kind, Era, ServerName, ServerSpec, ToolDescriptor,
    UpstreamToolList,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::listing_account::{accounts_changed, nobody_signed_in};
use crate::memory::Memory;
use crate::offers::{ServerNews, read_offers};
use crate::reconnect_backoff::ReconnectBackoff;
use crate::server::Server;
use crate::server_context::{Audience, ServerContext};

/// The interval at which a server that requires a sign-in is tried again.
const SIGN_IN_PAUSE: Duration = Duration::from_mins(1);
/// How long change notifications are collected before one listing answers them.
const SETTLE: Duration = Duration::from_millis(50);
/// The interval between log lines about a server that is still connecting.
const STILL_WAITING: Duration = Duration::from_secs(10);
/// How long a server's negotiated era is remembered.
const ERA_MEMORY_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Starts to keep `spec` connected. `remembered` are its tools from the previous run.
pub(crate) fn start_server(
    spec: ServerSpec,
    alias: Option<ServerName>,
    poll: Option<Duration>,
    remembered: Option<Vec<ToolDescriptor>>,
    around: &ServerContext,
) -> Arc<Server> {
    let server = Arc::new(Server::new(spec, alias, poll, remembered, around));
    around.tasks.spawn(supervise(server.clone(), around.clone()));
    server
}

async fn supervise(server: Arc<Server>, around: ServerContext) {
    // Boxed, so that the future, which lives as long as its server, is moved only once.
    let watching = Box::pin(keep_connected(&server, &around));
    server.stop_token().clone().run_until_cancelled(watching).await;
    server.note_attempted();
    if let Some(open) = server.take_open() {
        open.connection.close().await;
    }
}

async fn keep_connected(server: &Arc<Server>, around: &ServerContext) {
    let mut backoff = ReconnectBackoff::new();
    loop {
        let connected = connect(server, around).await;
        // A request that came during the attempt is fulfilled by it.
        let _fulfilled = server.reconnect_wanted.notified().now_or_never();
        match connected {
            Ok(connection) => {
                announce(server, around, true);
                server.note_attempt_ended();
                let connected = Instant::now();
                let error = attend(server, &connection, around).await;
                backoff.note_connected_for(connected.elapsed());
                tracing::warn!(server = %server.spec().name, %error, "MCP server lost, reconnecting");
                server.lose(error);
                give_up(server, around);
            }
            Err(error) => {
                let is_news = server.error().as_ref() != Some(&error);
                // The start of the board reports the first failure of a configured server.
                let is_untold = server.is_attempted() || server.is_left_behind();
                match around.audience {
                    Audience::Owner if is_news => tracing::warn!(
                        "Failed to connect to MCP server '{}' at {}\nError: {error}",
                        server.shown_name(),
                        server.spec().place
                    ),
                    Audience::Everybody if is_news && is_untold => {
                        tracing::warn!(server = %server.spec().name, %error, "MCP server cannot be reached");
                    }
                    Audience::Owner | Audience::Everybody => {}
                }
                server.lose(error);
                server.note_attempt_ended();
            }
        }
        announce(server, around, false);
        tokio::select! {
            () = server.reconnect_wanted.notified() => {}
            () = wait_to_reconnect(server, around, &mut backoff) => {}
        }
    }
}

async fn wait_to_reconnect(
    server: &Server,
    around: &ServerContext,
    backoff: &mut ReconnectBackoff,
) {
    if wait_for_sign_in(server, around).await {
        *backoff = ReconnectBackoff::new();
    } else {
        let pause = backoff.next_delay();
        server.note_retry(pause);
        tokio::time::sleep(pause).await;
    }
}

/// If the server requires a sign-in, waits for one, or for [`SIGN_IN_PAUSE`]. Returns whether it waited.
async fn wait_for_sign_in(server: &Server, around: &ServerContext) -> bool {
    let kind = server.error().map(|error| error.kind);
    let Some(sign_ins) = around.options.sign_ins.as_ref().filter(|_| kind == Some(Kind::SignIn))
    else {
        return false;
    };
    if server.has_owners() {
        let changed = accounts_changed(server, sign_ins);
        let _nobody_came = tokio::time::timeout(SIGN_IN_PAUSE, changed).await;
        return true;
    }
    let _nobody_came = tokio::time::timeout(SIGN_IN_PAUSE, sign_ins.changed(server.spec())).await;
    true
}

/// Closes the connection in the background. The server may still be alive: calls that run over the connection may end
/// by themselves.
fn give_up(server: &Arc<Server>, around: &ServerContext) {
    let Some(open) = server.take_open() else { return };
    let server = server.clone();
    around.tasks.spawn(async move {
        open.users.close();
        server.let_finish(&open.users).await;
        open.connection.close().await;
    });
}

fn announce(server: &Server, around: &ServerContext, is_up: bool) {
    if around.audience == Audience::Everybody {
        switchboard_telemetry::server_state(server.spec().name.as_str(), is_up);
    }
    server.note_attempted();
    around.dirty.notify_one();
}

async fn connect(server: &Server, around: &ServerContext) -> Result<Arc<Connection>, ConnectError> {
    let (name, fingerprint) = (&server.spec().name, server.fingerprint());
    let now = jiff::Timestamp::now().as_millisecond();
    let known_era = match around.audience {
        Audience::Everybody => {
            let era = around.store.remembered_era(name, &fingerprint, now - ERA_MEMORY_MS).await;
            era.ok().flatten()
        }
        Audience::Owner => None,
    };
    let start = Instant::now();
    let shown = server.shown_name();
    let (connection, list) = open_with_account(server, around, known_era, start).await?;
    let took = start.elapsed();
    tracing::info!("MCP server '{shown}' returned {} tools", list.tools.len());
    if around.memory == Memory::Keep
        && let Some(era) = connection.learned_era().filter(|era| known_era != Some(*era))
        && let Err(error) = around.store.remember_era(name, &fingerprint, era, now).await
    {
        tracing::warn!(error = error.in_full(), "the protocol era could not be remembered");
    }
    server.note_connected(&connection, took);
    server.pool().forget_failures();
    take_offers(server, &connection, around).await;
    // The connection is set before the state is: a caller that sees a ready server must find its connection.
    server.set_open(connection.clone());
    server.take_list(list);
    server.resume().await;
    Ok(connection)
}

/// Opens the supervised connection with the account that lists the tools. If an account is refused, the next one is
/// tried.
async fn open_with_account(
    server: &Server,
    around: &ServerContext,
    known_era: Option<Era>,
    start: Instant,
) -> Result<(Arc<Connection>, UpstreamToolList), ConnectError> {
    let mut refused = None;
    for owner in server.listing_owners(around).await? {
        let options = ConnectOptions { known_era, owner: owner.clone(), ..around.options.clone() };
        match open(server, options, start).await {
            Ok(opened) => {
                server.note_listing_owner(owner);
                return Ok(opened);
            }
            Err(error) if error.kind == Kind::SignIn && server.has_owners() => {
                refused = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| nobody_signed_in(server.spec())))
}

async fn open(
    server: &Server,
    options: ConnectOptions,
    start: Instant,
) -> Result<(Arc<Connection>, UpstreamToolList), ConnectError> {
    let progress = Arc::new(ConnectProgress::default());
    let options = ConnectOptions { progress: Some(progress.clone()), ..options };
    let shown = server.shown_name();
    tracing::info!("Connecting to MCP server '{shown}' at {}", server.spec().place);
    let _attempt = server.begin_attempt(start, progress);
    let mut opening = std::pin::pin!(Connection::open(server.spec(), &options));
    loop {
        tokio::select! {
            opened = &mut opening => return opened,
            () = tokio::time::sleep(STILL_WAITING) => {
                if let Some(waiting) = server.status().waiting {
                    tracing::info!("MCP server '{shown}' is not connected yet: {waiting}");
                }
            }
        }
    }
}

async fn take_offers(server: &Server, connection: &Connection, around: &ServerContext) {
    if around.audience == Audience::Owner {
        return;
    }
    let before = server.offers.load_full();
    let mut offers = read_offers(connection, &server.spec().name, &before).await;
    if server.has_owners() {
        // The resources of the account that lists are nobody else's concern.
        offers.resources.clear();
    }
    if offers != *before {
        server.offers.store(Arc::new(offers));
        around.dirty.notify_one();
    }
}

/// Keeps the list current until the connection is lost. Returns the reason of the loss.
async fn attend(
    server: &Server,
    connection: &Arc<Connection>,
    around: &ServerContext,
) -> ConnectError {
    let mut news = connection.take_news();
    loop {
        tokio::select! {
            () = connection.closed() => return lost(connection),
            () = server.reconnect_wanted.notified() => {
                // The supervisor must not wait before it connects again.
                server.reconnect_wanted.notify_one();
                return requested();
            }
            Some(said) = next_news(&mut news) => {
                hear(server, connection, around, said, &mut news).await;
                continue;
            }
            () = server.offers_suspected.notified() => {
                tokio::time::sleep(SETTLE).await;
                server.ask_again();
                take_offers(server, connection, around).await;
                continue;
            }
            () = connection.changed() => tokio::time::sleep(SETTLE).await,
            () = server.suspected.notified() => {}
            () = tokio::time::sleep(server.pause_between_lists()) => {}
        }
        let limit = server.spec().list_timeout();
        let mut listed = tokio::time::timeout(limit, connection.list_tools()).await;
        // A single lost response does not prove a server lost whose calls are answered, and giving it up would end them
        // all.
        if matches!(&listed, Ok(Err(error)) if error.kind == Kind::Unreachable)
            && !connection.is_closed()
        {
            listed = tokio::time::timeout(limit, connection.list_tools()).await;
        }
        match listed {
            Ok(Ok(list)) => {
                let is_changed = server.take_list(list);
                if is_changed {
                    around.dirty.notify_one();
                }
                server.note_read(is_changed);
            }
            Ok(Err(_)) if connection.is_closed() => return lost(connection),
            Ok(Err(error)) if is_still_there(&error) => {
                tracing::warn!(
                    server = %server.spec().name, %error,
                    "the list of tools could not be read; the last known one stays"
                );
                server.note_read(false);
            }
            Ok(Err(error)) => return error,
            Err(_elapsed) => return no_answer(limit),
        }
    }
}

async fn next_news(news: &mut Option<mpsc::Receiver<UpstreamNews>>) -> Option<UpstreamNews> {
    match news {
        Some(news) => news.recv().await,
        None => None,
    }
}

/// Handles a notification of the server. Several changes of its lists in a row cause one listing.
async fn hear(
    server: &Server,
    connection: &Connection,
    around: &ServerContext,
    said: UpstreamNews,
    news: &mut Option<mpsc::Receiver<UpstreamNews>>,
) {
    if around.audience == Audience::Owner {
        return;
    }
    let name = &server.spec().name;
    let is_private = server.has_owners();
    let mut is_list_changed = false;
    let mut next = Some(said);
    while let Some(said) = next.take() {
        match said {
            UpstreamNews::PromptsChanged | UpstreamNews::ResourcesChanged => {
                if !std::mem::replace(&mut is_list_changed, true) {
                    tokio::time::sleep(SETTLE).await;
                }
            }
            // What an account hears is not told to others.
            UpstreamNews::ResourceUpdated { .. } | UpstreamNews::Log(_) if is_private => {}
            // There may be no receiver.
            UpstreamNews::ResourceUpdated { uri, params } => {
                let update = ServerNews::ResourceUpdated { server: name.clone(), uri, params };
                let _unheard = around.outgoing.news.send(update);
            }
            UpstreamNews::Log(params) => {
                let log = ServerNews::Log { server: name.clone(), params };
                let _unheard = around.outgoing.news.send(log);
            }
        }
        next = news.as_mut().and_then(|news| news.try_recv().ok());
    }
    if is_list_changed {
        server.ask_again();
        take_offers(server, connection, around).await;
    }
}

/// Whether the error proves that the server is alive: an answer, even a wrong one.
fn is_still_there(error: &ConnectError) -> bool {
    match error.kind {
        Kind::Protocol | Kind::Overloaded => true,
        Kind::Forbidden
        | Kind::Unreachable
        | Kind::Process
        | Kind::Timeout
        | Kind::Unauthorized
        | Kind::SignIn => false,
    }
}

fn lost(connection: &Connection) -> ConnectError {
    let message = format!("the connection closed: {}", connection.end_reason());
    ConnectError::new(Kind::Unreachable, message)
}

fn requested() -> ConnectError {
    ConnectError::new(Kind::Unreachable, "a new connection was requested")
}

fn no_answer(limit: Duration) -> ConnectError {
    let limit = switchboard_model::render_duration(limit);
    ConnectError::new(Kind::Timeout, format!("no answer to tools/list within {limit}"))
}
