//! Messages as lines of a pipe: how they are read and written.

use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::body::push_line;

/// The longest line that is read.
pub const MAX_LINE: usize = 4 * 1024 * 1024;
/// Messages that wait to be written; then those who write wait for the reader.
pub const WAITING_LINES: usize = 256;

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Whole,
    /// Longer than [`MAX_LINE`].
    TooLong,
    /// There is no further one.
    End,
}

/// Reads up to a line break; what is too long is read to its end and thrown away.
pub async fn read_line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<Line> {
    line.clear();
    let mut is_too_long = false;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(match (line.is_empty(), is_too_long) {
                (true, false) => Line::End,
                (_, true) => Line::TooLong,
                (false, false) => Line::Whole,
            });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        if line.len() + part.len() > MAX_LINE {
            is_too_long = true;
            line.clear();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let read = end.map_or(buffer.len(), |end| end + 1);
        input.consume(read);
        if end.is_some() {
            return Ok(if is_too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

/// Writes messages, each as one line, until nobody sends any more or nobody reads.
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
