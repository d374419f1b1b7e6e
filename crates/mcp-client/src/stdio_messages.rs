//! Shares a child's streams between rmcp and callers: takes callers' messages out of the child's output, and writes
//! theirs between those of rmcp.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use switchboard_model::{ConnectError, ConnectErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_util::io::poll_read_buf;
use tokio_util::sync::{CancellationToken, PollSender};

use crate::bounds::MAX_MESSAGE_BYTES;
use crate::http_faults::CLOSED;
use crate::message_sink::MessageSink;
use crate::pending_requests::PendingRequests;
use crate::request::CallerHeaders;

/// Capacity of the queue of lines to a child; senders wait while it is full.
const WAITING_LINES: usize = 256;

/// The error that ended the reading of lines, if any.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineFault(Arc<Mutex<Option<String>>>);

impl LineFault {
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn set(&self, message: String) {
        *self.0.lock() = Some(message);
    }
}

/// The output of a child without callers' messages, for rmcp to read. Ends the connection at a line that is too long:
/// rmcp would drop the line and leave its caller waiting.
#[derive(Debug)]
pub(crate) struct TappedLines<R> {
    inner: R,
    pending: Arc<PendingRequests>,
    fault: LineFault,
    /// The beginning of an incomplete line; the first `searched` bytes contain no line break.
    unfinished: BytesMut,
    searched: usize,
    /// A line that rmcp is reading.
    passing: Bytes,
    is_at_end: bool,
    /// The pause of a server above its rate limit.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<R> TappedLines<R> {
    pub(crate) fn new(inner: R, pending: Arc<PendingRequests>, fault: LineFault) -> Self {
        Self {
            inner,
            pending,
            fault,
            unfinished: BytesMut::new(),
            searched: 0,
            passing: Bytes::new(),
            is_at_end: false,
            pause: None,
        }
    }

    pub(crate) fn pending(&self) -> &Arc<PendingRequests> {
        &self.pending
    }

    /// The next complete line, if there is one in the buffer.
    fn split_line(&mut self) -> Option<Bytes> {
        let fresh = self.unfinished.get(self.searched..).unwrap_or_default();
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.unfinished.len();
            return None;
        };
        let line = self.unfinished.split_to(self.searched + at + 1).freeze();
        self.searched = 0;
        Some(line)
    }

    /// The next complete line for rmcp, if there is one in the buffer and no pause is due.
    fn next_line(&mut self) -> Option<Bytes> {
        loop {
            let line = self.split_line()?;
            let is_ours = self.pending.take(&line);
            self.pause = self.pending.read_on().map(|at| Box::pin(tokio::time::sleep_until(at)));
            if !is_ours {
                return Some(line);
            }
            if self.pause.is_some() {
                return None;
            }
        }
    }

    fn too_long(&self) -> io::Error {
        let message = format!("the server wrote a line longer than {MAX_MESSAGE_BYTES} bytes");
        self.fault.set(message.clone());
        self.pending.end(ConnectError::new(ConnectErrorKind::Unreachable, message.clone()));
        io::Error::other(message)
    }
}

impl<R: AsyncRead + Unpin> TappedLines<R> {
    /// The next line, before rmcp reads the rest as a stream; `None` at the end. Cancel-safe.
    pub(crate) async fn read_line(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(line) = self.split_line() {
                return Ok(Some(line));
            }
            if self.unfinished.len() > MAX_MESSAGE_BYTES {
                return Err(self.too_long());
            }
            self.unfinished.reserve(8 * 1024);
            if self.inner.read_buf(&mut self.unfinished).await? == 0 {
                return Ok(None);
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for TappedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(context));
                this.pause = None;
            }
            if !this.passing.is_empty() {
                let length = this.passing.len().min(buffer.remaining());
                buffer.put_slice(&this.passing.split_to(length));
                return Poll::Ready(Ok(()));
            }
            if let Some(line) = this.next_line() {
                this.passing = line;
                continue;
            }
            if this.pause.is_some() {
                continue;
            }
            if this.unfinished.len() > MAX_MESSAGE_BYTES {
                return Poll::Ready(Err(this.too_long()));
            }
            if this.is_at_end {
                return Poll::Ready(Ok(()));
            }
            this.unfinished.reserve(8 * 1024);
            let read = poll_read_buf(Pin::new(&mut this.inner), context, &mut this.unfinished);
            if ready!(read)? == 0 {
                this.is_at_end = true;
                // A last line without a line break is not a message.
                this.passing = std::mem::take(&mut this.unfinished).freeze();
                this.pending.end(ConnectError::new(ConnectErrorKind::Unreachable, CLOSED));
            }
        }
    }
}

impl<R> Drop for TappedLines<R> {
    fn drop(&mut self) {
        self.pending.end(ConnectError::new(ConnectErrorKind::Unreachable, CLOSED));
    }
}

/// rmcp's writer to a child: passes whole messages to the single writer task.
#[derive(Debug)]
pub(crate) struct QueuedLines {
    queue: PollSender<Bytes>,
    written: BytesMut,
    /// Ends the writer task, which closes the child's input.
    closing: CancellationToken,
}

/// The two writers to a child's input, and the task that serves them.
pub(crate) fn queued_lines<W>(
    inner: W,
    pending: Arc<PendingRequests>,
) -> (QueuedLines, mpsc::Sender<Bytes>, impl Future<Output = ()> + Send + 'static)
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING_LINES);
    let closing = CancellationToken::new();
    let writing = write_lines(inner, receiver, closing.clone(), pending);
    let queue = PollSender::new(sender.clone());
    (QueuedLines { queue, written: BytesMut::new(), closing }, sender, writing)
}

async fn write_lines<W: AsyncWrite + Unpin>(
    mut inner: W,
    mut lines: mpsc::Receiver<Bytes>,
    closing: CancellationToken,
    pending: Arc<PendingRequests>,
) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = closing.cancelled() => None,
        };
        let Some(mut line) = line else { return };
        let written = async {
            inner.write_all_buf(&mut line).await?;
            inner.flush().await
        };
        if let Err(error) = written.await {
            let message = match error.kind() {
                io::ErrorKind::BrokenPipe => "the process no longer reads its input".into(),
                _ => error.to_string(),
            };
            lines.close();
            pending.end(ConnectError::new(ConnectErrorKind::Unreachable, message));
            return;
        }
    }
}

impl AsyncWrite for QueuedLines {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    /// rmcp flushes after each message.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.written.has_remaining() {
            let closed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
            ready!(this.queue.poll_reserve(context)).map_err(closed)?;
            this.queue.send_item(this.written.split().freeze()).map_err(closed)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

impl Drop for QueuedLines {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Lines to a child, written by a single task, so that no line is written partially.
#[derive(Debug)]
pub(crate) struct LineSink(pub(crate) mpsc::Sender<Bytes>);

impl MessageSink for LineSink {
    fn send(
        &self,
        text: String,
        _callers: Option<CallerHeaders>,
    ) -> BoxFuture<'_, Result<(), ConnectError>> {
        let mut line = text;
        line.push('\n');
        let unread = || {
            let message = "the process no longer reads its input";
            ConnectError::new(ConnectErrorKind::Unreachable, message)
        };
        async move { self.0.send(line.into()).await.map_err(|_| unread()) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::Era;
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::envelope::ResponseError;
    use crate::request::{RawResult, RequestOrigin, UpstreamRequest};

    /// A connection whose other end is held by the test.
    struct Tap {
        pending: Arc<PendingRequests>,
        for_rmcp: TappedLines<ReadHalf<DuplexStream>>,
        from_rmcp: QueuedLines,
        said: BufReader<ReadHalf<DuplexStream>>,
        server: WriteHalf<DuplexStream>,
    }

    fn tap() -> Tap {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let (output, input) = tokio::io::split(ours);
        let (said, server) = tokio::io::split(theirs);
        let tasks = TaskTracker::new();
        let pending =
            Arc::new(PendingRequests::new(tasks.clone(), CancellationToken::new(), Arc::default()));
        let (from_rmcp, lines, writing) = queued_lines(input, pending.clone());
        tasks.spawn(writing);
        pending.connect(Arc::new(LineSink(lines)), Era::Legacy);
        let for_rmcp = TappedLines::new(output, pending.clone(), LineFault::default());
        Tap { pending, for_rmcp, from_rmcp, said: BufReader::new(said), server }
    }

    async fn ask(pending: &Arc<PendingRequests>) -> Result<RawResult, ResponseError> {
        pending
            .ask(
                &UpstreamRequest { method: "tools/call", ..UpstreamRequest::default() },
                None,
                RequestOrigin::Caller,
            )
            .await
    }

    async fn line(said: &mut BufReader<ReadHalf<DuplexStream>>) -> String {
        let mut line = String::new();
        said.read_line(&mut line).await.unwrap();
        line
    }

    #[tokio::test]
    async fn lines_of_ours_are_taken_out_however_they_are_cut() {
        let Tap { pending, mut for_rmcp, mut said, mut server, from_rmcp: _open } = tap();
        let asking = ask(&pending);
        let serving = async {
            let id = pending.ids().id(1);
            assert!(line(&mut said).await.contains(&format!(r#""id":"{id}""#)));
            for part in [
                "noise\n{\"id\":1,\"resu",
                &format!("lt\":{{}}}}\n{{\"id\":\"{id}\","),
                "\"result\":{\"a\": 1}}\n{\"id\":2}\nend",
            ] {
                server.write_all(part.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
            server.shutdown().await.unwrap();
            std::future::pending::<()>().await;
        };
        let reading = async {
            let mut passed = String::new();
            for_rmcp.read_to_string(&mut passed).await.unwrap();
            passed
        };
        let both = async { tokio::join!(asking, reading) };
        let (result, passed) = tokio::select! {
            both = both => both,
            () = serving => panic!("it serves for ever"),
        };
        assert_eq!(result.unwrap().as_str(), r#"{"a": 1}"#);
        assert_eq!(passed, "noise\n{\"id\":1,\"result\":{}}\n{\"id\":2}\nend");
    }

    #[tokio::test]
    async fn the_end_of_the_output_ends_who_waits_and_who_comes_later() {
        let Tap { pending, mut for_rmcp, said, server, from_rmcp: _open } = tap();
        let ending = async {
            tokio::task::yield_now().await;
            drop((said, server));
            assert_eq!(for_rmcp.read(&mut [0; 8]).await.unwrap(), 0);
        };
        let (waiting, ()) = tokio::join!(ask(&pending), ending);
        let closed = ConnectError::new(ConnectErrorKind::Unreachable, CLOSED);
        assert_eq!(waiting.unwrap_err(), ResponseError::Lost(closed.clone()));
        assert_eq!(ask(&pending).await.unwrap_err(), ResponseError::Lost(closed));
    }

    #[tokio::test]
    async fn messages_of_rmcp_and_ours_do_not_mix() {
        let Tap { pending, mut from_rmcp, mut said, for_rmcp: _read, server: _open } = tap();
        let asking = ask(&pending);
        let writing = async {
            from_rmcp.write_all(b"{\"half\":").await.unwrap();
            let first = line(&mut said).await;
            from_rmcp.write_all(b"true}\n").await.unwrap();
            from_rmcp.flush().await.unwrap();
            (first, line(&mut said).await)
        };
        let (first, second) = tokio::select! {
            lines = writing => lines,
            answer = asking => panic!("{answer:?}"),
        };
        assert!(first.starts_with(r#"{"jsonrpc":"2.0","id":"sb-1-"#), "{first}");
        assert_eq!(second, "{\"half\":true}\n");
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_cancelled() {
        let Tap { pending, mut said, for_rmcp: _read, from_rmcp: _open, server: _talks } = tap();
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(20), ask(&pending));
        assert!(waiting.await.is_err());
        assert!(line(&mut said).await.contains("tools/call"));
        let cancelled = line(&mut said).await;
        assert!(cancelled.contains("notifications/cancelled"), "{cancelled}");
        assert!(cancelled.contains(r#""requestId":"sb-1-"#), "{cancelled}");
    }
}
