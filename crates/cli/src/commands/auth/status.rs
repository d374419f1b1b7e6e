//! `auth status`: the states of all sign-ins, without tokens.

use comfy_table::Cell;
use jiff::Timestamp;
use serde_json::{Value, json};
use switchboard_model::{DEFAULT_CREDENTIAL, GrantPurpose, ProviderAuth, TokenFile};
use switchboard_oauth::{GrantState, Renewal, SignInState, TokenStore as _};
use switchboard_providers::{ProviderEndpoint, token_file_problem};
use switchboard_runtime::StoredTokens;

use super::CLEAR_TEXT;
use super::target::{AuthAccounts, AuthTarget};
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};

/// The state of a credential of a provider.
struct ProviderState<'a> {
    provider: String,
    credential: String,
    kind: CredentialState<'a>,
}

enum CredentialState<'a> {
    SignIn { state: Box<SignInState>, login: String },
    File { file: &'a TokenFile, problem: Option<String> },
}

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
    let providers = provider_states(accounts, tokens).await?;
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
    let of_provider = |it: &ProviderState<'_>| match &it.kind {
        CredentialState::SignIn { state, .. } => is_clear(state),
        CredentialState::File { .. } => false,
    };
    if servers.iter().any(|(_, state)| is_clear(state)) || providers.iter().any(of_provider) {
        output.note(CLEAR_TEXT);
    }
    Ok(())
}

fn show(servers: &[(&str, SignInState)], providers: &[ProviderState<'_>], output: Output) {
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
            CredentialState::SignIn { state, login } => way_out(&it.provider, login, &state.state),
            CredentialState::File { problem, .. } => {
                problem.as_ref().map(|problem| format!("{}: {problem}", it.provider))
            }
        };
        if let Some(note) = note {
            output.note(&note);
        }
    }
}

/// The configured credentials of all providers that are not written in the configuration, and stored sign-ins that
/// belong to none.
async fn provider_states<'a>(
    accounts: &'a AuthAccounts,
    tokens: &StoredTokens,
) -> Result<Vec<ProviderState<'a>>, Failure> {
    let stored = tokens.list().await;
    let stored = stored.map_err(|error| Failure::start(error.message).with_hint(error.hint))?;
    let mut left: Vec<(String, String)> = stored
        .iter()
        .filter_map(|grant| match &grant.id.purpose {
            GrantPurpose::Provider { provider, credential } => {
                Some((provider.to_string(), credential.to_string()))
            }
            GrantPurpose::Server(_) => None,
        })
        .collect();
    left.dedup();
    let mut all = Vec::new();
    for endpoint in &accounts.providers {
        let name = &endpoint.plan().name;
        let further: Vec<_> =
            left.iter().filter(|(provider, _)| provider == name).cloned().collect();
        for credential in names(endpoint, further.into_iter().map(|(_, credential)| credential)) {
            let kind = match endpoint.plan().credential(Some(&credential)) {
                Some(ProviderAuth::TokenFile(file)) => {
                    CredentialState::File { file, problem: token_file_problem(file).await }
                }
                Some(ProviderAuth::OAuth(_)) => {
                    let target = AuthTarget::Provider { endpoint, credential: credential.clone() };
                    sign_in_state(&target, tokens).await?
                }
                _ => continue,
            };
            left.retain(|(provider, other)| provider != name || *other != credential);
            all.push(ProviderState { provider: name.clone(), credential, kind });
        }
    }
    for (provider, credential) in left {
        let target =
            AuthTarget::Forgotten { provider: provider.clone(), credential: credential.clone() };
        let kind = sign_in_state(&target, tokens).await?;
        all.push(ProviderState { provider, credential, kind });
    }
    Ok(all)
}

async fn sign_in_state<'a>(
    target: &AuthTarget<'_>,
    tokens: &StoredTokens,
) -> Result<CredentialState<'a>, Failure> {
    let state = SignInState::of(&target.id(), target.grant_target(), tokens).await;
    let state = Box::new(state.map_err(|error| Failure::start(error.to_string()))?);
    Ok(CredentialState::SignIn { state, login: target.login_arguments() })
}

/// The names of the credentials of a provider: those of the configuration, then further sign-ins.
fn names(endpoint: &ProviderEndpoint, further: impl Iterator<Item = String>) -> Vec<String> {
    let configured = endpoint.plan().credentials.keys().cloned();
    let mut names = vec![DEFAULT_CREDENTIAL.to_owned()];
    for name in configured.chain(further) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
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
    let mut view = state_view(state);
    view["server"] = json!(name);
    view
}

fn state_view(state: &SignInState) -> Value {
    json!({
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

fn provider_view(it: &ProviderState<'_>) -> Value {
    let mut view = match &it.kind {
        CredentialState::SignIn { state, .. } => state_view(state),
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

fn provider_row(it: &ProviderState<'_>) -> Vec<Cell> {
    let mut row = vec![cell(&it.provider), cell(&it.credential)];
    match &it.kind {
        CredentialState::SignIn { state, .. } => row.extend(state_cells(state)),
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
    [state_cell(word(state)), cell(state.issuer.as_deref().unwrap_or("-")), cell(scopes), cell(end)]
}
