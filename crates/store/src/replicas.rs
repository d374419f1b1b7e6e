//! The boards that use this database now. A board renews its row; one whose time has passed counts as gone.
//!
//! Only the clock of the database decides, so that clocks of machines may differ. The rows are written without waiting for
//! the disk: after a crash of the database, boards write them again.

use std::time::Duration;

use crate::backend::Pool;
use crate::postgres_transaction::WriteKind;
use crate::row::Row;
use crate::statement::{Statement, query};
use crate::{Store, StoreError};

/// Rows of boards that have been gone for this long are deleted.
const FORGOTTEN_AFTER_MS: i64 = 3_600_000;

/// A board that uses the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Made anew at each start.
    pub id: String,
    /// For people: the name of its machine.
    pub name: String,
    pub started_at_ms: i64,
    pub expires_at_ms: i64,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRenewal {
    /// Whether the row was there and its time had not passed: nobody took this board for gone.
    pub was_live: bool,
    /// The boards that are there, with this one, in the order of their ids.
    pub live: Vec<Replica>,
    /// The clock of the database.
    pub now_ms: i64,
    /// When the database was started. Deferred writes before a restart may be gone.
    pub database_started_ms: i64,
}

impl Store {
    /// Renews the row of a board for the time of `lease`, counted by the clock of the database from the moment of the write.
    pub async fn renew_replica(
        &self,
        id: &str,
        name: &str,
        lease: Duration,
    ) -> Result<ReplicaRenewal, StoreError> {
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let mut write = self.write_as(WriteKind::Deferred, "renew the row of a board").await?;
        let renewed = async {
            let now_ms: i64 = self.clock().fetch_one(write.on()).await?.try_get("now_ms")?;
            let before = query("SELECT expires_at_ms FROM replicas WHERE id = $1")
                .bind(id)
                .fetch_optional(write.on())
                .await?;
            let expired: Option<i64> =
                before.map(|row| row.try_get("expires_at_ms")).transpose()?;
            query(
                "INSERT INTO replicas (id, name, started_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (id) DO UPDATE SET name = excluded.name, expires_at_ms = excluded.expires_at_ms",
            )
            .bind(id)
            .bind(name)
            .bind(now_ms)
            .bind(now_ms.saturating_add(lease_ms))
            .execute(write.on())
            .await?;
            query("DELETE FROM replicas WHERE expires_at_ms < $1")
                .bind(now_ms - FORGOTTEN_AFTER_MS)
                .execute(write.on())
                .await?;
            let live = query("SELECT * FROM replicas WHERE expires_at_ms > $1 ORDER BY id")
                .bind(now_ms)
                .try_map(|row: Row| replica(&row))
                .fetch_all(write.on())
                .await?;
            let was_live = expired.is_some_and(|expired| expired > now_ms);
            Ok(ReplicaRenewal { was_live, live, now_ms, database_started_ms: 0 })
        };
        let renewal: Result<ReplicaRenewal, sqlx::Error> = renewed.await;
        let mut renewal = renewal.map_err(|error| write.fault(error))?;
        write.commit().await?;
        renewal.database_started_ms = self.database_started().await?;
        Ok(renewal)
    }

    /// Removes the row of a board that ends in order, and what it was lent.
    pub async fn remove_replica(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.write_as(WriteKind::Deferred, "remove the row of a board").await?;
        for delete in
            ["DELETE FROM slot_loans WHERE board = $1", "DELETE FROM replicas WHERE id = $1"]
        {
            let removed = query(delete).bind(id).execute(write.on()).await;
            removed.map_err(|error| write.fault(error))?;
        }
        write.commit().await
    }

    /// The boards that are there now.
    pub async fn live_replicas(&self) -> Result<Vec<Replica>, StoreError> {
        let now_ms = self.database_now_ms().await?;
        query("SELECT * FROM replicas WHERE expires_at_ms > $1 ORDER BY id")
            .bind(now_ms)
            .try_map(|row: Row| replica(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the boards", error))
    }

    /// The clock of the database, in milliseconds since 1970. Leases are decided by it and by no other.
    pub async fn database_now_ms(&self) -> Result<i64, StoreError> {
        let now = async { self.clock().fetch_one(&self.pool).await?.try_get("now_ms") };
        now.await.map_err(|error| self.fault("read the clock of the database", error))
    }

    /// Reads the clock of the database, as the column `now_ms`.
    pub(crate) fn clock<'q>(&self) -> Statement<'q> {
        query(match self.pool {
            Pool::Sqlite(_) => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now_ms",
            Pool::Postgres(_) => {
                "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms"
            }
        })
    }

    async fn database_started(&self) -> Result<i64, StoreError> {
        if !self.is_shared() {
            return Ok(0);
        }
        let started = query(
            "SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000 AS BIGINT) AS started_ms",
        );
        let started = async { started.fetch_one(&self.pool).await?.try_get("started_ms") };
        started.await.map_err(|error| self.fault("read when the database was started", error))
    }
}

fn replica(row: &Row) -> Result<Replica, sqlx::Error> {
    Ok(Replica {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        started_at_ms: row.try_get("started_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
    })
}
