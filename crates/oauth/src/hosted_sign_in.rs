//! A sign-in whose callback arrives at a web page of the board instead of a port on this machine.

use std::sync::Arc;

use reqwest::RequestBuilder;
use switchboard_model::{ConnectError, GrantOwner, ServerSpec};
use switchboard_outbound::Redactor;
use url::Url;

use crate::authorization_response::AuthorizationResponse;
use crate::code_flow::{CodeFlow, SignedIn};
use crate::sign_in::PreparedSignIn;
use crate::token_store::TokenStore;

/// A sign-in that waits for the callback. Dropping it cancels it.
#[derive(Debug)]
pub struct HostedSignIn {
    flow: CodeFlow,
}

impl HostedSignIn {
    /// Discovers where this owner signs in. `document` is the address of the board's own client metadata document, which
    /// is used where the authorization server reads such documents. `unsigned` is a request to the server without a
    /// token: the challenge of its refusal names the authorization server.
    pub async fn begin(
        spec: &ServerSpec,
        owner: GrantOwner,
        redirect_uri: &Url,
        document: Option<&Url>,
        unsigned: Option<RequestBuilder>,
        tokens: Arc<dyn TokenStore>,
    ) -> Result<Self, ConnectError> {
        let begun = async {
            let prepared = PreparedSignIn::new(spec, owner, unsigned, tokens).await?;
            let flow = prepared.into_flow(spec, redirect_uri.as_str(), document).await?;
            Ok(Self { flow })
        };
        begun.await.map_err(|error| Redactor::of(spec).redact_error(error))
    }

    /// The URL to open in a browser.
    pub fn url(&self) -> &str {
        self.flow.url()
    }

    /// The `state` in that URL, which the callback repeats.
    pub fn state(&self) -> &str {
        self.flow.state()
    }

    pub fn issuer(&self) -> &str {
        self.flow.issuer()
    }

    /// The scopes that are requested.
    pub fn scopes(&self) -> &[String] {
        self.flow.scopes()
    }

    /// Whether an answer that names this issuer comes from the authorization server of this sign-in.
    pub fn accepts_issuer(&self, issuer: Option<&str>) -> bool {
        self.flow.accepts_issuer(issuer)
    }

    /// Exchanges the code of the callback, and stores the tokens for the owner. The code is sent only if the callback
    /// names the issuer of this sign-in.
    pub async fn finish(self, code: &str, issuer: Option<&str>) -> Result<SignedIn, ConnectError> {
        let response = AuthorizationResponse {
            state: Some(self.flow.state().to_owned()),
            code: Some(code.to_owned()),
            iss: issuer.map(str::to_owned),
            ..AuthorizationResponse::default()
        };
        self.flow.finish(response).await
    }
}
