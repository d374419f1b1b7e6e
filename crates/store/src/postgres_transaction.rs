//! Write transactions of `PostgreSQL`.

use std::time::Duration;

use tokio::time::Instant;

use crate::postgres_pool::{Leased, PostgresPool, STATEMENT_TIMEOUT, is_lost, within};
use crate::statement::{Answer, Statement, Wanted};

/// How long one statement of maintenance may take: pruning, encrypting, migrating.
const MAINTENANCE_TIMEOUT: Duration = Duration::from_mins(2);

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// A caller waits for it, and it is on the disk when it is acknowledged.
    Durable,
    /// Data that no response promised. A crash of the database may lose the last fraction of a second of it.
    Deferred,
    /// Large and rare.
    Maintenance,
    /// Reads one state of the database, for as long as it takes.
    Snapshot,
}

impl WriteKind {
    fn timeout(self) -> Duration {
        match self {
            Self::Durable | Self::Deferred => STATEMENT_TIMEOUT,
            Self::Maintenance | Self::Snapshot => MAINTENANCE_TIMEOUT,
        }
    }

    /// Settings for this transaction alone, so that they work through a pooler. A process that is stopped in the middle
    /// of a transaction holds its locks no longer than these limits.
    fn begin(self) -> &'static str {
        match self {
            Self::Durable => {
                "BEGIN; SET LOCAL statement_timeout = '5s'; \
                 SET LOCAL idle_in_transaction_session_timeout = '5s'"
            }
            Self::Deferred => {
                "BEGIN; SET LOCAL statement_timeout = '5s'; \
                 SET LOCAL idle_in_transaction_session_timeout = '5s'; \
                 SET LOCAL synchronous_commit = off"
            }
            Self::Maintenance => {
                "BEGIN; SET LOCAL statement_timeout = '2min'; \
                 SET LOCAL idle_in_transaction_session_timeout = '1min'"
            }
            Self::Snapshot => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                 SET LOCAL statement_timeout = '2min'; \
                 SET LOCAL idle_in_transaction_session_timeout = '2min'"
            }
        }
    }
}

/// An open transaction. Dropping it closes its connection, which rolls it back.
#[derive(Debug)]
pub(crate) struct PostgresTransaction {
    connection: Leased,
    timeout: Duration,
    /// Whether a statement failed. The server would answer `COMMIT` with a rollback then.
    has_failed: bool,
}

impl PostgresTransaction {
    /// Begins a transaction, on a new connection where one turns out to be broken.
    pub(crate) async fn begin(pool: &PostgresPool, kind: WriteKind) -> Result<Self, sqlx::Error> {
        let deadline = Instant::now() + STATEMENT_TIMEOUT;
        loop {
            let mut connection = pool.lease().await?;
            let begin = sqlx::raw_sql(kind.begin());
            match within(STATEMENT_TIMEOUT, begin.execute(&mut *connection)).await {
                Ok(_) => {
                    return Ok(Self { connection, timeout: kind.timeout(), has_failed: false });
                }
                Err(error) if is_lost(&error) && Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) async fn run(
        &mut self,
        statement: &Statement<'_>,
        wanted: Wanted,
    ) -> Result<Answer, sqlx::Error> {
        let answer = statement.on_postgres(&mut self.connection, wanted);
        let answer = within(self.timeout, answer).await;
        self.has_failed |= answer.is_err();
        answer
    }

    /// Commits. After an error the outcome is unknown, unless the server has told it.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        if self.has_failed {
            return Err(sqlx::Error::Protocol("a statement of this transaction failed".into()));
        }
        self.end("COMMIT").await
    }

    pub(crate) async fn roll_back(self) -> Result<(), sqlx::Error> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        within(self.timeout, sqlx::raw_sql(statement).execute(&mut *self.connection)).await?;
        self.connection.keep();
        Ok(())
    }
}
