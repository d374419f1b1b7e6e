//! Connections to a server on this machine, each driven by the request that uses it.
//!
//! HTTP/1.1 is implemented here because of its cost. A client with background tasks passes every response between two
//! tasks, and each switch costs as much as reading the response. hyper's connection, driven by the request itself, took
//! a sixth of all instructions of a call through the gateway. Here the task that waits for the response writes the
//! request and reads the response.
//!
//! Idle connections are not read. That the server has closed one is noticed when it is used again, before anything is
//! sent, or by [`LoopbackPool::close_unused`]. If the server closes it while a request is being sent, the request may
//! or may not have been processed, so only repeatable requests are sent again.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use parking_lot::{Mutex, MutexGuard};
use switchboard_model::is_on_this_machine;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::Instant;
use url::Url;

use crate::connection::{ConnectionFault, LoopbackConnection, Unanswered};
use crate::response::{Begun, BodyFraming, ResponseHead};

/// Time limit for connecting.
pub const LONGEST_CONNECT: Duration = Duration::from_secs(10);
/// The shorter time limit for each of several addresses of a name, such as `localhost`.
const FIRST_TRY: Duration = Duration::from_millis(300);
/// How long an idle connection is kept.
const KEPT: Duration = Duration::from_secs(90);
/// How long after its last use a connection counts as open without a system call.
const BELIEVED: Duration = Duration::from_secs(1);
/// Maximum number of idle connections. Each carries one request at a time.
const MAX_IDLE: usize = 1024;
/// Framing headers are set here; the caller's are dropped.
const OURS: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// The connections to one server.
#[derive(Debug)]
pub struct LoopbackPool {
    /// Host and port.
    address: String,
    host: HeaderValue,
    /// Idle connections, the last used one at the end.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: LoopbackConnection,
    since: Instant,
    /// How long it is kept.
    kept_for: Duration,
}

impl Idle {
    /// Whether it is still usable, as far as is known without a system call.
    fn is_good(&self, now: Instant) -> bool {
        now - self.since < self.kept_for && self.connection.is_quiet()
    }
}

/// A request to the server of the pool.
#[derive(Debug, Clone, Copy)]
pub struct LoopbackRequest<'a> {
    pub method: &'a Method,
    /// See [`target`].
    pub target: &'a PathAndQuery,
    pub headers: &'a HeaderMap,
    /// Headers of this request alone; none of them is in `headers`.
    pub more_headers: &'a [(HeaderName, HeaderValue)],
    pub body: &'a Bytes,
    pub repeat: RetryPolicy,
}

/// Whether a request may reach its server twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// The request is sent again only if the server cannot have received any of it.
    Never,
    /// The request changes nothing: if a reused connection ends without any response, it is sent once more on a new
    /// connection.
    IfLost,
}

/// The body of a response. When it is read to its end, its connection is reused; when it is dropped before, the
/// connection is closed.
#[derive(Debug)]
pub struct LoopbackBody {
    coming: Option<Coming>,
    pool: Arc<LoopbackPool>,
}

#[derive(Debug)]
struct Coming {
    body: BodyFraming,
    /// How long the connection is kept afterwards; `None` if it is not reusable.
    kept_for: Option<Duration>,
    connection: LoopbackConnection,
}

/// The phase in which a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPhase {
    /// No connection could be established.
    Connecting,
    /// The request was sent, and no response arrived.
    Waiting,
    /// The response was truncated.
    Reading,
}

/// A failed request. The message does not contain the URL, which the caller adds.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct LoopbackError {
    pub stage: RequestPhase,
    pub cause: Box<dyn Error + Send + Sync>,
}

impl LoopbackError {
    fn new(stage: RequestPhase, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { stage, cause: cause.into() }
    }

    /// Wraps the fault of a connection.
    fn from_connection(stage: RequestPhase, fault: ConnectionFault) -> Self {
        match fault {
            ConnectionFault::Io(error) => Self::new(stage, error),
            fault => Self::new(stage, fault),
        }
    }
}

/// The path and query of a URL, for the request line.
pub fn target(url: &Url) -> Option<PathAndQuery> {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path()).parse().ok()
}

impl LoopbackPool {
    /// A pool for this URL; `None` if it needs a proxy, TLS or credentials from the URL.
    pub fn to(url: &Url) -> Option<Arc<Self>> {
        let is_plain =
            url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        if !is_plain || !is_on_this_machine(url) {
            return None;
        }
        let host = url.host_str()?;
        // A default port is left out.
        let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some(Arc::new(Self {
            address: format!("{host}:{}", url.port_or_known_default()?),
            host: HeaderValue::try_from(named).ok()?,
            idle: Mutex::default(),
        }))
    }

    /// Sends a request. If the connection was closed before it took the request, another one is used; if it was closed
    /// later, the retry policy decides.
    pub async fn send(
        self: &Arc<Self>,
        request: LoopbackRequest<'_>,
    ) -> Result<(ResponseHead, LoopbackBody), LoopbackError> {
        let mut used = self.take();
        loop {
            let is_used = used.is_some();
            let mut connection = match used.take() {
                Some(connection) => connection,
                // Boxed: the future is large, and most requests find an idle connection.
                None => Box::pin(self.dial()).await?,
            };
            match connection
                .ask(request.method, request.head(&self.host), request.body.clone())
                .await
            {
                Ok(Begun { head, body, is_kept, kept_for }) => {
                    let kept_for = is_kept.then(|| kept_for.unwrap_or(KEPT).min(KEPT));
                    let coming = Some(Coming { body, kept_for, connection });
                    let mut rest = LoopbackBody { coming, pool: self.clone() };
                    rest.let_go();
                    return Ok((head, rest));
                }
                Err(Unanswered::Unsent(_)) if is_used => used = self.take(),
                // On a new connection: a restart of the server closes all idle ones.
                Err(Unanswered::Lost(_)) if is_used && request.repeat == RetryPolicy::IfLost => {}
                Err(Unanswered::Unsent(fault)) => {
                    return Err(LoopbackError::from_connection(RequestPhase::Connecting, fault));
                }
                Err(Unanswered::Lost(fault) | Unanswered::Sent(fault)) => {
                    return Err(LoopbackError::from_connection(RequestPhase::Waiting, fault));
                }
            }
        }
    }

    /// Returns a connection to the idle ones.
    fn keep(&self, connection: LoopbackConnection, kept_for: Duration) {
        let since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(Idle { connection, since, kept_for });
        }
    }

    /// Closes idle connections periodically; never returns.
    pub async fn tidy(&self) {
        loop {
            tokio::time::sleep(Self::TIDY_EVERY).await;
            self.close_unused();
        }
    }

    /// The interval for closing idle connections.
    pub const TIDY_EVERY: Duration = Duration::from_secs(KEPT.as_secs() / 3);

    /// Closes connections that are idle for too long, or that the server has closed.
    pub fn close_unused(&self) {
        let now = Instant::now();
        let closed: Vec<Idle> = self.idle().extract_if(.., |idle| !idle.is_good(now)).collect();
        // Outside of the lock.
        drop(closed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock()
    }

    /// The last used connection that is still usable.
    fn take(&self) -> Option<LoopbackConnection> {
        let now = Instant::now();
        loop {
            // The lock is released first: closing is a system call.
            let last = self.idle().pop()?;
            // A connection in constant use needs no system call.
            let is_believed = || now - last.since < BELIEVED || last.connection.is_quiet_in_truth();
            if last.is_good(now) && is_believed() {
                return Some(last.connection);
            }
        }
    }

    async fn dial(&self) -> Result<LoopbackConnection, LoopbackError> {
        let cannot = |error: io::Error| LoopbackError::new(RequestPhase::Connecting, error);
        let mut addresses = lookup_host(&self.address).await.map_err(cannot)?.peekable();
        let mut dialed = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
        while let Some(address) = addresses.next() {
            let limit = if addresses.peek().is_some() { FIRST_TRY } else { LONGEST_CONNECT };
            let dialing = tokio::time::timeout(limit, TcpStream::connect(address)).await;
            dialed = dialing.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            if dialed.is_ok() {
                break;
            }
        }
        let stream = dialed.map_err(cannot)?;
        // Without this, small requests on kept connections wait for the peer's delayed acknowledgement.
        stream.set_nodelay(true).map_err(cannot)?;
        Ok(LoopbackConnection::new(stream))
    }
}

impl LoopbackRequest<'_> {
    /// The head of the request.
    fn head(&self, host: &HeaderValue) -> Vec<u8> {
        let mut head = Vec::with_capacity(512);
        let mut say = |parts: &[&[u8]]| parts.iter().for_each(|part| head.extend_from_slice(part));
        let (method, target) = (self.method.as_str(), self.target.as_str());
        say(&[method.as_bytes(), b" ", target.as_bytes(), b" HTTP/1.1\r\n"]);
        if !self.headers.contains_key(header::HOST) {
            say(&[b"host: ", host.as_bytes(), b"\r\n"]);
        }
        let more = self.more_headers.iter().map(|(name, value)| (name, value));
        for (name, value) in self.headers.iter().chain(more) {
            if !OURS.contains(name) {
                say(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
            }
        }
        let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(self.method);
        if has_body || !self.body.is_empty() {
            let length = self.body.len();
            say(&[b"content-length: ", itoa::Buffer::new().format(length).as_bytes(), b"\r\n"]);
        }
        say(&[b"\r\n"]);
        head
    }
}

impl LoopbackBody {
    /// The next piece; `None` at the end, and after it or a failure. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, LoopbackError> {
        let Some(coming) = &mut self.coming else { return Ok(None) };
        let piece = coming.connection.piece(&mut coming.body).await;
        match &piece {
            // This piece may already be known to be the last one.
            Ok(Some(_)) => self.let_go(),
            Ok(None) => {
                self.let_go();
                self.coming = None;
            }
            Err(_) => self.coming = None,
        }
        piece.map_err(|fault| LoopbackError::from_connection(RequestPhase::Reading, fault))
    }

    /// Returns the connection of a completely read response to the pool.
    fn let_go(&mut self) {
        let read = self.coming.take_if(|coming| coming.body.is_over());
        if let Some(Coming { mut connection, kept_for: Some(kept_for), .. }) = read
            && connection.make_ready()
        {
            self.pool.keep(connection, kept_for);
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
