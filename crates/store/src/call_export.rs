//! Reads all records of calls in the order in which they were written, page by page.
//!
//! The order is that of the sequence numbers, not of the ids: a record is written when its call ends, and an id begins with
//! the time at which the call began. A reader that continues after the last record that it has misses no call that
//! was running at that time.

use switchboard_model::{CallId, CallRecord};

use crate::calls::{SELECT, push_filter};
use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::rows::call_from_row;
use crate::statement::{query, query_scalar};
use crate::{CallFilter, Store, StoreError};

/// Number of records that are read at once. With the largest contents they take a few megabytes.
const PAGE: i64 = 256;

/// An export that has been started. It covers the records that were there at its start.
#[derive(Debug)]
pub struct CallExport {
    store: Store,
    filter: CallFilter,
    /// The sequence number of the last record that was read, or the one before the first record.
    read: i64,
    /// The last sequence number at the start.
    last: i64,
}

/// Why an export cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no record of the id after which it should begin, and never was.
    #[error("there is no record of a call {0}")]
    UnknownRecord(CallId),
    /// The retention deleted records that were not read yet.
    #[error("records were deleted by age or number while they were exported")]
    Deleted,
}

impl Store {
    /// Starts an export of the records that match the filter; `limit` and `before` of the filter are not used. With
    /// `after` it begins after that record. If that record was deleted by age or number, all that are left are exported, which
    /// may repeat some.
    pub async fn export_calls(
        &self,
        filter: CallFilter,
        after: Option<&CallId>,
    ) -> Result<CallExport, ExportError> {
        let fault = |error| self.fault("read calls", error);
        let bounds =
            query("SELECT MIN(seq) AS first, MAX(seq) AS last, MIN(id) AS oldest FROM calls")
                .fetch_one(&self.pool)
                .await
                .map_err(fault)?;
        let first: Option<i64> = bounds.try_get("first").map_err(fault)?;
        let last: Option<i64> = bounds.try_get("last").map_err(fault)?;
        let oldest: Option<String> = bounds.try_get("oldest").map_err(fault)?;
        let mut read = first.map_or(0, |first| first - 1);
        if let Some(after) = after {
            let found: Option<i64> = query_scalar("SELECT seq FROM calls WHERE id = $1")
                .bind(&after.0)
                .fetch_optional(&self.pool)
                .await
                .map_err(fault)?;
            match found {
                Some(seq) => read = seq,
                None if oldest.is_none_or(|oldest| after.0 < oldest) => {}
                None => return Err(ExportError::UnknownRecord(after.clone())),
            }
        }
        Ok(CallExport { store: self.clone(), filter, read, last: last.unwrap_or(0) })
    }
}

impl CallExport {
    /// The next records in their order; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<CallRecord>>, ExportError> {
        if self.read >= self.last {
            return Ok(None);
        }
        let store = &self.store;
        let fault = |error| store.fault("read calls", error);
        // Retention deletes the oldest records: those that were read, unless the reader is slower than the retention.
        let first: Option<i64> = query_scalar("SELECT MIN(seq) FROM calls")
            .fetch_one(&store.pool)
            .await
            .map_err(fault)?;
        if first.is_none_or(|first| first > self.read + 1) {
            return Err(ExportError::Deleted);
        }
        let mut query = QueryBuilder::new(SELECT);
        push_filter(&mut query, &self.filter);
        query.push(" AND seq > ").push_bind(self.read).push(" AND seq <= ").push_bind(self.last);
        query.push(" ORDER BY seq LIMIT ").push_bind(PAGE);
        let rows = query
            .build()
            .try_map(|row: Row| Ok((row.try_get::<i64>("seq")?, call_from_row(&row)?)))
            .fetch_all(&store.pool)
            .await
            .map_err(fault)?;
        match rows.last() {
            Some((seq, _)) => self.read = *seq,
            None => self.read = self.last,
        }
        Ok((!rows.is_empty()).then(|| rows.into_iter().map(|(_, record)| record).collect()))
    }
}
