//! Accounts of the board at model providers: administrators sign in and out.

use std::num::NonZeroU16;

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_api::{
    ProviderAccountView, ProviderSignInAnswer, ProviderSignInBody, ProviderSignInView,
    ProviderSignOutView, ProviderSignedInView,
};
use switchboard_auth::Principal;
use switchboard_model::DEFAULT_CREDENTIAL;
use switchboard_oauth::SignedOut;
use switchboard_providers::{CredentialState, ProviderAccount, ProviderAccountError};

use crate::answers::{
    BadRequest, Guarded, ProviderAccountRefused, StoreFailed, TakesBody, UnknownProviderAccount,
    WrongShape,
};
use crate::extract::{FromBody, FromPath, FromQuery};
use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::ReadyTurns;

/// Names a provider.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ModelProviderName {
    /// The name of a model provider.
    #[param(min_length = 1, example = "google")]
    pub(crate) provider: String,
}

/// Names a sign-in at a provider.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ProviderSignIn {
    /// The name of the provider.
    #[param(min_length = 1, example = "google")]
    provider: String,
    /// The id of the sign-in.
    #[param(min_length = 1, example = "u7Fq")]
    id: String,
}

/// Names a credential.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhichCredential {
    /// The name of the credential; without it, the default one.
    #[param(min_length = 1, max_length = 64, example = "work")]
    pub(crate) credential: Option<String>,
}

/// Begin a sign-in at a provider
///
/// Signs the board in at a model provider with `auth: {kind: oauth}`. Open `url` in a browser. The browser comes back to
/// `redirect_uri` on the machine of the person; send the address that it ends at as the answer within ten minutes. Needs
/// the role admin.
#[utoipa::path(
    post,
    path = "/api/v1/providers/{provider}/sign-ins",
    operation_id = "beginProviderSignIn",
    tag = "accounts",
    params(ModelProviderName),
    request_body(content = ProviderSignInBody, description = "The credential, and the port at which the browser is awaited."),
    responses(
        (status = 201, description = "The sign-in.", body = ProviderSignInView),
        Guarded,
        TakesBody,
        WrongShape,
        UnknownProviderAccount,
        ProviderAccountRefused,
        StoreFailed,
    )
)]
pub(crate) async fn begin(
    ReadyTurns(turns): ReadyTurns,
    Extension(principal): Extension<Principal>,
    FromPath(ModelProviderName { provider }): FromPath<ModelProviderName>,
    FromBody(body): FromBody<ProviderSignInBody>,
) -> Result<(StatusCode, Json<ProviderSignInView>), ProblemResponse> {
    let credential = body.credential.unwrap_or_else(|| DEFAULT_CREDENTIAL.to_owned());
    let person = &principal.identity.person;
    let port = body.port.map(NonZeroU16::get);
    let begun = turns.providers().begin_sign_in(&provider, &credential, person, port).await;
    let begun = begun.map_err(|error| refused(&error))?;
    let view = ProviderSignInView {
        provider,
        credential,
        id: begun.id,
        url: begun.url,
        redirect_uri: begun.redirect_uri,
        expires_at_ms: begun.expires_at_ms,
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Finish a sign-in at a provider
///
/// Takes the answer of the authorization server: the address that the browser ended at, or the code that a page showed. It
/// can be sent once, by the person who began the sign-in. Needs the role admin.
#[utoipa::path(
    post,
    path = "/api/v1/providers/{provider}/sign-ins/{id}",
    operation_id = "finishProviderSignIn",
    tag = "accounts",
    params(ProviderSignIn),
    request_body(content = ProviderSignInAnswer, description = "The answer."),
    responses(
        (status = 200, description = "The account.", body = ProviderSignedInView),
        Guarded,
        TakesBody,
        WrongShape,
        UnknownProviderAccount,
        ProviderAccountRefused,
        StoreFailed,
    )
)]
pub(crate) async fn finish(
    ReadyTurns(turns): ReadyTurns,
    Extension(principal): Extension<Principal>,
    FromPath(ProviderSignIn { provider, id }): FromPath<ProviderSignIn>,
    FromBody(body): FromBody<ProviderSignInAnswer>,
) -> Result<Json<ProviderSignedInView>, ProblemResponse> {
    let person = &principal.identity.person;
    let finished = turns.providers().finish_sign_in(&provider, &id, person, &body.answer).await;
    let (credential, signed_in) = finished.map_err(|error| refused(&error))?;
    let (issuer, scopes) = (signed_in.issuer, signed_in.scopes);
    Ok(Json(ProviderSignedInView { provider, credential, issuer, scopes }))
}

/// Sign out of a provider
///
/// Revokes the tokens of a credential where its authorization server takes that, and forgets them. Needs the role admin.
#[utoipa::path(
    delete,
    path = "/api/v1/providers/{provider}/account",
    operation_id = "signOutOfProvider",
    tag = "accounts",
    params(ModelProviderName, WhichCredential),
    responses(
        (status = 200, description = "Whether there was an account.", body = ProviderSignOutView),
        Guarded,
        BadRequest,
        UnknownProviderAccount,
        StoreFailed,
    )
)]
pub(crate) async fn sign_out(
    ReadyTurns(turns): ReadyTurns,
    FromPath(ModelProviderName { provider }): FromPath<ModelProviderName>,
    FromQuery(which): FromQuery<WhichCredential>,
) -> Result<Json<ProviderSignOutView>, ProblemResponse> {
    let credential = which.credential.unwrap_or_else(|| DEFAULT_CREDENTIAL.to_owned());
    let out = turns.providers().sign_out(&provider, &credential).await;
    let out = out.map_err(|error| refused(&error))?;
    let not_revoked = match &out {
        SignedOut::NotRevoked(error) => Some(error.message.clone()),
        SignedOut::WasNot | SignedOut::Revoked | SignedOut::Forgotten => None,
    };
    Ok(Json(ProviderSignOutView {
        provider,
        credential,
        signed_out: out != SignedOut::WasNot,
        revoked: out == SignedOut::Revoked,
        not_revoked,
    }))
}

/// The credential as the API shows it.
pub(crate) fn view(account: ProviderAccount) -> ProviderAccountView {
    let ProviderAccount { provider, credential, kind } = account;
    match kind {
        CredentialState::SignIn(state) => ProviderAccountView {
            provider,
            credential,
            state: state.as_str().into(),
            reason: state.state.reason().map(str::to_owned),
            issuer: state.issuer.clone(),
            scopes: state.scopes.clone(),
            expires_at: present::expiry(&state),
            is_renewed: state.renews_itself(),
        },
        CredentialState::File { problem, .. } => ProviderAccountView {
            provider,
            credential,
            state: if problem.is_none() { "active" } else { "needs_sign_in" }.into(),
            reason: problem,
            issuer: None,
            scopes: Vec::new(),
            expires_at: None,
            is_renewed: false,
        },
    }
}

fn refused(error: &ProviderAccountError) -> ProblemResponse {
    let (kind, status) = match error {
        ProviderAccountError::UnknownProvider(_) => ("unknown_provider", StatusCode::NOT_FOUND),
        ProviderAccountError::UnknownCredential { .. } => {
            ("unknown_credential", StatusCode::NOT_FOUND)
        }
        ProviderAccountError::UnknownSignIn => ("unknown_sign_in", StatusCode::NOT_FOUND),
        ProviderAccountError::NoSignIn { .. } => ("no_account", StatusCode::CONFLICT),
        ProviderAccountError::UnreadableAnswer | ProviderAccountError::Failed(_) => {
            ("sign_in_failed", StatusCode::CONFLICT)
        }
    };
    let mut problem = ProblemResponse::new(kind, status, error.to_string());
    if let ProviderAccountError::Failed(error) = error {
        problem.0.hint = error.hint();
    }
    problem
}
