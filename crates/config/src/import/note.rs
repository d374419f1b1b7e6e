//! What a person should know about servers that are taken over from another program.

use std::fmt;

/// A remark on an import. It names servers as the other file does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportNote {
    /// A server that is not taken over.
    LeftOut { server: String, reason: String },
    /// A server that is taken over, but not exactly as it was written, or that needs a look.
    Changed {
        /// Its name in our file.
        name: String,
        server: String,
        text: String,
    },
    /// Holds for every server that is started as a program.
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
