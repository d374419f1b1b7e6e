//! What differs between the databases of a store: pools and transactions.

use sqlx::Sqlite;
use sqlx::sqlite::SqlitePool;

use crate::postgres_pool::PostgresPool;
use crate::postgres_transaction::PostgresTransaction;

/// The connections of a store.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PostgresPool),
}

impl Pool {
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Sqlite(pool) => pool.is_closed(),
            Self::Postgres(pool) => pool.is_closed(),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }

    /// Whether other machines may use the same database.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

/// An open write transaction.
#[derive(Debug)]
pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(PostgresTransaction),
}

impl Transaction {
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(open) => Box::pin(open.commit()).await,
            Self::Postgres(open) => Box::pin(open.commit()).await,
        }
    }

    pub(crate) async fn roll_back(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(open) => Box::pin(open.rollback()).await,
            Self::Postgres(open) => Box::pin(open.roll_back()).await,
        }
    }
}
