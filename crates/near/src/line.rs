//! One connection, which carries one request at a time.

use std::io::{self, Cursor};

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::answer::{Begun, Body, Malformed, Taken, take_head};

/// How much is read at once: little, until there is more.
const LEAST_READ: usize = 4 << 10;
const MOST_READ: usize = 64 << 10;

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
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
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineFault {
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
    Unsent(LineFault),
    Sent(LineFault),
}

fn nothing() -> Chain<Cursor<Vec<u8>>, Bytes> {
    Buf::chain(Cursor::default(), Bytes::new())
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            unsent: nothing(),
            is_begun: false,
            refused: None,
            buffer: BytesMut::new(),
            reading: LEAST_READ,
        }
    }

    /// Whether nothing has come since the last answer, not even the end. Asks nobody: a connection of which no news came
    /// is not looked at.
    pub(crate) fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
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
        loop {
            if let Err(fault) = self.fill().await {
                // That it took no more comes before that it said nothing.
                let fault = self.refused.take().map_or(fault, LineFault::Io);
                let unanswered = if self.is_begun { Unanswered::Sent } else { Unanswered::Unsent };
                return Err(unanswered(fault));
            }
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
    pub(crate) async fn piece(&mut self, body: &mut Body) -> Result<Option<Bytes>, LineFault> {
        loop {
            match body.take(&mut self.buffer)? {
                Taken::Piece(piece) => return Ok(Some(piece)),
                Taken::End => return Ok(None),
                Taken::Nothing => {}
            }
            match self.fill().await {
                Err(LineFault::Closed) if *body == Body::Open => return Ok(None),
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
        if self.buffer.capacity() > 2 * LEAST_READ {
            self.buffer = BytesMut::from(&*self.buffer);
        }
        !self.unsent.has_remaining() && self.refused.is_none() && self.buffer.is_empty()
    }

    /// Reads, and sends meanwhile what is left to send.
    async fn fill(&mut self) -> Result<(), LineFault> {
        self.buffer.reserve(self.reading);
        let room = self.buffer.capacity() - self.buffer.len();
        let read = self.exchange().await?;
        if read == room {
            self.reading = (self.reading * 2).min(MOST_READ);
        } else if read < self.reading / 4 {
            self.reading = LEAST_READ;
        }
        if read == 0 { Err(LineFault::Closed) } else { Ok(()) }
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

    #[tokio::test]
    async fn a_connection_that_waits_holds_nothing_large() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut server, _) = accepted.unwrap();
        let (mut line, body) = (Line::new(stream.unwrap()), Bytes::from(vec![b'x'; 10_000]));
        let serving = async {
            let mut request = vec![0; 10_004];
            server.read_exact(&mut request).await.unwrap();
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
            server.write_all(head).await.unwrap();
            server.write_all(&vec![b'y'; 1_000_000]).await.unwrap();
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
        assert!(line.reading > LEAST_READ, "little was read at once");
        assert!(line.make_ready());
        assert!(line.buffer.capacity() <= 2 * LEAST_READ);
    }
}
