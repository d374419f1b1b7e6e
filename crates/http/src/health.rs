//! `/healthz`, `/readyz` and `/metrics`.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use switchboard_api::Readiness;

use crate::present;
use crate::ready::Ready;
use crate::server::Shared;

/// The process lives.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The board serves. A server that is away degrades it and does not make it unready: its own tools say so.
pub(crate) async fn readyz(Ready(board): Ready) -> Json<Readiness> {
    Json(present::readiness(&board))
}

/// The page that Prometheus reads.
pub(crate) async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.render())
}
