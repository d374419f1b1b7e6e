//! The lower bound: a proxy that parses no JSON. It costs two HTTP connections.

use anyhow::Context;
use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::server::{self, serve};

type Pool = Client<HttpConnector, Incoming>;

pub(crate) async fn run(upstream: &str) -> anyhow::Result<()> {
    let upstream: Authority = upstream.parse().context("no address of an upstream")?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Pool = Client::builder(TokioExecutor::new()).build(connector);
    serve(move |request| pass_on(pool.clone(), upstream.clone(), request)).await
}

async fn pass_on(
    pool: Pool,
    upstream: Authority,
    mut request: Request<Incoming>,
) -> Response<BoxBody<Bytes, hyper::Error>> {
    let mut target = std::mem::take(request.uri_mut()).into_parts();
    target.scheme = Some(Scheme::HTTP);
    target.authority = Some(upstream);
    let Ok(target) = Uri::from_parts(target) else { return failed() };
    *request.uri_mut() = target;
    request.headers_mut().remove(header::HOST);
    match pool.request(request).await {
        Ok(response) => response.map(BodyExt::boxed),
        Err(_) => failed(),
    }
}

fn failed() -> Response<BoxBody<Bytes, hyper::Error>> {
    let body = Full::new(Bytes::new()).map_err(|never| match never {});
    server::json(StatusCode::BAD_GATEWAY, "").map(|_| body.boxed())
}
