//! Rates of calls over the boards of this database: one bucket for each tool, and one for each tool and caller.

use std::time::Duration;

use switchboard_model::{Rate, RateBucket};

use crate::backend::Pool;
use crate::postgres_transaction::WriteKind;
use crate::statement::query;
use crate::{Store, StoreError};

impl Store {
    /// Takes up to `wanted` calls of a tool out of its bucket, or out of that of a caller. Returns how many, or how long to
    /// wait for the next one. A crash of the database may forget the newest.
    pub async fn take_calls(
        &self,
        tool: &str,
        caller: Option<&str>,
        rate: Rate,
        wanted: u32,
    ) -> Result<Result<u32, Duration>, StoreError> {
        let caller = caller.unwrap_or_default();
        let mut write = self.write_as(WriteKind::Deferred, "count a call against a rate").await?;
        let taking = async {
            // Locks the row, and makes it if need be.
            query(
                "INSERT INTO rate_buckets (tool, caller, full_at_us) VALUES ($1, $2, 0)
                 ON CONFLICT (tool, caller) DO UPDATE SET full_at_us = rate_buckets.full_at_us",
            )
            .bind(tool)
            .bind(caller)
            .execute(write.on())
            .await?;
            let row = query(match self.pool {
                Pool::Sqlite(_) => {
                    "SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS now_us, full_at_us
                     FROM rate_buckets WHERE tool = $1 AND caller = $2"
                }
                Pool::Postgres(_) => {
                    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now_us, full_at_us
                     FROM rate_buckets WHERE tool = $1 AND caller = $2"
                }
            })
            .bind(tool)
            .bind(caller)
            .fetch_one(write.on())
            .await?;
            let time = |us: i64| Duration::from_micros(u64::try_from(us).unwrap_or_default());
            let now = time(row.try_get("now_us")?);
            let mut bucket = RateBucket::full_at(time(row.try_get("full_at_us")?));
            let taken = bucket.take_up_to(rate, now, wanted);
            // Rounded up: a bucket is never full too early.
            let full_at_us = bucket.is_full_again_at().as_nanos().div_ceil(1000);
            query("UPDATE rate_buckets SET full_at_us = $1 WHERE tool = $2 AND caller = $3")
                .bind(i64::try_from(full_at_us).unwrap_or(i64::MAX))
                .bind(tool)
                .bind(caller)
                .execute(write.on())
                .await?;
            Ok(taken)
        };
        let taken: Result<_, sqlx::Error> = taking.await;
        let taken = taken.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(taken)
    }

    /// Deletes the buckets that are full again: they need no row.
    pub async fn forget_full_buckets(&self) -> Result<u64, StoreError> {
        let now_ms = self.database_now_ms().await?;
        let mut write = self.write_as(WriteKind::Deferred, "delete buckets that are full").await?;
        let deleted = query("DELETE FROM rate_buckets WHERE full_at_us < $1")
            .bind(now_ms.saturating_mul(1000))
            .execute(write.on())
            .await;
        let deleted = deleted.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(deleted)
    }
}
