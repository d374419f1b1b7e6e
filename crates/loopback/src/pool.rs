//! Connections to a server on this machine, each driven by the request that uses it.
//!
//! HTTP/1.1 is spoken here by hand. A client with tasks of its own has every answer cross two of them, and each crossing
//! costs as much as reading the answer; and hyper's connection, driven by the request itself, took a sixth of all
//! instructions of a call through the gateway, most of them to be ready for what one request at a time does not need.
//! Here the task that waits for an answer writes the request and reads the answer, and that is all. A connection that
//! nobody uses is read by nobody; that its server has closed it is seen when it is used again, before anything is
//! sent, or when somebody tidies up. A server may also close it while the request is on its way. Nobody can know then
//! whether the request was carried out, so only one that may be repeated is.

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

/// A dead server is not waited for.
pub const LONGEST_CONNECT: Duration = Duration::from_secs(10);
/// One of several addresses of a name, such as those of `localhost`, less long.
const FIRST_TRY: Duration = Duration::from_millis(300);
/// How long a connection that nobody uses is kept.
const KEPT: Duration = Duration::from_secs(90);
/// How long one is believed to be open if nobody has heard otherwise. After that the system is asked.
const BELIEVED: Duration = Duration::from_secs(1);
/// How many of them are kept. Each answers one request at a time.
const MAX_IDLE: usize = 1024;
/// What is ours to say.
const OURS: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// The connections to one server.
#[derive(Debug)]
pub struct LoopbackPool {
    /// Host and port.
    address: String,
    host: HeaderValue,
    /// Those that nobody uses, the one that was used last at the end.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    line: LoopbackConnection,
    since: Instant,
    /// How long it is kept.
    kept_for: Duration,
}

impl Idle {
    /// Whether it can still be used, as far as is known without asking.
    fn is_good(&self, now: Instant) -> bool {
        now - self.since < self.kept_for && self.line.is_quiet()
    }
}

/// A request to one of them.
#[derive(Debug, Clone, Copy)]
pub struct LoopbackRequest<'a> {
    pub method: &'a Method,
    /// See [`target`].
    pub target: &'a PathAndQuery,
    pub headers: &'a HeaderMap,
    /// Headers of this request alone, none of which is among the others.
    pub more_headers: &'a [(HeaderName, HeaderValue)],
    pub body: &'a Bytes,
    pub repeat: RetryPolicy,
}

/// Whether a request may reach its server twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// It is sent again only where the server cannot have seen any of it.
    Never,
    /// It changes nothing: if a connection that was used before ends without a byte in answer to it, it is sent once
    /// more on a new one.
    IfLost,
}

/// The body of an answer. Read to its end, its connection is used again; dropped before, it is closed.
#[derive(Debug)]
pub struct LoopbackBody {
    coming: Option<Coming>,
    lines: Arc<LoopbackPool>,
}

#[derive(Debug)]
struct Coming {
    body: BodyFraming,
    /// How long its connection is kept afterwards, if it is.
    kept_for: Option<Duration>,
    line: LoopbackConnection,
}

/// How far a request came that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPhase {
    /// Nobody took it.
    Connecting,
    /// It was sent, and nothing came back.
    Waiting,
    /// The answer broke off.
    Reading,
}

/// A request that failed. Its address is for the caller to name.
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

    /// What lies below says it best.
    fn from_line(stage: RequestPhase, fault: ConnectionFault) -> Self {
        match fault {
            ConnectionFault::Io(error) => Self::new(stage, error),
            fault => Self::new(stage, fault),
        }
    }
}

/// The path and the query of an address, as a request names them.
pub fn target(url: &Url) -> Option<PathAndQuery> {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path()).parse().ok()
}

impl LoopbackPool {
    /// Only to where no proxy, no certificate and no password in the address is needed.
    pub fn to(url: &Url) -> Option<Arc<Self>> {
        let is_plain =
            url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        if !is_plain || !is_on_this_machine(url) {
            return None;
        }
        let host = url.host_str()?;
        // The default port is not named, as everywhere.
        let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some(Arc::new(Self {
            address: format!("{host}:{}", url.port_or_known_default()?),
            host: HeaderValue::try_from(named).ok()?,
            idle: Mutex::default(),
        }))
    }

    /// Sends a request. One that a closing connection did not take is sent on another; one that it took and lost, if
    /// it may be repeated.
    pub async fn send(
        self: &Arc<Self>,
        request: LoopbackRequest<'_>,
    ) -> Result<(ResponseHead, LoopbackBody), LoopbackError> {
        let mut used = self.take();
        loop {
            let is_used = used.is_some();
            let mut line = match used.take() {
                Some(line) => line,
                // Boxed: it is large, and most requests find a connection.
                None => Box::pin(self.dial()).await?,
            };
            match line.ask(request.method, request.head(&self.host), request.body.clone()).await {
                Ok(Begun { head, body, is_kept, kept_for }) => {
                    let kept_for = is_kept.then(|| kept_for.unwrap_or(KEPT).min(KEPT));
                    let coming = Some(Coming { body, kept_for, line });
                    let mut rest = LoopbackBody { coming, lines: self.clone() };
                    rest.let_go();
                    return Ok((head, rest));
                }
                Err(Unanswered::Unsent(_)) if is_used => used = self.take(),
                // On a new one: what has befallen one connection may have befallen all of them.
                Err(Unanswered::Lost(_)) if is_used && request.repeat == RetryPolicy::IfLost => {}
                Err(Unanswered::Unsent(fault)) => {
                    return Err(LoopbackError::from_line(RequestPhase::Connecting, fault));
                }
                Err(Unanswered::Lost(fault) | Unanswered::Sent(fault)) => {
                    return Err(LoopbackError::from_line(RequestPhase::Waiting, fault));
                }
            }
        }
    }

    /// Has a connection used again.
    fn keep(&self, line: LoopbackConnection, kept_for: Duration) {
        let since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(Idle { line, since, kept_for });
        }
    }

    /// Closes what nobody has used for long, again and again.
    pub async fn tidy(&self) {
        loop {
            tokio::time::sleep(Self::TIDY_EVERY).await;
            self.close_unused();
        }
    }

    /// How often somebody should look for what nobody uses.
    pub const TIDY_EVERY: Duration = Duration::from_secs(KEPT.as_secs() / 3);

    /// Closes what nobody has used for long, and what the server has closed.
    pub fn close_unused(&self) {
        let now = Instant::now();
        let closed: Vec<Idle> = self.idle().extract_if(.., |idle| !idle.is_good(now)).collect();
        // Outside of the lock.
        drop(closed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock()
    }

    /// The one that was used last, of those that are still good.
    fn take(&self) -> Option<LoopbackConnection> {
        let now = Instant::now();
        loop {
            // Let go of the lock first: closing is a system call.
            let last = self.idle().pop()?;
            // One that is in use all the time costs no system call.
            let is_believed = || now - last.since < BELIEVED || last.line.is_quiet_in_truth();
            if last.is_good(now) && is_believed() {
                return Some(last.line);
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
        // Small requests on kept connections would wait for the peer's delayed acknowledgement.
        stream.set_nodelay(true).map_err(cannot)?;
        Ok(LoopbackConnection::new(stream))
    }
}

impl LoopbackRequest<'_> {
    /// All of it up to its body.
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
    /// The next piece; `None` at the end, and after it or a failure. Dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, LoopbackError> {
        let Some(coming) = &mut self.coming else { return Ok(None) };
        let piece = coming.line.piece(&mut coming.body).await;
        match &piece {
            // The last piece may already be known to be the last one.
            Ok(Some(_)) => self.let_go(),
            Ok(None) => {
                self.let_go();
                self.coming = None;
            }
            Err(_) => self.coming = None,
        }
        piece.map_err(|fault| LoopbackError::from_line(RequestPhase::Reading, fault))
    }

    /// Gives back the connection of an answer that was read to its end.
    fn let_go(&mut self) {
        let read = self.coming.take_if(|coming| coming.body.is_over());
        if let Some(Coming { mut line, kept_for: Some(kept_for), .. }) = read
            && line.make_ready()
        {
            self.lines.keep(line, kept_for);
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
