//! `auth` with `--url`: the accounts of the caller and, for an administrator, of the board at a running instance.

use std::io::{IsTerminal, Read as _};
use std::time::Duration;

use comfy_table::Cell;
use serde_json::json;
use switchboard_api::{
    AccountList, AccountToken, AccountView, ProviderAccountView, ProviderList, ProviderView,
    SignInView, SignOutView,
};

use super::remote_provider;
use super::target::login_arguments;
use crate::args::{AuthCommand, AuthName};
use crate::browser::open_browser;
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};
use crate::remote::Remote;

/// How often the instance is asked whether the person has signed in.
const LOOKING: Duration = Duration::from_secs(1);

/// What a name means to the instance.
enum RemoteTarget {
    Server,
    Provider,
}

/// Runs a command on the accounts at the instance.
pub(crate) async fn run(
    remote: &Remote,
    wanted: &AuthCommand,
    output: Output,
) -> Result<(), Failure> {
    match wanted {
        AuthCommand::Login { name, way } => {
            if way.device {
                let hint = "leave out --device: the page can be opened in any browser";
                let message = "a sign-in on another device is not made through a running instance";
                return Err(Failure::usage(message).with_hint(Some(hint.into())));
            }
            match find(remote, name).await? {
                RemoteTarget::Server => login(remote, name, way.no_browser, output).await,
                RemoteTarget::Provider => remote_provider::login(remote, name, way, output).await,
            }
        }
        AuthCommand::Set { server, board } => set(remote, server, *board, output).await,
        AuthCommand::Status { all } => status(remote, *all, output).await,
        AuthCommand::Logout { name } => match find(remote, name).await? {
            RemoteTarget::Server => logout(remote, name, output).await,
            RemoteTarget::Provider => remote_provider::logout(remote, name, output).await,
        },
    }
}

/// Whether the name is that of a server or of a provider with a sign-in.
async fn find(remote: &Remote, wanted: &AuthName) -> Result<RemoteTarget, Failure> {
    if wanted.provider || wanted.credential.is_some() {
        return Ok(RemoteTarget::Provider);
    }
    if wanted.server || wanted.board {
        return Ok(RemoteTarget::Server);
    }
    let name = &wanted.name;
    let providers: ProviderList = remote.get(&["providers"], &[]).await?;
    let signs_in = |it: &ProviderView| it.name == *name && it.auth.as_deref() == Some("oauth");
    if !providers.providers.iter().any(signs_in) {
        return Ok(RemoteTarget::Server);
    }
    if remote.servers().await?.servers.iter().any(|server| server.name == *name) {
        let hint = "add `--server` or `--provider`";
        return Err(Failure::usage(format!("'{name}' is a server and a provider"))
            .with_hint(Some(hint.into())));
    }
    Ok(RemoteTarget::Provider)
}

/// The query that names the account of the board.
fn owner_query(is_board: bool) -> Vec<(&'static str, String)> {
    if is_board { vec![("owner", "board".to_owned())] } else { Vec::new() }
}

/// Asks the instance for a page and waits until the person has signed in there.
async fn login(
    remote: &Remote,
    name: &AuthName,
    no_browser: bool,
    output: Output,
) -> Result<(), Failure> {
    let server = name.name.as_str();
    let path = ["accounts", server, "sign-ins"];
    let begun: SignInView = remote.post_query(&path, &owner_query(name.board)).await?;
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
        () = interrupted() => return Err(Failure::start("the sign-in was given up")),
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

/// Stores a token of the caller or of the board, which is read from the standard input.
async fn set(remote: &Remote, server: &str, is_board: bool, output: Output) -> Result<(), Failure> {
    let token = read_token(server, output)?;
    let body = AccountToken { token };
    remote.put_only(&["accounts", server, "token"], &owner_query(is_board), &body).await?;
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

/// Shows the caller's accounts or, for an operator, those of the board and of all owners.
async fn status(remote: &Remote, all: bool, output: Output) -> Result<(), Failure> {
    let list: AccountList = remote.get(&["accounts"], &[("all", all.to_string())]).await?;
    if output.is_json() {
        output.json(&list);
        return Ok(());
    }
    if list.accounts.is_empty() && list.providers.is_empty() {
        output.note(if all {
            "no server has `auth.oauth`, and no provider has `auth`"
        } else {
            "no server has accounts of users (`auth.oauth.per: user`); --all shows the accounts of the board"
        });
    }
    if !list.accounts.is_empty() {
        let header = ["server", "owner", "state", "issuer", "scopes", "expires"];
        output.table(&header, list.accounts.iter().map(row).collect());
    }
    if !list.providers.is_empty() {
        let header = ["provider", "credential", "state", "issuer", "scopes", "expires"];
        output.table(&header, list.providers.iter().map(provider_row).collect());
    }
    for account in list.accounts.iter().filter(|account| account.state == "needs_sign_in") {
        let server = &account.server;
        output.note(&format!("{server}: run `switchboard auth login {server}`"));
    }
    for account in list.providers.iter().filter(|account| account.state == "needs_sign_in") {
        let login = login_arguments(&account.provider, &account.credential);
        output.note(&format!("{}: run `switchboard auth login {login}`", account.provider));
    }
    Ok(())
}

fn provider_row(account: &ProviderAccountView) -> Vec<Cell> {
    vec![
        cell(&account.provider),
        cell(&account.credential),
        state_cell(&account.state),
        cell(account.issuer.as_deref().unwrap_or("-")),
        cell(scopes(&account.scopes)),
        cell(expiry(account.expires_at.as_deref(), account.is_renewed)),
    ]
}

fn scopes(scopes: &[String]) -> String {
    if scopes.is_empty() { "-".to_owned() } else { scopes.join(" ") }
}

fn expiry(expires_at: Option<&str>, is_renewed: bool) -> &str {
    match expires_at {
        Some(_) if is_renewed => "renewed by itself",
        Some(at) => at,
        None => "-",
    }
}

fn row(account: &AccountView) -> Vec<Cell> {
    vec![
        cell(&account.server),
        cell(&account.owner),
        state_cell(&account.state),
        cell(account.issuer.as_deref().unwrap_or("-")),
        cell(scopes(&account.scopes)),
        cell(expiry(account.expires_at.as_deref(), account.is_renewed)),
    ]
}

/// Forgets the caller's account at a server, or that of the board.
async fn logout(remote: &Remote, name: &AuthName, output: Output) -> Result<(), Failure> {
    let server = name.name.as_str();
    let path = ["accounts", server];
    let done: SignOutView = remote.delete_for(&path, &owner_query(name.board)).await?;
    if output.is_json() {
        output.json(&json!({ "server": server, "signed_out": done.signed_out }));
    } else if done.signed_out {
        output.data(&format!("{server}: signed out"));
    } else {
        output.data(&format!("{server}: was not signed in"));
    }
    Ok(())
}
