//! The connections of single owners, at a server where each owner has an account.
//!
//! A request uses a connection that was opened for its owner, and every request of a connection carries a token of the
//! connection's owner. There is no way from a request to another owner's connection, or to the supervised one.

use std::sync::Arc;

use switchboard_model::{
    AccountScope, ConnectError, ConnectErrorKind as Kind, GrantOwner, OAuthGrant,
};

use crate::connection_pool::ClientProfile;
use crate::open_connection::{ConnectionKey, Held};
use crate::server::Server;

impl Server {
    /// Whether each owner has an account of its own at this server.
    pub(crate) fn has_owners(&self) -> bool {
        self.spec().endpoint.account_scope() != AccountScope::Board
    }

    /// Whether it is called with tokens for which those of callers are exchanged.
    fn exchanges_tokens(&self) -> bool {
        let oauth = self.spec().endpoint.oauth();
        oauth.is_some_and(|(_, settings)| matches!(settings.grant, OAuthGrant::TokenExchange(_)))
    }

    /// The owner of the account that a request of this client uses.
    pub(crate) fn account_owner(&self, client: &ClientProfile) -> Result<GrantOwner, ConnectError> {
        let missing = |what: &str| {
            let message =
                format!("this server has one account for each {what}, and the request has none");
            ConnectError::new(Kind::Unauthorized, message)
        };
        match self.spec().endpoint.account_scope() {
            AccountScope::Board => Ok(GrantOwner::Board),
            AccountScope::Person => {
                let identity = client.identity.as_ref().ok_or_else(|| missing("user"))?;
                let owner = if self.exchanges_tokens() {
                    identity.exchange_owner()
                } else {
                    identity.person.clone()
                };
                Ok(GrantOwner::Person(owner))
            }
            AccountScope::Session => {
                let session = client
                    .session
                    .clone()
                    .ok_or_else(|| missing("session").with_hint("make the call in a session"))?;
                Ok(GrantOwner::Session(session))
            }
        }
    }

    /// The connection of the client's owner; opened if necessary. An owner without a sign-in gets
    /// [`Kind::SignIn`], and nothing is sent to the server.
    pub(crate) async fn connection_of_owner(
        self: &Arc<Self>,
        client: &ClientProfile,
    ) -> Result<Held, ConnectError> {
        let owner = self.account_owner(client)?;
        let sign_ins = self.around().options.sign_ins.as_ref();
        let authorization =
            sign_ins.and_then(|all| all.authorization_of(self.spec(), owner.clone()));
        let has_token = match &authorization {
            Some(authorization) => authorization.token().await?.is_some(),
            None => false,
        };
        if !has_token {
            let message =
                format!("needs sign-in: this account is not signed in at '{}'", self.spec().name);
            return Err(ConnectError::new(Kind::SignIn, message));
        }
        let known_era = self.status().era;
        if let Some(key) = known_era.and_then(|era| self.other_era_for(client, era, Some(&owner))) {
            match Box::pin(self.pooled(&key, client)).await {
                Ok(held) => return Ok(held),
                Err(error) if error.kind == Kind::SignIn => return Err(error),
                Err(error) => {
                    tracing::debug!(server = %self.spec().name, %error, "served in the other era");
                }
            }
        }
        let session = self.own_session(client);
        self.pooled(&ConnectionKey { owner: Some(owner), session, era: None }, client).await
    }
}
