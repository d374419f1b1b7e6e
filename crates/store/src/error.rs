//! Errors of the database, by what the operator can do about them.

use std::error::Error;
use std::io;

use sqlx::migrate::MigrateError;

use crate::StoreLocation;
use crate::grant_cipher::GrantLock;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory or the file cannot be created or opened.
    #[error("cannot create or open {database}")]
    Inaccessible {
        /// The directory or file.
        database: StoreLocation,
        /// The system error.
        source: io::Error,
    },
    /// The file can be read but not written.
    #[error("cannot write to the database {database}")]
    ReadOnly {
        /// The database.
        database: StoreLocation,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The file is not a database, or is corrupt.
    #[error("{database} is damaged or is not a database")]
    Damaged {
        /// The database.
        database: StoreLocation,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// A newer version has already changed the schema.
    #[error("the database {database} was made by a newer version (it has migration {migration})")]
    Newer {
        /// The database.
        database: StoreLocation,
        /// The migration that this version does not know.
        migration: i64,
    },
    /// The schema cannot be migrated.
    #[error("cannot migrate the schema of the database {database}")]
    Migration {
        /// The database.
        database: StoreLocation,
        /// The error of the migrator.
        source: Box<MigrateError>,
    },
    /// Another process held the lock for too long.
    #[error("the database {database} stayed locked for too long (cannot {operation})")]
    Busy {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the database or of the pool.
        source: sqlx::Error,
    },
    /// The disk is full.
    #[error("no space left for the database {database} (cannot {operation})")]
    Full {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The disk reports errors.
    #[error("the disk of the database {database} reports an error (cannot {operation})")]
    Disk {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The server of the database cannot be reached, or does not answer.
    #[error("cannot reach the database {database} (cannot {operation})")]
    Unreachable {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the connection.
        source: sqlx::Error,
    },
    /// The server of the database accepts no more connections.
    #[error("the database {database} has no connection left (cannot {operation})")]
    NoConnection {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The server refuses the user, the password or the name of the database.
    #[error("the database {database} refuses the connection or the operation (cannot {operation})")]
    Refused {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The address of the database cannot be read. The address itself is not shown: it may contain a password.
    #[error("`store.url` is not the address of a PostgreSQL database")]
    Address {
        /// What is wrong with it.
        source: sqlx::Error,
    },
    /// A row has a value that this version cannot read.
    #[error(
        "cannot {operation}: a row of the database {database} has a value that this version does not understand"
    )]
    Unreadable {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The value.
        source: sqlx::Error,
    },
    /// Another key has this name already.
    #[error("there is already a key with the name {name:?} in the database {database}")]
    NameTaken {
        /// The database.
        database: StoreLocation,
        /// The name.
        name: String,
    },
    /// A result that is larger than the limit of one owner.
    #[error(
        "a result of {bytes} bytes is more than the {most} that are kept in the database {database}"
    )]
    TooLarge {
        /// The database.
        database: StoreLocation,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A sign-in that cannot be decrypted. It stays as it is.
    #[error("the sign-in {grant} in the database {database} {}", lock.describe())]
    GrantLocked {
        /// The database.
        database: StoreLocation,
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
        database: StoreLocation,
        /// The purpose and the owner.
        grant: String,
    },
    /// The encryption of a sign-in failed.
    #[error("the sign-in {grant} cannot be encrypted")]
    NotEncrypted {
        /// The database.
        database: StoreLocation,
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
    #[error("the database {database} is closed")]
    Closed {
        /// The database.
        database: StoreLocation,
    },
    /// Anything else.
    #[error("cannot {operation} in the database {database}")]
    Query {
        /// The database.
        database: StoreLocation,
        /// The operation.
        operation: &'static str,
        /// The error of the database.
        source: sqlx::Error,
    },
}

impl StoreError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        self.hint_for_server().map(str::to_owned).or_else(|| self.hint_for_file())
    }

    /// What can be done about a database of a server.
    fn hint_for_server(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => Some(
                "see that the database runs and that `store.url` names its host and port; requests are served again when it is back",
            ),
            Self::NoConnection { .. } => Some(
                "raise `max_connections` of the database, lower `store.max_connections`, or put a pooler in between",
            ),
            Self::Refused { .. } => Some(
                "check user, password and database name in `store.url`, and the rights of the user",
            ),
            Self::Address { .. } => Some("write it as postgres://USER:PASSWORD@HOST:5432/DATABASE"),
            Self::ReadOnly { database: StoreLocation::Server(_), .. } => {
                Some("it may be a standby: let `store.url` name the primary server")
            }
            Self::Newer { database: StoreLocation::Server(_), .. } => {
                Some("run the newer version, or use another database")
            }
            Self::Migration { database: StoreLocation::Server(_), .. }
            | Self::Damaged { database: StoreLocation::Server(_), .. } => {
                Some("restore a backup of the database, or use an empty one")
            }
            Self::Busy { database: StoreLocation::Server(_), .. } => {
                Some("look for sessions of the database that hold locks (pg_stat_activity)")
            }
            Self::Full { database: StoreLocation::Server(_), .. }
            | Self::Disk { database: StoreLocation::Server(_), .. } => {
                Some("look at the disk of the database server and at its log")
            }
            Self::Query { source, .. } if loses_prepared_statements(source) => Some(
                "a pooler in transaction mode stands in between and loses prepared statements: use PgBouncer 1.21 or newer \
                 with `max_prepared_statements`, its session mode, or the address of the database itself",
            ),
            _ => None,
        }
    }

    fn hint_for_file(&self) -> Option<String> {
        match self {
            Self::Inaccessible { .. } | Self::ReadOnly { .. } => Some(
                "make it writable for this user, or choose another directory with --data-dir"
                    .into(),
            ),
            Self::Damaged { database, .. } => Some(format!(
                "move {database} (and the -wal and -shm files beside it) away to start with an empty one, or restore a copy"
            )),
            Self::Newer { .. } => {
                Some("run the newer version, or choose another directory with --data-dir".into())
            }
            Self::Migration { database, .. } => {
                Some(format!("move {database} away to start with an empty one"))
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
            Self::Unreachable { .. }
            | Self::NoConnection { .. }
            | Self::Refused { .. }
            | Self::Address { .. }
            | Self::NotEncrypted { .. }
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
            Self::Unreachable { .. } => "its database cannot be reached",
            Self::NoConnection { .. } => "its database accepts no more connections",
            Self::Refused { .. } => "its database refuses it",
            Self::Busy { .. } => "its database was locked for too long",
            Self::Full { database: StoreLocation::Server(_), .. } => {
                "no space is left on the disk of its database"
            }
            Self::Full { .. } => "no space is left on the disk of its data directory",
            Self::Disk { database: StoreLocation::Server(_), .. } => {
                "the disk of its database reports errors"
            }
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
            Self::Address { .. }
            | Self::Newer { .. }
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
            Self::Unreachable { .. } => "unreachable",
            Self::NoConnection { .. } => "no_connection",
            Self::Refused { .. } => "refused",
            Self::Address { .. } => "address",
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
            | Self::Disk { .. }
            | Self::Unreachable { .. }
            | Self::NoConnection { .. }
            | Self::Refused { .. } => true,
            Self::Newer { .. }
            | Self::Migration { .. }
            | Self::Unreadable { .. }
            | Self::Address { .. }
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

    /// The message for the operator, with the cause where the message alone does not tell what to do.
    pub fn with_cause(&self) -> String {
        match self {
            Self::Unreachable { .. }
            | Self::NoConnection { .. }
            | Self::Refused { .. }
            | Self::Address { .. }
            | Self::Query { .. } => self.in_full(),
            _ => self.to_string(),
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

    pub(crate) fn from_sqlx(
        database: &StoreLocation,
        operation: &'static str,
        source: sqlx::Error,
    ) -> Self {
        let database = database.clone();
        match source {
            sqlx::Error::PoolClosed => return Self::Closed { database },
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
                return Self::Unreadable { database, operation, source };
            }
            _ => {}
        }
        match database {
            StoreLocation::File(_) => Self::from_sqlite(database, operation, source),
            StoreLocation::Server(_) => Self::from_postgres(database, operation, source),
        }
    }

    fn from_sqlite(database: StoreLocation, operation: &'static str, source: sqlx::Error) -> Self {
        match source {
            sqlx::Error::Io(source) => return Self::Inaccessible { database, source },
            sqlx::Error::PoolTimedOut => return Self::Busy { database, operation, source },
            _ => {}
        }
        // https://www.sqlite.org/rescode.html
        match primary_code(&source) {
            Some(5 | 6) => Self::Busy { database, operation, source },
            Some(8 | 14) => Self::ReadOnly { database, source },
            Some(11 | 26) => Self::Damaged { database, source },
            Some(10) => Self::Disk { database, operation, source },
            Some(13) => Self::Full { database, operation, source },
            _ => Self::Query { database, operation, source },
        }
    }

    fn from_postgres(
        database: StoreLocation,
        operation: &'static str,
        source: sqlx::Error,
    ) -> Self {
        if matches!(
            source,
            sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
        ) {
            return Self::Unreachable { database, operation, source };
        }
        // https://www.postgresql.org/docs/15/errcodes-appendix.html
        let code = source.as_database_error().and_then(sqlx::error::DatabaseError::code);
        match code.as_deref().unwrap_or_default() {
            "53300" => Self::NoConnection { database, operation, source },
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => {
                Self::Unreachable { database, operation, source }
            }
            "25006" => Self::ReadOnly { database, source },
            "53100" => Self::Full { database, operation, source },
            "58030" => Self::Disk { database, operation, source },
            "XX001" | "XX002" => Self::Damaged { database, source },
            "28000" | "28P01" | "3D000" | "42501" => Self::Refused { database, operation, source },
            "40001" | "40P01" | "55P03" | "57014" => Self::Busy { database, operation, source },
            code if code.starts_with("08") => Self::Unreachable { database, operation, source },
            _ => Self::Query { database, operation, source },
        }
    }

    pub(crate) fn from_migration(
        database: &StoreLocation,
        known: i64,
        source: MigrateError,
    ) -> Self {
        match source {
            MigrateError::VersionMissing(migration) if migration > known => {
                Self::Newer { database: database.clone(), migration }
            }
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => {
                Self::from_sqlx(database, "read the schema", source)
            }
            source => Self::Migration { database: database.clone(), source: Box::new(source) },
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

/// Whether the server does not know a prepared statement, or knows one of another client: its connections are not those
/// of this process.
fn loses_prepared_statements(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("26000" | "42P05"))
}

/// The low byte of `SQLite`'s extended result code, which is the primary code.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?.parse::<u32>().ok()?;
    Some(code & 0xff)
}
