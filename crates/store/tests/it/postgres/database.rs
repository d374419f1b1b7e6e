//! Databases of tests: each a new one of a temporary `PostgreSQL` cluster.

use std::ops::Deref;

use switchboard_model::Secret;
use switchboard_store::{PostgresSettings, Store};
use switchboard_test_support::PostgresDatabase;

/// What a NUL character is kept as.
pub(super) const NUL: &str = "\u{FFFD}";
/// Cases of a property.
pub(super) const CASES: u32 = 48;

/// A new database, which ends with this value.
pub(super) struct Database(PostgresDatabase);

impl Database {
    pub(super) fn new() -> Self {
        Self(PostgresDatabase::new())
    }

    pub(super) async fn open(&self) -> Store {
        Self::open_at(self.0.url()).await
    }

    /// What another process needs to open it.
    pub(super) fn address(&self) -> String {
        self.0.url().to_owned()
    }

    pub(super) async fn open_at(address: &str) -> Store {
        Store::connect(&PostgresSettings::new(Secret::new(address))).await.unwrap()
    }

    /// Runs a statement behind the back of the store.
    #[expect(clippy::unused_async, reason = "the other database waits")]
    pub(super) async fn execute(&self, sql: &str) {
        self.0.execute(sql);
    }

    /// Whether a text is in any file of the database; `None` if the files cannot be looked at.
    #[expect(clippy::unused_self, reason = "the other database has files")]
    pub(super) fn files_contain(&self, _text: &str) -> Option<bool> {
        None
    }
}

/// A store and its database.
pub(super) struct OwnStore {
    store: Store,
    _database: Database,
}

impl Deref for OwnStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// An empty store.
pub(super) async fn new_store() -> OwnStore {
    let database = Database::new();
    OwnStore { store: database.open().await, _database: database }
}
