//! Shared by the peers: a bare hyper server that prints its address and ends with its parent process.

use std::convert::Infallible;
use std::io::Write;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves until standard input ends.
pub(crate) async fn serve<A, F, B>(answer: A) -> anyhow::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut out = std::io::stdout();
    writeln!(out, "serving at http://{}", listener.local_addr()?)?;
    out.flush()?;
    let (mut input, mut nothing) = (tokio::io::stdin(), [0; 1]);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ended = input.read(&mut nothing) => return Ok(()),
            _gone = connections.join_next(), if !connections.is_empty() => {}
            stream = listener.accept() => {
                connections.spawn(attend(stream?.0, answer.clone()));
            }
        }
    }
}

async fn attend<A, F, B>(stream: TcpStream, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| {
        let answer = answer(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    // Every connection ends by the client closing it.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
