//! Records of calls: written in batches, read newest first.

use std::sync::LazyLock;

use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{QueryBuilder, Row};
use switchboard_model::{CallId, CallOutcome, CallRecord, CanonicalName};

use crate::rows::{bind_call, call_from_row, canonical_name};
use crate::{Store, StoreError};

const COLUMNS: [&str; 17] = [
    "id",
    "started_at_ms",
    "face",
    "server",
    "tool",
    "requested",
    "revision",
    "argument_digest",
    "outcome",
    "message",
    "wait_ns",
    "run_ns",
    "result_bytes",
    "result_handle",
    "session",
    "principal",
    "client",
];

/// Each statement costs a way to the connection's thread and back, so many records share one. A batch is cut into
/// these few sizes, because a statement for every length would have to be prepared each time. The last one is 1:
/// it takes what is left.
const ROWS_AT_ONCE: [usize; 4] = [64, 16, 4, 1];

static INSERTS: LazyLock<[(usize, String); 4]> =
    LazyLock::new(|| ROWS_AT_ONCE.map(|rows| (rows, insert(rows))));

/// Which records to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// At most this many.
    pub limit: u32,
    /// Only calls of this tool: its canonical or bare name, or the name that the caller used.
    pub tool: Option<String>,
    /// Only calls of tools of this server.
    pub server: Option<String>,
    /// Only calls of one of these sessions; of any where there is none.
    pub sessions: Vec<String>,
    /// Only calls that ended so.
    pub outcome: Option<CallOutcome>,
    /// Only calls that came in at this moment or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only calls that ended at this moment or later. A record is written when its call ends, so this finds what is
    /// new, also of calls that began long ago. It reads every record.
    pub ended_since_ms: Option<i64>,
    /// Only calls older than this one: the last of the page before. Once that one has been pruned, everything
    /// older has been too, and the page is empty.
    pub before: Option<CallId>,
}

impl CallFilter {
    /// The newest `limit` records, whatever they are.
    pub fn newest(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Store {
    /// Records calls, all or none of them. A record whose id is already there is left as it is, so a batch may
    /// be tried again when it is not known whether the first attempt went through.
    pub async fn record_calls(&self, records: &[CallRecord]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut write = self.write("record calls").await?;
        let mut rest = records;
        for (rows, statement) in INSERTS.iter() {
            while let Some((some, others)) = rest.split_at_checked(*rows) {
                let insert = some.iter().fold(sqlx::query(statement.as_str()), bind_call);
                insert.execute(write.on()).await.map_err(|error| write.fault(error))?;
                rest = others;
            }
        }
        write.commit().await
    }

    /// The records that the filter lets through, newest first: by id, which begins with the time they came in.
    ///
    /// An outcome that only a newer version knows is shown as an internal error with that word in its message;
    /// a face that this version does not know is [`StoreError::Unreadable`], because there is no honest guess.
    pub async fn recent_calls(&self, filter: &CallFilter) -> Result<Vec<CallRecord>, StoreError> {
        select(filter)
            .build()
            .try_map(|row: SqliteRow| call_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read calls", error))
    }
}

impl Store {
    /// The tools of which there are records, in the order of their names; a bounded number of them.
    pub async fn recorded_tools(&self) -> Result<Vec<CanonicalName>, StoreError> {
        const MOST: i64 = 10_000;
        let tools = sqlx::query(
            "SELECT DISTINCT server, tool FROM calls WHERE tool IS NOT NULL ORDER BY tool LIMIT $1",
        )
        .bind(MOST)
        .try_map(|row: SqliteRow| canonical_name(row.try_get("server")?, row.try_get("tool")?))
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.fault("read the names of calls", error))?;
        Ok(tools.into_iter().flatten().collect())
    }
}

fn insert(rows: usize) -> String {
    let row = format!("({})", vec!["?"; COLUMNS.len()].join(", "));
    format!(
        "INSERT INTO calls ({}) VALUES {} ON CONFLICT (id) DO NOTHING",
        COLUMNS.join(", "),
        vec![row; rows].join(", "),
    )
}

fn select(filter: &CallFilter) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new("SELECT * FROM calls WHERE 1 = 1");
    if let Some(tool) = &filter.tool {
        query.push(" AND (tool = ").push_bind(tool);
        query.push(" OR requested = ").push_bind(tool);
        query.push(" OR tool = server || '.' || ").push_bind(tool).push(")");
    }
    if let Some(server) = &filter.server {
        query.push(" AND server = ").push_bind(server);
    }
    if !filter.sessions.is_empty() {
        let mut sessions = query.push(" AND session IN (").separated(", ");
        for session in &filter.sessions {
            sessions.push_bind(session);
        }
        query.push(")");
    }
    if let Some(outcome) = filter.outcome {
        query.push(" AND outcome = ").push_bind(outcome.as_str());
    }
    if let Some(since) = filter.since_ms {
        query.push(" AND started_at_ms >= ").push_bind(since);
    }
    if let Some(since) = filter.ended_since_ms {
        query.push(" AND started_at_ms + (wait_ns + run_ns) / 1000000 >= ").push_bind(since);
    }
    if let Some(before) = &filter.before {
        query.push(" AND id < (SELECT id FROM calls WHERE id = ").push_bind(&before.0).push(")");
    }
    query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(filter.limit));
    query
}
