//! `auth` with `--url`: the caller's own accounts at the servers of a running instance.

use std::io::{IsTerminal, Read as _};
use std::time::Duration;

use comfy_table::Cell;
use serde_json::json;
use switchboard_api::{AccountList, AccountToken, AccountView, SignInView, SignOutView};

use crate::args::{AuthCommand, AuthName};
use crate::browser::open_browser;
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};
use crate::remote::Remote;

/// How often the instance is asked whether the person has signed in.
const LOOKING: Duration = Duration::from_secs(1);

/// Runs a command on the accounts of the caller at the instance.
pub(crate) async fn run(
    remote: &Remote,
    wanted: &AuthCommand,
    output: Output,
) -> Result<(), Failure> {
    match wanted {
        AuthCommand::Login { name, way } => {
            refuse_providers(name)?;
            if way.device {
                let hint = "leave out --device: the page can be opened in any browser";
                let message = "a sign-in on another device is not made through a running instance";
                return Err(Failure::usage(message).with_hint(Some(hint.into())));
            }
            login(remote, &name.name, way.no_browser, output).await
        }
        AuthCommand::Set { server } => set(remote, server, output).await,
        AuthCommand::Status { all } => status(remote, *all, output).await,
        AuthCommand::Logout { name } => {
            refuse_providers(name)?;
            logout(remote, &name.name, output).await
        }
    }
}

/// The accounts at providers belong to the board, and are managed where its data directory is.
fn refuse_providers(name: &AuthName) -> Result<(), Failure> {
    if !name.provider && name.credential.is_none() {
        return Ok(());
    }
    let message = "the sign-ins at providers are kept where the data directory is, not made through a running instance";
    let hint = "run this where the instance runs, without --url and SWITCHBOARD_URL, and with its --data-dir";
    Err(Failure::usage(message).with_hint(Some(hint.into())))
}

/// Asks the instance for a page and waits until the person has signed in there.
async fn login(
    remote: &Remote,
    server: &str,
    no_browser: bool,
    output: Output,
) -> Result<(), Failure> {
    let begun: SignInView = remote.post(&["accounts", server, "sign-ins"], &json!({})).await?;
    if let Some(code) = &begun.code {
        output.note(&format!("the page asks for this code: {code}"));
    }
    let is_shown = no_browser || !open_browser(&begun.url);
    match (is_shown, output.is_json()) {
        (true, false) => {
            output.note("open this address in a browser:");
            output.data(&begun.url);
        }
        (true, true) => output.note(&begun.url),
        (false, _) => {
            let text = format!("your browser opens the page; if it does not, open {}", begun.url);
            output.note(&text);
        }
    }
    let signed_in = tokio::select! {
        signed_in = wait_for(remote, server, &begun.id) => signed_in,
        () = super::interrupted() => return Err(Failure::start("the sign-in was given up")),
    };
    if !signed_in? {
        let hint = format!("`switchboard auth login {server}` opens a new page");
        let message = format!("nobody signed in at '{server}' on this page, or it failed");
        return Err(Failure::unreachable(message).with_hint(Some(hint)));
    }
    if output.is_json() {
        output.json(&json!({ "server": server, "signed_in": true }));
    } else {
        output.note(&format!("signed in at '{server}'"));
    }
    Ok(())
}

/// Returns whether the person has signed in, once that is decided.
async fn wait_for(remote: &Remote, server: &str, id: &str) -> Result<bool, Failure> {
    loop {
        let now: SignInView = remote.get(&["accounts", server, "sign-ins", id], &[]).await?;
        match now.state.as_str() {
            "open" => tokio::time::sleep(LOOKING).await,
            state => return Ok(state == "signed_in"),
        }
    }
}

/// Stores a token of the caller, which is read from the standard input.
async fn set(remote: &Remote, server: &str, output: Output) -> Result<(), Failure> {
    let token = read_token(server, output)?;
    remote.put_only(&["accounts", server, "token"], &AccountToken { token }).await?;
    if output.is_json() {
        output.json(&json!({ "server": server, "stored": true }));
    } else {
        output.note(&format!("your token for '{server}' is stored"));
    }
    Ok(())
}

/// The token on the standard input.
pub(crate) fn read_token(server: &str, output: Output) -> Result<String, Failure> {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        output.note(&format!("type or paste your token for '{server}', then press Ctrl-D:"));
    }
    let mut token = String::new();
    let read = input.read_to_string(&mut token);
    read.map_err(|error| Failure::usage(format!("the token cannot be read: {error}")))?;
    Ok(token.trim().to_owned())
}

/// Shows the caller's accounts or, for an operator, those of all owners.
async fn status(remote: &Remote, all: bool, output: Output) -> Result<(), Failure> {
    let list: AccountList = remote.get(&["accounts"], &[("all", all.to_string())]).await?;
    if output.is_json() {
        output.json(&list);
    } else if list.accounts.is_empty() {
        output.note("no server has accounts of users (`auth.oauth.per: user`)");
    } else {
        let header = ["server", "owner", "state", "issuer", "scopes", "expires"];
        output.table(&header, list.accounts.iter().map(row).collect());
        for account in list.accounts.iter().filter(|account| account.state == "needs_sign_in") {
            let server = &account.server;
            output.note(&format!("{server}: run `switchboard auth login {server}`"));
        }
    }
    Ok(())
}

fn row(account: &AccountView) -> Vec<Cell> {
    let expires = match &account.expires_at {
        Some(_) if account.is_renewed => "renewed by itself",
        Some(at) => at,
        None => "-",
    };
    let scopes = if account.scopes.is_empty() { "-".to_owned() } else { account.scopes.join(" ") };
    vec![
        cell(&account.server),
        cell(&account.owner),
        state_cell(&account.state),
        cell(account.issuer.as_deref().unwrap_or("-")),
        cell(scopes),
        cell(expires),
    ]
}

/// Forgets the caller's account at a server.
async fn logout(remote: &Remote, server: &str, output: Output) -> Result<(), Failure> {
    let done: SignOutView = remote.delete_for(&["accounts", server]).await?;
    if output.is_json() {
        output.json(&json!({ "server": server, "signed_out": done.signed_out }));
    } else if done.signed_out {
        output.data(&format!("{server}: signed out"));
    } else {
        output.data(&format!("{server}: was not signed in"));
    }
    Ok(())
}
