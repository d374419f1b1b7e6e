//! One connection, which carries one request at a time.

use std::io;

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

/// How a request went out.
enum Sending {
    Whole,
    /// The answer came before all of it was sent.
    Answered(Begun),
    /// The server wants no more of it, and may have said why.
    Refused(LineFault),
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: BytesMut::new(), reading: LEAST_READ }
    }

    /// Whether nothing has come since the last answer, not even the end. Asks nobody: a connection of which no news came
    /// is not looked at.
    pub(crate) fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn ask(
        &mut self,
        method: &Method,
        head: &[u8],
        body: &[u8],
    ) -> Result<Begun, Unanswered> {
        let refused = match self.send(method, Buf::chain(head, body)).await? {
            Sending::Answered(begun) => return Ok(begun),
            Sending::Refused(fault) => Some(fault),
            Sending::Whole => None,
        };
        loop {
            match take_head(&mut self.buffer, method) {
                Ok(Some(mut begun)) => {
                    begun.is_kept &= refused.is_none();
                    return Ok(begun);
                }
                Ok(None) => {}
                Err(fault) => return Err(Unanswered::Sent(fault.into())),
            }
            if let Err(fault) = self.fill().await {
                return Err(Unanswered::Sent(refused.unwrap_or(fault)));
            }
        }
    }

    /// A server may answer before it has read everything. One that refuses will not read on; the others are sent the
    /// rest all the same.
    async fn send(
        &mut self,
        method: &Method,
        mut request: impl Buf,
    ) -> Result<Sending, Unanswered> {
        let length = request.remaining();
        let (reader, mut writer) = self.stream.split();
        let mut answered = None;
        while request.has_remaining() {
            let moved = tokio::select! {
                biased;
                written = writer.write_buf(&mut request) => written.map(drop).map_err(LineFault::Io),
                news = reader.readable(), if answered.is_none() => {
                    match news.and_then(|()| reader.try_read_buf(&mut self.buffer)) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                        Ok(0) => Err(LineFault::Closed),
                        Ok(_) => {
                            let head = take_head(&mut self.buffer, method);
                            answered = head.map_err(|fault| Unanswered::Sent(fault.into()))?;
                            Ok(())
                        }
                        Err(error) => Err(error.into()),
                    }
                }
            };
            let refusal =
                answered.take_if(|begun| !begun.head.status.is_success() || moved.is_err());
            match (moved, refusal) {
                (_, Some(begun)) => {
                    return Ok(Sending::Answered(Begun { is_kept: false, ..begun }));
                }
                (Ok(()), None) => {}
                (Err(fault), None) if request.remaining() == length => {
                    return Err(Unanswered::Unsent(fault));
                }
                (Err(fault), None) => return Ok(Sending::Refused(fault)),
            }
        }
        Ok(answered.map_or(Sending::Whole, Sending::Answered))
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

    /// Whether there is nothing in it that belongs to nobody.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    async fn fill(&mut self) -> Result<(), LineFault> {
        self.buffer.reserve(self.reading);
        let room = self.buffer.capacity() - self.buffer.len();
        let read = self.stream.read_buf(&mut self.buffer).await?;
        if read == room {
            self.reading = (self.reading * 2).min(MOST_READ);
        } else if read < self.reading / 4 {
            self.reading = LEAST_READ;
        }
        if read == 0 { Err(LineFault::Closed) } else { Ok(()) }
    }
}
