//! What a sign-in is for: a server or a provider of the configuration, with one of its credentials.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_model::{
    ConnectError, ConnectErrorKind, DEFAULT_CREDENTIAL, DescribedIssuer, GrantId, Plan,
    ProviderAuth, ServerPlan,
};
use switchboard_oauth::RevocationTarget;
use switchboard_providers::{ProviderEndpoint, Providers};
use url::Url;

use crate::args::AuthName;
use crate::embedded::find_server;
use crate::failure::Failure;

/// The servers and providers that may need a sign-in.
pub(super) struct AuthAccounts {
    pub(super) plan: Plan,
    pub(super) providers: Vec<Arc<ProviderEndpoint>>,
}

/// One of them.
pub(super) enum AuthTarget<'a> {
    Server(&'a ServerPlan),
    Provider {
        endpoint: &'a ProviderEndpoint,
        credential: String,
    },
    /// A provider that the configuration does not name any more, or that needs no sign-in now.
    Forgotten {
        provider: String,
        credential: String,
    },
}

impl AuthAccounts {
    pub(super) fn new(plan: Plan) -> Self {
        let all = Providers::new(&plan.providers, &|name| std::env::var(name).ok());
        let named = plan.providers.iter().filter_map(|provider| all.find(&provider.name).ok());
        let providers = named.collect();
        Self { plan, providers }
    }

    fn provider(&self, name: &str) -> Option<&ProviderEndpoint> {
        let found = self.providers.iter().find(|endpoint| endpoint.plan().name == name);
        found.map(|endpoint| &**endpoint)
    }

    fn is_server(&self, name: &str) -> bool {
        self.plan.servers.iter().any(|server| server.spec.name.as_str() == name)
    }

    /// The target of `auth login`.
    pub(super) fn find(&self, wanted: &AuthName) -> Result<AuthTarget<'_>, Failure> {
        let name = wanted.name.as_str();
        let (is_server, provider) = (self.is_server(name), self.provider(name));
        let provider = match (wanted.provider, wanted.server) {
            (true, _) => Some(provider.ok_or_else(|| self.no_provider(name))?),
            (_, true) => None,
            _ if wanted.credential.is_some() => {
                Some(provider.ok_or_else(|| self.no_provider(name))?)
            }
            _ if is_server && provider.is_some_and(needs_sign_in) => {
                let hint = "add `--server` or `--provider`";
                return Err(Failure::usage(format!("'{name}' is a server and a provider"))
                    .with_hint(Some(hint.into())));
            }
            _ if is_server => None,
            _ => provider,
        };
        let Some(endpoint) = provider else {
            return find_server(&self.plan, name).map(AuthTarget::Server);
        };
        let credential = wanted.credential.as_deref().unwrap_or(DEFAULT_CREDENTIAL);
        match endpoint.plan().credential(Some(credential)) {
            Some(ProviderAuth::OAuth(_)) => {
                Ok(AuthTarget::Provider { endpoint, credential: credential.to_owned() })
            }
            Some(ProviderAuth::TokenFile(file)) => {
                let path = file.path.display();
                let message = format!("the provider '{name}' takes its token from `{path}`");
                let hint = "sign in with the program that keeps this file";
                Err(Failure::usage(message).with_hint(Some(hint.into())))
            }
            Some(ProviderAuth::ApiKey(_) | ProviderAuth::Bearer(_) | ProviderAuth::None) => {
                let message = format!("no sign-in is configured for the provider '{name}'");
                let hint = "its entry needs `auth` with `kind: oauth`";
                Err(Failure::usage(message).with_hint(Some(hint.into())))
            }
            None => {
                let plan = endpoint.plan();
                let known = std::iter::once(DEFAULT_CREDENTIAL)
                    .chain(plan.credentials.keys().map(String::as_str));
                let known = known.collect::<Vec<_>>().join(", ");
                let message = format!("the provider '{name}' has no credential '{credential}'");
                Err(Failure::usage(message).with_hint(Some(format!("known are {known}"))))
            }
        }
    }

    /// The target of `auth logout`: also a provider whose sign-in is stored and not configured any more.
    pub(super) fn find_or_forgotten(&self, wanted: &AuthName) -> Result<AuthTarget<'_>, Failure> {
        let found = self.find(wanted);
        if found.is_ok() || !wanted.provider {
            return found;
        }
        let credential = wanted.credential.as_deref().unwrap_or(DEFAULT_CREDENTIAL);
        Ok(AuthTarget::Forgotten {
            provider: wanted.name.clone(),
            credential: credential.to_owned(),
        })
    }

    fn no_provider(&self, name: &str) -> Failure {
        let known: Vec<_> =
            self.providers.iter().map(|it| format!("'{}'", it.plan().name)).collect();
        let hint = (!known.is_empty()).then(|| format!("configured are {}", known.join(", ")));
        Failure::usage(format!("no provider '{name}' is configured")).with_hint(hint)
    }
}

/// The arguments of `auth login` for a credential of a provider.
pub(super) fn login_arguments(provider: &str, credential: &str) -> String {
    if credential == DEFAULT_CREDENTIAL {
        provider.to_owned()
    } else {
        format!("{provider} --credential {credential}")
    }
}

fn needs_sign_in(endpoint: &ProviderEndpoint) -> bool {
    let plan = endpoint.plan();
    let mut all = std::iter::once(&plan.auth).chain(plan.credentials.values());
    all.any(|auth| matches!(auth, ProviderAuth::OAuth(_)))
}

impl AuthTarget<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Server(server) => server.spec.name.as_str(),
            Self::Provider { endpoint, .. } => &endpoint.plan().name,
            Self::Forgotten { provider, .. } => provider,
        }
    }

    pub(super) fn id(&self) -> GrantId {
        match self {
            Self::Server(server) => GrantId::of_server(&server.spec.name),
            Self::Provider { endpoint, credential } => {
                GrantId::of_provider(&endpoint.plan().name, credential)
            }
            Self::Forgotten { provider, credential } => GrantId::of_provider(provider, credential),
        }
    }

    /// The address that the tokens of a provider are for, and its issuer.
    pub(super) fn issuer(&self) -> Option<(&Url, &DescribedIssuer)> {
        match self {
            Self::Provider { endpoint, credential } => endpoint.described_issuer(credential),
            Self::Server(_) | Self::Forgotten { .. } => None,
        }
    }

    pub(super) fn revocation(&self) -> RevocationTarget<'_> {
        match self {
            Self::Server(server) => match server.spec.endpoint.oauth() {
                Some((url, settings)) => RevocationTarget::Server(url, settings),
                None => RevocationTarget::Unknown,
            },
            Self::Provider { .. } | Self::Forgotten { .. } => match self.issuer() {
                Some((_, issuer)) => RevocationTarget::Described(issuer),
                None => RevocationTarget::Unknown,
            },
        }
    }

    pub(super) fn as_json(&self) -> Value {
        match self {
            Self::Server(server) => json!({"server": server.spec.name.as_str()}),
            Self::Provider { credential, .. } | Self::Forgotten { credential, .. } => {
                json!({"provider": self.name(), "credential": credential})
            }
        }
    }

    /// A provider without an address cannot be signed in at.
    pub(super) fn without_address(&self) -> ConnectError {
        let message = format!("the provider '{}' has no address", self.name());
        ConnectError::new(ConnectErrorKind::Protocol, message)
            .with_operator_hint("set `base_url` in its entry")
    }
}
