//! Opens the store of a board that serves, and answers requests while its database is away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_http::{ServerCertificate, serve_before_board};
use switchboard_model::StorePlan;
use switchboard_store::{PostgresSettings, Store, StoreError};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::args::Globals;
use crate::embedded::{open_planned_store, store_settings};
use crate::failure::Failure;

/// How often the log says again what is waited for.
const TOLD_EVERY: Duration = Duration::from_mins(1);
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// The store of a board, and its listener if the board had to answer before the store was open.
pub(crate) struct OpenedStore {
    pub(crate) store: Store,
    pub(crate) listener: Option<TcpListener>,
}

/// Opens the store. A database of a server may be away for any time: until it is there, health checks are answered, and
/// all other requests with 503. `None`: the program was `asked` to stop meanwhile.
pub(crate) async fn open_store_of_board(
    globals: &Globals,
    plan: &StorePlan,
    address: SocketAddr,
    tls: Option<Arc<ServerCertificate>>,
    asked: &CancellationToken,
) -> Result<Option<OpenedStore>, Failure> {
    let Some(settings) = store_settings(plan) else {
        let store = open_planned_store(globals, plan).await?;
        return Ok(Some(OpenedStore { store, listener: None }));
    };
    // It does not wait by itself: what it waits for must be known here.
    let settings = PostgresSettings { open_timeout: Duration::ZERO, ..settings };
    let error = match Box::pin(Store::connect(&settings)).await {
        Ok(store) => return Ok(Some(OpenedStore { store, listener: None })),
        Err(error) if passes(&error) => error,
        Err(error) => return Err(error.into()),
    };
    let listener = bind(address).await?;
    let opened = CancellationToken::new();
    let answering = serve_before_board(&listener, tls, &opened);
    let opening = async {
        let store = open_in_time(&settings, error).await;
        opened.cancel();
        store
    };
    let (store, answered) = tokio::select! {
        both = async { tokio::join!(Box::pin(opening), Box::pin(answering)) } => both,
        () = asked.cancelled() => return Ok(None),
    };
    answered.map_err(|error| Failure::start(format!("cannot listen on {address}: {error}")))?;
    Ok(Some(OpenedStore { store: store?, listener: Some(listener) }))
}

/// Whether the database may become usable without a change of the configuration.
fn passes(error: &StoreError) -> bool {
    error.is_outage() && !matches!(error, StoreError::Refused { .. } | StoreError::Damaged { .. })
}

/// Waits for the database for as long as that may help.
async fn open_in_time(
    settings: &PostgresSettings,
    mut error: StoreError,
) -> Result<Store, StoreError> {
    let mut told: Option<(&str, Instant)> = None;
    loop {
        let reason = error.reason();
        if told.is_none_or(|(known, at)| known != reason || at.elapsed() >= TOLD_EVERY) {
            told = Some((reason, Instant::now()));
            let hint = error.hint();
            tracing::warn!(error = error.in_full(), hint, "waiting for the database");
        }
        sleep(RETRY_PAUSE).await;
        error = match Store::connect(settings).await {
            Err(error) if passes(&error) => error,
            opened => return opened,
        };
    }
}

pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::start(format!("cannot listen on {address}: {error}"))
            .with_hint(Some("`--listen 127.0.0.1:0` takes a free port".into()))
    })
}
