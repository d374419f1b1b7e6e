//! The model providers in the API.

use axum::Json;
use axum::http::StatusCode;
use switchboard_api::{ModelList, ModelView, ProviderList};
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_providers::ListedModel;

use crate::answers::{BadRequest, Guarded, ProviderFailed, ProviderTimedOut, UnknownProvider};
use crate::extract::{FromPath, FromQuery};
use crate::present;
use crate::problem::ProblemResponse;
use crate::provider_accounts::{ModelProviderName, WhichCredential};
use crate::ready::ReadyTurns;

/// List the model providers
///
/// The configured providers and the built-in ones. A session or a turn names one of them. Keys are never shown.
#[utoipa::path(
    get,
    path = "/api/v1/providers",
    operation_id = "listProviders",
    tag = "turns",
    responses((status = 200, description = "All providers.", body = ProviderList), Guarded)
)]
pub(crate) async fn list(ReadyTurns(turns): ReadyTurns) -> Json<ProviderList> {
    Json(present::providers(turns.providers()))
}

/// List the models of a provider
///
/// Asks the provider, with the named credential. A provider whose format has no such list has its default model alone. What a model
/// takes is there where the provider's list says it.
#[utoipa::path(
    get,
    path = "/api/v1/providers/{provider}/models",
    operation_id = "listModels",
    tag = "turns",
    params(ModelProviderName, WhichCredential),
    responses(
        (status = 200, description = "The models.", body = ModelList),
        Guarded,
        BadRequest,
        UnknownProvider,
        ProviderFailed,
        ProviderTimedOut,
    )
)]
pub(crate) async fn models(
    ReadyTurns(turns): ReadyTurns,
    FromPath(of): FromPath<ModelProviderName>,
    FromQuery(which): FromQuery<WhichCredential>,
) -> Result<Json<ModelList>, ProblemResponse> {
    let unknown =
        |kind| move |text: String| ProblemResponse::new(kind, StatusCode::NOT_FOUND, text);
    let endpoint = turns.providers().find(&of.provider);
    let endpoint = endpoint.map_err(|error| unknown("unknown_provider")(error.to_string()))?;
    let credential = which.credential.as_deref();
    if endpoint.plan().credential(credential).is_none() {
        let name = credential.unwrap_or_default();
        let text = format!("the provider '{}' has no credential '{name}'", of.provider);
        return Err(unknown("unknown_credential")(text));
    }
    let models = endpoint.models(credential).await.map_err(failed)?;
    Ok(Json(ModelList { models: models.into_iter().map(view).collect() }))
}

fn view(model: ListedModel) -> ModelView {
    let ListedModel { id, title, context_window, max_output_tokens } = model;
    ModelView { id, title, context_window, max_output_tokens }
}

fn failed(fault: ModelFault) -> ProblemResponse {
    let (kind, status) = match fault.kind {
        FaultKind::Timeout => ("provider_timeout", StatusCode::GATEWAY_TIMEOUT),
        _ => ("provider_failed", StatusCode::BAD_GATEWAY),
    };
    ProblemResponse::new(kind, status, fault.message)
}
