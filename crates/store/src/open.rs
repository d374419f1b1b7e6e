//! Opens a database of `SQLite`: the directory, the file, the connection settings, the schema.

use std::io;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};
use tokio::time::{Instant, sleep};

use crate::backend::{Pool, Transaction};
use crate::migrations::MIGRATIONS;
use crate::postgres_transaction::WriteKind;
use crate::{Store, StoreError, StoreLocation};

const FILE_NAME: &str = "switchboard.db";
/// How long `SQLite` waits for the lock of another process. Requests wait for it, so it is short.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);
/// How long opening waits for other processes that open the same directory.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a reader waits for a free connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// One writer and a few readers; each connection has a thread and a page cache.
const MAX_CONNECTIONS: u32 = 4;
/// Page cache of each connection; negative means KiB. The working set is a few pages.
const CACHE_SIZE: &str = "-512";
/// The size to which the write-ahead log is truncated after a large write.
const JOURNAL_SIZE_LIMIT: &str = "4194304";

impl Store {
    /// Opens the database in `directory`. Creates both if they are missing, accessible only to this user. An existing
    /// directory or file keeps its permissions.
    pub async fn open(directory: &Path) -> Result<Self, StoreError> {
        let inaccessible = |path: &Path| {
            let database = StoreLocation::File(path.to_path_buf());
            move |source| StoreError::Inaccessible { database, source }
        };
        // Connections are opened later too, and the working directory may have changed by then.
        let directory = std::path::absolute(directory).map_err(inaccessible(directory))?;
        create_directory(&directory).await.map_err(inaccessible(&directory))?;
        Self::open_file(&directory.join(FILE_NAME)).await
    }

    /// Opens a database file. Creates it if it is missing, accessible only to this user.
    pub async fn open_file(file: &Path) -> Result<Self, StoreError> {
        let inaccessible = |source| {
            let database = StoreLocation::File(file.to_path_buf());
            StoreError::Inaccessible { database, source }
        };
        let file = std::path::absolute(file).map_err(inaccessible)?;
        create_file(&file).await.map_err(inaccessible)?;

        let options = connect_options()
            .filename(&file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .pragma("journal_size_limit", JOURNAL_SIZE_LIMIT);
        let pool = SqlitePoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .idle_timeout(Duration::from_mins(1))
            .acquire_timeout(CONNECTION_TIMEOUT)
            .test_before_acquire(false)
            .after_release(|connection, _| Box::pin(has_ended_its_transaction(connection)))
            .connect_lazy_with(options.clone());
        let store = Self::new(Pool::Sqlite(pool), StoreLocation::File(file.clone()), 1);
        store.prepare_when_free(&file, &options).await?;
        let anchor = anchored(&options).await.map_err(|error| store.fault("open", error))?;
        *store.anchor.lock().await = Some(anchor);
        Ok(store)
    }

    /// A database that exists only as long as this store.
    pub async fn in_memory() -> Result<Self, StoreError> {
        // One connection that is never closed: a second one would open another, empty database.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(connect_options().in_memory(true));
        let location = StoreLocation::File(":memory:".into());
        let store = Self::new(Pool::Sqlite(pool), location, 1);
        store.migrate().await?;
        Ok(store)
    }

    /// Prepares the database, and retries while it is locked. Switching a new file to WAL needs exclusive access and
    /// ignores the busy timeout, so when several processes open a new directory at once, all but one fail and must
    /// retry.
    async fn prepare_when_free(
        &self,
        file: &Path,
        options: &SqliteConnectOptions,
    ) -> Result<(), StoreError> {
        let deadline = Instant::now() + OPEN_TIMEOUT;
        loop {
            match self.prepare(file, options).await {
                Err(StoreError::Busy { .. }) if Instant::now() < deadline => {
                    sleep(RETRY_PAUSE).await;
                }
                ended => return ended,
            }
        }
    }

    async fn prepare(&self, file: &Path, options: &SqliteConnectOptions) -> Result<(), StoreError> {
        let metadata = tokio::fs::metadata(file).await;
        if metadata.is_ok_and(|metadata| metadata.len() == 0) {
            self.create(options).await.map_err(|error| self.fault("create", error))?;
        }
        self.migrate().await
    }

    /// Creates the file with incremental vacuum, which only its first page can set. This is not an option of the pool,
    /// because it takes the write lock each time, and opening a reader would wait for the writer.
    async fn create(&self, options: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
        let options = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        SqliteConnection::connect_with(&options).await?.close().await
    }

    /// Runs the migrations. sqlx takes no lock for migrations on `SQLite`. In one immediate transaction, a second
    /// process sees the changes of the first one, and a failed migration leaves nothing behind.
    async fn migrate(&self) -> Result<(), StoreError> {
        let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
        // No outage, if it fails: there is nobody yet who would be told.
        let mut write = self.begin(WriteKind::Durable, "read the schema").await?;
        if let Transaction::Sqlite(open) = write.on() {
            let migrated = MIGRATIONS.run_direct(None, &mut **open, false).await;
            migrated.map_err(|error| StoreError::from_migration(&self.location, known, error))?;
        }
        write.commit().await
    }
}

/// A connection that has read once, and so keeps the write-ahead log open.
async fn anchored(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = SqliteConnection::connect_with(options).await?;
    sqlx::query("SELECT COUNT(*) FROM sqlite_schema").execute(&mut connection).await?;
    Ok(connection)
}

/// Whether a connection may be reused. `SQLite` may roll back by itself when the disk is full. The rollback that
/// follows fails then, and sqlx counts the transaction as open forever, so the connection must be closed.
async fn has_ended_its_transaction(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // A rollback may be queued; it runs before the ping is answered.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

fn connect_options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .pragma("cache_size", CACHE_SIZE)
        // Sorts in memory: there may be no other writable directory.
        .pragma("temp_store", "MEMORY")
        .statement_cache_capacity(32)
        .disable_statement_logging()
}

async fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(directory).await
}

/// Creates the file with restricted permissions: `SQLite` would use the process's umask. The `-wal` and `-shm` files
/// inherit the mode of the file.
async fn create_file(file: &Path) -> io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(file).await.map(drop)
}
