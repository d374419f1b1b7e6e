//! A board inside a single command, without a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_auth::{GatekeeperOptions, JwtOptions, KeySetSource};
use switchboard_config::Loaded;
use switchboard_model::{Plan, ServerPlan, StoreKeys, StorePlan};
use switchboard_oauth::SignIns;
use switchboard_runtime::{
    Board, BoardOptions, COMMAND_WAIT, ConfigSource, ExposureRule, LocalTools, Memory,
    StartingBoard, StoredTokens,
};
use switchboard_store::{PostgresSettings, Store, StoreError};
use switchboard_turns::PromptTools;

use crate::args::Globals;
use crate::data_dir::data_directory;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ConnectProgressBar;

/// Where the configuration is.
pub(crate) fn config_source(globals: &Globals) -> ConfigSource {
    let environment = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    ConfigSource::find(globals.config.clone(), environment)
}

/// Loads the configuration and shows its warnings.
pub(crate) fn load_config(globals: &Globals, output: Output) -> Result<Loaded, Failure> {
    let loaded = config_source(globals).load()?;
    for warning in &loaded.warnings {
        output.warn(&warning.to_string());
    }
    Ok(loaded)
}

/// The store of the configuration: the data directory, or the database of a server.
pub(crate) async fn open_store(globals: &Globals) -> Result<Store, Failure> {
    Ok(open_planned_store(globals, &store_plan(globals)?).await?)
}

/// The store that a plan names.
pub(crate) async fn open_planned_store(
    globals: &Globals,
    plan: &StorePlan,
) -> Result<Store, StoreError> {
    match store_settings(plan) {
        Some(settings) => Box::pin(Store::connect(&settings)).await,
        None => Store::open(&data_directory(globals.data_dir.clone())).await,
    }
}

/// The database of a server, if a plan names one.
pub(crate) fn store_settings(plan: &StorePlan) -> Option<PostgresSettings> {
    let url = plan.url.clone()?;
    Some(PostgresSettings {
        listen_url: plan.listen_url.clone(),
        max_connections: plan.max_connections,
        ..PostgresSettings::new(url)
    })
}

/// Where the data is. A configuration with problems elsewhere does not keep commands from the data directory, but it must
/// not hide that the data is in another place.
fn store_plan(globals: &Globals) -> Result<StorePlan, Failure> {
    let source = config_source(globals);
    match source.load() {
        Ok(loaded) => Ok(loaded.plan.store),
        Err(error) => match source.path().map(std::fs::read_to_string) {
            Some(Ok(text)) if names_store(&text) => Err(error.into()),
            _ if std::env::vars_os().any(|(key, _)| key.to_string_lossy().contains("__STORE")) => {
                Err(error.into())
            }
            _ => Ok(StorePlan::default()),
        },
    }
}

/// Whether a text may have a `store` section.
fn names_store(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().trim_matches('"').starts_with("store"))
}

/// The store in the data directory, with the keys of this configuration for grants.
pub(crate) async fn open_store_with(globals: &Globals, keys: &StoreKeys) -> Result<Store, Failure> {
    let store = open_store(globals).await?;
    store.set_grant_keys(keys);
    Ok(store)
}

/// The token store for these servers, if any of them uses OAuth.
pub(crate) async fn sign_ins(
    globals: &Globals,
    keys: &StoreKeys,
    servers: &[ServerPlan],
) -> Result<Option<SignIns>, Failure> {
    if servers.iter().all(|server| server.spec.endpoint.oauth().is_none()) {
        return Ok(None);
    }
    let tokens = StoredTokens::new(open_store_with(globals, keys).await?);
    Ok(Some(SignIns::new(Arc::new(tokens))))
}

/// The server of this name.
pub(crate) fn find_server<'a>(plan: &'a Plan, name: &str) -> Result<&'a ServerPlan, Failure> {
    plan.servers.iter().find(|server| server.spec.name.as_str() == name).ok_or_else(|| {
        let known: Vec<_> =
            plan.servers.iter().map(|server| format!("'{}'", server.spec.name)).collect();
        let hint = (!known.is_empty()).then(|| format!("configured are {}", known.join(", ")));
        Failure::usage(format!("no server '{name}' is configured")).with_hint(hint)
    })
}

/// Starts a board and shows the progress.
pub(crate) async fn start_board(
    plan: Plan,
    store: Store,
    memory: Memory,
    exposure: ExposureRule,
) -> Result<Arc<Board>, Failure> {
    finish_start(open_board(plan, store, memory, exposure).await?, COMMAND_WAIT).await
}

/// Starts connecting the servers of a board and returns at once; the board can be served meanwhile.
pub(crate) async fn open_board(
    plan: Plan,
    store: Store,
    memory: Memory,
    exposure: ExposureRule,
) -> Result<StartingBoard, Failure> {
    let local_tools = LocalTools::built_in();
    let options = BoardOptions { store, memory, local_tools, exposure, guard: own_program() };
    let starting = Board::open(plan, options).await?;
    PromptTools::install(starting.board(), &|name| std::env::var(name).ok());
    Ok(starting)
}

/// Waits for the servers of a board, for those that are not required at most `grace`, and shows the progress.
pub(crate) async fn finish_start(
    starting: StartingBoard,
    grace: Duration,
) -> Result<Arc<Board>, Failure> {
    // At info level each server is logged; a progress bar would mix with the log lines.
    let is_told = tracing::enabled!(target: "switchboard", tracing::Level::INFO);
    let servers = starting.board().plan().servers.len();
    let progress = ConnectProgressBar::start(if is_told { 0 } else { servers });
    let started = starting.finish_within(grace, |event| progress.note(&event)).await;
    progress.finish();
    Ok(started?)
}

/// The settings of credential checks: accepted JWT issuers and keys.
pub(crate) fn gatekeeper_options(plan: &Plan) -> GatekeeperOptions {
    let jwt = plan.security.jwt.as_ref().map(|jwt| JwtOptions {
        issuer: jwt.issuer.clone(),
        audience: jwt.audience.clone(),
        resource: jwt.resource.clone(),
        jwks: match &jwt.jwks {
            switchboard_model::JwksSource::Url(url) => KeySetSource::Url(url.clone()),
            switchboard_model::JwksSource::File(path) => KeySetSource::File(path.clone()),
        },
        required_scopes: jwt.required_scopes.clone(),
        leeway: jwt.leeway,
        grants: jwt.grants.clone(),
    });
    GatekeeperOptions { jwt }
}

/// Stops the board of a single command.
pub(crate) async fn end_board(board: &Board) {
    board.shutdown(Duration::ZERO).await;
}

/// The path of this program, which guards child processes, on systems that support it.
pub(crate) fn own_program() -> Option<PathBuf> {
    if cfg!(target_os = "linux") { std::env::current_exe().ok() } else { None }
}
