//! When calls began, how they ended and how long they ran, for statistics.

use std::time::Duration;

use crate::calls::{CallFilter, push_filter};
use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::{Store, StoreError};

/// What statistics need of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTimes {
    pub started_at_ms: i64,
    pub outcome: String,
    /// The canonical name of the tool, if it existed.
    pub tool: Option<String>,
    pub server: Option<String>,
    pub face: String,
    pub run: Duration,
}

impl Store {
    /// The calls that match the filter, newest first; at most `filter.limit`. The page of the filter is ignored.
    pub async fn call_times(&self, filter: &CallFilter) -> Result<Vec<CallTimes>, StoreError> {
        let columns =
            "SELECT started_at_ms, outcome, tool, server, face, run_ns FROM calls WHERE 1 = 1";
        let mut query = QueryBuilder::new(columns);
        push_filter(&mut query, filter);
        query.push(" ORDER BY calls.id DESC LIMIT ").push_bind(i64::from(filter.limit));
        query
            .build()
            .try_map(|row: Row| {
                let run: i64 = row.try_get("run_ns")?;
                Ok(CallTimes {
                    started_at_ms: row.try_get("started_at_ms")?,
                    outcome: row.try_get("outcome")?,
                    tool: row.try_get("tool")?,
                    server: row.try_get("server")?,
                    face: row.try_get("face")?,
                    run: Duration::from_nanos(u64::try_from(run).unwrap_or_default()),
                })
            })
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the times of calls", error))
    }
}
