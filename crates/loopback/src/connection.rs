//! One connection, which carries one request at a time.

use std::io::{self, Cursor};
use std::mem::MaybeUninit;

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use http::Method;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::response::{Begun, BodyFraming, Malformed, Taken, take_head};

/// Initial and maximum size of a read.
const LEAST_READ: usize = 4 << 10;
const MOST_READ: usize = 64 << 10;

/// One HTTP/1.1 connection.
#[derive(Debug)]
pub(crate) struct LoopbackConnection {
    stream: TcpStream,
    /// The unsent part of the request: its head and its body.
    unsent: Chain<Cursor<Vec<u8>>, Bytes>,
    /// Whether part of the request was sent.
    is_begun: bool,
    /// The error that prevents sending the rest.
    refused: Option<io::Error>,
    /// Data that was read and not yet consumed.
    buffer: BytesMut,
    reading: usize,
    /// Whether the buffer ever had a large capacity. The remaining capacity does not tell.
    has_grown: bool,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the server closed the connection")]
    Closed,
}

/// A request without a response.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The server cannot have received any of it.
    Unsent(ConnectionFault),
    /// The connection ended before any response. Usually the server had closed it before, but the request may have been
    /// processed.
    Lost(ConnectionFault),
    Sent(ConnectionFault),
}

impl ConnectionFault {
    /// Whether the fault only says that the connection is closed.
    fn is_end(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Io(error) => {
                use io::ErrorKind::{BrokenPipe, ConnectionReset};
                matches!(error.kind(), BrokenPipe | ConnectionReset)
            }
            Self::Malformed(_) => false,
        }
    }
}

fn nothing() -> Chain<Cursor<Vec<u8>>, Bytes> {
    Buf::chain(Cursor::default(), Bytes::new())
}

impl LoopbackConnection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            unsent: nothing(),
            is_begun: false,
            refused: None,
            buffer: BytesMut::new(),
            reading: LEAST_READ,
            has_grown: false,
        }
    }

    /// Whether no data and no end of stream has arrived since the last response, as far as the runtime knows. Needs no
    /// system call.
    pub(crate) fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The same, checked with a system call: the runtime may not have polled for events yet.
    pub(crate) fn is_quiet_in_truth(&self) -> bool {
        let peeked = SockRef::from(&self.stream).peek(&mut [MaybeUninit::uninit()]);
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and reads the head of its response. If the server answers before it has read the whole request,
    /// the rest is sent while the body is read.
    pub(crate) async fn ask(
        &mut self,
        method: &Method,
        head: Vec<u8>,
        body: Bytes,
    ) -> Result<Begun, Unanswered> {
        self.unsent = Buf::chain(Cursor::new(head), body);
        self.is_begun = false;
        let mut is_heard = false;
        loop {
            if let Err(fault) = self.fill().await {
                // The error of sending takes precedence over the missing response.
                let fault = self.refused.take().map_or(fault, ConnectionFault::Io);
                return Err(match (self.is_begun, is_heard) {
                    (false, _) => Unanswered::Unsent(fault),
                    (true, false) if fault.is_end() => Unanswered::Lost(fault),
                    (true, _) => Unanswered::Sent(fault),
                });
            }
            is_heard = true;
            match take_head(&mut self.buffer, method) {
                Ok(Some(begun)) => {
                    self.forget_what_was_sent();
                    return Ok(begun);
                }
                Ok(None) => {}
                Err(fault) => return Err(Unanswered::Sent(fault.into())),
            }
        }
    }

    /// The next piece of a body; `None` at its end. Cancel-safe.
    pub(crate) async fn piece(
        &mut self,
        body: &mut BodyFraming,
    ) -> Result<Option<Bytes>, ConnectionFault> {
        loop {
            match body.take(&mut self.buffer)? {
                Taken::Piece(piece) => return Ok(Some(piece)),
                Taken::End => return Ok(None),
                Taken::Nothing => {}
            }
            match self.fill().await {
                Err(ConnectionFault::Closed) if *body == BodyFraming::Open => return Ok(None),
                filled => filled?,
            }
        }
    }

    /// Releases the request, which may be large while its response takes long.
    fn forget_what_was_sent(&mut self) {
        if !self.unsent.has_remaining() {
            self.unsent = nothing();
        }
    }

    /// Whether the connection can carry another request: everything was sent and consumed. Releases a large buffer.
    pub(crate) fn make_ready(&mut self) -> bool {
        self.forget_what_was_sent();
        let is_ready =
            !self.unsent.has_remaining() && self.refused.is_none() && self.buffer.is_empty();
        if is_ready && self.has_grown {
            (self.buffer, self.reading, self.has_grown) = (BytesMut::new(), LEAST_READ, false);
        }
        is_ready
    }

    /// Reads data, and sends the rest of the request in the meantime.
    async fn fill(&mut self) -> Result<(), ConnectionFault> {
        self.buffer.reserve(self.reading);
        self.has_grown |= self.buffer.capacity() > 2 * LEAST_READ;
        let room = self.buffer.capacity() - self.buffer.len();
        let read = self.exchange().await?;
        if read == room {
            self.reading = (self.reading * 2).min(MOST_READ);
        } else if read < self.reading / 4 {
            self.reading = LEAST_READ;
        }
        if read == 0 { Err(ConnectionFault::Closed) } else { Ok(()) }
    }

    async fn exchange(&mut self) -> io::Result<usize> {
        while self.unsent.has_remaining() && self.refused.is_none() {
            let (mut reader, mut writer) = self.stream.split();
            let written = tokio::select! {
                biased;
                written = writer.write_buf(&mut self.unsent) => written,
                read = reader.read_buf(&mut self.buffer) => return read,
            };
            match written {
                Ok(_) => self.is_begun = true,
                // The server reads no more, and may have sent a response that says why.
                Err(error) if self.is_begun => self.refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        self.stream.read_buf(&mut self.buffer).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;

    /// A connection and the server's end of it.
    async fn connected() -> (LoopbackConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (LoopbackConnection::new(stream.unwrap()), accepted.unwrap().0)
    }

    /// Reads a response of this length while it arrives.
    async fn carry(connection: &mut LoopbackConnection, server: &mut TcpStream, length: usize) {
        let body = Bytes::from(vec![b'x'; 10_000]);
        let serving = async {
            let mut request = vec![0; 10_004];
            server.read_exact(&mut request).await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            server.write_all(head.as_bytes()).await.unwrap();
            server.write_all(&vec![b'y'; length]).await.unwrap();
        };
        let asking = async {
            let asked = connection.ask(&Method::POST, b"head".to_vec(), body.clone()).await;
            let mut begun = asked.unwrap();
            assert!(body.is_unique(), "what was sent is kept while the answer comes");
            while connection.piece(&mut begun.body).await.unwrap().is_some() {
                // Waits for the next data, so that much is read at once.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::join!(asking, serving);
    }

    #[tokio::test]
    async fn a_connection_that_waits_holds_nothing_large() {
        let (mut connection, mut server) = connected().await;
        carry(&mut connection, &mut server, 1_000_000).await;
        assert!(connection.reading > LEAST_READ, "little was read at once");
        assert!(connection.make_ready());
        assert_eq!((connection.buffer.capacity(), connection.reading), (0, LEAST_READ));
        carry(&mut connection, &mut server, 10).await;
        assert!(connection.make_ready());
        assert!(connection.buffer.capacity() <= 2 * LEAST_READ);
    }

    /// The remaining capacity is small then, but the whole buffer is still allocated.
    #[tokio::test]
    async fn room_for_much_is_given_back_even_when_the_last_read_has_nearly_filled_it() {
        let (mut connection, mut server) = connected().await;
        connection.reading = 10 * LEAST_READ;
        let mut sent = vec![b'y'; connection.reading - 100];
        server.write_all(&sent).await.unwrap();
        while connection.stream.peek(&mut sent).await.unwrap() < sent.len() {}
        connection.fill().await.unwrap();
        let mut body = BodyFraming::Length(sent.len() as u64);
        assert!(matches!(body.take(&mut connection.buffer), Ok(Taken::Piece(_))));
        assert!(
            (1..=2 * LEAST_READ).contains(&connection.buffer.capacity()),
            "{}",
            connection.buffer.capacity()
        );
        assert!(connection.make_ready());
        assert_eq!((connection.buffer.capacity(), connection.reading), (0, LEAST_READ));
    }
}
