//! The `Store` handle, and the transaction type that all writes use.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::backend::{Pool, Transaction};
use crate::grant_keys::GrantKeys;
use crate::health::SharedHealth;
use crate::postgres_transaction::{PostgresTransaction, WriteKind};
use crate::statement::{Statement, query};
use crate::{Hints, StoreError, StoreLocation};

/// How long a write waits for earlier writes of this process. Together with the busy timeout of `SQLite` it bounds how
/// long a request waits for an unresponsive store.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);

/// The database: of one data directory, or of a server that several boards share. Clones share one connection pool.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: Pool,
    /// The database, for messages.
    pub(crate) location: Arc<StoreLocation>,
    /// Writers of this process queue here, in order of arrival, and without using the connections that readers need.
    /// `SQLite` has one writer at a time and polls for its lock.
    writer: Arc<Semaphore>,
    pub(crate) health: SharedHealth,
    pub(crate) grant_keys: Arc<GrantKeys>,
    hints: Arc<Hints>,
    /// A connection that only stays open. Without any connection, the next one would have to create the write-ahead log
    /// and its index again, for which a full disk has no room, and nothing could be read.
    pub(crate) anchor: Arc<Mutex<Option<SqliteConnection>>>,
}

impl Store {
    pub(crate) fn new(pool: Pool, location: StoreLocation, writers: usize) -> Self {
        Self {
            pool,
            location: Arc::new(location),
            writer: Arc::new(Semaphore::new(writers)),
            health: SharedHealth::default(),
            grant_keys: Arc::default(),
            hints: Arc::new(Hints::none()),
            anchor: Arc::default(),
        }
    }

    pub(crate) fn with_hints(self, hints: Hints) -> Self {
        Self { hints: Arc::new(hints), ..self }
    }

    /// What boards of the same database tell each other.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Where the database is, without passwords.
    pub fn location(&self) -> StoreLocation {
        StoreLocation::clone(&self.location)
    }

    /// The database file, if the database is one; `:memory:` if it exists in memory only.
    pub fn file(&self) -> Option<&Path> {
        self.location.file()
    }

    /// Whether other boards may use the same database: it is one of a server.
    pub fn is_shared(&self) -> bool {
        self.pool.is_shared()
    }

    /// Waits for running operations, then closes every connection; the last one of all processes merges the write-ahead
    /// log into the file. Later operations of any clone return [`StoreError::Closed`].
    pub async fn close(&self) {
        self.hints.close().await;
        let anchor = self.anchor.lock().await.take();
        if let Some(anchor) = anchor
            && let Err(error) = anchor.close().await
        {
            tracing::debug!(%error, "a connection to the database could not be closed");
        }
        self.pool.close().await;
    }

    /// Begins a write that is on the disk when it is committed. Waits for this process's turn to write; all waits are
    /// bounded.
    pub(crate) async fn write(&self, operation: &'static str) -> Result<Write, StoreError> {
        self.write_as(WriteKind::Durable, operation).await
    }

    /// Begins a write of a kind. On `SQLite` all kinds are the same.
    pub(crate) async fn write_as(
        &self,
        kind: WriteKind,
        operation: &'static str,
    ) -> Result<Write, StoreError> {
        let begun = self.begin(kind, operation).await;
        if let Err(error) = &begun {
            self.note_failure(error);
        }
        begun
    }

    /// Begins a write whose failure is no outage.
    pub(crate) async fn begin(
        &self,
        kind: WriteKind,
        operation: &'static str,
    ) -> Result<Write, StoreError> {
        let turn = Arc::clone(&self.writer).acquire_owned();
        let Ok(turn) = tokio::time::timeout(TURN_TIMEOUT, turn).await else {
            return Err(self.describe(operation, sqlx::Error::PoolTimedOut));
        };
        let turn = turn.map_err(|_| StoreError::Closed { database: self.location() })?;
        let transaction = match &self.pool {
            // Immediate: in WAL mode a transaction that reads first and writes later cannot wait for the lock; it fails
            // if another process has written in between.
            Pool::Sqlite(pool) => {
                Box::pin(pool.begin_with("BEGIN IMMEDIATE")).await.map(Transaction::Sqlite)
            }
            Pool::Postgres(pool) => {
                Box::pin(PostgresTransaction::begin(pool, kind)).await.map(Transaction::Postgres)
            }
        };
        let transaction = transaction.map_err(|error| self.describe(operation, error))?;
        Ok(Write { transaction, store: self.clone(), operation, _turn: turn })
    }

    /// The error of a read. A database of a server that fails to be read fails to be written, too.
    pub(crate) fn fault(&self, operation: &'static str, error: sqlx::Error) -> StoreError {
        let error = self.describe(operation, error);
        if self.is_shared() {
            self.note_failure(&error);
        }
        error
    }

    /// Adds the database and the operation to an error.
    pub(crate) fn describe(&self, operation: &'static str, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(&self.location, operation, error)
    }
}

/// A write transaction. Dropping it without [`Write::commit`] rolls it back. A connection whose rollback fails is
/// closed when it returns to the pool (see `open`), which rolls back too.
#[derive(Debug)]
pub(crate) struct Write {
    // Declared before the permit, so that the rollback starts before the next writer.
    transaction: Transaction,
    store: Store,
    operation: &'static str,
    _turn: OwnedSemaphorePermit,
}

impl Write {
    /// The transaction to run statements in.
    pub(crate) fn on(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Adds the file and the operation to an error, and records the failed write.
    pub(crate) fn fault(&self, error: sqlx::Error) -> StoreError {
        let error = self.store.describe(self.operation, error);
        self.store.note_failure(&error);
        error
    }

    /// Locks rows until the end of the transaction, where other replicas could write at the same time.
    pub(crate) async fn lock(&mut self, rows: Statement<'_>) -> Result<(), StoreError> {
        let locked = rows.lock(&mut self.transaction).await;
        locked.map_err(|error| self.fault(error))
    }

    /// Makes replicas write one after the other. `name` is a row of `write_locks`.
    pub(crate) async fn lock_writers(&mut self, name: &'static str) -> Result<(), StoreError> {
        let lock = query("SELECT name FROM write_locks WHERE name = $1 FOR UPDATE");
        self.lock(lock.bind(name)).await
    }

    /// Ends the transaction without a change.
    pub(crate) async fn roll_back(self) -> Result<(), StoreError> {
        let Self { transaction, store, operation, _turn } = self;
        transaction.roll_back().await.map_err(|error| store.describe(operation, error))
    }

    /// Commits the transaction.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let Self { transaction, store, operation, _turn } = self;
        match transaction.commit().await {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = store.describe(operation, error);
                store.note_failure(&error);
                Err(error)
            }
        }
    }
}
