//! The `Store` handle, and the transaction type that all writes use.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool};
use sqlx::{Connection, Transaction};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::StoreError;
use crate::grant_keys::GrantKeys;
use crate::health::SharedHealth;

/// How long a write waits for earlier writes of this process. Together with the busy timeout of `SQLite` it bounds how
/// long a request waits for an unresponsive store.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);

/// The database of one data directory. Clones share one connection pool.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: SqlitePool,
    /// The file, for messages.
    pub(crate) file: Arc<Path>,
    /// `SQLite` has one writer at a time and polls for its lock. Writers of this process queue here instead: in order
    /// of arrival, and without using the connections that readers need.
    writer: Arc<Semaphore>,
    pub(crate) health: SharedHealth,
    pub(crate) grant_keys: Arc<GrantKeys>,
    /// A connection that only stays open. Without any connection, the next one would have to create the write-ahead log
    /// and its index again, for which a full disk has no room, and nothing could be read.
    pub(crate) anchor: Arc<Mutex<Option<SqliteConnection>>>,
}

impl Store {
    pub(crate) fn new(pool: SqlitePool, file: &Path) -> Self {
        Self {
            pool,
            file: file.into(),
            writer: Arc::new(Semaphore::new(1)),
            health: SharedHealth::default(),
            grant_keys: Arc::default(),
            anchor: Arc::default(),
        }
    }

    /// The database file; `:memory:` if there is none.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Waits for running operations, then closes every connection; the last one of all processes merges the write-ahead
    /// log into the file. Later operations of any clone return [`StoreError::Closed`].
    pub async fn close(&self) {
        let anchor = self.anchor.lock().await.take();
        if let Some(anchor) = anchor
            && let Err(error) = anchor.close().await
        {
            tracing::debug!(%error, "a connection to the database could not be closed");
        }
        self.pool.close().await;
    }

    /// Waits for this process's turn to write and takes the write lock of the database. Both waits are bounded.
    pub(crate) async fn write(&self, operation: &'static str) -> Result<Write, StoreError> {
        let begun = self.begin(operation).await;
        if let Err(error) = &begun {
            self.note_failure(error);
        }
        begun
    }

    async fn begin(&self, operation: &'static str) -> Result<Write, StoreError> {
        let turn = Arc::clone(&self.writer).acquire_owned();
        let Ok(turn) = tokio::time::timeout(TURN_TIMEOUT, turn).await else {
            return Err(self.fault(operation, sqlx::Error::PoolTimedOut));
        };
        let turn = turn.map_err(|_| StoreError::Closed { file: self.file.to_path_buf() })?;
        // Immediate: in WAL mode a transaction that reads first and writes later cannot wait for the lock; it fails if
        // another process has written in between.
        let transaction = self
            .pool
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| self.fault(operation, error))?;
        Ok(Write { transaction, store: self.clone(), operation, _turn: turn })
    }

    /// Adds the file and the operation to an error.
    pub(crate) fn fault(&self, operation: &'static str, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(&self.file, operation, error)
    }
}

/// A write transaction. Dropping it without [`Write::commit`] rolls it back. A connection whose rollback fails is
/// closed when it returns to the pool (see `open`), which rolls back too.
#[derive(Debug)]
pub(crate) struct Write {
    // Declared before the permit, so that the rollback starts before the next writer.
    transaction: Transaction<'static, Sqlite>,
    store: Store,
    operation: &'static str,
    _turn: OwnedSemaphorePermit,
}

impl Write {
    /// The connection to run statements on.
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    /// Adds the file and the operation to an error, and records the failed write.
    pub(crate) fn fault(&self, error: sqlx::Error) -> StoreError {
        let error = self.store.fault(self.operation, error);
        self.store.note_failure(&error);
        error
    }

    /// Commits the transaction.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let Self { transaction, store, operation, _turn } = self;
        match transaction.commit().await {
            Ok(()) => {
                store.health.committed();
                Ok(())
            }
            Err(error) => {
                let error = store.fault(operation, error);
                store.note_failure(&error);
                Err(error)
            }
        }
    }
}
