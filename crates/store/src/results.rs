//! Results that were too large to be answered, readable in slices (spec, section 3).
//!
//! A body is stored in parts. `substr` over one large value would do for the caller, but `SQLite` reads the whole
//! value before it cuts, and binding one copies it whole.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use switchboard_model::CallId;

use crate::rows::{signed, unsigned};
use crate::{Store, StoreError};

/// Small enough that a part does not show in the memory of the process, large enough that a result of some
/// megabytes has few of them. Parts know where they begin, so this may change between versions.
const PART_BYTES: usize = 64 * 1024;

/// Some of a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSlice {
    /// The bytes that were asked for; fewer, or none, where the result ends before.
    pub bytes: Vec<u8>,
    /// How long the whole result is.
    pub total: u64,
}

impl Store {
    /// Keeps a result whole under `handle`; what was under it before is gone.
    pub async fn keep_result(
        &self,
        handle: &str,
        call: &CallId,
        body: &[u8],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("keep a result").await?;
        sqlx::query("DELETE FROM results WHERE handle = $1")
            .bind(handle)
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
        sqlx::query(
            "INSERT INTO results (handle, call_id, total, kept_at_ms) VALUES ($1, $2, $3, $4)",
        )
        .bind(handle)
        .bind(&call.0)
        .bind(length(body))
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        let mut start = 0;
        for part in body.chunks(PART_BYTES) {
            sqlx::query(
                "INSERT INTO result_parts (handle, start, length, bytes) VALUES ($1, $2, $3, $4)",
            )
            .bind(handle)
            .bind(start)
            .bind(length(part))
            .bind(part)
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
            start += length(part);
        }
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
        let rows: Vec<(u64, Option<Part>)> = sqlx::query(
            "SELECT r.total, p.start, p.bytes
             FROM results r
             LEFT JOIN result_parts p ON p.handle = r.handle AND p.start < $3 AND p.start + p.length > $2
             WHERE r.handle = $1
             ORDER BY p.start",
        )
        .bind(handle)
        .bind(from)
        .bind(to)
        .try_map(|row: SqliteRow| Ok((unsigned(row.try_get("total")?), Part::from_row(&row)?)))
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

struct Part {
    start: i64,
    bytes: Vec<u8>,
}

impl Part {
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
