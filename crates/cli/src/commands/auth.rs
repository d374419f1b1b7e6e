//! `auth`: signs in to MCP servers, and out. It changes the store directly; a running instance reads it too.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use comfy_table::Cell;
use jiff::Timestamp;
use serde_json::{Value, json};
use switchboard_mcp_client::challenge_request;
use switchboard_model::{ConnectError, GrantId, GrantOwner, Identity, Secret, ServerPlan};
use switchboard_oauth::{GrantState, Renewal, SignIn, SignInState, TokenStore, stored_token};
use switchboard_outbound::HttpPool;
use switchboard_runtime::StoredTokens;

use super::auth_remote;
use crate::args::{AuthCommand, Globals};
use crate::browser::open_browser;
use crate::embedded::{find_server, load_config, open_store_with};
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};
use crate::remote::Remote;

/// How long a sign-in in the browser may take.
const PATIENCE: Duration = Duration::from_mins(15);
pub(crate) const CLEAR_TEXT: &str = "sign-ins are kept in clear text, readable for this user only; \
    `security.store_key` encrypts them";

pub(crate) async fn run(
    globals: &Globals,
    wanted: &AuthCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    if let Some(url) = &globals.url {
        auth_remote::run(&Remote::new(url)?, wanted, output).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = load_config(globals, output)?.plan;
    let keys = &plan.security.store_keys;
    match wanted {
        AuthCommand::Login { server, no_browser } => {
            let server = find_server(&plan, server)?;
            let store = open_store_with(globals, keys).await?;
            let tokens = Arc::new(StoredTokens::new(store.clone()));
            let signed_in = login(server, tokens, *no_browser, output).await;
            store.close().await;
            signed_in?;
        }
        AuthCommand::Set { server } => {
            let server = find_server(&plan, server)?;
            let store = open_store_with(globals, keys).await?;
            let stored = set(server, &StoredTokens::new(store.clone()), output).await;
            store.close().await;
            stored?;
        }
        AuthCommand::Status { .. } => {
            let store = open_store_with(globals, keys).await?;
            status(&plan.servers, &StoredTokens::new(store.clone()), output).await?;
            store.close().await;
        }
        AuthCommand::Logout { server } => {
            let server = find_server(&plan, server)?;
            let store = open_store_with(globals, keys).await?;
            logout(server, &StoredTokens::new(store.clone()), output).await?;
            store.close().await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn login(
    server: &ServerPlan,
    tokens: Arc<StoredTokens>,
    no_browser: bool,
    output: Output,
) -> Result<(), Failure> {
    let name = &server.spec.name;
    let failed = |error: ConnectError| {
        Failure::unreachable(format!("cannot sign in at '{name}': {error}")).with_hint(error.hint())
    };
    let unsigned = challenge_request(&server.spec, &HttpPool::default()).map_err(failed)?;
    let sign_in = SignIn::begin(&server.spec, unsigned, tokens).await.map_err(failed)?;
    let shown = no_browser || !open_browser(sign_in.url());
    match (shown, output.is_json()) {
        (true, false) => {
            output.note("open this address in a browser on this machine:");
            output.data(sign_in.url());
        }
        (true, true) => output.note(sign_in.url()),
        (false, _) => {
            output.note(&format!(
                "your browser opens the sign-in page; if it does not, open {}",
                sign_in.url()
            ));
        }
    }
    let signed_in = tokio::select! {
        signed_in = tokio::time::timeout(PATIENCE, sign_in.finish()) => signed_in,
        () = super::interrupted() => return Err(Failure::start("the sign-in was given up")),
    };
    let signed_in = signed_in
        .map_err(|_| Failure::unreachable("no sign-in within 15 minutes"))?
        .map_err(failed)?;
    if output.is_json() {
        output.json(&json!({
            "server": name.as_str(), "issuer": signed_in.issuer, "scopes": signed_in.scopes,
        }));
    } else {
        output.note(&format!("signed in at '{name}' by {}", signed_in.issuer));
    }
    Ok(())
}

/// Stores a token of the user of this machine, for a server with `auth.bearer.per`.
async fn set(server: &ServerPlan, tokens: &StoredTokens, output: Output) -> Result<(), Failure> {
    let name = &server.spec.name;
    let token = Secret::new(auth_remote::read_token(name.as_str(), output)?);
    let id = GrantId::of_server(name).with_owner(GrantOwner::Person(Identity::LOCAL.into()));
    let stored = stored_token(&server.spec, &token, tokens, &id).await;
    stored.map_err(|error| Failure::usage(error.message.clone()).with_hint(error.hint()))?;
    if output.is_json() {
        output.json(&json!({ "server": name.as_str(), "stored": true }));
    } else {
        output.note(&format!("your token for '{name}' is stored"));
    }
    Ok(())
}

async fn status(
    servers: &[ServerPlan],
    tokens: &StoredTokens,
    output: Output,
) -> Result<(), Failure> {
    let mut states = Vec::new();
    for server in servers.iter().filter(|server| server.spec.endpoint.oauth().is_some()) {
        let state = SignInState::read(&server.spec, tokens).await;
        let state = state.map_err(|error| Failure::start(error.to_string()))?;
        states.push((server.spec.name.as_str(), state));
    }
    if output.is_json() {
        let servers: Vec<_> = states.iter().map(|(name, state)| view(name, state)).collect();
        output.json(&json!({ "servers": servers }));
    } else if states.is_empty() {
        output.note("no server has `auth.oauth`");
    } else {
        let header = ["server", "state", "issuer", "scopes", "expires"];
        let rows = states.iter().map(|(name, state)| row(name, state));
        output.table(&header, rows.collect());
        for (name, state) in &states {
            if let Some(way_out) = way_out(name, &state.state) {
                output.note(&way_out);
            }
        }
    }
    if states.iter().any(|(_, state)| state.is_encrypted == Some(false)) {
        output.note(CLEAR_TEXT);
    }
    Ok(())
}

/// Why a sign-in cannot be used, and what to do about it.
fn way_out(name: &str, state: &GrantState) -> Option<String> {
    let login = format!("run `switchboard auth login {name}`");
    match state {
        GrantState::Active | GrantState::Renewing => None,
        GrantState::NeedsSignIn(cause) => Some(format!("{name}: {}; {login}", cause.describe())),
        GrantState::Orphaned(cause) => Some(format!("{name}: {}; {login}", cause.describe())),
        GrantState::Locked(error) => {
            let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            Some(format!("{name}: {}{hint}", error.message))
        }
    }
}

async fn logout(server: &ServerPlan, tokens: &StoredTokens, output: Output) -> Result<(), Failure> {
    let name = &server.spec.name;
    let forgotten = tokens.forget(&GrantId::of_server(name)).await;
    let had_some =
        forgotten.map_err(|error| Failure::start(error.message).with_hint(error.hint))?;
    if output.is_json() {
        output.json(&json!({ "server": name.as_str(), "signed_out": had_some }));
    } else if had_some {
        output.data(&format!("{name}: signed out"));
    } else {
        output.data(&format!("{name}: was not signed in"));
    }
    Ok(())
}

/// The word for the state; in JSON as it is, for people with blanks.
fn word(state: &SignInState) -> &'static str {
    match state.renewal {
        Renewal::OwnClient => "automatic",
        Renewal::Refresh | Renewal::SignIn => state.state.as_str(),
    }
}

fn expiry(state: &SignInState) -> Option<String> {
    let end = state.expires_at_ms.and_then(|end| Timestamp::from_millisecond(end).ok());
    end.map(|end| format!("{end:.0}"))
}

fn view(name: &str, state: &SignInState) -> Value {
    json!({
        "server": name,
        "state": word(state),
        "reason": state.state.reason(),
        "issuer": state.issuer,
        "scopes": state.scopes,
        "wanted_scopes": state.wanted_scopes,
        "expires_at": expiry(state),
        "is_renewed": state.renewal != Renewal::SignIn,
        "is_encrypted": state.is_encrypted,
    })
}

fn row(name: &str, state: &SignInState) -> Vec<Cell> {
    let end = match (expiry(state), state.renewal) {
        (Some(_), Renewal::Refresh | Renewal::OwnClient) => "renewed by itself".to_owned(),
        (Some(end), Renewal::SignIn) => end,
        (None, _) => "-".to_owned(),
    };
    vec![
        cell(name),
        state_cell(&word(state).replace('_', " ")),
        cell(state.issuer.as_deref().unwrap_or("-")),
        cell(if state.scopes.is_empty() { "-".to_owned() } else { state.scopes.join(" ") }),
        cell(end),
    ]
}
