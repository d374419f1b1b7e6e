//! The account that lists the tools of a server at which each owner has an account.
//!
//! All callers see the same tools, so one account lists them: the board's if it is signed in, else that of the first owner
//! who signed in. Calls never use it.

use std::time::Duration;

use switchboard_model::{
    AccountScope, ConnectError, ConnectErrorKind as Kind, GrantId, GrantOwner, ListingAccount,
    OAuthGrant, ServerSpec,
};
use switchboard_oauth::{SignIns, StoredGrant, TokenStoreError};

use crate::server::Server;
use crate::server_context::ServerContext;

/// The interval at which a server that nobody has signed in to looks for sign-ins.
const LOOKING: Duration = Duration::from_secs(1);
/// How many accounts are tried in turn.
const MAX_TRIED: usize = 8;

impl Server {
    /// The accounts that may list the tools, in the order in which they are tried.
    pub(crate) async fn listing_owners(
        &self,
        around: &ServerContext,
    ) -> Result<Vec<GrantOwner>, ConnectError> {
        let spec = self.spec();
        let Some((_, settings)) =
            spec.endpoint.oauth().filter(|(_, it)| it.per != AccountScope::Board)
        else {
            return Ok(vec![GrantOwner::Board]);
        };
        let Some(sign_ins) = around.options.sign_ins.as_ref() else {
            return Err(nobody_signed_in(spec));
        };
        if matches!(settings.grant, OAuthGrant::TokenExchange(_)) {
            let (_, persons) = sign_ins.subjects().persons();
            let persons = persons.into_iter().map(GrantOwner::Person);
            let owners: Vec<_> =
                persons.filter(|owner| !around.owners.is_gone(owner)).take(MAX_TRIED).collect();
            return if owners.is_empty() { Err(nobody_signed_in(spec)) } else { Ok(owners) };
        }
        let grants = grants_of(spec, sign_ins).await;
        let grants = grants.map_err(|error| ConnectError::new(Kind::SignIn, error.message))?;
        let listed_before = self.listing_owner();
        let mut owners: Vec<_> = grants
            .into_iter()
            .map(|kept| kept.id.owner)
            .filter(|owner| !around.owners.is_gone(owner))
            .filter(|owner| match settings.listing {
                ListingAccount::Board => *owner == GrantOwner::Board,
                ListingAccount::First => true,
            })
            .collect();
        owners.dedup();
        owners.sort_by_key(|owner| {
            (*owner != GrantOwner::Board, Some(owner) != listed_before.as_ref())
        });
        owners.truncate(MAX_TRIED);
        if owners.is_empty() { Err(nobody_signed_in(spec)) } else { Ok(owners) }
    }
}

/// The stored sign-ins to a server.
async fn grants_of(
    spec: &ServerSpec,
    sign_ins: &SignIns,
) -> Result<Vec<StoredGrant>, TokenStoreError> {
    let GrantId { purpose, .. } = GrantId::of_server(&spec.name);
    let is_ours = |kept: &StoredGrant| kept.content.is_ok() && kept.id.purpose == purpose;
    Ok(sign_ins.tokens().list().await?.into_iter().filter(is_ours).collect())
}

/// Returns when an owner has signed in or out. Cancel-safe.
pub(crate) async fn accounts_changed(server: &Server, sign_ins: &SignIns) {
    let versions = async || {
        let subjects = sign_ins.subjects().persons().0;
        let grants = grants_of(server.spec(), sign_ins).await.ok()?;
        let grants = grants.into_iter().map(|kept| (kept.id, kept.issuer, kept.version));
        Some((subjects, grants.collect::<Vec<_>>()))
    };
    let before = versions().await;
    loop {
        tokio::time::sleep(LOOKING).await;
        if versions().await != before {
            return;
        }
    }
}

/// The state of a server that no account can list.
pub(crate) fn nobody_signed_in(spec: &ServerSpec) -> ConnectError {
    let settings = spec.endpoint.oauth().map(|(_, settings)| settings);
    if settings.is_some_and(|settings| matches!(settings.grant, OAuthGrant::TokenExchange(_))) {
        let message = "no caller has shown a token yet, so its tools are not known";
        return ConnectError::new(Kind::SignIn, message)
            .with_operator_hint("its tools appear with the first request that carries a token");
    }
    let listing = settings.map(|settings| settings.listing).unwrap_or_default();
    let (message, hint) = match listing {
        ListingAccount::First => (
            "needs sign-in: nobody has signed in yet, so its tools are not known",
            format!(
                "`switchboard auth login {} --url ADDRESS` signs in; its tools appear then",
                spec.name
            ),
        ),
        ListingAccount::Board => (
            "needs sign-in: the account of the board lists its tools and is not signed in",
            format!("`switchboard auth login {}` signs in, where the board runs", spec.name),
        ),
    };
    ConnectError::new(Kind::SignIn, message).with_operator_hint(hint)
}
