//! `/healthz`, `/readyz` and `/metrics`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use switchboard_api::Readiness;
use switchboard_auth::Principal;
use tokio::runtime::Handle;

use crate::answers::{Forbidden, ForbiddenHost, NotReady, Starting, Unauthorized};
use crate::authorize::authenticate;
use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadySessions};
use crate::server_state::Shared;

/// Check that the process runs
///
/// Responds `ok` as soon as the process listens, also while the board still connects its servers.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getHealth",
    tag = "health",
    responses(
        (status = 200, description = "The process runs.", body = String, content_type = "text/plain", example = "ok\n"),
        ForbiddenHost,
    ),
    security()
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Check that the board is ready
///
/// An unavailable server, or a store that takes no writes, makes the board `degraded` but not unready: calls of that
/// server's tools, and requests that would change something, fail with their own errors. Between a signal to stop and the
/// end (`serve --shutdown-delay`) the board is not ready, so that a load balancer sends its requests elsewhere.
/// If credentials are required, only requests with credentials get the names of servers, and clients only those of
/// servers that policy shows them.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    tag = "health",
    responses((status = 200, description = "The board is ready.", body = Readiness), ForbiddenHost, NotReady),
    security()
)]
pub(crate) async fn readyz(
    State(shared): State<Shared>,
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    headers: HeaderMap,
) -> Result<Json<Readiness>, ProblemResponse> {
    if shared.board.is_stopping() {
        let detail = "the board is about to stop; send requests to another one";
        return Err(ProblemResponse::new("stopping", StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    let mut readiness = present::readiness(&board);
    // This path is public, also where all others need credentials.
    let principal = authenticate(&shared, &headers).await.ok();
    readiness.unavailable.retain(|server| match &principal {
        Some(principal) => {
            principal.oversees() || sessions.permits_server(server, &principal.access)
        }
        None => false,
    });
    readiness.certificate = shared.tls.as_ref().map(|tls| tls.view());
    // Its reason names files.
    if let (Some(certificate), false) = (&mut readiness.certificate, oversees(principal.as_ref())) {
        certificate.refused = None;
    }
    Ok(Json(readiness))
}

fn oversees(principal: Option<&Principal>) -> bool {
    principal.is_some_and(Principal::oversees)
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
