//! Records of turns of apps, by which hidden rounds are put back into a conversation.
//!
//! A record belongs to a principal and a session, has one or more keys, and ends at a time. Contents are opaque here.

use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::rows::signed;
use crate::statement::{query, query_scalar};
use crate::store::Write;
use crate::{Store, StoreError};

/// The number of keys in one statement.
const KEYS_AT_ONCE: usize = 500;

/// A record that is to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewTurnRecord<'a> {
    /// The principal.
    pub owner: &'a str,
    pub session: &'a str,
    /// The keys by which it is found. A key of an earlier record then names this one.
    pub keys: &'a [&'a [u8]],
    pub content: &'a str,
    pub now_ms: i64,
    pub expires_at_ms: i64,
}

/// Limits of the stored records. They hold after every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnRecordBounds {
    /// The number of records of one owner.
    pub owner_count: u64,
    /// The total size of the records of one owner.
    pub owner_bytes: u64,
    /// The total size of all records.
    pub total_bytes: u64,
}

impl Store {
    /// Stores a record. Records that have ended are deleted; then the oldest of its owner, and the oldest of all, make
    /// room. A record that exceeds the limits by itself is rejected.
    pub async fn keep_turn_record(
        &self,
        record: &NewTurnRecord<'_>,
        bounds: &TurnRecordBounds,
    ) -> Result<(), StoreError> {
        let bytes = record.content.len() as u64;
        let most = bounds.owner_bytes.min(bounds.total_bytes);
        if bytes > most || bounds.owner_count == 0 {
            let database = self.location();
            return Err(StoreError::TooLarge { database, bytes, most });
        }
        let mut write = self.write("keep the record of a turn").await?;
        // The limits hold after every commit, also where replicas write at the same time.
        write.lock_writers("turn_records").await?;
        let kept = keep(&mut write, record, bounds).await;
        kept.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The contents of the records of a principal in a session that these keys name, each with its key. Keys without a
    /// record are left out.
    pub async fn turn_records(
        &self,
        owner: &str,
        session: &str,
        keys: &[&[u8]],
        now_ms: i64,
    ) -> Result<Vec<(Vec<u8>, String)>, StoreError> {
        let mut found = Vec::new();
        for some in keys.chunks(KEYS_AT_ONCE) {
            let mut query = QueryBuilder::new(
                "SELECT k.key, r.content FROM turn_record_keys k JOIN turn_records r ON r.id = k.record
                 WHERE k.owner = ",
            );
            query.push_bind(owner).push(" AND k.session = ").push_bind(session);
            query.push(" AND r.expires_at_ms > ").push_bind(now_ms).push(" AND k.key IN (");
            let mut list = query.separated();
            for key in some {
                list.push_bind(*key);
            }
            query.push(")");
            let rows = query
                .build()
                .try_map(|row: Row| Ok((row.try_get("key")?, row.try_get("content")?)))
                .fetch_all(&self.pool)
                .await
                .map_err(|error| self.fault("read records of turns", error))?;
            found.extend(rows);
        }
        Ok(found)
    }

    /// Deletes a key of a principal in a session, and its record if that has no other key. Returns whether there was one.
    pub async fn forget_turn_record(
        &self,
        owner: &str,
        session: &str,
        key: &[u8],
    ) -> Result<bool, StoreError> {
        let mut write = self.write("delete the record of a turn").await?;
        let forgotten = forget(&mut write, owner, session, key).await;
        let was_known = forgotten.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(was_known)
    }

    /// Deletes the records that have ended. Returns their number.
    pub async fn sweep_turn_records(&self, now_ms: i64) -> Result<u64, StoreError> {
        let mut write = self.write("delete old records of turns").await?;
        let swept = sweep(&mut write, now_ms).await.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(swept)
    }
}

async fn keep(
    write: &mut Write,
    record: &NewTurnRecord<'_>,
    bounds: &TurnRecordBounds,
) -> Result<(), sqlx::Error> {
    sweep(write, record.now_ms).await?;
    let id: i64 = query_scalar(
        "INSERT INTO turn_records (owner, session, content, bytes, expires_at_ms)
         VALUES ($1, $2, $3, $4, $5) RETURNING id",
    )
    .bind(record.owner)
    .bind(record.session)
    .bind(record.content)
    .bind(signed(record.content.len() as u64))
    .bind(record.expires_at_ms)
    .fetch_one(write.on())
    .await?;
    for key in record.keys {
        query(
            "INSERT INTO turn_record_keys (owner, session, key, record) VALUES ($1, $2, $3, $4)
             ON CONFLICT (owner, session, key) DO UPDATE SET record = excluded.record",
        )
        .bind(record.owner)
        .bind(record.session)
        .bind(*key)
        .bind(id)
        .execute(write.on())
        .await?;
    }
    evict(write, Some(record.owner), bounds.owner_bytes, bounds.owner_count).await?;
    evict(write, None, bounds.total_bytes, u64::MAX).await
}

async fn forget(
    write: &mut Write,
    owner: &str,
    session: &str,
    key: &[u8],
) -> Result<bool, sqlx::Error> {
    let record: Option<i64> = query_scalar(
        "DELETE FROM turn_record_keys WHERE owner = $1 AND session = $2 AND key = $3 RETURNING record",
    )
    .bind(owner)
    .bind(session)
    .bind(key)
    .fetch_optional(write.on())
    .await?;
    let Some(record) = record else { return Ok(false) };
    query(
        "DELETE FROM turn_records WHERE id = $1
         AND NOT EXISTS (SELECT 1 FROM turn_record_keys WHERE record = $1)",
    )
    .bind(record)
    .execute(write.on())
    .await?;
    Ok(true)
}

/// Deletes the oldest records of an owner, or of all owners, that exceed the limits.
async fn evict(
    write: &mut Write,
    owner: Option<&str>,
    bytes: u64,
    count: u64,
) -> Result<(), sqlx::Error> {
    // The keys are deleted with their record by a foreign key.
    query(
        "DELETE FROM turn_records WHERE ($1 IS NULL OR owner = $1) AND id <= (
             SELECT MAX(id) FROM (
                 SELECT id, SUM(bytes) OVER (ORDER BY id DESC) AS with_newer,
                     ROW_NUMBER() OVER (ORDER BY id DESC) AS place
                 FROM turn_records WHERE $1 IS NULL OR owner = $1
             ) AS newer
             WHERE with_newer > $2 OR place > $3
         )",
    )
    .bind(owner)
    .bind(signed(bytes))
    .bind(signed(count))
    .execute(write.on())
    .await
    .map(drop)
}

async fn sweep(write: &mut Write, now_ms: i64) -> Result<u64, sqlx::Error> {
    let ended = query("DELETE FROM turn_records WHERE expires_at_ms <= $1").bind(now_ms);
    ended.execute(write.on()).await
}
