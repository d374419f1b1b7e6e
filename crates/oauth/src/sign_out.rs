//! Signing out: tokens are revoked where the authorization server takes that (RFC 7009), then forgotten here.

use switchboard_model::{
    ConnectError, DescribedIssuer, GrantId, OAuthSettings, Secret, ServerSpec,
};
use url::Url;

use crate::authorization_server::{AuthorizationServer, FlowClient};
use crate::discovery::discover;
use crate::failure::unkept;
use crate::grant::Grant;
use crate::token_store::TokenStore;

/// What became of the tokens of a sign-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedOut {
    /// Nobody was signed in.
    WasNot,
    /// They are forgotten, and the authorization server has revoked them.
    Revoked,
    /// They are forgotten; the authorization server has no revocation endpoint.
    Forgotten,
    /// They are forgotten here, but the authorization server may still accept them.
    NotRevoked(ConnectError),
}

/// Where tokens are revoked.
#[derive(Debug, Clone, Copy)]
pub enum RevocationTarget<'a> {
    /// The authorization server that this server names.
    Server(&'a Url, &'a OAuthSettings),
    Described(&'a DescribedIssuer),
    /// Not known any more.
    Unknown,
}

impl<'a> RevocationTarget<'a> {
    /// The target of the tokens for a server.
    pub fn of(spec: &'a ServerSpec) -> Self {
        match spec.endpoint.oauth() {
            Some((url, settings)) => Self::Server(url, settings),
            None => Self::Unknown,
        }
    }
}

/// Revokes the tokens of this purpose and owner, and forgets them. What cannot be revoked is forgotten all the same.
pub async fn sign_out(
    id: &GrantId,
    target: RevocationTarget<'_>,
    tokens: &dyn TokenStore,
) -> Result<SignedOut, ConnectError> {
    // A grant that cannot be decrypted is forgotten without being revoked.
    let grant = match tokens.load(id, None).await {
        Ok(kept) => Ok(kept.as_ref().and_then(Grant::read)),
        Err(locked) => Err(unkept(&locked)),
    };
    let revoked = match grant {
        Ok(Some(grant)) => revoke(&grant, target).await,
        Ok(None) => Ok(false),
        Err(error) => Err(error),
    };
    if !tokens.forget(id).await.map_err(|error| unkept(&error))? {
        return Ok(SignedOut::WasNot);
    }
    Ok(match revoked {
        Ok(true) => SignedOut::Revoked,
        Ok(false) => SignedOut::Forgotten,
        Err(error) => SignedOut::NotRevoked(error),
    })
}

/// The tokens of an account that is about to be forgotten together with its owner.
pub struct EndingAccount(Grant);

impl std::fmt::Debug for EndingAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndingAccount").finish_non_exhaustive()
    }
}

impl EndingAccount {
    /// The tokens of this purpose and owner; `None` if there are none that can be read.
    pub async fn of(id: &GrantId, tokens: &dyn TokenStore) -> Option<Self> {
        let kept = tokens.load(id, None).await.ok()??;
        Grant::read(&kept).map(Self)
    }

    /// Revokes the tokens. Returns `false` if the authorization server has no endpoint for it.
    pub async fn revoke(&self, target: RevocationTarget<'_>) -> Result<bool, ConnectError> {
        revoke(&self.0, target).await
    }
}

/// Whether the tokens were revoked; `false` if there is no endpoint for it.
async fn revoke(grant: &Grant, target: RevocationTarget<'_>) -> Result<bool, ConnectError> {
    let server = match target {
        // Such tokens are short-lived, and the client's credentials stay valid.
        _ if grant.is_own => return Ok(false),
        RevocationTarget::Server(url, settings) if grant.is_for(url, settings) => {
            let found = discover(url, None).await?;
            if found.issuer != grant.issuer {
                return Ok(false);
            }
            found.server().await?
        }
        RevocationTarget::Server(..) | RevocationTarget::Unknown => return Ok(false),
        RevocationTarget::Described(issuer) => AuthorizationServer::described(issuer).await?,
    };
    let Some(revoke_url) = server.revoke_url.clone() else { return Ok(false) };
    let secret = grant.client_secret.as_deref().map(Secret::new);
    let client = FlowClient { id: grant.client_id.clone(), secret };
    // A revoked refresh token ends the access tokens of its family too.
    let (token, hint) = match &grant.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&grant.access_token, "access_token"),
    };
    let params = [("token", token.as_str()), ("token_type_hint", hint)];
    let answered = server.post(&revoke_url, &client, &params).await;
    answered.map(|_| true).map_err(|failure| failure.into_error(&server.issuer))
}
