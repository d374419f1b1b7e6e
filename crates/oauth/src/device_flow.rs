//! Sign-in on another device (RFC 8628): the person opens a page anywhere and types a code, while this program asks for
//! the tokens again and again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchboard_model::{ConnectError, ConnectErrorKind, DescribedIssuer, GrantId};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::authorization_server::{AuthorizationServer, FlowClient};
use crate::browser::is_web_address;
use crate::code_flow::{SignedIn, store};
use crate::failure::unusable;
use crate::grant::Grant;
use crate::token_request::{TokenFailure, printable};
use crate::token_store::TokenStore;

/// The grant type of this flow.
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The pause between questions if the authorization server names none, and how much `slow_down` adds.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The longest lifetime of a code that is waited for.
const LONGEST_LIFE: u64 = 1800;

/// A sign-in that waits for a person at another device. Dropping it cancels it.
pub struct DeviceFlow {
    id: GrantId,
    tokens: Arc<dyn TokenStore>,
    server: AuthorizationServer,
    client: FlowClient,
    grant: Grant,
    device_code: String,
    pause: Duration,
    deadline: Instant,
    /// What the person types at the page.
    pub user_code: String,
    /// The page that the person opens.
    pub verification_uri: String,
    /// The same page with the code in it, if there is one.
    pub complete_uri: Option<String>,
}

impl std::fmt::Debug for DeviceFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceFlow").field("id", &self.id).finish_non_exhaustive()
    }
}

impl DeviceFlow {
    /// Asks the issuer for a code. `url` is the address that the tokens are for.
    pub async fn described(
        id: GrantId,
        url: &Url,
        issuer: &DescribedIssuer,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let server = AuthorizationServer::described(issuer).await?;
        let client =
            FlowClient { id: issuer.client_id.clone(), secret: issuer.client_secret.clone() };
        Self::begin(id, url, server, client, "", issuer.scopes.clone(), tokens).await
    }

    /// `redirect_uri` is that of the client's registration, to find the client again.
    pub(crate) async fn begin(
        id: GrantId,
        url: &Url,
        server: AuthorizationServer,
        client: FlowClient,
        redirect_uri: &str,
        scopes: Vec<String>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let Some(device_url) = server.device_url.clone() else {
            let message = format!("{} offers no sign-in on another device", server.issuer);
            return Err(ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
                "sign in with a browser, or paste the answer with `--no-browser`",
            ));
        };
        let scope = scopes.join(" ");
        let mut params = Vec::new();
        if !scope.is_empty() {
            params.push(("scope", scope.as_str()));
        }
        params.extend(server.resource.as_deref().map(|resource| ("resource", resource)));
        let answer = server.post(&device_url, &client, &params).await;
        let answer = answer.map_err(|failure| failure.into_error(&server.issuer))?;
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        let page = text("verification_uri").or_else(|| text("verification_url"));
        let page = page.filter(|page| is_web_address(page));
        let (Some(device_code), Some(user_code), Some(verification_uri)) =
            (text("device_code"), text("user_code"), page)
        else {
            return Err(unusable("the authorization server gave no code for another device"));
        };
        let seconds = |key: &str| answer.get(key).and_then(Value::as_u64);
        let life = seconds("expires_in").unwrap_or(LONGEST_LIFE).min(LONGEST_LIFE);
        let pause = seconds("interval").map_or(PAUSE, Duration::from_secs).min(LONGEST_PAUSE);
        let mut grant = Grant::requested(url, &server.issuer, &client, scopes);
        redirect_uri.clone_into(&mut grant.redirect_uri);
        Ok(Self {
            id,
            tokens,
            server,
            client,
            grant,
            device_code,
            pause,
            deadline: Instant::now() + Duration::from_secs(life),
            user_code: printable(&user_code),
            verification_uri,
            complete_uri: text("verification_uri_complete").filter(|page| is_web_address(page)),
        })
    }

    /// Asks until the person has agreed or refused, or the code has expired; stores the tokens.
    pub async fn finish(mut self) -> Result<SignedIn, ConnectError> {
        loop {
            sleep(self.pause).await;
            if Instant::now() >= self.deadline {
                return Err(expired());
            }
            let params = [("grant_type", DEVICE_GRANT), ("device_code", self.device_code.as_str())];
            match self.server.request_token(&self.client, &params).await {
                Ok(answer) => return store(&self.id, &*self.tokens, self.grant, &answer).await,
                Err(TokenFailure::Refused { code, .. }) if code == "authorization_pending" => {}
                Err(TokenFailure::Refused { code, .. }) if code == "slow_down" => {
                    self.pause = (self.pause + PAUSE).min(LONGEST_PAUSE);
                }
                Err(TokenFailure::Refused { code, .. }) if code == "expired_token" => {
                    return Err(expired());
                }
                Err(TokenFailure::Refused { code, .. }) if code == "access_denied" => {
                    let message = "the sign-in was refused on the other device";
                    return Err(ConnectError::new(ConnectErrorKind::Unauthorized, message));
                }
                Err(failure @ TokenFailure::Refused { .. }) => {
                    return Err(failure.into_error(&self.server.issuer));
                }
                // RFC 8628, section 3.5: after a timeout the pause grows.
                Err(TokenFailure::Failed(error)) => {
                    tracing::debug!(%error, "the authorization server was not reached; it is asked again");
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

fn expired() -> ConnectError {
    let message = "nobody signed in on the other device in time; the code has expired";
    ConnectError::new(ConnectErrorKind::Timeout, message)
        .with_operator_hint("start the sign-in again to get a new code")
}
