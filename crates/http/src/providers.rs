//! The providers of models over the API.

use axum::Json;
use switchboard_api::{ProviderList, ProviderView};

use crate::answers::Guarded;
use crate::ready::ReadyTurns;

/// List the providers of models
///
/// Those of the configuration, and those that need none. A session or a turn names one of them. Keys are never shown.
#[utoipa::path(
    get,
    path = "/api/v1/providers",
    operation_id = "listProviders",
    tag = "turns",
    responses((status = 200, description = "All providers.", body = ProviderList), Guarded)
)]
pub(crate) async fn list(ReadyTurns(turns): ReadyTurns) -> Json<ProviderList> {
    let providers = turns.providers().list().into_iter().map(|provider| ProviderView {
        name: provider.name,
        kind: provider.kind.as_str().into(),
        model: provider.model,
        base_url: provider.base_url,
        has_credentials: provider.has_credentials,
        source: provider.source.as_str().into(),
    });
    Json(ProviderList { providers: providers.collect() })
}
