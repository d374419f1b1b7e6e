//! The accounts of the board at providers: their states, and the sign-ins of administrators who are elsewhere.
//!
//! A sign-in is begun here and finished with the answer of the authorization server, which the administrator's own machine
//! receives: clients of providers are registered for redirect URIs on the machine of the person.

use std::sync::Arc;

use switchboard_model::{
    ConnectError, ConnectErrorKind, DEFAULT_CREDENTIAL, DescribedIssuer, GrantId, GrantPurpose,
    ProviderAuth, TokenFile,
};
use switchboard_oauth::{
    AuthorizationResponse, CodeFlow, GrantTarget, RevocationTarget, SignInState, SignIns, SignedIn,
    SignedOut, TokenStore, random_id, sign_out,
};
use tokio::time::Instant;
use url::Url;

use crate::endpoint::ProviderEndpoint;
use crate::open_sign_ins::{OpenSignIn, SIGN_IN_LIFETIME};
use crate::providers::{Providers, UnknownProvider};
use crate::token_file::token_file_problem;

/// A credential of a provider that is not written in the configuration.
#[derive(Debug, Clone)]
pub struct ProviderAccount {
    pub provider: String,
    pub credential: String,
    pub kind: CredentialState,
}

/// The state of such a credential.
#[derive(Debug, Clone)]
pub enum CredentialState {
    SignIn(Box<SignInState>),
    File {
        file: TokenFile,
        /// Why its token cannot be used.
        problem: Option<String>,
    },
}

/// A sign-in that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunSignIn {
    pub id: String,
    /// The page of the authorization server, for a browser.
    pub url: String,
    /// Where the browser comes back to.
    pub redirect_uri: String,
    /// When it can no longer be finished, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// Why an account at a provider cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderAccountError {
    #[error(transparent)]
    UnknownProvider(#[from] UnknownProvider),
    #[error("the provider '{provider}' has no credential '{credential}'")]
    UnknownCredential { provider: String, credential: String },
    #[error(
        "no sign-in is configured for the credential '{credential}' of the provider '{provider}'"
    )]
    NoSignIn { provider: String, credential: String },
    #[error("there is no such sign-in; it may have been used already, or have expired")]
    UnknownSignIn,
    #[error("the answer is neither the address that the browser ended at nor a code")]
    UnreadableAnswer,
    #[error("{0}")]
    Failed(#[from] ConnectError),
}

impl Providers {
    /// The credentials that are not written in the configuration, and stored sign-ins that belong to none.
    pub async fn accounts(&self) -> Result<Vec<ProviderAccount>, ConnectError> {
        let tokens = self.sign_ins()?.tokens().clone();
        provider_accounts(&self.endpoints(), &*tokens).await
    }

    /// Begins a sign-in of an administrator. `port` is the one at which the administrator's machine waits for the browser,
    /// where the configuration does not fix it.
    pub async fn begin_sign_in(
        &self,
        provider: &str,
        credential: &str,
        person: &Arc<str>,
        port: Option<u16>,
    ) -> Result<BegunSignIn, ProviderAccountError> {
        let endpoint = self.find(provider)?;
        let (url, issuer) = described(&endpoint, credential)?;
        let redirect = &issuer.redirect;
        let port = redirect.port.or(port).ok_or_else(|| {
            let message = "this sign-in has no fixed port for the browser, and none was given";
            ConnectError::new(ConnectErrorKind::Protocol, message)
                .with_hint("give the `port` at which your machine waits for the browser")
        })?;
        let redirect_uri = format!("http://{}:{port}{}", redirect.host.as_str(), redirect.path);
        let tokens = self.sign_ins()?.tokens().clone();
        let grant = GrantId::of_provider(provider, credential);
        let lifetime_ms = i64::try_from(SIGN_IN_LIFETIME.as_millis()).unwrap_or_default();
        let expires_at_ms = tokens.now_ms().saturating_add(lifetime_ms);
        let flow = CodeFlow::described(grant, url, issuer, &redirect_uri, tokens).await?;
        let (id, url) = (random_id()?, flow.url().to_owned());
        let (provider, credential) = (provider.to_owned(), credential.to_owned());
        let (person, since) = (person.clone(), Instant::now());
        self.open_sign_ins
            .add(id.clone(), OpenSignIn { provider, credential, person, since, flow });
        Ok(BegunSignIn { id, url, redirect_uri, expires_at_ms })
    }

    /// Finishes a sign-in with the answer of the authorization server, as a browser or a person has it. Whatever comes of
    /// it, the sign-in is used then. Only the person who began it finishes it.
    pub async fn finish_sign_in(
        &self,
        provider: &str,
        id: &str,
        person: &str,
        answer: &str,
    ) -> Result<(String, SignedIn), ProviderAccountError> {
        let response = AuthorizationResponse::from_pasted(answer);
        let response = response.ok_or(ProviderAccountError::UnreadableAnswer)?;
        let taken = self.open_sign_ins.take(id, provider, person);
        let taken = taken.ok_or(ProviderAccountError::UnknownSignIn)?;
        let signed_in = taken.flow.finish(response).await?;
        self.sign_ins()?.look_again(&GrantId::of_provider(provider, &taken.credential));
        tracing::info!(provider, credential = taken.credential, "an account was signed in");
        Ok((taken.credential, signed_in))
    }

    /// Revokes the tokens of a credential where its authorization server takes that, and forgets them. Also those of a
    /// provider that is not configured any more.
    pub async fn sign_out(
        &self,
        provider: &str,
        credential: &str,
    ) -> Result<SignedOut, ProviderAccountError> {
        let id = GrantId::of_provider(provider, credential);
        let endpoint = self.find(provider);
        let found = endpoint.as_ref().ok().and_then(|it| it.described_issuer(credential));
        let target = match found {
            Some((_, issuer)) => RevocationTarget::Described(issuer),
            None => RevocationTarget::Unknown,
        };
        let signed_out = sign_out(&id, target, &**self.sign_ins()?.tokens()).await?;
        self.sign_ins()?.look_again(&id);
        match endpoint {
            Err(unknown) if signed_out == SignedOut::WasNot => Err(unknown.into()),
            _ => Ok(signed_out),
        }
    }

    fn sign_ins(&self) -> Result<&SignIns, ConnectError> {
        self.sign_ins.as_ref().ok_or_else(|| {
            let message = "there is no store of sign-ins here";
            ConnectError::new(ConnectErrorKind::Unreachable, message)
        })
    }
}

/// The address and the issuer of a credential that needs a sign-in.
fn described<'a>(
    endpoint: &'a ProviderEndpoint,
    credential: &str,
) -> Result<(&'a Url, &'a DescribedIssuer), ProviderAccountError> {
    let is_name = is_credential_name(credential);
    if let Some(found) = endpoint.described_issuer(credential).filter(|_| is_name) {
        return Ok(found);
    }
    let (plan, credential) = (endpoint.plan(), credential.to_owned());
    let provider = plan.name.clone();
    match plan.credential(Some(&credential)) {
        Some(ProviderAuth::OAuth(_)) if is_name => {
            let message = format!("the provider '{provider}' has no address");
            Err(ConnectError::new(ConnectErrorKind::Protocol, message)
                .with_operator_hint("set `base_url` in its entry")
                .into())
        }
        Some(_) if is_name => Err(ProviderAccountError::NoSignIn { provider, credential }),
        _ => Err(ProviderAccountError::UnknownCredential { provider, credential }),
    }
}

/// The credentials of these providers that are not written in the configuration, and stored sign-ins that belong to none.
pub async fn provider_accounts(
    endpoints: &[Arc<ProviderEndpoint>],
    tokens: &dyn TokenStore,
) -> Result<Vec<ProviderAccount>, ConnectError> {
    let stored = tokens.list().await.map_err(|error| {
        let failed = ConnectError::new(ConnectErrorKind::Unreachable, error.message);
        error.hint.into_iter().fold(failed, ConnectError::with_operator_hint)
    })?;
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
    for endpoint in endpoints {
        let name = &endpoint.plan().name;
        let further: Vec<_> =
            left.iter().filter(|(provider, _)| provider == name).map(|it| it.1.clone()).collect();
        for credential in names(endpoint, further) {
            let kind = match endpoint.plan().credential(Some(&credential)) {
                Some(ProviderAuth::TokenFile(file)) => CredentialState::File {
                    problem: token_file_problem(file).await,
                    file: TokenFile::clone(file),
                },
                Some(ProviderAuth::OAuth(_)) => {
                    let target = match endpoint.described_issuer(&credential) {
                        Some((url, issuer)) => GrantTarget::Described(url, issuer),
                        None => GrantTarget::Unknown,
                    };
                    sign_in_state(name, &credential, target, tokens).await?
                }
                _ => continue,
            };
            left.retain(|(provider, other)| provider != name || *other != credential);
            all.push(ProviderAccount { provider: name.clone(), credential, kind });
        }
    }
    for (provider, credential) in left {
        let kind = sign_in_state(&provider, &credential, GrantTarget::Unknown, tokens).await?;
        all.push(ProviderAccount { provider, credential, kind });
    }
    Ok(all)
}

async fn sign_in_state(
    provider: &str,
    credential: &str,
    target: GrantTarget<'_>,
    tokens: &dyn TokenStore,
) -> Result<CredentialState, ConnectError> {
    let id = GrantId::of_provider(provider, credential);
    let state = SignInState::of(&id, target, tokens).await?;
    Ok(CredentialState::SignIn(Box::new(state)))
}

/// The names of the credentials of a provider: those of the configuration, then further sign-ins.
fn names(endpoint: &ProviderEndpoint, further: Vec<String>) -> Vec<String> {
    let configured = endpoint.plan().credentials.keys().cloned();
    let mut names = vec![DEFAULT_CREDENTIAL.to_owned()];
    for name in configured.chain(further) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether a text can name a credential: in the store it is part of a key.
fn is_credential_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}
