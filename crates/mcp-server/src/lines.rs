//! Reads and writes JSON-RPC messages as lines (the stdio transport).

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::body::push_line;

/// The maximum length of a line.
const MAX_LINE: usize = 4 * 1024 * 1024;
/// Messages that may wait to be written before their senders have to wait.
pub const WAITING_LINES: usize = 256;

/// Why a line cannot be read as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    #[error("a message is larger than {MAX_LINE} bytes")]
    TooLong,
    #[error("the message is not UTF-8")]
    NotText,
}

/// Reads lines from an input, each up to a maximum length.
#[derive(Debug)]
pub struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new() }
    }

    /// The next line that is not empty; `None` at the end of the input.
    pub async fn next(&mut self) -> std::io::Result<Option<Result<&str, BadLine>>> {
        loop {
            let Some(is_whole) = self.read().await? else { return Ok(None) };
            if !is_whole {
                return Ok(Some(Err(BadLine::TooLong)));
            }
            if !self.line.trim_ascii().is_empty() {
                let line = str::from_utf8(&self.line).map_err(|_| BadLine::NotText);
                return Ok(Some(line));
            }
        }
    }

    /// Reads up to a line break. A line that is too long is skipped to its end.
    async fn read(&mut self) -> std::io::Result<Option<bool>> {
        self.line.clear();
        let mut is_whole = true;
        loop {
            let buffer = self.input.fill_buf().await?;
            if buffer.is_empty() {
                return Ok((!self.line.is_empty() || !is_whole).then_some(is_whole));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            if self.line.len() + part.len() > MAX_LINE {
                is_whole = false;
                self.line.clear();
            } else if is_whole {
                self.line.extend_from_slice(part);
            }
            let read = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(read);
            if end.is_some() {
                return Ok(Some(is_whole));
            }
        }
    }
}

/// Writes each message as one line, until all senders are dropped or the output is closed.
pub async fn write_lines(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<String>,
) -> std::io::Result<()> {
    while let Some(message) = messages.recv().await {
        let mut line = String::with_capacity(message.len() + 1);
        push_line(&mut line, &message);
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
