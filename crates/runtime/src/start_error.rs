//! Why a board could not start or a new configuration was rejected: all reasons, not only the first.

use std::fmt;

use switchboard_model::{ConnectError, ConnectErrorKind, RequiredOrigin, ServerName};
use switchboard_registry::Violation;
use switchboard_store::StoreError;

/// One reason.
#[derive(Debug)]
pub enum StartFailure {
    /// A required server could not be reached. By default every server is required.
    Connect {
        server: ServerName,
        place: String,
        /// Where the configuration says, or could say, that the server is not required.
        required: RequiredOrigin,
        error: ConnectError,
    },
    /// A tool that may not be registered.
    Violation(Violation),
    /// The store cannot be opened or used.
    Store(StoreError),
    /// The command line, the environment or the file request an exposure that the plan does not allow.
    Exposure(String),
}

/// All reasons together.
#[derive(Debug)]
pub struct StartError {
    pub failures: Vec<StartFailure>,
}

impl StartError {
    pub(crate) fn exposure(reason: String) -> Self {
        Self { failures: vec![StartFailure::Exposure(reason)] }
    }

    /// Whether all reasons are unreachable servers.
    pub fn is_only_unreachable(&self) -> bool {
        self.failures.iter().all(|failure| matches!(failure, StartFailure::Connect { .. }))
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { server, place, required, error } => {
                // Indented, so that lines of the server's message cannot be mistaken for lines of this one.
                let message = error.message.replace('\n', "\n  ");
                write!(
                    f,
                    "Failed to connect to MCP server '{server}' at {place}\nError: {message}"
                )?;
                for hint in &error.hints {
                    write!(f, "\nHint: {}", hint.text)?;
                }
                let is_refused =
                    matches!(error.kind, ConnectErrorKind::Unauthorized | ConnectErrorKind::SignIn);
                if !is_refused {
                    write!(f, "\nHint: to start without it, {required}")?;
                }
                f.write_str(
                    "\n\nThe application cannot start without connecting to all configured MCP servers.",
                )
            }
            Self::Violation(violation) => violation.fmt(f),
            Self::Exposure(reason) => f.write_str(reason),
            Self::Store(error) => {
                write!(f, "{error}")?;
                error.hint().map_or(Ok(()), |hint| write!(f, "\nHint: {hint}"))
            }
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, failure) in self.failures.iter().enumerate() {
            if at > 0 {
                f.write_str("\n\n")?;
            }
            failure.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for StartError {}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        Self { failures: vec![StartFailure::Store(error)] }
    }
}
