//! The handle that everybody holds, and the one way to write through it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool};
use sqlx::{Connection, Transaction};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::StoreError;
use crate::health::SharedHealth;

/// How long a write waits for the writes of this process that came before it. Together with the time that `SQLite` waits
/// for other processes this bounds how long a request can hang on a store that does not answer.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);

/// The database of one data directory. Clones share one pool of connections.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: SqlitePool,
    /// The file, for messages.
    pub(crate) file: Arc<Path>,
    /// `SQLite` has one writer at a time, and its lock is polled. Writers of this process queue here instead:
    /// first come first served, and without taking the connections that readers need.
    writer: Arc<Semaphore>,
    pub(crate) health: SharedHealth,
    /// A connection that only stays open. Without any, the next one would have to make the write-ahead log and its index
    /// anew, which a full disk has no room for, and nothing could be read.
    pub(crate) anchor: Arc<Mutex<Option<SqliteConnection>>>,
}

impl Store {
    pub(crate) fn new(pool: SqlitePool, file: &Path) -> Self {
        Self {
            pool,
            file: file.into(),
            writer: Arc::new(Semaphore::new(1)),
            health: SharedHealth::default(),
            anchor: Arc::default(),
        }
    }

    /// The database file; `:memory:` when there is none.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Waits for what is under way, then closes every connection; the last one of all processes folds the
    /// write-ahead log into the file. Whatever is asked of any clone afterwards answers [`StoreError::Closed`].
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
        // Immediate: a transaction that reads first and writes later cannot wait for the lock in WAL mode, it
        // fails at once when another process wrote in between.
        let transaction = self
            .pool
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| self.fault(operation, error))?;
        Ok(Write { transaction, store: self.clone(), operation, _turn: turn })
    }

    /// Names the file and what was being done.
    pub(crate) fn fault(&self, operation: &'static str, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(&self.file, operation, error)
    }
}

/// A write under way. Dropped without [`Write::commit`], it is rolled back. A connection whose rollback fails is closed
/// when it is given back to the pool (see `open`), which rolls back too.
#[derive(Debug)]
pub(crate) struct Write {
    // Declared before the turn, so that the rollback is on its way before the next writer begins.
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

    /// Names the file and what was being done, and notes that the write failed.
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
