//! `auth login` and `auth logout` with `--url` for a model provider: the board signs in, and this machine has the browser.
//!
//! Clients of providers are registered for redirect URIs on the machine of the person. So this program waits for the
//! browser, and hands the answer to the board, which alone can exchange it for tokens.

use std::num::NonZeroU16;
use std::time::Duration;

use serde_json::json;
use switchboard_api::{
    ProviderSignInAnswer, ProviderSignInBody, ProviderSignInView, ProviderSignOutView,
    ProviderSignedInView,
};
use switchboard_model::{LoopbackRedirect, RedirectHost};
use switchboard_oauth::{AuthorizationResponse, CallbackListener};
use url::Url;

use super::login::pasted;
use crate::args::{AuthName, SignInWay};
use crate::browser::open_browser;
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;

/// How long the board waits for the answer.
const PATIENCE: Duration = Duration::from_mins(10);

pub(super) async fn login(
    remote: &Remote,
    name: &AuthName,
    way: &SignInWay,
    output: Output,
) -> Result<(), Failure> {
    let provider = name.name.as_str();
    let begun = begin(remote, name).await?;
    let (page, redirect) = described(&begun)?;
    let listener = match CallbackListener::bind(&redirect).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            output.note(&format!("{error}; paste the address that the browser ends at"));
            None
        }
    };
    let is_shown = way.no_browser || !open_browser(&begun.url);
    match (is_shown, output.is_json()) {
        (true, false) => {
            output.note(
                "open this address in a browser; if it is on another machine, paste the address that it ends at here:",
            );
            output.data(&begun.url);
        }
        (true, true) => output.note(&begun.url),
        (false, _) => {
            let text = format!("your browser opens the page; if it does not, open {}", begun.url);
            output.note(&text);
        }
    }
    let answer = tokio::select! {
        answer = tokio::time::timeout(PATIENCE, answered(listener, &page, output)) => answer,
        () = interrupted() => return Err(Failure::start("the sign-in was given up")),
    };
    let answer = answer.map_err(|_| Failure::unreachable("no sign-in within 10 minutes"))??;
    let answer = ProviderSignInAnswer { answer: answer.to_secret().expose().to_owned() };
    let path = ["providers", provider, "sign-ins", &begun.id];
    let done: ProviderSignedInView = remote.post(&path, &answer).await?;
    if output.is_json() {
        output.json(&done);
    } else {
        output.note(&format!("signed in at '{provider}' by {}", done.issuer));
    }
    Ok(())
}

/// Begins the sign-in with a port that is free here; the configuration of the board may fix another one.
async fn begin(remote: &Remote, name: &AuthName) -> Result<ProviderSignInView, Failure> {
    let free = CallbackListener::bind(&LoopbackRedirect::default()).await;
    let free = free.map_err(|error| Failure::start(error.to_string()))?;
    let port = Url::parse(&free.redirect_uri).ok().and_then(|url| url.port());
    drop(free);
    let port = port.and_then(NonZeroU16::new);
    let body = ProviderSignInBody { credential: name.credential.clone(), port };
    remote.post(&["providers", &name.name, "sign-ins"], &body).await
}

/// The page, and where its answer is awaited on this machine.
fn described(begun: &ProviderSignInView) -> Result<(Url, LoopbackRedirect), Failure> {
    let unusable = || {
        Failure::unreachable(format!("the instance names no usable page: {}", begun.redirect_uri))
    };
    let page = Url::parse(&begun.url).map_err(|_| unusable())?;
    let back = Url::parse(&begun.redirect_uri).map_err(|_| unusable())?;
    let host = match back.host_str() {
        Some("localhost") => RedirectHost::Localhost,
        Some("127.0.0.1") => RedirectHost::Address,
        _ => return Err(unusable()),
    };
    let redirect = LoopbackRedirect { host, port: back.port(), path: back.path().to_owned() };
    Ok((page, redirect))
}

/// The answer of the authorization server: from the browser, or pasted.
async fn answered(
    listener: Option<CallbackListener>,
    page: &Url,
    output: Output,
) -> Result<AuthorizationResponse, Failure> {
    let state = page.query_pairs().find(|(key, _)| key == "state");
    let state = state.map(|(_, value)| value.into_owned()).unwrap_or_default();
    let Some(listener) = listener else { return Ok(pasted(output).await) };
    tokio::select! {
        answer = listener.wait(&state) => {
            answer.map_err(|error| Failure::unreachable(error.to_string()))
        }
        answer = pasted(output) => Ok(answer),
    }
}

pub(super) async fn logout(
    remote: &Remote,
    name: &AuthName,
    output: Output,
) -> Result<(), Failure> {
    let provider = name.name.as_str();
    let query: Vec<_> = name.credential.iter().map(|it| ("credential", it.clone())).collect();
    let done: ProviderSignOutView =
        remote.delete_for(&["providers", provider, "account"], &query).await?;
    if let Some(why) = &done.not_revoked {
        output.note(&format!(
            "{provider}: the tokens are forgotten, but could not be revoked: {why}"
        ));
    }
    if output.is_json() {
        output.json(&json!({
            "provider": provider, "credential": done.credential, "signed_out": done.signed_out,
            "revoked": done.revoked,
        }));
    } else if done.signed_out {
        output.data(&format!("{provider}: signed out"));
    } else {
        output.data(&format!("{provider}: was not signed in"));
    }
    Ok(())
}
