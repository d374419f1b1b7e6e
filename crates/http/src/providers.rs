//! The model providers in the API.

use axum::Json;
use switchboard_api::ProviderList;

use crate::answers::Guarded;
use crate::present;
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
