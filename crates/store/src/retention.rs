//! Deletes records and results that are too old or too many. The oldest go first, so that the rest has no gaps.

use crate::backend::Transaction;
use crate::postgres_transaction::WriteKind;
use crate::rows::signed;
use crate::statement::{query, query_scalar};
use crate::{Store, StoreError};

/// Number of free pages that one pruning returns to the file system (16 MiB), so that it stays short.
const GIVE_BACK_PAGES: &str = "PRAGMA incremental_vacuum(4096)";

/// Retention limits. Times are points in time in milliseconds since 1970, not ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Calls that arrived before this time are deleted.
    pub calls_older_than_ms: i64,
    /// Of the rest, this many of the newest are kept.
    pub max_calls: u64,
    /// Recorded arguments and results are kept up to this total size; the newest stay.
    pub max_content_bytes: u64,
    /// Results stored before this time are deleted.
    pub results_older_than_ms: i64,
    /// Of the rest, the newest are kept up to this total size.
    pub max_result_bytes_total: u64,
}

/// The numbers of deleted entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Deleted call records.
    pub calls: u64,
    /// Call records whose arguments and results were deleted, while the record stays.
    pub contents: u64,
    /// Deleted results.
    pub results: u64,
}

impl Store {
    /// Deletes everything beyond the limits. A call record may outlive the result that it refers to.
    pub async fn prune(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let mut write = self.write_as(WriteKind::Maintenance, "prune").await?;
        let calls = prune_calls(write.on(), retention).await.map_err(|error| write.fault(error))?;
        let contents =
            prune_contents(write.on(), retention).await.map_err(|error| write.fault(error))?;
        let results =
            prune_results(write.on(), retention).await.map_err(|error| write.fault(error))?;
        write.commit().await?;
        if results + contents > 0
            && !self.is_shared()
            && let Err(error) = self.give_back_pages().await
        {
            // The entries are deleted; shrinking the file can wait.
            tracing::debug!(file = %self.location, %error, "could not shrink the database");
        }
        Ok(Pruned { calls, contents, results })
    }

    async fn give_back_pages(&self) -> Result<(), StoreError> {
        let mut write = self.write("shrink").await?;
        query(GIVE_BACK_PAGES).execute(write.on()).await.map_err(|error| write.fault(error))?;
        write.commit().await
    }
}

async fn prune_calls(on: &mut Transaction, retention: &Retention) -> Result<u64, sqlx::Error> {
    // Reads only records to delete: the first one that is young enough ends the scan.
    let young: Option<String> =
        query_scalar("SELECT id FROM calls WHERE started_at_ms >= $1 ORDER BY id LIMIT 1")
            .bind(retention.calls_older_than_ms)
            .fetch_optional(&mut *on)
            .await?;
    let delete = match &young {
        Some(id) => query("DELETE FROM calls WHERE id < $1").bind(id),
        None => query("DELETE FROM calls"),
    };
    let old = delete.execute(&mut *on).await?;
    // The contents of deleted records never outlive them.
    let contents = match &young {
        Some(id) => query("DELETE FROM call_contents WHERE id < $1").bind(id),
        None => query("DELETE FROM call_contents"),
    };
    contents.execute(&mut *on).await?;
    let first_too_many: Option<String> =
        query_scalar("SELECT id FROM calls ORDER BY id DESC LIMIT 1 OFFSET $1")
            .bind(signed(retention.max_calls))
            .fetch_optional(&mut *on)
            .await?;
    let Some(id) = first_too_many else { return Ok(old) };
    let too_many = query("DELETE FROM calls WHERE id <= $1").bind(&id).execute(&mut *on).await?;
    query("DELETE FROM call_contents WHERE id <= $1").bind(&id).execute(&mut *on).await?;
    Ok(old + too_many)
}

async fn prune_contents(on: &mut Transaction, retention: &Retention) -> Result<u64, sqlx::Error> {
    let newest_too_many: Option<String> = query_scalar(
        "SELECT id FROM (
             SELECT id, SUM(stored_bytes) OVER (ORDER BY id DESC) AS with_newer FROM call_contents
         ) AS sums
         WHERE with_newer > $1 ORDER BY id DESC LIMIT 1",
    )
    .bind(signed(retention.max_content_bytes))
    .fetch_optional(&mut *on)
    .await?;
    let Some(id) = newest_too_many else { return Ok(0) };
    let deleted = query("DELETE FROM call_contents WHERE id <= $1").bind(id);
    deleted.execute(&mut *on).await
}

async fn prune_results(on: &mut Transaction, retention: &Retention) -> Result<u64, sqlx::Error> {
    // The parts are deleted with their result by a foreign key.
    let old = query("DELETE FROM results WHERE kept_at_ms < $1")
        .bind(retention.results_older_than_ms)
        .execute(&mut *on)
        .await?;
    let too_many = query(
        "DELETE FROM results WHERE handle IN (
             SELECT handle FROM (
                 SELECT handle, SUM(total) OVER (ORDER BY kept_at_ms DESC, handle DESC) AS with_newer
                 FROM results
             ) AS sums
             WHERE with_newer > $1
         )",
    )
    .bind(signed(retention.max_result_bytes_total))
    .execute(&mut *on)
    .await?;
    Ok(old + too_many)
}
