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

/// How much is read at once: little, until there is more.
const LEAST_READ: usize = 4 << 10;
const MOST_READ: usize = 64 << 10;

/// A connection.
#[derive(Debug)]
pub(crate) struct LoopbackConnection {
    stream: TcpStream,
    /// What was not sent yet: a head, and the body to it.
    unsent: Chain<Cursor<Vec<u8>>, Bytes>,
    /// Whether some of it was sent.
    is_begun: bool,
    /// Why the rest of it will never be sent.
    refused: Option<io::Error>,
    /// What was read and not yet taken.
    buffer: BytesMut,
    reading: usize,
    /// Whether there was ever room for much in it. What is left of that room does not tell.
    has_grown: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the server closed the connection")]
    Closed,
}

/// A request that has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The server cannot have seen any of it.
    Unsent(ConnectionFault),
    /// The connection ended before anything came back. Mostly the server had closed it before, but it may have carried
    /// the request out.
    Lost(ConnectionFault),
    Sent(ConnectionFault),
}

impl ConnectionFault {
    /// Whether it says no more than that the connection is no longer there.
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

    /// Whether nothing has come since the last answer, not even the end. Asks nobody: a connection of which no news came
    /// is not looked at.
    pub(crate) fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The same, asked of the system: the runtime may not have heard yet of an end that came a moment ago, and a
    /// runtime that was busy has not heard for longer.
    pub(crate) fn is_quiet_in_truth(&self) -> bool {
        let peeked = SockRef::from(&self.stream).peek(&mut [MaybeUninit::uninit()]);
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and reads the head of its answer. A server may answer before it has read everything; then the
    /// rest is sent while the body is read.
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
                // That it took no more comes before that it said nothing.
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

    /// The next piece of a body, or nothing at its end. Dropping the future loses nothing.
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

    /// A request may be large, and its answer long.
    fn forget_what_was_sent(&mut self) {
        if !self.unsent.has_remaining() {
            self.unsent = nothing();
        }
    }

    /// Whether it can carry another request: everything was sent, and everything that came was taken. Room for much is
    /// given back.
    pub(crate) fn make_ready(&mut self) -> bool {
        self.forget_what_was_sent();
        let is_ready =
            !self.unsent.has_remaining() && self.refused.is_none() && self.buffer.is_empty();
        if is_ready && self.has_grown {
            (self.buffer, self.reading, self.has_grown) = (BytesMut::new(), LEAST_READ, false);
        }
        is_ready
    }

    /// Reads, and sends meanwhile what is left to send.
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
                // It wants no more, and may have said why.
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

    /// Such an answer, read while it comes.
    async fn carry(line: &mut LoopbackConnection, server: &mut TcpStream, length: usize) {
        let body = Bytes::from(vec![b'x'; 10_000]);
        let serving = async {
            let mut request = vec![0; 10_004];
            server.read_exact(&mut request).await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            server.write_all(head.as_bytes()).await.unwrap();
            server.write_all(&vec![b'y'; length]).await.unwrap();
        };
        let asking = async {
            let asked = line.ask(&Method::POST, b"head".to_vec(), body.clone()).await;
            let mut begun = asked.unwrap();
            assert!(body.is_unique(), "what was sent is kept while the answer comes");
            while line.piece(&mut begun.body).await.unwrap().is_some() {
                // Until the next ones have come, so that much is read at once.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::join!(asking, serving);
    }

    #[tokio::test]
    async fn a_connection_that_waits_holds_nothing_large() {
        let (mut line, mut server) = connected().await;
        carry(&mut line, &mut server, 1_000_000).await;
        assert!(line.reading > LEAST_READ, "little was read at once");
        assert!(line.make_ready());
        assert_eq!((line.buffer.capacity(), line.reading), (0, LEAST_READ));
        carry(&mut line, &mut server, 10).await;
        assert!(line.make_ready());
        assert!(line.buffer.capacity() <= 2 * LEAST_READ);
    }

    /// What is left of the room is little then, and all of it is still held.
    #[tokio::test]
    async fn room_for_much_is_given_back_even_when_the_last_read_has_nearly_filled_it() {
        let (mut line, mut server) = connected().await;
        line.reading = 10 * LEAST_READ;
        let mut sent = vec![b'y'; line.reading - 100];
        server.write_all(&sent).await.unwrap();
        while line.stream.peek(&mut sent).await.unwrap() < sent.len() {}
        line.fill().await.unwrap();
        let mut body = BodyFraming::Length(sent.len() as u64);
        assert!(matches!(body.take(&mut line.buffer), Ok(Taken::Piece(_))));
        assert!(
            (1..=2 * LEAST_READ).contains(&line.buffer.capacity()),
            "{}",
            line.buffer.capacity()
        );
        assert!(line.make_ready());
        assert_eq!((line.buffer.capacity(), line.reading), (0, LEAST_READ));
    }
}
