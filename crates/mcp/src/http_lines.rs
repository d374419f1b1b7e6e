//! Connections to a server on this machine, each driven by the request that uses it.
//!
//! A client with tasks of its own has every answer cross two of them, and each crossing costs as much as reading the
//! answer. Here the task that waits for an answer reads it from the socket itself. A connection that nobody uses is
//! read by nobody; that its server has closed it is seen when it is used again, before anything is sent.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, response};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::http_faults::describe_plain;
use crate::http_pool::LONGEST_CONNECT;

/// How long a connection that nobody uses is kept.
const KEPT: Duration = Duration::from_secs(90);
/// How many of them are kept. Each answers one request at a time.
const MAX_IDLE: usize = 1024;

type Driver = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// The connections to one address.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Host and port.
    address: String,
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

/// An answer, and the connection that the rest of it comes on. Dropped before its end, the connection is closed.
#[derive(Debug)]
pub(crate) struct Rest {
    body: Incoming,
    line: Box<Line>,
}

impl Lines {
    pub(crate) fn new(address: String) -> Self {
        Self { address, idle: Mutex::default() }
    }

    /// Sends a request. One that a closing connection did not take is sent on another.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(response::Parts, Rest), ConnectError> {
        loop {
            let (mut line, is_used) = match self.take() {
                Some(line) => (line, true),
                // Boxed: it is large, and most requests find a connection.
                None => (Box::pin(self.dial()).await?, false),
            };
            let answering = line.sender.try_send_request(request);
            match line.drive(answering).await {
                Ok(answer) => {
                    let (head, body) = Response::into_parts(answer);
                    return Ok((head, Rest { body, line }));
                }
                Err(mut error) => match error.take_message().filter(|_| is_used) {
                    Some(unsent) => request = unsent,
                    None => return Err(describe_plain(&error.into_error(), "no answer")),
                },
            }
        }
    }

    /// Has the connection used again if it can be.
    pub(crate) fn keep(&self, rest: Rest) {
        let Rest { body, mut line } = rest;
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

    /// Closes what nobody has used for long.
    pub(crate) async fn tidy(&self) {
        loop {
            tokio::time::sleep(KEPT / 3).await;
            let now = Instant::now();
            let closed: Vec<Idle> = {
                let mut idle = self.idle();
                let fresh = idle.partition_point(|idle| now - idle.since >= KEPT);
                idle.drain(..fresh).collect()
            };
            drop(closed);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Box<Line>> {
        self.idle().pop().map(|idle| idle.line)
    }

    async fn dial(&self) -> Result<Box<Line>, ConnectError> {
        let cannot =
            |error: &(dyn std::error::Error + 'static)| describe_plain(error, "cannot connect");
        let dialing = tokio::time::timeout(LONGEST_CONNECT, TcpStream::connect(&self.address));
        let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let stream = dialing
            .await
            .map_err(late)
            .and_then(|dialed| dialed)
            .map_err(|error| cannot(&error))?;
        // Small requests on kept connections would wait for the peer's delayed acknowledgement.
        stream.set_nodelay(true).map_err(|error| cannot(&error))?;
        let (sender, driver) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| cannot(&error))?;
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
    /// The next piece; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ConnectError> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ConnectError>> {
        let mut quietly = Context::from_waker(Waker::noop());
        let mut has_stepped = false;
        loop {
            if self.body.is_end_stream() {
                return Poll::Ready(Ok(None));
            }
            // Asking is what makes the driver read on.
            match Pin::new(&mut self.body).poll_frame(&mut quietly) {
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(describe_plain(&error, "the answer broke off")));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Poll::Pending if has_stepped => return Poll::Pending,
                Poll::Pending => {
                    self.line.step(context);
                    has_stepped = true;
                }
            }
        }
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

    async fn read(lines: &Lines) -> Result<String, ConnectError> {
        let request = Request::builder().method("POST").uri("/").header("host", "h");
        let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
        let (head, mut rest) = lines.send(request).await?;
        assert_eq!(head.status, 200);
        let mut text = String::new();
        while let Some(piece) = rest.chunk().await? {
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        lines.keep(rest);
        Ok(text)
    }

    const WHOLE: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole"];
    const PARTS: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", "pa", "rts"];
    const CHUNKS: &[&str] = &[
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nchu\r\n",
        "3\r\nnks\r\n0\r\n\r\n",
    ];
    const BROKEN: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbro"];

    async fn start(answers: &'static [&'static [&'static str]]) -> (Lines, TaskTracker) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lines = Lines::new(listener.local_addr().unwrap().to_string());
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
        assert!(error.message.starts_with("the answer broke off"), "{error:?}");
        assert!(lines.idle().is_empty());
    }

    #[tokio::test]
    async fn who_gives_up_closes_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lines = Lines::new(listener.local_addr().unwrap().to_string());
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
        let lines = Lines::new(listener.local_addr().unwrap().to_string());
        drop(listener);
        let error = read(&lines).await.unwrap_err();
        assert!(error.message.starts_with("cannot connect: Connection refused"), "{error:?}");
    }
}
