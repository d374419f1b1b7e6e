//! Errors of the database, by what the operator can do about them.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::migrate::MigrateError;

use crate::grant_cipher::GrantLock;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory or the file cannot be created or opened.
    #[error("cannot create or open {}", file.display())]
    Inaccessible {
        /// The directory or file.
        file: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The file can be read but not written.
    #[error("cannot write to the database {}", file.display())]
    ReadOnly {
        /// The database.
        file: PathBuf,
        /// The error of `SQLite`.
        source: sqlx::Error,
    },
    /// The file is not a database, or is corrupt.
    #[error("{} is damaged or is not a database", file.display())]
    Damaged {
        /// The database.
        file: PathBuf,
        /// The error of `SQLite`.
        source: sqlx::Error,
    },
    /// A newer version has already changed the schema.
    #[error("the database {} was made by a newer version (it has migration {migration})", file.display())]
    Newer {
        /// The database.
        file: PathBuf,
        /// The migration that this version does not know.
        migration: i64,
    },
    /// The schema cannot be migrated.
    #[error("cannot migrate the schema of the database {}", file.display())]
    Migration {
        /// The database.
        file: PathBuf,
        /// The error of the migrator.
        source: Box<MigrateError>,
    },
    /// Another process held the lock for too long.
    #[error("the database {} stayed locked for too long (cannot {operation})", file.display())]
    Busy {
        /// The database.
        file: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of `SQLite` or of the pool.
        source: sqlx::Error,
    },
    /// The disk is full.
    #[error("no space left for the database {} (cannot {operation})", file.display())]
    Full {
        /// The database.
        file: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of `SQLite`.
        source: sqlx::Error,
    },
    /// The disk reports errors.
    #[error("the disk of the database {} reports an error (cannot {operation})", file.display())]
    Disk {
        /// The database.
        file: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of `SQLite`.
        source: sqlx::Error,
    },
    /// A row has a value that this version cannot read.
    #[error("cannot {operation}: a row of the database {} has a value that this version does not understand", file.display())]
    Unreadable {
        /// The database.
        file: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The value.
        source: sqlx::Error,
    },
    /// Another key has this name already.
    #[error("there is already a key with the name {name:?} in the database {}", file.display())]
    NameTaken {
        /// The database.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// A result that is larger than the limit of one owner.
    #[error("a result of {bytes} bytes is more than the {most} that are kept in the database {}", file.display())]
    TooLarge {
        /// The database.
        file: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A sign-in that cannot be decrypted. It stays as it is.
    #[error("the sign-in {grant} in the database {} {}", file.display(), lock.describe())]
    GrantLocked {
        /// The database.
        file: PathBuf,
        /// The purpose and the owner.
        grant: String,
        /// Why.
        lock: GrantLock,
    },
    /// A sign-in that may not be stored in clear text.
    #[error(
        "the sign-in {grant} would be kept in clear text, on a board that other machines can reach"
    )]
    ClearText {
        /// The database.
        file: PathBuf,
        /// The purpose and the owner.
        grant: String,
    },
    /// The encryption of a sign-in failed.
    #[error("the sign-in {grant} cannot be encrypted")]
    NotEncrypted {
        /// The database.
        file: PathBuf,
        /// The purpose and the owner.
        grant: String,
    },
    /// The system provided no random bytes.
    #[error("cannot get random bytes from the system")]
    NoRandomness {
        /// The system error.
        source: io::Error,
    },
    /// The store was closed before.
    #[error("the database {} is closed", file.display())]
    Closed {
        /// The database.
        file: PathBuf,
    },
    /// Anything else.
    #[error("cannot {operation} in the database {}", file.display())]
    Query {
        /// The database.
        file: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of `SQLite`.
        source: sqlx::Error,
    },
}

impl StoreError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Inaccessible { .. } | Self::ReadOnly { .. } => Some(
                "make it writable for this user, or choose another directory with --data-dir"
                    .into(),
            ),
            Self::Damaged { file, .. } => Some(format!(
                "move {} (and the -wal and -shm files beside it) away to start with an empty one, or restore a copy",
                file.display()
            )),
            Self::Newer { .. } => {
                Some("run the newer version, or choose another directory with --data-dir".into())
            }
            Self::Migration { file, .. } => {
                Some(format!("move {} away to start with an empty one", file.display()))
            }
            Self::Busy { .. } => {
                Some("see which other process uses this directory; if it hangs, stop it".into())
            }
            Self::Full { .. } => {
                Some("free some space, or choose another directory with --data-dir".into())
            }
            Self::Disk { .. } => {
                Some("look at the disk of this directory and at the system's log".into())
            }
            Self::Unreadable { .. } => {
                Some("a newer version may have written it: update this one".into())
            }
            Self::NameTaken { .. } => Some("choose another name, or revoke that key first".into()),
            Self::TooLarge { .. } => {
                Some("ask the tool for less, or raise `max_result_bytes` of the tool".into())
            }
            Self::GrantLocked { lock: GrantLock::UnknownKey(_), .. } => Some(
                "set `security.store_key` to the key that encrypted it, or list that key in \
                 `security.previous_store_keys`; `switchboard auth logout` removes the sign-in"
                    .into(),
            ),
            Self::GrantLocked { lock: GrantLock::Changed, .. } => {
                Some("restore a copy, or remove the sign-in with `switchboard auth logout`".into())
            }
            Self::ClearText { .. } => Some(
                "set `security.store_key` to a file or a variable with a key of `openssl rand -base64 32`"
                    .into(),
            ),
            Self::NotEncrypted { .. }
            | Self::NoRandomness { .. }
            | Self::Closed { .. }
            | Self::Query { .. } => None,
        }
    }

    /// The reason without file names, for callers that must not learn them. The log has the full message.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Inaccessible { .. } => "its database cannot be opened",
            Self::ReadOnly { .. } => "its database cannot be written to",
            Self::Damaged { .. } => "its database is damaged",
            Self::Busy { .. } => "its database was locked for too long",
            Self::Full { .. } => "no space is left on the disk of its data directory",
            Self::Disk { .. } => "the disk of its data directory reports errors",
            Self::Closed { .. } => "it is closed, the board is about to stop",
            Self::NameTaken { .. } => "the name is taken",
            Self::TooLarge { .. } => "it exceeds the limit for one caller",
            Self::NoRandomness { .. } => "the system provides no random bytes",
            Self::GrantLocked { lock: GrantLock::UnknownKey(_), .. } => {
                "the key that encrypted a sign-in is not configured"
            }
            Self::GrantLocked { lock: GrantLock::Changed, .. } => {
                "a sign-in was changed from outside"
            }
            Self::ClearText { .. } => "a sign-in would be kept in clear text",
            Self::NotEncrypted { .. } => "a sign-in cannot be encrypted",
            Self::Newer { .. }
            | Self::Migration { .. }
            | Self::Unreadable { .. }
            | Self::Query { .. } => "the log says why",
        }
    }

    /// A word for the reason, from a small fixed set.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Inaccessible { .. } => "inaccessible",
            Self::ReadOnly { .. } => "read_only",
            Self::Damaged { .. } => "damaged",
            Self::Busy { .. } => "locked",
            Self::Full { .. } => "full",
            Self::Disk { .. } => "disk",
            Self::Closed { .. } => "closed",
            Self::NameTaken { .. } => "name_taken",
            Self::TooLarge { .. } => "too_large",
            Self::NoRandomness { .. } => "no_randomness",
            Self::GrantLocked { .. } => "locked_grant",
            Self::ClearText { .. } => "clear_text",
            Self::NotEncrypted { .. } => "not_encrypted",
            Self::Newer { .. } | Self::Migration { .. } => "layout",
            Self::Unreadable { .. } => "unreadable",
            Self::Query { .. } => "query",
        }
    }

    /// Whether the cause is outside of this program and may pass, so that the same request can succeed later.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Inaccessible { .. }
            | Self::ReadOnly { .. }
            | Self::Damaged { .. }
            | Self::Busy { .. }
            | Self::Full { .. }
            | Self::Disk { .. } => true,
            Self::Newer { .. }
            | Self::Migration { .. }
            | Self::Unreadable { .. }
            | Self::NameTaken { .. }
            | Self::TooLarge { .. }
            | Self::NoRandomness { .. }
            | Self::GrantLocked { .. }
            | Self::ClearText { .. }
            | Self::NotEncrypted { .. }
            | Self::Closed { .. }
            | Self::Query { .. } => false,
        }
    }

    /// The message with all of its causes, for a log.
    pub fn in_full(&self) -> String {
        let mut told = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some messages repeat their cause.
            if !told.ends_with(&text) {
                told = format!("{told}: {text}");
            }
            cause = error.source();
        }
        told
    }

    pub(crate) fn from_sqlx(file: &Path, operation: &'static str, source: sqlx::Error) -> Self {
        let file = file.to_path_buf();
        match source {
            sqlx::Error::PoolClosed => return Self::Closed { file },
            sqlx::Error::Io(source) => return Self::Inaccessible { file, source },
            sqlx::Error::PoolTimedOut => return Self::Busy { file, operation, source },
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
                return Self::Unreadable { file, operation, source };
            }
            _ => {}
        }
        // https://www.sqlite.org/rescode.html
        match primary_code(&source) {
            Some(5 | 6) => Self::Busy { file, operation, source },
            Some(8 | 14) => Self::ReadOnly { file, source },
            Some(11 | 26) => Self::Damaged { file, source },
            Some(10) => Self::Disk { file, operation, source },
            Some(13) => Self::Full { file, operation, source },
            _ => Self::Query { file, operation, source },
        }
    }

    pub(crate) fn from_migration(file: &Path, known: i64, source: MigrateError) -> Self {
        match source {
            MigrateError::VersionMissing(migration) if migration > known => {
                Self::Newer { file: file.to_path_buf(), migration }
            }
            MigrateError::Execute(source) => Self::from_sqlx(file, "read the schema", source),
            source => Self::Migration { file: file.to_path_buf(), source: Box::new(source) },
        }
    }
}

/// A [`StoreError`] that can be cloned and shown to callers: its message contains no file name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store failed: {reason}; nothing was changed")]
pub struct StoreFailure {
    pub reason: &'static str,
    /// Whether the same request can succeed later.
    pub is_outage: bool,
    /// The full message, for the log.
    pub in_full: String,
}

impl From<&StoreError> for StoreFailure {
    fn from(error: &StoreError) -> Self {
        Self { reason: error.reason(), is_outage: error.is_outage(), in_full: error.in_full() }
    }
}

impl From<StoreError> for StoreFailure {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

/// The low byte of `SQLite`'s extended result code, which is the primary code.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?.parse::<u32>().ok()?;
    Some(code & 0xff)
}
