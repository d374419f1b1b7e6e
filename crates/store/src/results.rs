//! Stored results that were too large for a response, readable in slices.
//!
//! A body is stored in parts, because `SQLite` reads a whole value before `substr` cuts it, and binding one copies it.

use switchboard_model::CallId;

use crate::backend::Transaction;
use crate::row::Row;
use crate::rows::{signed, unsigned};
use crate::statement::query;
use crate::{Store, StoreError};

/// Size of a part: small compared with the memory of the process, and large enough that a result of some megabytes has
/// few parts. Parts store their offset, so this may change between versions.
const PART_BYTES: usize = 64 * 1024;

/// A result that is to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewResult<'a> {
    pub handle: &'a str,
    pub call: &'a CallId,
    /// The owner whose limit it counts against.
    pub owner: &'a str,
    pub body: &'a [u8],
    pub now_ms: i64,
}

/// Limits of the stored results. They hold after every commit, without pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultBounds {
    /// Total size of all results.
    pub total_bytes: u64,
    /// Total size of the results of one owner.
    pub owner_bytes: u64,
    /// Maximum number of results.
    pub count: u64,
}

/// A slice of a stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSlice {
    /// The requested bytes; fewer, or none, at the end of the result.
    pub bytes: Vec<u8>,
    /// Size of the whole result.
    pub total: u64,
}

impl Store {
    /// Stores a result, replacing any under the same handle. Older results are deleted to make room: first the oldest
    /// of its owner, then the oldest of all. A result that exceeds the limits by itself is rejected.
    pub async fn keep_result(
        &self,
        result: &NewResult<'_>,
        bounds: &ResultBounds,
    ) -> Result<(), StoreError> {
        let bytes = result.body.len() as u64;
        let most = bounds.owner_bytes.min(bounds.total_bytes);
        if bytes > most || bounds.count == 0 {
            let database = self.location();
            return Err(StoreError::TooLarge { database, bytes, most });
        }
        let mut write = self.write("keep a result").await?;
        // The limits hold after every commit, also where replicas write at the same time.
        write.lock_writers("results").await?;
        let kept = keep(write.on(), result, bounds).await;
        kept.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// Up to `length` bytes of a stored result, starting at `offset`; `None` if there is no result under `handle`, or
    /// no longer. Only the slice is held in memory.
    pub async fn read_result(
        &self,
        handle: &str,
        offset: u64,
        length: u64,
    ) -> Result<Option<ResultSlice>, StoreError> {
        let (from, to) = (signed(offset), signed(offset.saturating_add(length)));
        // One statement sees one state: a result that is deleted concurrently is complete or absent.
        let rows: Vec<(u64, Option<ResultChunk>)> = query(
            "SELECT r.total, p.start, p.bytes
             FROM results r
             LEFT JOIN result_parts p ON p.handle = r.handle AND p.start < $3 AND p.start + p.length > $2
             WHERE r.handle = $1
             ORDER BY p.start",
        )
        .bind(handle)
        .bind(from)
        .bind(to)
        .try_map(|row: Row| Ok((unsigned(row.try_get("total")?), ResultChunk::from_row(&row)?)))
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
    on: &mut Transaction,
    result: &NewResult<'_>,
    bounds: &ResultBounds,
) -> Result<(), sqlx::Error> {
    // The parts are deleted with their result by a foreign key.
    query("DELETE FROM results WHERE handle = $1").bind(result.handle).execute(&mut *on).await?;
    query(
        "INSERT INTO results (handle, call_id, owner, total, kept_at_ms) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(result.handle)
    .bind(&result.call.0)
    .bind(result.owner)
    .bind(length(result.body))
    .bind(result.now_ms)
    .execute(&mut *on)
    .await?;
    // Before the parts are written, so that they reuse the freed pages.
    evict(on, result, Some(result.owner), bounds.owner_bytes, u64::MAX).await?;
    evict(on, result, None, bounds.total_bytes, bounds.count).await?;
    let mut start = 0;
    for part in result.body.chunks(PART_BYTES) {
        query("INSERT INTO result_parts (handle, start, length, bytes) VALUES ($1, $2, $3, $4)")
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

/// Deletes the oldest results of an owner, or of all owners, that do not fit beside `newest`.
async fn evict(
    on: &mut Transaction,
    newest: &NewResult<'_>,
    owner: Option<&str>,
    bytes: u64,
    count: u64,
) -> Result<(), sqlx::Error> {
    // The new one counts as the newest, whatever the clock says.
    query(
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
    fn from_row(row: &Row) -> Result<Option<Self>, sqlx::Error> {
        let Some(start) = row.try_get("start")? else { return Ok(None) };
        Ok(Some(Self { start, bytes: row.try_get("bytes")? }))
    }

    /// The bytes of this part between two offsets of the whole.
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
