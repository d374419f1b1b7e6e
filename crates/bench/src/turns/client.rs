//! An HTTP client on one connection that posts JSON and reads streams incrementally.

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// One connection; it closes when this is dropped.
pub(super) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    _driver: JoinSet<()>,
}

impl Client {
    pub(super) async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The next request on the connection reports the error.
            let _ended = connection.await;
        });
        Ok(Self { sender, host: HeaderValue::from_str(address)?, _driver: driver })
    }

    /// Posts a body and returns the response before its body has arrived.
    async fn post(
        &mut self,
        path: &str,
        accept: &'static str,
        body: &Value,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse()?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.host.clone());
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer key"));
        self.sender.ready().await?;
        self.sender.send_request(request).await.context("no answer")
    }

    /// Posts a body and returns the parsed response.
    pub(super) async fn post_whole(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let (head, body) = self.post(path, "application/json", body).await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let said = String::from_utf8_lossy(&bytes);
        ensure!(head.status.is_success(), "{path} was answered with {}: {said}", head.status);
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Returns the parsed response to a GET.
    pub(super) async fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = path.parse()?;
        request.headers_mut().insert(header::HOST, self.host.clone());
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await.context("no answer")?;
        Ok(serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?)
    }

    /// Posts a body and passes on every chunk of the response.
    pub(super) async fn post_stream(
        &mut self,
        path: &str,
        body: &Value,
        mut on: impl FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        let (head, mut body) = self.post(path, "text/event-stream", body).await?.into_parts();
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            ensure!(
                head.status.is_success(),
                "{path} was answered with {}: {frame:?}",
                head.status
            );
            if let Some(piece) = frame.data_ref() {
                on(piece);
            }
        }
        Ok(())
    }
}
