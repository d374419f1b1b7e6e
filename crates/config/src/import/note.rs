//! Notes for the user about an import.

use std::fmt;

/// A note about an import. It uses the server names of the other file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportNote {
    /// A server that was skipped.
    LeftOut { server: String, reason: String },
    /// A server that was imported with changes, or that needs the user's attention.
    Changed {
        /// Its name in the Switchboard file.
        name: String,
        server: String,
        text: String,
    },
    /// Applies to every imported stdio server.
    Programs(&'static str),
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut { server, reason } => write!(f, "{server}: left out: {reason}"),
            Self::Changed { server, text, .. } => write!(f, "{server}: {text}"),
            Self::Programs(text) => f.write_str(text),
        }
    }
}
