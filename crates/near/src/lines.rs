//! Connections to a server on this machine, each driven by the request that uses it.
//!
//! A client with tasks of its own has every answer cross two of them, and each crossing costs as much as reading the
//! answer. Here the task that waits for an answer reads it from the socket itself. A connection that nobody uses is
//! read by nobody; that its server has closed it is seen when it is used again, before anything is sent, or when somebody
//! tidies up.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header, response};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use switchboard_model::is_on_this_machine;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;
use url::Url;

/// A dead server is not waited for.
pub const LONGEST_CONNECT: Duration = Duration::from_secs(10);
/// One of several addresses of a name, such as those of `localhost`, less long.
const FIRST_TRY: Duration = Duration::from_millis(300);
/// How long a connection that nobody uses is kept.
const KEPT: Duration = Duration::from_secs(90);
/// How many of them are kept. Each answers one request at a time.
const MAX_IDLE: usize = 1024;

type Driver = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// The connections to one server.
#[derive(Debug)]
pub struct Lines {
    /// Host and port.
    address: String,
    host: HeaderValue,
    /// Those that nobody uses, the one that was used last at the end.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    line: Box<Line>,
    since: Instant,
}

/// One connection.
#[derive(Debug)]
struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// Gone when the connection has ended; with it goes what was not sent, to be sent elsewhere.
    driver: Option<Driver>,
    /// Whether the driver knows whom to wake.
    wakes: bool,
}

/// The body of an answer. Read to its end, its connection is used again; dropped before, it is closed.
#[derive(Debug)]
pub struct Rest {
    coming: Option<Coming>,
    lines: Arc<Lines>,
}

#[derive(Debug)]
struct Coming {
    body: Incoming,
    line: Box<Line>,
}

/// How far a request came that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
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
pub struct LineError {
    pub stage: Stage,
    pub cause: Box<dyn Error + Send + Sync>,
}

impl LineError {
    fn new(stage: Stage, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { stage, cause: cause.into() }
    }
}

/// The path and the query of an address, as a request names them.
pub fn target(url: &Url) -> Option<Uri> {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path()).parse().ok()
}

impl Lines {
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

    /// The host that requests name. Who sets it beforehand saves the looking.
    pub fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// Sends a request to a [`target`]. One that a closing connection did not take is sent on another.
    pub async fn send(
        self: &Arc<Self>,
        method: Method,
        target: Uri,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(response::Parts, Rest), LineError> {
        // An entry would make room for one more even where it is there.
        if !headers.contains_key(header::HOST) {
            headers.insert(header::HOST, self.host.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target;
        *request.headers_mut() = headers;
        loop {
            let (mut line, is_used) = match self.take() {
                Some(line) => (line, true),
                // Boxed: it is large, and most requests find a connection.
                None => (Box::pin(self.dial()).await?, false),
            };
            // Unconstrained: a task that has used up its budget would be told to come back later, and nobody would wake
            // it, for it is asked quietly.
            let answering = unconstrained(line.sender.try_send_request(request));
            match line.drive(answering).await {
                Ok(answer) => {
                    let (head, body) = Response::into_parts(answer);
                    let coming = Some(Coming { body, line });
                    return Ok((head, Rest { coming, lines: self.clone() }));
                }
                Err(mut error) => match error.take_message().filter(|_| is_used) {
                    Some(unsent) => request = unsent,
                    None => return Err(LineError::new(Stage::Waiting, error.into_error())),
                },
            }
        }
    }

    /// Has the connection used again if it can be.
    fn keep(&self, coming: Coming) {
        let Coming { body, mut line } = coming;
        drop(body);
        if line.wakes || !line.sender.is_ready() {
            // Takes note that the answer has ended, and forgets whom to wake: this task is no longer concerned.
            line.step(&mut Context::from_waker(Waker::noop()));
        }
        if line.driver.is_some() && line.sender.is_ready() {
            let since = Instant::now();
            let mut idle = self.idle();
            if idle.len() < MAX_IDLE {
                idle.push(Idle { line, since });
            }
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
        let closed: Vec<Idle> = {
            let mut idle = self.idle();
            let is_closed = |idle: &mut Idle| {
                idle.line.step(&mut Context::from_waker(Waker::noop()));
                idle.line.driver.is_none() || now - idle.since >= KEPT
            };
            idle.extract_if(.., is_closed).collect()
        };
        // Outside of the lock.
        drop(closed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Box<Line>> {
        self.idle().pop().map(|idle| idle.line)
    }

    async fn dial(&self) -> Result<Box<Line>, LineError> {
        let cannot = |error: io::Error| LineError::new(Stage::Connecting, error);
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
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, driver) = shaken.map_err(|error| LineError::new(Stage::Connecting, error))?;
        Ok(Box::new(Line { sender, driver: Some(driver), wakes: false }))
    }
}

impl Line {
    /// Moves bytes as far as the socket lets it.
    fn step(&mut self, context: &mut Context<'_>) {
        self.wakes = !context.waker().will_wake(Waker::noop());
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            self.driver = None;
        }
    }

    /// Drives the connection until `awaited` is there. Nothing but the driver can bring it, and it is looked at after
    /// each of its steps, so it wakes nobody: that would be this very task, once too often. For the same reason the
    /// driver only learns whom to wake when there is something left to wait for.
    async fn drive<F: Future>(&mut self, awaited: F) -> F::Output {
        let mut awaited = std::pin::pin!(awaited);
        let mut is_sent = false;
        std::future::poll_fn(move |context| {
            let mut quietly = Context::from_waker(Waker::noop());
            // At first there is nothing to be read yet.
            if std::mem::replace(&mut is_sent, true) {
                self.step(&mut quietly);
                if let Poll::Ready(there) = awaited.as_mut().poll(&mut quietly) {
                    return Poll::Ready(there);
                }
            }
            self.step(context);
            awaited.as_mut().poll(&mut quietly)
        })
        .await
    }
}

impl Rest {
    /// The next piece; `None` at the end, and after it or a failure. Dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, LineError> {
        let chunk = std::future::poll_fn(|context| match &mut self.coming {
            Some(coming) => coming.poll_chunk(context),
            None => Poll::Ready(Ok(None)),
        });
        let chunk = chunk.await;
        match &chunk {
            Ok(Some(_)) => {}
            Ok(None) => {
                if let Some(read) = self.coming.take() {
                    self.lines.keep(read);
                }
            }
            Err(_) => self.coming = None,
        }
        chunk
    }
}

impl Coming {
    /// As in [`Line::drive`]: what is there already is taken without this task being woken for it once more.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, LineError>> {
        let mut quietly = Context::from_waker(Waker::noop());
        // Asking is what makes the driver read on.
        let mut taken = self.take(&mut quietly);
        if taken.is_pending() {
            self.line.step(&mut quietly);
            taken = self.take(&mut quietly);
        }
        if taken.is_pending() {
            self.line.step(context);
            taken = self.take(&mut quietly);
        }
        taken
    }

    fn take(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, LineError>> {
        while !self.body.is_end_stream() {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Some(Err(error)) => {
                    return Poll::Ready(Err(LineError::new(Stage::Reading, error)));
                }
                None => break,
            }
        }
        Poll::Ready(Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_util::task::TaskTracker;

    use super::*;

    /// Answers each request on a connection with the next of these; after the last one it closes.
    async fn serve(listener: TcpListener, answers: &'static [&'static [&'static str]]) {
        while let Ok((mut stream, _)) = listener.accept().await {
            for answer in answers {
                let mut request = [0; 1024];
                if stream.read(&mut request).await.unwrap_or_default() == 0 {
                    break;
                }
                for piece in *answer {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    fn lines_to(listener: &TcpListener) -> Arc<Lines> {
        let url = format!("http://{}/", listener.local_addr().unwrap());
        Lines::to(&Url::parse(&url).unwrap()).unwrap()
    }

    async fn ask(lines: &Arc<Lines>) -> Result<(response::Parts, Rest), LineError> {
        let body = Bytes::from_static(b"{}");
        lines.send(Method::POST, Uri::from_static("/"), HeaderMap::new(), body).await
    }

    async fn read(lines: &Arc<Lines>) -> Result<String, LineError> {
        let (head, mut rest) = ask(lines).await?;
        assert_eq!(head.status, 200);
        let mut text = String::new();
        while let Some(piece) = rest.chunk().await? {
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        Ok(text)
    }

    const WHOLE: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole"];
    const PARTS: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", "pa", "rts"];
    const CHUNKS: &[&str] = &[
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nchu\r\n",
        "3\r\nnks\r\n0\r\n\r\n",
    ];
    const CONTINUED: &[&str] = &[
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nc",
    ];
    const TRAILED: &[&str] = &[
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n1\r\nt\r\n",
        "0\r\nx: y\r\n\r\n",
    ];
    const CLOSING: &[&str] =
        &["HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nclosing"];
    const OLD: &[&str] = &["HTTP/1.0 200 OK\r\n\r\nol", "d"];
    const BROKEN: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbro"];

    async fn start(answers: &'static [&'static [&'static str]]) -> (Arc<Lines>, TaskTracker) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lines = lines_to(&listener);
        let server = TaskTracker::new();
        server.spawn(serve(listener, answers));
        (lines, server)
    }

    #[tokio::test]
    async fn a_connection_is_used_again_however_its_answers_come() {
        let (lines, _server) = start(&[WHOLE, PARTS, CHUNKS, WHOLE]).await;
        for expected in ["whole", "parts", "chunks"] {
            assert_eq!(read(&lines).await.unwrap(), expected);
            assert_eq!(lines.idle().len(), 1, "after {expected}");
        }
    }

    #[tokio::test]
    async fn answers_of_every_shape_are_read_to_their_end() {
        let shapes: [(&'static [&'static [&'static str]], &str, usize); 4] = [
            (&[CONTINUED, WHOLE], "c", 1),
            (&[TRAILED, WHOLE], "t", 1),
            (&[CLOSING], "closing", 0),
            (&[OLD], "old", 0),
        ];
        for (answers, expected, kept) in shapes {
            let (lines, _server) = start(answers).await;
            assert_eq!(read(&lines).await.unwrap(), expected);
            assert_eq!(lines.idle().len(), kept, "after {expected}");
        }
    }

    /// A task that does much at once is told to come back later; then the answer must not be waited for in vain.
    #[tokio::test]
    async fn an_answer_is_seen_by_a_task_that_has_used_up_its_budget() {
        const AT_ONCE: &[&str] =
            &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nnow\r\n0\r\n\r\n"];
        for answers in [&[AT_ONCE][..], &[CLOSING]] {
            for spent in 120..=127 {
                let (lines, _server) = start(answers).await;
                let mut reading = std::pin::pin!(read(&lines));
                let reading = std::future::poll_fn(|context| {
                    for _ in 0..spent {
                        // Spends one unit where there is one.
                        let mut spending = std::pin::pin!(tokio::task::coop::consume_budget());
                        let _spent =
                            spending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    }
                    reading.as_mut().poll(context)
                });
                tokio::select! {
                    // First: when it ends the wait, what was waited for is there at the next look.
                    biased;
                    () = tokio::time::sleep(Duration::from_secs(5)) => panic!("{spent} spent"),
                    read = reading => assert!(read.is_ok(), "{spent} spent: {read:?}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn one_that_was_closed_meanwhile_is_replaced_unseen() {
        let (lines, _server) = start(&[WHOLE]).await;
        for _ in 0..3 {
            assert_eq!(read(&lines).await.unwrap(), "whole");
            // Until its server has closed it.
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_a_failure_and_its_connection_is_gone() {
        let (lines, _server) = start(&[BROKEN]).await;
        let error = read(&lines).await.unwrap_err();
        assert_eq!(error.stage, Stage::Reading, "{error:?}");
        assert!(lines.idle().is_empty());
    }

    #[tokio::test]
    async fn who_gives_up_closes_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lines = lines_to(&listener);
        let asking = async { tokio::time::timeout(Duration::from_millis(50), read(&lines)).await };
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            stream.read_to_end(&mut request).await.unwrap();
        };
        let (asked, ()) = tokio::join!(asking, serving);
        assert!(asked.is_err());
        assert!(lines.idle().is_empty());
    }

    #[tokio::test]
    async fn nobody_there_is_said_so() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lines = lines_to(&listener);
        drop(listener);
        let error = read(&lines).await.unwrap_err();
        assert_eq!(error.stage, Stage::Connecting, "{error:?}");
        assert!(error.to_string().starts_with("Connection refused"), "{error}");
    }

    #[tokio::test]
    async fn a_piece_that_was_not_waited_for_comes_the_next_time() {
        let (lines, _server) = start(&[PARTS, WHOLE]).await;
        let (_, mut rest) = ask(&lines).await.unwrap();
        let mut text = Vec::new();
        loop {
            let impatient = tokio::time::timeout(Duration::from_millis(3), rest.chunk());
            match impatient.await {
                Ok(Ok(Some(piece))) => text.extend_from_slice(&piece),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => panic!("{error}"),
                Err(_) => {}
            }
        }
        assert_eq!((text.as_slice(), lines.idle().len()), (b"parts".as_slice(), 1));
        assert_eq!(rest.chunk().await.unwrap(), None, "the end stays the end");
        assert_eq!(read(&lines).await.unwrap(), "whole");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_uses_is_closed() {
        let (lines, _server) = start(&[WHOLE, WHOLE]).await;
        read(&lines).await.unwrap();
        tokio::time::advance(KEPT / 2).await;
        lines.close_unused();
        assert_eq!(lines.idle().len(), 1);
        tokio::time::advance(KEPT / 2).await;
        lines.close_unused();
        assert!(lines.idle().is_empty());
    }

    #[tokio::test]
    async fn what_the_server_has_closed_is_closed() {
        let (lines, _server) = start(&[WHOLE]).await;
        read(&lines).await.unwrap();
        assert_eq!(lines.idle().len(), 1);
        while !lines.idle().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            lines.close_unused();
        }
    }

    #[test]
    fn only_what_is_here_and_plain_is_gone_to_straight() {
        let check = |text: &str, expected: Option<(&str, &str, &str)>| {
            let url = Url::parse(text).unwrap();
            let lines = Lines::to(&url);
            let target = target(&url).unwrap().to_string();
            let shown = lines.as_ref().map(|lines| {
                (lines.address.as_str(), lines.host().to_str().unwrap(), target.as_str())
            });
            assert_eq!(shown, expected, "{text}");
        };
        check("http://127.0.0.1:81/a?b=c", Some(("127.0.0.1:81", "127.0.0.1:81", "/a?b=c")));
        check("http://localhost", Some(("localhost:80", "localhost", "/")));
        check("http://[::1]:81/", Some(("[::1]:81", "[::1]:81", "/")));
        check("https://127.0.0.1:81/", None);
        check("http://me:pw@127.0.0.1/", None);
        check("http://10.0.0.1/", None);
    }
}
