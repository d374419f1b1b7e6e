//! Answers while there is no board yet, because its database cannot be used.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connections::{ConnectionLimits, Connections};
use crate::health::healthz;
use crate::problem::ProblemResponse;
use crate::server::accept;
use crate::tls_certificate::ServerCertificate;

/// When a client may ask again.
const RETRY_AFTER_SECONDS: u64 = 2;

/// Answers the requests of `listener` until `end`: `/healthz` as always, all others that the board waits for its database.
/// Afterwards the listener has what was not accepted here.
pub async fn serve_before_board(
    listener: &TcpListener,
    tls: Option<Arc<ServerCertificate>>,
    end: &CancellationToken,
) -> io::Result<()> {
    let own = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
    let own = TcpListener::from_std(own)?;
    let connections = Connections::new(ConnectionLimits::default());
    let accepting = accept(own, tls, &connections, end, async |connection, request| {
        let _asking = connection.begin_request(request.version());
        Ok::<_, Infallible>(answer(request.uri().path()).await)
    });
    tokio::select! {
        () = accepting => {}
        () = connections.watch() => {}
    }
    Ok(())
}

async fn answer(path: &str) -> Response {
    if path == "/healthz" {
        return healthz().await.into_response();
    }
    let detail = "the board waits for its database, which it needs to start; its log says why";
    let mut problem = ProblemResponse::new("starting", StatusCode::SERVICE_UNAVAILABLE, detail);
    problem.0.retry_after = Some(RETRY_AFTER_SECONDS);
    problem.into_response()
}
