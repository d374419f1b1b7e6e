//! `auth`: signs in to MCP servers and LLM providers, and out. It changes the store directly; a running instance reads it
//! too.

mod login;
mod remote;
mod remote_provider;
mod status;
mod target;

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use switchboard_model::{GrantId, GrantOwner, Identity, Secret, ServerPlan};
use switchboard_oauth::{SignedOut, sign_out, stored_token};
use switchboard_runtime::StoredTokens;

use crate::args::{AuthCommand, Globals};
use crate::embedded::{find_server, load_config, open_store_with};
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;
use target::{AuthAccounts, AuthTarget};

pub(crate) const CLEAR_TEXT: &str = "sign-ins are kept in clear text, readable for this user only; \
    `security.store_key` encrypts them";

pub(crate) async fn run(
    globals: &Globals,
    wanted: &AuthCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    if let Some(url) = &globals.url {
        remote::run(&Remote::new(url)?, wanted, output).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = load_config(globals, output)?.plan;
    let keys = plan.security.store_keys.clone();
    let accounts = AuthAccounts::new(plan);
    match wanted {
        AuthCommand::Login { name, way } => {
            let target = accounts.find(name)?;
            let store = open_store_with(globals, &keys).await?;
            let tokens = Arc::new(StoredTokens::new(store.clone()));
            let signed_in = login::login(&target, tokens, way, output).await;
            store.close().await;
            signed_in?;
        }
        AuthCommand::Set { server, board } => {
            let server = find_server(&accounts.plan, server)?;
            let owner =
                if *board { GrantOwner::Board } else { GrantOwner::Person(Identity::LOCAL.into()) };
            let store = open_store_with(globals, &keys).await?;
            let stored = set(server, owner, &StoredTokens::new(store.clone()), output).await;
            store.close().await;
            stored?;
        }
        AuthCommand::Status { .. } => {
            let store = open_store_with(globals, &keys).await?;
            status::status(&accounts, &StoredTokens::new(store.clone()), output).await?;
            store.close().await;
        }
        AuthCommand::Logout { name } => {
            let target = accounts.find_or_forgotten(name)?;
            let store = open_store_with(globals, &keys).await?;
            logout(&target, &StoredTokens::new(store.clone()), output).await?;
            store.close().await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Stores a token of the user of this machine or of the board, for a server with `auth.bearer.per`.
async fn set(
    server: &ServerPlan,
    owner: GrantOwner,
    tokens: &StoredTokens,
    output: Output,
) -> Result<(), Failure> {
    let name = &server.spec.name;
    let token = Secret::new(remote::read_token(name.as_str(), output)?);
    let id = GrantId::of_server(name).with_owner(owner);
    let stored = stored_token(&server.spec, &token, tokens, &id).await;
    stored.map_err(|error| Failure::usage(error.message.clone()).with_hint(error.hint()))?;
    if output.is_json() {
        output.json(&json!({ "server": name.as_str(), "stored": true }));
    } else {
        output.note(&format!("your token for '{name}' is stored"));
    }
    Ok(())
}

async fn logout(
    target: &AuthTarget<'_>,
    tokens: &StoredTokens,
    output: Output,
) -> Result<(), Failure> {
    let signed_out = sign_out(&target.id(), target.revocation(), tokens).await;
    let signed_out = signed_out
        .map_err(|error| Failure::start(error.message.clone()).with_hint(error.hint()))?;
    let name = target.name();
    let had_some = signed_out != SignedOut::WasNot;
    if let SignedOut::NotRevoked(error) = &signed_out {
        output.note(&format!(
            "{name}: the tokens are forgotten here, but could not be revoked: {error}"
        ));
    }
    if output.is_json() {
        let mut document = target.as_json();
        document["signed_out"] = json!(had_some);
        document["revoked"] = json!(signed_out == SignedOut::Revoked);
        output.json(&document);
    } else if had_some {
        output.data(&format!("{name}: signed out"));
    } else {
        output.data(&format!("{name}: was not signed in"));
    }
    Ok(())
}
