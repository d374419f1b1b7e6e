//! What the store says about a sign-in.

use switchboard_model::{
    ConnectError, ConnectErrorKind, DescribedIssuer, GrantId, OAuthGrant, OAuthSettings, ServerSpec,
};
use url::Url;

use crate::failure::unkept;
use crate::grant::Grant;
use crate::sign_in_need::{SignInCause, SignInNeed};
use crate::token_store::{StoredGrant, TokenStore, TokenStoreError};

/// The stored state of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInState {
    pub state: GrantState,
    /// There is a sign-in for this URL.
    pub is_signed_in: bool,
    /// A sign-in has been required since.
    pub is_wanted: bool,
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// Scopes that the server has required since.
    pub wanted_scopes: Vec<String>,
    pub expires_at_ms: Option<i64>,
    pub renewal: Renewal,
    /// Whether the stored grant is encrypted; `None` without one.
    pub is_encrypted: Option<bool>,
}

/// Whether a grant can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantState {
    /// Its tokens are used, and renewed where that is possible.
    Active,
    /// A process renews its tokens now.
    Renewing,
    /// Somebody must sign in.
    NeedsSignIn(SignInCause),
    /// Its tokens are not sent any more, because what they were for has changed or gone.
    Orphaned(OrphanCause),
    /// It cannot be decrypted.
    Locked(TokenStoreError),
}

/// What a grant has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanCause {
    /// The server has another address, or uses another kind of grant.
    AddressChanged,
    /// The server names another authorization server.
    IssuerChanged,
    /// The configuration has no such server or provider.
    NotConfigured,
    /// The person or the session is gone.
    OwnerGone,
}

impl GrantState {
    /// The word in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Renewing => "renewing",
            Self::NeedsSignIn(_) => "needs_sign_in",
            Self::Orphaned(_) => "orphaned",
            Self::Locked(_) => "locked",
        }
    }

    /// The reason, as a word in JSON, if there is one to give.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Active | Self::Renewing | Self::Locked(_) => None,
            Self::NeedsSignIn(cause) => Some(cause.as_str()),
            Self::Orphaned(cause) => Some(cause.as_str()),
        }
    }
}

impl OrphanCause {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddressChanged => "address_changed",
            Self::IssuerChanged => "issuer_changed",
            Self::NotConfigured => "not_configured",
            Self::OwnerGone => "owner_gone",
        }
    }

    /// The cause in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::AddressChanged => "it was for another address or another kind of grant",
            Self::IssuerChanged => "the server names another authorization server",
            Self::NotConfigured => "the configuration does not name it any more",
            Self::OwnerGone => "its owner is gone",
        }
    }
}

/// The source of the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// An interactive sign-in.
    SignIn,
    /// The refresh token of the last sign-in.
    Refresh,
    /// The client credentials grant or a token exchange; nobody signs in.
    OwnClient,
}

/// What a grant is compared with.
#[derive(Debug, Clone, Copy)]
pub enum GrantTarget<'a> {
    /// A server of the configuration that uses OAuth.
    Server(&'a Url, &'a OAuthSettings),
    /// An account with this address at an issuer that the configuration describes.
    Described(&'a Url, &'a DescribedIssuer),
    /// The configuration has no such server or provider.
    Unknown,
}

impl SignInState {
    /// Reads the state of the sign-in to a server that all callers share.
    pub async fn read(spec: &ServerSpec, tokens: &dyn TokenStore) -> Result<Self, ConnectError> {
        let (url, settings) = wants_oauth(spec)?;
        let id = GrantId::of_server(&spec.name);
        Self::of(&id, GrantTarget::Server(url, settings), tokens).await
    }

    /// Reads the state of the last sign-in of this purpose and owner.
    pub async fn of(
        id: &GrantId,
        target: GrantTarget<'_>,
        tokens: &dyn TokenStore,
    ) -> Result<Self, ConnectError> {
        let need = tokens.need(id).await.map_err(|error| unkept(&error))?;
        match tokens.load(id, None).await {
            Ok(kept) => Ok(Self::judge(kept.as_ref(), need.as_deref(), target, tokens.now_ms())),
            Err(error) => {
                let nothing = Self::judge(None, need.as_deref(), target, tokens.now_ms());
                Ok(Self { state: GrantState::Locked(error), ..nothing })
            }
        }
    }

    /// The word in JSON: that of the state, or `automatic` where nobody needs to sign in.
    pub fn as_str(&self) -> &'static str {
        match self.renewal {
            Renewal::OwnClient => "automatic",
            Renewal::Refresh | Renewal::SignIn => self.state.as_str(),
        }
    }

    /// Whether the next token needs no sign-in.
    pub fn renews_itself(&self) -> bool {
        self.renewal != Renewal::SignIn
    }

    /// The state of a stored grant. Pure.
    pub fn judge(
        kept: Option<&StoredGrant>,
        need: Option<&str>,
        target: GrantTarget<'_>,
        now_ms: i64,
    ) -> Self {
        let grant = kept.and_then(Grant::read);
        let fits = |grant: &Grant| match target {
            GrantTarget::Server(url, settings) => grant.is_for(url, settings),
            GrantTarget::Described(url, issuer) => {
                grant.server_url == url.as_str() && grant.issuer == issuer.name()
            }
            GrantTarget::Unknown => false,
        };
        let is_orphaned = grant.as_ref().is_some_and(|grant| !fits(grant));
        let own = matches!(
            target,
            GrantTarget::Server(
                _,
                OAuthSettings {
                    grant: OAuthGrant::ClientCredentials(_) | OAuthGrant::TokenExchange(_),
                    ..
                }
            )
        );
        let usable = grant.as_ref().filter(|grant| fits(grant));
        let renewal = match usable {
            _ if own => Renewal::OwnClient,
            Some(grant) if grant.refresh_token.is_some() => Renewal::Refresh,
            _ => Renewal::SignIn,
        };
        let need = need.and_then(SignInNeed::read);
        let locked = kept.and_then(|kept| kept.content.as_ref().err().cloned());
        let is_over = usable.is_some_and(|grant| grant.is_over(now_ms));
        let is_renewing = kept.is_some_and(|kept| kept.renewing_until_ms >= now_ms);
        let state = match (&need, usable) {
            _ if locked.is_some() => GrantState::Locked(locked.unwrap_or_default()),
            _ if matches!(target, GrantTarget::Unknown) => {
                GrantState::Orphaned(OrphanCause::NotConfigured)
            }
            _ if own => GrantState::Active,
            (Some(SignInNeed { cause: SignInCause::IssuerChanged, .. }), _) => {
                GrantState::Orphaned(OrphanCause::IssuerChanged)
            }
            (_, None) if is_orphaned => GrantState::Orphaned(OrphanCause::AddressChanged),
            (_, None) => GrantState::NeedsSignIn(SignInCause::NotSignedIn),
            (_, Some(_)) if is_renewing => GrantState::Renewing,
            (Some(need), Some(_)) => GrantState::NeedsSignIn(match need.cause {
                SignInCause::NotSignedIn => SignInCause::Refused,
                cause => cause,
            }),
            (None, Some(_)) if is_over && renewal == Renewal::SignIn => {
                GrantState::NeedsSignIn(SignInCause::Expired)
            }
            (None, Some(_)) => GrantState::Active,
        };
        let shown = grant.as_ref();
        Self {
            state,
            is_signed_in: usable.is_some(),
            is_wanted: need.is_some(),
            issuer: shown.map(|grant| grant.issuer.clone()),
            scopes: shown.map(|grant| grant.granted.clone()).unwrap_or_default(),
            wanted_scopes: need.map(|need| need.scopes).unwrap_or_default(),
            expires_at_ms: shown.and_then(|grant| grant.expires_at_ms),
            renewal,
            is_encrypted: kept.map(|kept| kept.is_encrypted),
        }
    }
}

/// The URL and the OAuth settings of a server that has them.
pub(crate) fn wants_oauth(spec: &ServerSpec) -> Result<(&Url, &OAuthSettings), ConnectError> {
    spec.endpoint.oauth().ok_or_else(|| {
        let message = format!("no sign-in is configured for the server '{}'", spec.name);
        ConnectError::new(ConnectErrorKind::Protocol, message)
            .with_operator_hint("add `auth: {oauth: {}}` to its entry")
    })
}
