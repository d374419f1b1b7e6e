//! Accounts of users at MCP servers: show them, sign in, store a token, sign out.

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_api::{AccountList, AccountToken, AccountView, SignInView, SignOutView};
use switchboard_auth::Principal;
use switchboard_model::{ConnectError, Face, Secret, ServerName};
use switchboard_runtime::{AccountChoice, AccountError, AccountState, FlowEnd, SignInPrompt};
use switchboard_sessions::SessionService;

use crate::answers::{
    AccountRefused, BadRequest, Guarded, StoreFailed, TakesBody, UnknownAccountServer, WrongShape,
};
use crate::extract::{FromBody, FromPath, FromQuery};
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadySessions, ReadyTurns};
use crate::{present, provider_accounts};

/// Names a server.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AccountPath {
    /// The name of a server at which users have accounts.
    #[param(min_length = 1, example = "tracker")]
    server: String,
}

/// Names a sign-in.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AccountSignIn {
    /// The name of the server.
    #[param(min_length = 1, example = "tracker")]
    server: String,
    /// The id of the sign-in.
    #[param(min_length = 1, example = "0f1e")]
    id: String,
}

/// Which account at the server is meant.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhichAccount {
    /// `board` means the account of the board, which lists the tools of a server at which each user has an account. Needs
    /// the role admin. Without it, the account that your calls use is meant.
    #[param(inline, example = "board")]
    owner: Option<NamedOwner>,
}

/// An owner that a request can name.
#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NamedOwner {
    Board,
}

impl WhichAccount {
    fn choice(&self) -> AccountChoice {
        match self.owner {
            Some(NamedOwner::Board) => AccountChoice::Board,
            None => AccountChoice::OfCalls,
        }
    }
}

/// Whose accounts are listed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhoseAccounts {
    /// Whether the accounts of the board, at servers and model providers, and those of all owners are listed. Needs the
    /// role operator.
    #[serde(default)]
    #[param(default = false)]
    all: bool,
}

/// List accounts at servers
///
/// Your own accounts at the servers where each user has one, signed in or not. An operator may list those of the board and
/// of all owners. Tokens are never shown.
#[utoipa::path(
    get,
    path = "/api/v1/accounts",
    operation_id = "listAccounts",
    tag = "accounts",
    params(WhoseAccounts),
    responses(
        (status = 200, description = "The accounts.", body = AccountList),
        Guarded,
        BadRequest,
        StoreFailed,
    )
)]
pub(crate) async fn list(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    ReadyTurns(turns): ReadyTurns,
    Extension(principal): Extension<Principal>,
    FromQuery(whose): FromQuery<WhoseAccounts>,
) -> Result<Json<AccountList>, ProblemResponse> {
    if whose.all && !principal.oversees() {
        let detail = "the accounts of others need the role operator, with access to all tools";
        return Err(ProblemResponse::new("forbidden", StatusCode::FORBIDDEN, detail));
    }
    let states = board.account_states(&principal.caller(Face::Http), whose.all).await;
    let mut states = states.map_err(|error| unavailable(&error))?;
    // A server that is not configured any more is no secret to those who may use all.
    let is_left =
        |account: &AccountState| account.per.is_none() && principal.access.load().has_all_tools();
    states.retain(|account| {
        is_left(account) || may_use(&sessions, &principal, account.server.as_str())
    });
    let providers = if whose.all {
        let accounts = turns.providers().accounts().await.map_err(|error| unavailable(&error))?;
        accounts.into_iter().map(provider_accounts::view).collect()
    } else {
        Vec::new()
    };
    Ok(Json(AccountList { accounts: states.iter().map(view).collect(), providers }))
}

/// Begin a sign-in
///
/// Opens a page on which you sign in at the server with your own account. Open its address in a browser within ten
/// minutes. Where the board has credentials, the page asks for the code. At a server whose account all callers share, an
/// administrator signs in for the board.
#[utoipa::path(
    post,
    path = "/api/v1/accounts/{server}/sign-ins",
    operation_id = "beginSignIn",
    tag = "accounts",
    params(AccountPath, WhichAccount),
    responses(
        (status = 201, description = "The page.", body = SignInView),
        Guarded,
        BadRequest,
        UnknownAccountServer,
        AccountRefused,
        StoreFailed,
    )
)]
pub(crate) async fn begin(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(AccountPath { server }): FromPath<AccountPath>,
    FromQuery(which): FromQuery<WhichAccount>,
) -> Result<(StatusCode, Json<SignInView>), ProblemResponse> {
    check_access(&sessions, &principal, &server)?;
    let (server, caller) = (ServerName::new(server), principal.caller(Face::Http));
    let begun = board.begin_sign_in(&server, which.choice(), &caller).await;
    let prompt = begun.map_err(|error| refused(&error))?;
    Ok((StatusCode::CREATED, Json(sign_in(&prompt))))
}

/// Follow a sign-in
///
/// Whether the person has signed in. Only the person who began it sees it.
#[utoipa::path(
    get,
    path = "/api/v1/accounts/{server}/sign-ins/{id}",
    operation_id = "getSignIn",
    tag = "accounts",
    params(AccountSignIn),
    responses(
        (status = 200, description = "The sign-in.", body = SignInView),
        Guarded,
        BadRequest,
        UnknownAccountServer,
        StoreFailed,
    )
)]
pub(crate) async fn follow(
    Ready(board): Ready,
    Extension(principal): Extension<Principal>,
    FromPath(AccountSignIn { server, id }): FromPath<AccountSignIn>,
) -> Result<Json<SignInView>, ProblemResponse> {
    let flow = board.accounts().flow(&id).filter(|flow| {
        flow.server().as_str() == server && *flow.person() == principal.identity.person
    });
    let page = flow.as_ref().and_then(|flow| board.accounts().page_of(flow));
    let (Some(flow), Some(page)) = (flow, page) else {
        let detail = "there is no such sign-in";
        return Err(ProblemResponse::new("unknown_sign_in", StatusCode::NOT_FOUND, detail));
    };
    Ok(Json(sign_in(&SignInPrompt { page, flow })))
}

/// Store a token
///
/// Stores your own token for a server with `auth.bearer: {per: user}`, in place of an earlier one.
#[utoipa::path(
    put,
    path = "/api/v1/accounts/{server}/token",
    operation_id = "setAccountToken",
    tag = "accounts",
    params(AccountPath, WhichAccount),
    request_body(content = AccountToken, description = "The token."),
    responses(
        (status = 204, description = "The token is stored."),
        Guarded,
        TakesBody,
        UnknownAccountServer,
        AccountRefused,
        WrongShape,
        StoreFailed,
    )
)]
pub(crate) async fn set_token(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(AccountPath { server }): FromPath<AccountPath>,
    FromQuery(which): FromQuery<WhichAccount>,
    FromBody(body): FromBody<AccountToken>,
) -> Result<StatusCode, ProblemResponse> {
    check_access(&sessions, &principal, &server)?;
    let (caller, token) = (principal.caller(Face::Http), Secret::new(body.token));
    let server = ServerName::new(server);
    let stored = board.store_account_token(&server, which.choice(), &caller, &token).await;
    stored.map_err(|error| refused(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sign out
///
/// Forgets your own account at a server and closes its connections.
#[utoipa::path(
    delete,
    path = "/api/v1/accounts/{server}",
    operation_id = "signOut",
    tag = "accounts",
    params(AccountPath, WhichAccount),
    responses(
        (status = 200, description = "Whether there was an account.", body = SignOutView),
        Guarded,
        BadRequest,
        UnknownAccountServer,
        AccountRefused,
        StoreFailed,
    )
)]
pub(crate) async fn sign_out(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(AccountPath { server }): FromPath<AccountPath>,
    FromQuery(which): FromQuery<WhichAccount>,
) -> Result<Json<SignOutView>, ProblemResponse> {
    check_access(&sessions, &principal, &server)?;
    let (name, caller) = (ServerName::new(server.as_str()), principal.caller(Face::Http));
    let signed_out = board.sign_out(&name, which.choice(), &caller).await;
    let signed_out = signed_out.map_err(|error| refused(&error))?;
    Ok(Json(SignOutView { server, signed_out }))
}

/// Whether a server exists for a principal. Those that its access withholds do not.
fn may_use(sessions: &SessionService, principal: &Principal, server: &str) -> bool {
    principal.oversees() || sessions.may_permit_server(server, &principal.access)
}

/// Answers for a server that a principal may not know of as for one that is not configured.
fn check_access(
    sessions: &SessionService,
    principal: &Principal,
    server: &str,
) -> Result<(), ProblemResponse> {
    if may_use(sessions, principal, server) {
        return Ok(());
    }
    Err(refused(&AccountError::UnknownServer(ServerName::new(server))))
}

fn sign_in(prompt: &SignInPrompt) -> SignInView {
    SignInView {
        server: prompt.page.server.to_string(),
        id: prompt.flow.id().to_string(),
        url: prompt.page.url.clone(),
        code: prompt.page.code.clone(),
        state: word(prompt.flow.end()).into(),
        expires_at_ms: prompt.page.expires_at_ms,
    }
}

fn word(end: FlowEnd) -> &'static str {
    match end {
        FlowEnd::Open => "open",
        FlowEnd::SignedIn => "signed_in",
        FlowEnd::Failed => "failed",
    }
}

fn view(account: &AccountState) -> AccountView {
    let state = &account.state;
    AccountView {
        server: account.server.to_string(),
        owner: account.owner.to_string(),
        state: state.as_str().into(),
        reason: state.state.reason().map(str::to_owned),
        issuer: state.issuer.clone(),
        scopes: state.scopes.clone(),
        wanted_scopes: state.wanted_scopes.clone(),
        expires_at: present::expiry(state),
        is_renewed: state.renews_itself(),
    }
}

fn refused(error: &AccountError) -> ProblemResponse {
    let (kind, status) = match error {
        AccountError::UnknownServer(_) => ("unknown_server", StatusCode::NOT_FOUND),
        AccountError::NeedsAdmin => ("forbidden", StatusCode::FORBIDDEN),
        AccountError::Shared(_) | AccountError::Refused(_) => ("no_account", StatusCode::CONFLICT),
    };
    let mut problem = ProblemResponse::new(kind, status, error.to_string());
    problem.0.hint = error.hint();
    problem
}

fn unavailable(error: &ConnectError) -> ProblemResponse {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    ProblemResponse::new("store_unavailable", status, error.message.clone())
}
