//! The accounts of single owners at a server, for commands that inspect it.

use switchboard_mcp_client::ConnectOptions;
use switchboard_model::{
    AccountScope, GrantId, GrantOwner, ListingAccount, OAuthGrant, ServerSpec,
};
use switchboard_oauth::{GrantState, GrantTarget, SignInState, SignIns};

/// The stored accounts of a server at which each owner has one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerAccounts {
    per: AccountScope,
    is_exchange: bool,
    /// The account that lists the tools.
    lists: Option<GrantOwner>,
    active: usize,
    /// Those that somebody must sign in again, or that belong to nothing any more.
    others: usize,
}

impl ServerAccounts {
    /// Reads them. `None` for a server whose account all callers share.
    pub(crate) async fn read(spec: &ServerSpec, sign_ins: Option<&SignIns>) -> Option<Self> {
        let (url, settings) = spec.endpoint.oauth()?;
        if settings.per == AccountScope::Board {
            return None;
        }
        let is_exchange = matches!(settings.grant, OAuthGrant::TokenExchange(_));
        let mut accounts = Self { per: settings.per, is_exchange, ..Self::default() };
        let tokens = sign_ins?.tokens();
        let purpose = GrantId::of_server(&spec.name).purpose;
        for kept in tokens.list().await.unwrap_or_default() {
            if kept.id.purpose != purpose {
                continue;
            }
            let target = GrantTarget::Server(url, settings);
            let state = SignInState::of(&kept.id, target, &**tokens).await.ok()?;
            let is_active = matches!(state.state, GrantState::Active | GrantState::Renewing);
            let is_board = kept.id.owner == GrantOwner::Board;
            match (is_board, is_active) {
                (false, true) => accounts.active += 1,
                (false, false) => accounts.others += 1,
                (true, _) => {}
            }
            let may_list = is_board || settings.listing == ListingAccount::First;
            if is_active && may_list && (is_board || accounts.lists.is_none()) {
                accounts.lists = Some(kept.id.owner);
            }
        }
        Some(accounts)
    }

    /// The options of a connection that lists the tools; `None` if no account can.
    pub(crate) fn options(&self, options: &ConnectOptions) -> Option<ConnectOptions> {
        let owner = self.lists.clone()?;
        Some(ConnectOptions { owner, ..options.clone() })
    }

    /// Why no account lists the tools, and what to do about it.
    pub(crate) fn why_unlisted(&self, name: &str) -> (String, String) {
        if self.is_exchange {
            let hint = "its tools appear with the first request that carries a token";
            return ("it is called with the tokens of callers".to_owned(), hint.to_owned());
        }
        let hint = format!(
            "`switchboard auth login {name}` signs the board in, to list the tools; with --url users sign in"
        );
        ("no account is signed in, so its tools are not known".to_owned(), hint)
    }
}

impl std::fmt::Display for ServerAccounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_exchange {
            return f.write_str("the tokens of callers are exchanged");
        }
        let per = self.per.as_str();
        write!(f, "an account for each {per}: {} active", self.active)?;
        if self.others > 0 {
            write!(f, ", {} that cannot be used", self.others)?;
        }
        match &self.lists {
            Some(GrantOwner::Board) => f.write_str("; that of the board lists the tools"),
            Some(GrantOwner::Person(_) | GrantOwner::Session(_)) => {
                f.write_str("; one of them lists the tools")
            }
            None => Ok(()),
        }
    }
}
