//! `auth status`: the states of all sign-ins, without tokens.

use comfy_table::Cell;
use jiff::Timestamp;
use serde_json::{Value, json};
use switchboard_oauth::{GrantState, Renewal, SignInState};
use switchboard_providers::{CredentialState, ProviderAccount, provider_accounts};
use switchboard_runtime::StoredTokens;

use super::CLEAR_TEXT;
use super::target::{AuthAccounts, login_arguments};
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};

pub(super) async fn status(
    accounts: &AuthAccounts,
    tokens: &StoredTokens,
    output: Output,
) -> Result<(), Failure> {
    let mut servers = Vec::new();
    for server in accounts.plan.servers.iter().filter(|it| it.spec.endpoint.oauth().is_some()) {
        let state = SignInState::read(&server.spec, tokens).await;
        let state = state.map_err(|error| Failure::start(error.to_string()))?;
        servers.push((server.spec.name.as_str(), state));
    }
    let providers = provider_accounts(&accounts.providers, tokens).await;
    let providers =
        providers.map_err(|error| Failure::start(error.message.clone()).with_hint(error.hint()))?;
    if output.is_json() {
        let servers: Vec<_> = servers.iter().map(|(name, state)| view(name, state)).collect();
        let providers: Vec<_> = providers.iter().map(provider_view).collect();
        output.json(&json!({ "servers": servers, "providers": providers }));
    } else if servers.is_empty() && providers.is_empty() {
        output.note("no server has `auth.oauth`, and no provider has `auth`");
    } else {
        show(&servers, &providers, output);
    }
    let is_clear = |state: &SignInState| state.is_encrypted == Some(false);
    let of_provider = |it: &ProviderAccount| match &it.kind {
        CredentialState::SignIn(state) => is_clear(state),
        CredentialState::File { .. } => false,
    };
    if servers.iter().any(|(_, state)| is_clear(state)) || providers.iter().any(of_provider) {
        output.note(CLEAR_TEXT);
    }
    Ok(())
}

fn show(servers: &[(&str, SignInState)], providers: &[ProviderAccount], output: Output) {
    if !servers.is_empty() {
        let header = ["server", "state", "issuer", "scopes", "expires"];
        let rows = servers.iter().map(|(name, state)| {
            let mut row = vec![cell(*name)];
            row.extend(state_cells(state));
            row
        });
        output.table(&header, rows.collect());
    }
    if !providers.is_empty() {
        let header = ["provider", "credential", "state", "issuer", "scopes", "expires"];
        output.table(&header, providers.iter().map(provider_row).collect());
    }
    for (name, state) in servers {
        if let Some(way_out) = way_out(name, name, &state.state) {
            output.note(&way_out);
        }
    }
    for it in providers {
        let note = match &it.kind {
            CredentialState::SignIn(state) => {
                let login = login_arguments(&it.provider, &it.credential);
                way_out(&it.provider, &login, &state.state)
            }
            CredentialState::File { problem, .. } => {
                problem.as_ref().map(|problem| format!("{}: {problem}", it.provider))
            }
        };
        if let Some(note) = note {
            output.note(&note);
        }
    }
}

/// Why a sign-in cannot be used, and what to do about it.
fn way_out(name: &str, login: &str, state: &GrantState) -> Option<String> {
    let login = format!("run `switchboard auth login {login}`");
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

fn expiry(state: &SignInState) -> Option<String> {
    let end = state.expires_at_ms.and_then(|end| Timestamp::from_millisecond(end).ok());
    end.map(|end| format!("{end:.0}"))
}

fn view(name: &str, state: &SignInState) -> Value {
    let mut view = state_view(state);
    view["server"] = json!(name);
    view
}

fn state_view(state: &SignInState) -> Value {
    json!({
        "state": state.as_str(),
        "reason": state.state.reason(),
        "issuer": state.issuer,
        "scopes": state.scopes,
        "wanted_scopes": state.wanted_scopes,
        "expires_at": expiry(state),
        "is_renewed": state.renewal != Renewal::SignIn,
        "is_encrypted": state.is_encrypted,
    })
}

fn provider_view(it: &ProviderAccount) -> Value {
    let mut view = match &it.kind {
        CredentialState::SignIn(state) => state_view(state),
        CredentialState::File { file, problem } => json!({
            "state": file_word(problem.as_ref()),
            "reason": problem,
            "path": file.path.display().to_string(),
        }),
    };
    view["provider"] = json!(it.provider);
    view["credential"] = json!(it.credential);
    view
}

fn file_word(problem: Option<&String>) -> &'static str {
    if problem.is_none() { "active" } else { "needs_sign_in" }
}

fn provider_row(it: &ProviderAccount) -> Vec<Cell> {
    let mut row = vec![cell(&it.provider), cell(&it.credential)];
    match &it.kind {
        CredentialState::SignIn(state) => row.extend(state_cells(state)),
        CredentialState::File { file, problem } => row.extend([
            state_cell(file_word(problem.as_ref())),
            cell(file.path.display().to_string()),
            cell("-"),
            cell("-"),
        ]),
    }
    row
}

fn state_cells(state: &SignInState) -> [Cell; 4] {
    let end = match (expiry(state), state.renewal) {
        (Some(_), Renewal::Refresh | Renewal::OwnClient) => "renewed by itself".to_owned(),
        (Some(end), Renewal::SignIn) => end,
        (None, _) => "-".to_owned(),
    };
    let scopes = if state.scopes.is_empty() { "-".to_owned() } else { state.scopes.join(" ") };
    [
        state_cell(state.as_str()),
        cell(state.issuer.as_deref().unwrap_or("-")),
        cell(scopes),
        cell(end),
    ]
}
