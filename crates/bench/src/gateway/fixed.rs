//! A server with one fixed response: the cost of sending these bytes.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::server::{self, serve};

pub(crate) async fn run(file: &str) -> anyhow::Result<()> {
    let fixed = Bytes::from(std::fs::read(file)?);
    serve(move |request| answer(fixed.clone(), request)).await
}

async fn answer(fixed: Bytes, request: Request<Incoming>) -> Response<Full<Bytes>> {
    // The body is read to its end, so that the connection can be reused.
    match request.into_body().collect().await {
        Ok(_) => server::json(StatusCode::OK, fixed),
        Err(_) => server::json(StatusCode::BAD_REQUEST, ""),
    }
}
