//! The accounts of single owners, as the faces see them: begin a sign-in, show, store a token, sign out.

use std::sync::Arc;

use switchboard_model::{
    AccountScope, Caller, ConnectError, ConnectErrorKind as Kind, GrantId, GrantOwner,
    GrantPurpose, Identity, OAuthGrant, Role, Secret, ServerName, ServerSpec,
};
use switchboard_oauth::{
    EndingAccount, GrantState, GrantTarget, OrphanCause, RevocationTarget, SignInState, SignIns,
    SignedOut, TokenStoreError, sign_out, stored_token,
};

use crate::account_error::AccountError;
use crate::accounts::Accounts;
use crate::board::Board;
use crate::server::Server;
use crate::sign_in_prompt::SignInPrompt;

/// Which account at a server is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccountChoice {
    /// The one that the caller's calls use.
    #[default]
    OfCalls,
    /// The board's: it lists the tools of a server at which each user has an account.
    Board,
}

/// One account at a server.
#[derive(Debug, Clone)]
pub struct AccountState {
    pub server: ServerName,
    pub owner: GrantOwner,
    /// Whose account a call to this server uses; `None` if the server is not configured any more.
    pub per: Option<AccountScope>,
    pub state: SignInState,
}

/// The account of a session that is about to end.
#[derive(Debug)]
pub struct SessionAccount {
    server: Arc<Server>,
    tokens: EndingAccount,
}

impl Board {
    /// The sign-ins that callers are asked for.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Opens a page on which this caller signs in at a server. Only an administrator signs in for the board.
    pub async fn begin_sign_in(
        &self,
        server: &ServerName,
        choice: AccountChoice,
        caller: &Caller,
    ) -> Result<SignInPrompt, AccountError> {
        let server = self.account_server(server)?;
        let owner = server.owner_of_caller(caller, choice)?;
        check_sign_in(server.spec())?;
        Ok(self.accounts.begin(&server, owner, caller).await?)
    }

    /// The accounts of this caller: one for each server where users have accounts, signed in or not. With `all`, also
    /// the accounts of the board and of all other owners.
    pub async fn account_states(
        &self,
        caller: &Caller,
        all: bool,
    ) -> Result<Vec<AccountState>, ConnectError> {
        let tokens = self.accounts.tokens();
        let published = self.published.load_full();
        let target = |server: &ServerName| match published.servers.get(server) {
            Some(server) => match server.spec().endpoint.oauth() {
                Some((url, settings)) => (GrantTarget::Server(url, settings), Some(settings.per)),
                None => (GrantTarget::Unknown, None),
            },
            None => (GrantTarget::Unknown, None),
        };
        let mut wanted: Vec<(ServerName, GrantOwner)> = Vec::new();
        for plan in &published.plan().servers {
            let owner = match plan.spec.endpoint.account_scope() {
                AccountScope::Board if !all || plan.spec.endpoint.oauth().is_none() => continue,
                AccountScope::Board => GrantOwner::Board,
                AccountScope::Person => GrantOwner::Person(caller.person().clone()),
                AccountScope::Session => match &caller.session {
                    Some(session) => GrantOwner::Session(session.clone()),
                    None => continue,
                },
            };
            wanted.push((plan.spec.name.clone(), owner));
        }
        let own = GrantOwner::Person(caller.person().clone());
        for kept in tokens.list().await.map_err(|error| unread(&error))? {
            let GrantPurpose::Server(server) = kept.id.purpose else { continue };
            let entry = (server, kept.id.owner);
            if (all || entry.1 == own) && !wanted.contains(&entry) {
                wanted.push(entry);
            }
        }
        let mut states = Vec::with_capacity(wanted.len());
        for (server, owner) in wanted {
            let id = GrantId::of_server(&server).with_owner(owner.clone());
            let (target, per) = target(&server);
            let mut state = SignInState::of(&id, target, &**tokens).await?;
            if self.around.owners.is_gone(&owner) {
                state.state = GrantState::Orphaned(OrphanCause::OwnerGone);
            }
            states.push(AccountState { server, owner, per, state });
        }
        Ok(states)
    }

    /// Stores a token of this caller for a server with `auth.bearer.per`.
    pub async fn store_account_token(
        &self,
        server: &ServerName,
        choice: AccountChoice,
        caller: &Caller,
        token: &Secret,
    ) -> Result<(), AccountError> {
        let server = self.account_server(server)?;
        let owner = server.owner_of_caller(caller, choice)?;
        let id = GrantId::of_server(&server.spec().name).with_owner(owner.clone());
        stored_token(server.spec(), token, &**self.accounts.tokens(), &id).await?;
        self.end_account_use(&server, &owner);
        Ok(())
    }

    /// Revokes the tokens of this caller at a server where its authorization server takes that, forgets them, and closes the
    /// connections. Returns whether there was an account.
    pub async fn sign_out(
        &self,
        server: &ServerName,
        choice: AccountChoice,
        caller: &Caller,
    ) -> Result<bool, AccountError> {
        let server = self.account_server(server)?;
        let owner = server.owner_of_caller(caller, choice)?;
        let id = GrantId::of_server(&server.spec().name).with_owner(owner.clone());
        let target = RevocationTarget::of(server.spec());
        let signed_out = sign_out(&id, target, &**self.accounts.tokens()).await?;
        self.end_account_use(&server, &owner);
        self.accounts.may_ask_again(&server.spec().name, &owner);
        if let SignedOut::NotRevoked(error) = &signed_out {
            tracing::warn!(
                server = %server.spec().name, %error,
                "signed out, but the tokens could not be revoked at the authorization server"
            );
        }
        Ok(signed_out != SignedOut::WasNot)
    }

    /// The accounts of a session that is about to end. The store forgets them with the session, so their tokens are read
    /// before it; [`Board::revoke_accounts`] revokes them when the session has ended.
    pub async fn accounts_of_session(&self, session: &str) -> Vec<SessionAccount> {
        let owner = GrantOwner::Session(session.into());
        let mut accounts = Vec::new();
        for server in self.servers_of_sessions() {
            let id = GrantId::of_server(&server.spec().name).with_owner(owner.clone());
            let tokens = EndingAccount::of(&id, &**self.accounts.tokens()).await;
            accounts.extend(tokens.map(|tokens| SessionAccount { server, tokens }));
        }
        accounts
    }

    /// Revokes the tokens of ended accounts in the background.
    pub fn revoke_accounts(&self, accounts: Vec<SessionAccount>) {
        for SessionAccount { server, tokens } in accounts {
            self.around.tasks.spawn(async move {
                let spec = server.spec();
                if let Err(error) = tokens.revoke(RevocationTarget::of(spec)).await {
                    tracing::warn!(
                        server = %spec.name, %error,
                        "a session has ended, and the tokens of its account could not be revoked"
                    );
                }
            });
        }
    }

    /// Ends the use of the accounts of an ended session.
    pub(crate) fn end_session_accounts(&self, session: &str) {
        let owner = GrantOwner::Session(session.into());
        for server in self.servers_of_sessions() {
            self.end_account_use(&server, &owner);
        }
    }

    /// The servers at which each session has an account.
    fn servers_of_sessions(&self) -> Vec<Arc<Server>> {
        let has_accounts =
            |server: &&Arc<Server>| server.spec().endpoint.account_scope() == AccountScope::Session;
        self.published.load().servers.values().filter(has_accounts).cloned().collect()
    }

    /// Closes the connections of an owner to a server, because another account was signed in.
    pub fn account_changed(&self, server: &ServerName, owner: &GrantOwner) {
        if let Some(server) = self.published.load().servers.get(server) {
            self.end_account_use(server, owner);
        }
    }

    /// Ends the use of an owner's tokens that are in memory.
    fn end_account_use(&self, server: &Server, owner: &GrantOwner) {
        self.accounts.look_again(&server.spec().name, owner);
        server.close_owner(owner);
    }

    /// Notes the token that somebody showed, which was verified. It is kept in memory, and only if a server of the
    /// configuration exchanges the tokens of callers.
    pub fn note_subject_token<'a>(
        &self,
        identity: &Identity,
        token: impl FnOnce() -> Option<&'a str>,
    ) {
        let subjects = self.around.options.sign_ins.as_ref().map(SignIns::subjects);
        if let Some(subjects) = subjects.filter(|subjects| subjects.is_wanted())
            && let Some(token) = token()
        {
            subjects.note(&identity.exchange_owner(), token);
        }
    }

    /// Sets the check whether a person is gone, for [`Board::close_gone_owners`]. Later calls have no effect.
    pub fn know_owners(&self, is_gone: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.around.owners.set(Box::new(is_gone));
    }

    /// Closes the connections of persons who are gone, also those in use.
    pub fn close_gone_owners(&self) {
        for server in self.published.load().servers.values().filter(|server| server.has_owners()) {
            if server.listing_owner().is_some_and(|owner| self.around.owners.is_gone(&owner)) {
                server.forget_listing_owner();
                server.reconnect_wanted.notify_one();
            }
            for owner in server.connected_owners() {
                if self.around.owners.is_gone(&owner) {
                    tracing::info!(server = %server.spec().name, "an owner is gone; its connections are closed");
                    self.end_account_use(server, &owner);
                }
            }
        }
    }

    fn account_server(&self, name: &ServerName) -> Result<Arc<Server>, AccountError> {
        let published = self.published.load();
        let found = published.servers.get(name).filter(|_| !name.is_attached());
        found.cloned().ok_or_else(|| AccountError::UnknownServer(name.clone()))
    }
}

impl Server {
    /// The owner of the account that this caller means. Only an administrator changes that of the board.
    fn owner_of_caller(
        &self,
        caller: &Caller,
        choice: AccountChoice,
    ) -> Result<GrantOwner, AccountError> {
        let is_admin = caller.role >= Role::Admin;
        match choice {
            AccountChoice::Board if is_admin => return Ok(GrantOwner::Board),
            AccountChoice::Board => return Err(AccountError::NeedsAdmin),
            AccountChoice::OfCalls => {}
        }
        let client = crate::connection_pool::ClientProfile {
            session: caller.session.clone(),
            identity: Some(caller.identity.clone()),
            ..crate::connection_pool::ClientProfile::default()
        };
        match self.account_owner(&client)? {
            GrantOwner::Board if !is_admin => Err(AccountError::Shared(self.spec().name.clone())),
            owner => Ok(owner),
        }
    }
}

/// Refuses a server at which nobody signs in.
fn check_sign_in(spec: &ServerSpec) -> Result<(), ConnectError> {
    let name = &spec.name;
    let why = match spec.endpoint.oauth().map(|(_, settings)| &settings.grant) {
        Some(OAuthGrant::SignIn(_) | OAuthGrant::StoredToken) => return Ok(()),
        Some(OAuthGrant::TokenExchange(_)) => {
            format!("'{name}' needs no sign-in: it uses the tokens that callers show")
        }
        Some(OAuthGrant::ClientCredentials(_)) => {
            format!("'{name}' needs no sign-in: it uses the client credentials grant")
        }
        None => format!("no sign-in is configured for the server '{name}'"),
    };
    Err(ConnectError::new(Kind::Protocol, why))
}

fn unread(error: &TokenStoreError) -> ConnectError {
    ConnectError::new(Kind::Unreachable, error.message.clone())
}
