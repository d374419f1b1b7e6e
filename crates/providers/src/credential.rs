//! The credential of a request: written in the configuration, read from a file, or the token of a sign-in.
//!
//! A credential becomes a plan whose `auth` is the value to send, so that headers and the removal of secrets from errors
//! need to know only values.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{
    ConnectError, ConnectErrorKind, DEFAULT_CREDENTIAL, GrantId, ProviderAuth, ProviderPlan,
    Secret, TokenFile,
};
use switchboard_oauth::{Authorization, Grant, RequestAttempt, SignIns, TokenVerdict};
use url::Url;

use crate::http_answer::ProviderResponse;
use crate::token_file;

/// The plan of a request, with the value of its credential.
#[derive(Debug)]
pub(crate) struct Presented {
    pub(crate) plan: Arc<ProviderPlan>,
    origin: TokenOrigin,
}

/// Where the value comes from, to replace it when the provider refuses it.
#[derive(Debug)]
enum TokenOrigin {
    Written,
    File(TokenFile),
    SignIn { authorization: Arc<Authorization>, grant: Arc<Grant> },
}

/// Whether a credential is sent as a bearer token.
pub(crate) fn is_bearer(auth: &ProviderAuth) -> bool {
    match auth {
        ProviderAuth::None | ProviderAuth::ApiKey(_) => false,
        ProviderAuth::Bearer(_) | ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_) => true,
    }
}

/// The settings of a credential, or an error that names the known ones.
pub(crate) fn find<'a>(
    plan: &'a ProviderPlan,
    name: Option<&str>,
) -> Result<&'a ProviderAuth, ModelFault> {
    plan.credential(name).ok_or_else(|| {
        let known: Vec<_> = std::iter::once(DEFAULT_CREDENTIAL)
            .chain(plan.credentials.keys().map(String::as_str))
            .collect();
        let text = format!(
            "the provider `{}` has no credential `{}`; known are {}",
            plan.name,
            name.unwrap_or(DEFAULT_CREDENTIAL),
            known.join(", ")
        );
        ModelFault::new(FaultKind::NotFound, text)
    })
}

/// The current value of a credential. Tokens of a sign-in are for `address` only.
pub(crate) async fn present(
    plan: &Arc<ProviderPlan>,
    name: Option<&str>,
    address: Option<&Url>,
    sign_ins: Option<&SignIns>,
) -> Result<Presented, ModelFault> {
    let auth = find(plan, name)?;
    match auth {
        ProviderAuth::None | ProviderAuth::ApiKey(_) | ProviderAuth::Bearer(_) => {
            let plan = if *auth == plan.auth {
                plan.clone()
            } else {
                Arc::new(ProviderPlan { auth: auth.clone(), ..ProviderPlan::clone(plan) })
            };
            Ok(Presented { plan, origin: TokenOrigin::Written })
        }
        ProviderAuth::TokenFile(file) => from_file(plan, file).await,
        ProviderAuth::OAuth(issuer) => {
            let (Some(sign_ins), Some(address)) = (sign_ins, address) else {
                return Err(without_store(plan));
            };
            let id = GrantId::of_provider(&plan.name, name.unwrap_or(DEFAULT_CREDENTIAL));
            let authorization = sign_ins.described(id, address, issuer);
            let token = authorization.token().await.map_err(|error| fault_of(&error))?;
            let presented = token.and_then(|grant| with_grant(plan, &authorization, grant));
            match presented {
                Some(presented) => Ok(presented),
                None => Err(needs_sign_in(&authorization).await),
            }
        }
    }
}

async fn from_file(plan: &Arc<ProviderPlan>, file: &TokenFile) -> Result<Presented, ModelFault> {
    let token = token_file::read(file, Timestamp::now()).await?;
    let plan = ProviderPlan {
        auth: ProviderAuth::Bearer(token.access),
        account: plan.account.clone().or(token.account),
        ..ProviderPlan::clone(plan)
    };
    Ok(Presented { plan: Arc::new(plan), origin: TokenOrigin::File(file.clone()) })
}

fn with_grant(
    plan: &ProviderPlan,
    authorization: &Arc<Authorization>,
    grant: Arc<Grant>,
) -> Option<Presented> {
    let header = grant.header()?;
    let token = header.to_str().ok()?.strip_prefix("Bearer ")?;
    let auth = ProviderAuth::Bearer(Secret::new(token));
    let plan = Arc::new(ProviderPlan { auth, ..plan.clone() });
    let origin = TokenOrigin::SignIn { authorization: authorization.clone(), grant };
    Some(Presented { plan, origin })
}

/// Notes that somebody must sign in, and says so.
async fn needs_sign_in(authorization: &Arc<Authorization>) -> ModelFault {
    let (status, headers) = (StatusCode::UNAUTHORIZED, HeaderMap::new());
    let judged = authorization.judge(None, status, &headers, RequestAttempt::Second).await;
    match judged {
        Err(error) => fault_of(&error),
        Ok(_) => ModelFault::new(FaultKind::SignIn, "needs sign-in"),
    }
}

impl Presented {
    /// Another value, after the provider refused this one. `None` if there is none, so that the response stands. An error
    /// says that somebody must sign in.
    pub(crate) async fn after(
        &self,
        answer: &ProviderResponse,
        attempt: RequestAttempt,
    ) -> Result<Option<Self>, ModelFault> {
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        match &self.origin {
            TokenOrigin::Written => Ok(None),
            TokenOrigin::File(file) => {
                // The other program may have renewed it meanwhile.
                let again = from_file(&self.plan, file).await?;
                let is_new = again.plan.auth != self.plan.auth;
                Ok((is_new && attempt == RequestAttempt::First).then_some(again))
            }
            TokenOrigin::SignIn { authorization, grant } => {
                let (status, headers) = (answer.status, &answer.headers);
                let judged = authorization.judge(Some(grant), status, headers, attempt).await;
                match judged.map_err(|error| fault_of(&error))? {
                    TokenVerdict::Fine => Ok(None),
                    TokenVerdict::Again(grant) => Ok(with_grant(&self.plan, authorization, grant)),
                }
            }
        }
    }

    /// Names the file of a token that the provider refused.
    pub(crate) fn explained(&self, fault: ModelFault) -> ModelFault {
        match &self.origin {
            TokenOrigin::File(file) if fault.kind == FaultKind::Credentials => {
                let message = format!(
                    "{} (the token is the one in `{}`: sign in again with the program that keeps this file)",
                    fault.message,
                    file.path.display()
                );
                ModelFault { message, ..fault }
            }
            TokenOrigin::Written | TokenOrigin::File(_) | TokenOrigin::SignIn { .. } => fault,
        }
    }

    /// The value, to tell accounts apart.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match &self.plan.auth {
            ProviderAuth::ApiKey(secret) | ProviderAuth::Bearer(secret) => Some(secret),
            ProviderAuth::None | ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_) => None,
        }
    }
}

fn without_store(plan: &ProviderPlan) -> ModelFault {
    let text = format!(
        "the provider `{}` needs a sign-in, and there is no store of sign-ins here",
        plan.name
    );
    ModelFault::new(FaultKind::SignIn, text)
}

/// A failed sign-in or renewal as the failure of a turn.
fn fault_of(error: &ConnectError) -> ModelFault {
    let kind = match error.kind {
        ConnectErrorKind::SignIn => FaultKind::SignIn,
        ConnectErrorKind::Forbidden => FaultKind::Forbidden,
        ConnectErrorKind::Unreachable => FaultKind::Unreachable,
        ConnectErrorKind::Overloaded => FaultKind::Overloaded,
        ConnectErrorKind::Timeout => FaultKind::Timeout,
        ConnectErrorKind::Unauthorized | ConnectErrorKind::Protocol | ConnectErrorKind::Process => {
            FaultKind::Credentials
        }
    };
    ModelFault::new(kind, error.message.clone())
}
