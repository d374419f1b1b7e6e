//! The beginning of a TLS connection.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The answer to a client that sends a request without TLS.
const PLAIN_REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    connection: close\r\n\
    content-length: 58\r\n\r\n\
    this address accepts HTTPS only; write https:// before it\n";
/// Maximum number of bytes of such a request that are read, so that the client reads the answer before it sees the end.
const MOST_READ: u64 = 64 * 1024;

/// Performs the handshake; `None` if the client does not manage it. How long that may take is limited by
/// [`Connections`](crate::connections::Connections).
pub(crate) async fn shake_hands(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    let is_plain = stream.peek(&mut first).await.ok()? > 0 && first[0].is_ascii_uppercase();
    if is_plain {
        refuse_plain(stream).await;
        return None;
    }
    match TlsAcceptor::from(config).accept(stream).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

/// The first byte of a TLS connection is never a letter; that of a request is always one.
async fn refuse_plain(mut stream: TcpStream) {
    if stream.write_all(PLAIN_REFUSAL.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut rest = stream.take(MOST_READ);
        let _gone = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    }
}
