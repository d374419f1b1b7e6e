//! Results that were too large to be answered, readable in slices (spec, section 3).
//!
//! A body is stored in parts. `substr` over one large value would do for the caller, but `SQLite` reads the whole
//! value before it cuts, and binding one copies it whole.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use switchboard_model::CallId;

use crate::rows::{signed, unsigned};
use crate::{Store, StoreError};

/// Small enough that a part does not show in the memory of the process, large enough that a result of some
/// megabytes has few of them. Parts know where they begin, so this may change between versions.
const PART_BYTES: usize = 64 * 1024;

/// A result that is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewResult<'a> {
    pub handle: &'a str,
    pub call: &'a CallId,
    /// Whose share it counts for.
    pub owner: &'a str,
    pub body: &'a [u8],
    pub now_ms: i64,
}

/// How much is kept. The bounds hold when a write is committed; nothing waits to be pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultBounds {
    /// Bytes of all results together.
    pub total_bytes: u64,
    /// Bytes of all results of one owner.
    pub owner_bytes: u64,
    /// How many results there are at most.
    pub count: u64,
}

/// Some of a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSlice {
    /// The bytes that were asked for; fewer, or none, where the result ends before.
    pub bytes: Vec<u8>,
    /// How long the whole result is.
    pub total: u64,
}

impl Store {
    /// Keeps a result whole; what was under its handle before is gone. Older results make room for it: first the oldest
    /// of its owner, then the oldest of all. One that is larger than the bounds is refused.
    pub async fn keep_result(
        &self,
        result: &NewResult<'_>,
        bounds: &ResultBounds,
    ) -> Result<(), StoreError> {
        let bytes = result.body.len() as u64;
        let most = bounds.owner_bytes.min(bounds.total_bytes);
        if bytes > most || bounds.count == 0 {
            let file = self.file.to_path_buf();
            return Err(StoreError::TooLarge { file, bytes, most });
        }
        let mut write = self.write("keep a result").await?;
        let kept = keep(write.on(), result, bounds).await;
        kept.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// Up to `length` bytes of a kept result from `offset` on; `None` when there is nothing under `handle`, or
    /// no longer. Holds the slice in memory, not the result.
    pub async fn read_result(
        &self,
        handle: &str,
        offset: u64,
        length: u64,
    ) -> Result<Option<ResultSlice>, StoreError> {
        let (from, to) = (signed(offset), signed(offset.saturating_add(length)));
        // One statement sees one state: a result that is pruned meanwhile is there whole or not at all.
        let rows: Vec<(u64, Option<ResultChunk>)> = sqlx::query(
            "SELECT r.total, p.start, p.bytes
             FROM results r
             LEFT JOIN result_parts p ON p.handle = r.handle AND p.start < $3 AND p.start + p.length > $2
             WHERE r.handle = $1
             ORDER BY p.start",
        )
        .bind(handle)
        .bind(from)
        .bind(to)
        .try_map(|row: SqliteRow| Ok((unsigned(row.try_get("total")?), ResultChunk::from_row(&row)?)))
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.fault("read a result", error))?;

        let Some(&(total, _)) = rows.first() else { return Ok(None) };
        let mut bytes = Vec::new();
        for part in rows.iter().filter_map(|(_, part)| part.as_ref()) {
            bytes.extend_from_slice(part.between(from, to));
        }
        Ok(Some(ResultSlice { bytes, total }))
    }
}

async fn keep(
    on: &mut SqliteConnection,
    result: &NewResult<'_>,
    bounds: &ResultBounds,
) -> Result<(), sqlx::Error> {
    // The parts go with their result, by reference.
    sqlx::query("DELETE FROM results WHERE handle = $1")
        .bind(result.handle)
        .execute(&mut *on)
        .await?;
    sqlx::query(
        "INSERT INTO results (handle, call_id, owner, total, kept_at_ms) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(result.handle)
    .bind(&result.call.0)
    .bind(result.owner)
    .bind(length(result.body))
    .bind(result.now_ms)
    .execute(&mut *on)
    .await?;
    // Before the parts are written, so that they take the pages that become free.
    evict(on, result, Some(result.owner), bounds.owner_bytes, u64::MAX).await?;
    evict(on, result, None, bounds.total_bytes, bounds.count).await?;
    let mut start = 0;
    for part in result.body.chunks(PART_BYTES) {
        sqlx::query(
            "INSERT INTO result_parts (handle, start, length, bytes) VALUES ($1, $2, $3, $4)",
        )
        .bind(result.handle)
        .bind(start)
        .bind(length(part))
        .bind(part)
        .execute(&mut *on)
        .await?;
        start += length(part);
    }
    Ok(())
}

/// Removes the oldest results of an owner, or of all, that do not fit beside `newest`.
async fn evict(
    on: &mut SqliteConnection,
    newest: &NewResult<'_>,
    owner: Option<&str>,
    bytes: u64,
    count: u64,
) -> Result<(), sqlx::Error> {
    // The new one counts as the newest whatever the clock says.
    sqlx::query(
        "DELETE FROM results WHERE handle <> $1 AND handle IN (
             SELECT handle FROM (
                 SELECT handle,
                     SUM(total) OVER (ORDER BY handle = $1 DESC, kept_at_ms DESC, handle DESC) AS bytes,
                     ROW_NUMBER() OVER (ORDER BY handle = $1 DESC, kept_at_ms DESC, handle DESC) AS place
                 FROM results WHERE $2 IS NULL OR owner = $2
             ) AS newer
             WHERE bytes > $3 OR place > $4
         )",
    )
    .bind(newest.handle)
    .bind(owner)
    .bind(signed(bytes))
    .bind(signed(count))
    .execute(on)
    .await
    .map(drop)
}

struct ResultChunk {
    start: i64,
    bytes: Vec<u8>,
}

impl ResultChunk {
    fn from_row(row: &SqliteRow) -> Result<Option<Self>, sqlx::Error> {
        let Some(start) = row.try_get("start")? else { return Ok(None) };
        Ok(Some(Self { start, bytes: row.try_get("bytes")? }))
    }

    /// What of this part lies between two places of the whole.
    fn between(&self, from: i64, to: i64) -> &[u8] {
        let within = |place: i64| {
            usize::try_from(place.saturating_sub(self.start)).unwrap_or(0).min(self.bytes.len())
        };
        self.bytes.get(within(from)..within(to)).unwrap_or_default()
    }
}

fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}
