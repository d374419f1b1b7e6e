//! `/healthz`, `/readyz` and `/metrics`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use switchboard_api::Readiness;
use switchboard_auth::Role;
use tokio::runtime::Handle;

use crate::answers::{Forbidden, ForbiddenHost, Starting, Unauthorized};
use crate::authorize::authenticate;
use crate::present;
use crate::ready::{Ready, ReadySessions};
use crate::server::Shared;

/// The process lives
///
/// Says `ok` as soon as it listens, also while the board still connects its servers.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getHealth",
    tag = "health",
    responses(
        (status = 200, description = "It lives.", body = String, content_type = "text/plain", example = "ok\n"),
        ForbiddenHost,
    ),
    security()
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The board serves
///
/// A server that is away, or a store that takes no writes, degrades the board and does not make it unready: the tools of
/// that server, and what would change something, say so themselves.
/// Where credentials are needed, servers are named to those who show some, and to clients only what policy leaves them.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    tag = "health",
    responses((status = 200, description = "It serves.", body = Readiness), ForbiddenHost, Starting),
    security()
)]
pub(crate) async fn readyz(
    State(shared): State<Shared>,
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    headers: HeaderMap,
) -> Json<Readiness> {
    let mut readiness = present::readiness(&board);
    // Anybody may ask, also where everything else needs credentials.
    let role = authenticate(&shared, &headers).await.ok().map(|principal| principal.role);
    readiness.unavailable.retain(|server| match role {
        Some(role) => role >= Role::Operator || sessions.permits_server(server),
        None => false,
    });
    Json(readiness)
}

/// Metrics for Prometheus
///
/// Needs the role `operator`.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "health",
    responses(
        (status = 200, description = "In the text format of Prometheus.", body = String, content_type = "text/plain"),
        Unauthorized,
        Forbidden,
        Starting,
    )
)]
pub(crate) async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    switchboard_telemetry::tasks_alive(Handle::current().metrics().num_alive_tasks());
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.render())
}
