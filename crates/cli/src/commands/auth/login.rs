//! `auth login`: the flow of a sign-in, with a browser, a pasted answer or another device.

use std::io::BufRead as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard_mcp_client::challenge_request;
use switchboard_model::ConnectError;
use switchboard_oauth::{AuthorizationResponse, DeviceFlow, SignIn, SignedIn, TokenStore};
use switchboard_outbound::HttpPool;
use switchboard_runtime::StoredTokens;
use tokio::sync::mpsc;

use super::target::AuthTarget;
use crate::args::SignInWay;
use crate::browser::open_browser;
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::output::{Output, harmless};

/// How long a sign-in may take.
const PATIENCE: Duration = Duration::from_mins(15);

pub(super) async fn login(
    target: &AuthTarget<'_>,
    tokens: Arc<StoredTokens>,
    way: &SignInWay,
    output: Output,
) -> Result<(), Failure> {
    let name = target.name();
    let failed = |error: ConnectError| {
        Failure::unreachable(format!("cannot sign in at '{name}': {error}")).with_hint(error.hint())
    };
    let signing_in = async {
        if way.device {
            on_another_device(target, tokens, output).await
        } else {
            with_a_browser(target, tokens, way.no_browser, output).await
        }
    };
    let signed_in = tokio::select! {
        signed_in = tokio::time::timeout(PATIENCE, signing_in) => signed_in,
        () = interrupted() => return Err(Failure::start("the sign-in was given up")),
    };
    let signed_in = signed_in
        .map_err(|_| Failure::unreachable("no sign-in within 15 minutes"))?
        .map_err(failed)?;
    if output.is_json() {
        let mut document = target.as_json();
        document["issuer"] = json!(signed_in.issuer);
        document["scopes"] = json!(signed_in.scopes);
        output.json(&document);
    } else {
        output.note(&format!("signed in at '{name}' by {}", signed_in.issuer));
    }
    Ok(())
}

async fn with_a_browser(
    target: &AuthTarget<'_>,
    tokens: Arc<dyn TokenStore>,
    no_browser: bool,
    output: Output,
) -> Result<SignedIn, ConnectError> {
    let sign_in = match target {
        AuthTarget::Server(server) => {
            let unsigned = challenge_request(&server.spec, &HttpPool::default())?;
            SignIn::begin(&server.spec, unsigned, tokens).await?
        }
        AuthTarget::Provider { .. } | AuthTarget::Forgotten { .. } => {
            let (url, issuer) = target.issuer().ok_or_else(|| target.without_address())?;
            SignIn::described(target.id(), url, issuer, tokens).await?
        }
    };
    let shown = no_browser || !open_browser(sign_in.url());
    match (shown, output.is_json()) {
        (true, false) => {
            output.note(
                "open this address in a browser; if it is on another machine, paste the address that it ends at here:",
            );
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
    sign_in.finish_or_pasted(pasted(output)).await
}

async fn on_another_device(
    target: &AuthTarget<'_>,
    tokens: Arc<dyn TokenStore>,
    output: Output,
) -> Result<SignedIn, ConnectError> {
    let flow = match target {
        AuthTarget::Server(server) => {
            let unsigned = challenge_request(&server.spec, &HttpPool::default())?;
            DeviceFlow::server(&server.spec, unsigned, tokens).await?
        }
        AuthTarget::Provider { .. } | AuthTarget::Forgotten { .. } => {
            let (url, issuer) = target.issuer().ok_or_else(|| target.without_address())?;
            DeviceFlow::described(target.id(), url, issuer, tokens).await?
        }
    };
    output.note(&format!(
        "open {} on any device and enter the code {}",
        harmless(&flow.verification_uri),
        harmless(&flow.user_code)
    ));
    if let Some(page) = &flow.complete_uri {
        output.note(&format!("or open {}", harmless(page)));
    }
    flow.finish().await
}

/// The answer that a person pastes. Lines that are none are ignored; without input it never comes.
pub(super) async fn pasted(output: Output) -> AuthorizationResponse {
    let (sender, mut lines) = mpsc::channel(1);
    // A thread of its own: it ends with the program, also while it waits for input.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        match AuthorizationResponse::from_pasted(&line) {
            Some(response) => return response,
            None if line.trim().is_empty() => {}
            None => output.note("this is not the address that the browser ended at"),
        }
    }
    std::future::pending().await
}
