//! The handle that everybody holds, and the one way to write through it.

use std::path::Path;
use std::sync::Arc;

use sqlx::Transaction;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::StoreError;

/// The database of one data directory. Clones share one pool of connections.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: SqlitePool,
    /// The file, for messages.
    pub(crate) file: Arc<Path>,
    /// `SQLite` has one writer at a time, and its lock is polled. Writers of this process queue here instead:
    /// first come first served, and without taking the connections that readers need.
    writer: Arc<Semaphore>,
}

impl Store {
    pub(crate) fn new(pool: SqlitePool, file: &Path) -> Self {
        Self { pool, file: file.into(), writer: Arc::new(Semaphore::new(1)) }
    }

    /// The database file; `:memory:` when there is none.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Waits for what is under way, then closes every connection; the last one of all processes folds the
    /// write-ahead log into the file. Whatever is asked of any clone afterwards answers [`StoreError::Closed`].
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Waits for this process's turn to write and takes the write lock of the database.
    pub(crate) async fn write(&self, operation: &'static str) -> Result<Write, StoreError> {
        let turn = Arc::clone(&self.writer)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed { file: self.file.to_path_buf() })?;
        // Immediate: a transaction that reads first and writes later cannot wait for the lock in WAL mode, it
        // fails at once when another process wrote in between.
        let transaction = self
            .pool
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| self.fault(operation, error))?;
        Ok(Write { transaction, file: Arc::clone(&self.file), operation, _turn: turn })
    }

    /// Names the file and what was being done.
    pub(crate) fn fault(&self, operation: &'static str, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(&self.file, operation, error)
    }
}

/// A write under way. Dropped without [`Write::commit`], it never happened.
#[derive(Debug)]
pub(crate) struct Write {
    // Declared before the turn, so that the rollback is on its way before the next writer begins.
    transaction: Transaction<'static, Sqlite>,
    file: Arc<Path>,
    operation: &'static str,
    _turn: OwnedSemaphorePermit,
}

impl Write {
    /// The connection to run statements on.
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    /// Names the file and what was being done.
    pub(crate) fn fault(&self, error: sqlx::Error) -> StoreError {
        StoreError::from_sqlx(&self.file, self.operation, error)
    }

    /// Makes it so.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let Self { transaction, file, operation, _turn } = self;
        transaction.commit().await.map_err(|error| StoreError::from_sqlx(&file, operation, error))
    }
}
