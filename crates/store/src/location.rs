//! Where a database is, for messages.

use std::fmt;
use std::path::{Path, PathBuf};

/// The place of a database as messages name it. It contains no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// The file of `SQLite`; `:memory:` if there is none.
    File(PathBuf),
    /// The address of a `PostgreSQL` database: `postgres://USER@HOST:PORT/DATABASE`.
    Server(String),
}

impl StoreLocation {
    /// The file, if the database is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Server(_) => None,
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(out),
            Self::Server(address) => out.write_str(address),
        }
    }
}
