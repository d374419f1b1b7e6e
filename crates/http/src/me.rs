//! The caller of a request.

use axum::Json;
use axum::extract::{Extension, State};
use switchboard_api::{AccessKind, MeView};
use switchboard_auth::Principal;

use crate::answers::Guarded;
use crate::ready::Ready;
use crate::server_state::Shared;

/// Show the caller
///
/// The principal of the credentials, its role, and whether it sees all tools. A console asks this first: 401 means that it needs
/// an API key or a token.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    operation_id = "getMe",
    tag = "board",
    responses((status = 200, description = "The caller.", body = MeView), Guarded)
)]
pub(crate) async fn show(
    State(shared): State<Shared>,
    Ready(board): Ready,
    Extension(principal): Extension<Principal>,
) -> Json<MeView> {
    let access = match &principal.identity.key {
        _ if shared.gatekeeper.is_open() => AccessKind::Open,
        Some(_) => AccessKind::Key,
        None => AccessKind::Token,
    };
    Json(MeView {
        principal: principal.id.to_string(),
        name: principal.name.as_deref().map(str::to_owned),
        person: principal.caller(switchboard_model::Face::Http).person().to_string(),
        role: principal.effective_role().as_str().into(),
        access,
        narrowed: !principal.access.load().has_all_tools(),
        oversees: principal.oversees(),
        version: env!("CARGO_PKG_VERSION").into(),
        exposure: board.snapshot().exposure().mode.as_str().into(),
    })
}
