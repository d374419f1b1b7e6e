//! The error of a child process that has ended.

use switchboard_model::{ConnectError, ConnectErrorKind};
use switchboard_outbound::Redactor;

use crate::stdio::ChildProcess;

/// Maximum number of bytes of a dead child's standard error in an error message; `Connection::stderr` has more.
const MAX_LAST_WORDS: usize = 2000;

/// The error of a dead child: its exit status and the end of its standard error, without secrets.
pub(crate) fn process_error(child: &ChildProcess, redactor: &Redactor) -> ConnectError {
    if let Some(failure) = child.start_failure() {
        return redactor.redact_error(failure);
    }
    // Secrets are removed before the text is cut, because only whole ones are recognized.
    let (reason, said) =
        (redactor.redact_text(&child.reason()), redactor.redact_text(&child.stderr()));
    let said = last_bytes(&said, MAX_LAST_WORDS);
    let message = if said.is_empty() { reason } else { format!("{reason}; it said:\n{said}") };
    ConnectError::new(ConnectErrorKind::Process, message)
        .with_operator_hint("run the command by hand to see whether it starts and waits for input")
}

fn last_bytes(text: &str, limit: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text.get(start..).unwrap_or_default()
}
