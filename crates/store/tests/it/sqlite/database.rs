//! Databases of tests: files of `SQLite`.

use std::path::Path;

use switchboard_store::Store;
use tempfile::TempDir;

/// What a NUL character is kept as.
pub(super) const NUL: &str = "\0";
/// Cases of a property.
pub(super) const CASES: u32 = 128;

/// A new data directory.
pub(super) struct Database(TempDir);

impl Database {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) async fn open(&self) -> Store {
        Store::open(self.0.path()).await.unwrap()
    }

    /// What another process needs to open it.
    pub(super) fn address(&self) -> String {
        self.0.path().to_str().unwrap().to_owned()
    }

    pub(super) async fn open_at(address: &str) -> Store {
        Store::open(Path::new(address)).await.unwrap()
    }

    /// Runs a statement behind the back of the store.
    pub(super) async fn execute(&self, sql: &str) {
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(self.0.path().join("switchboard.db"));
        let mut raw =
            <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut raw).await.unwrap();
    }

    /// Whether a text is in any file of the database; `None` if the files cannot be looked at.
    #[expect(clippy::unnecessary_wraps, reason = "files of a server cannot be looked at")]
    pub(super) fn files_contain(&self, text: &str) -> Option<bool> {
        let files = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        Some(files.into_iter().any(|file| {
            std::fs::read(file).unwrap().windows(text.len()).any(|bytes| bytes == text.as_bytes())
        }))
    }
}

/// A store and its database.
pub(super) type OwnStore = Store;

/// An empty store.
pub(super) async fn new_store() -> OwnStore {
    Store::in_memory().await.unwrap()
}
