//! Lines from a terminal or a pipe.

use std::io::IsTerminal;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Stdin};

use crate::failure::Failure;
use crate::output::Output;

/// Maximum size of a message.
const LONGEST: u64 = 4 * 1024 * 1024;

/// Standard input, message by message.
pub(super) struct InputLines {
    stdin: BufReader<Stdin>,
    pub(super) is_terminal: bool,
    /// The current line, as far as it was read.
    line: Vec<u8>,
    /// Earlier lines of the same message, which end with `\`.
    held: String,
}

impl InputLines {
    pub(super) fn new() -> Self {
        Self {
            stdin: BufReader::new(tokio::io::stdin()),
            is_terminal: std::io::stdin().is_terminal(),
            line: Vec::new(),
            held: String::new(),
        }
    }

    /// Shows a prompt if standard input is a terminal.
    pub(super) fn prompt(&self, output: Output) {
        if self.is_terminal {
            output.aside("> ");
        }
    }

    /// The next message; `None` at the end of input. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let room = LONGEST.saturating_sub(self.line.len() as u64);
            let mut bounded = (&mut self.stdin).take(room);
            let read = bounded.read_until(b'\n', &mut self.line).await;
            read.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
            if self.line.is_empty() {
                let rest = std::mem::take(&mut self.held);
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
            let bytes = std::mem::take(&mut self.line);
            if bytes.len() as u64 >= LONGEST {
                let message = format!("a line is longer than {LONGEST} bytes");
                return Err(Failure::usage(message));
            }
            let Ok(line) = String::from_utf8(bytes) else {
                return Err(Failure::usage("standard input is not UTF-8 text"));
            };
            let line = line.trim_end_matches(['\n', '\r']);
            match line.strip_suffix('\\') {
                Some(line) => self.held.extend([line, "\n"]),
                None => return Ok(Some(std::mem::take(&mut self.held) + line)),
            }
        }
    }
}

/// Reads standard input to its end.
pub(super) async fn whole_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = tokio::io::stdin().take(LONGEST).read_to_string(&mut text).await;
    read.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    Ok(text)
}
