//! Records of calls: written in batches, read newest first.

use std::sync::LazyLock;
use std::time::Duration;

use switchboard_model::{CallId, CallOutcome, CallRecord, CanonicalName, Face};

use crate::postgres_transaction::WriteKind;
use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::rows::{bind_call, bind_contents, call_from_row, canonical_name};
use crate::statement::query;
use crate::{Store, StoreError};

const COLUMNS: [&str; 25] = [
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
    "person",
    "owner",
    "key_name",
    "client_version",
    "agent",
    "configured",
    "mode",
    "policy",
];

/// A record with its contents, for every query of records.
pub(crate) const SELECT: &str = "SELECT calls.*, arguments_text, arguments_size, arguments_cut, result_text, result_size, result_cut
     FROM calls LEFT JOIN call_contents ON call_contents.id = calls.id WHERE 1 = 1";

/// Numbers of rows of one INSERT, largest first. Each statement is a round trip to the connection's thread, so many
/// records share one. A batch is split into these few sizes, because every other length would need a prepared statement
/// of its own.
const ROWS_AT_ONCE: [usize; 4] = [64, 16, 4, 1];

static INSERTS: LazyLock<[(usize, String); 4]> =
    LazyLock::new(|| ROWS_AT_ONCE.map(|rows| (rows, insert(rows))));

const INSERT_CONTENTS: &str = "INSERT INTO call_contents
     (id, arguments_text, arguments_size, arguments_cut, result_text, result_size, result_cut, stored_bytes)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING";

/// Selects call records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Maximum number of records.
    pub limit: u32,
    /// Only calls of this tool: its canonical or bare name, or the name that the caller used.
    pub tool: Option<String>,
    /// Only calls of tools of this server.
    pub server: Option<String>,
    /// Only calls of one of these sessions; empty means all sessions.
    pub sessions: Vec<String>,
    /// Only calls that came through this interface.
    pub face: Option<Face>,
    /// Only calls that ran at least this long.
    pub min_run: Option<Duration>,
    /// Only calls with this outcome.
    pub outcome: Option<CallOutcome>,
    /// Only calls that this principal made: its id, or the name of its API key.
    pub principal: Option<String>,
    /// Only calls of this person.
    pub person: Option<String>,
    /// Only calls in sessions of this owner, or made by it without a session.
    pub owner: Option<String>,
    /// Only calls that this principal made itself, and calls that others made in its sessions. Unlike the other fields
    /// this is no choice of the reader, but what it may see.
    pub visible_to: Option<String>,
    /// Only calls that arrived at this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only calls that arrived before this time.
    pub until_ms: Option<i64>,
    /// Only calls that ended at this time or later. A record is written when its call ends, so this finds new records,
    /// also of calls that began long ago. It reads every record.
    pub ended_since_ms: Option<i64>,
    /// Only calls older than this one, which is the last of the previous page. If it has been pruned, all older ones
    /// have been too, and the page is empty.
    pub before: Option<CallId>,
}

impl CallFilter {
    /// The newest `limit` records.
    pub fn newest(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Store {
    /// Records calls in one transaction. A record whose id already exists is left unchanged, so a batch can be repeated
    /// when the outcome of the first attempt is unknown.
    pub async fn record_calls(&self, records: &[CallRecord]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut write = self.write_as(WriteKind::Deferred, "record calls").await?;
        // Sequence numbers become visible in their order, or an export that goes on after the last one would miss some.
        write.lock_writers("calls").await?;
        let mut rest = records;
        for (rows, statement) in INSERTS.iter() {
            while let Some((some, others)) = rest.split_at_checked(*rows) {
                let insert = some.iter().fold(query(statement.as_str()), bind_call);
                insert.execute(write.on()).await.map_err(|error| write.fault(error))?;
                rest = others;
            }
        }
        for record in records.iter().filter(|it| it.arguments.is_some() || it.result.is_some()) {
            let insert = bind_contents(query(INSERT_CONTENTS), record);
            insert.execute(write.on()).await.map_err(|error| write.fault(error))?;
        }
        write.commit().await
    }

    /// The record of one call.
    ///
    /// An unknown word in it is treated as [`Store::recent_calls`] does.
    pub async fn call(
        &self,
        id: &CallId,
        visible_to: Option<&str>,
    ) -> Result<Option<CallRecord>, StoreError> {
        let mut query = QueryBuilder::new(SELECT);
        query.push(" AND calls.id = ").push_bind(&id.0);
        if let Some(principal) = visible_to {
            push_visible(&mut query, principal);
        }
        query
            .build()
            .try_map(|row: Row| call_from_row(&row))
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.fault("read a call", error))
    }

    /// The records that match the filter, newest first: by id, which begins with the time of arrival.
    ///
    /// If a newer version wrote an outcome that this version does not know, the record has the outcome "internal error"
    /// with the unknown word in its message. An unknown face (the way in: MCP, HTTP, command line, turn) fails the query
    /// with [`StoreError::Unreadable`].
    pub async fn recent_calls(&self, filter: &CallFilter) -> Result<Vec<CallRecord>, StoreError> {
        let mut query = QueryBuilder::new(SELECT);
        push_filter(&mut query, filter);
        if let Some(before) = &filter.before {
            query.push(" AND calls.id < (SELECT id FROM calls WHERE id = ");
            query.push_bind(&before.0).push(")");
        }
        query.push(" ORDER BY calls.id DESC LIMIT ").push_bind(i64::from(filter.limit));
        query
            .build()
            .try_map(|row: Row| call_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read calls", error))
    }
}

impl Store {
    /// The tools that have records, in the order of their names; a bounded number of them.
    pub async fn recorded_tools(&self) -> Result<Vec<CanonicalName>, StoreError> {
        const MOST: i64 = 10_000;
        let tools = query(
            "SELECT DISTINCT server, tool FROM calls WHERE tool IS NOT NULL ORDER BY tool LIMIT $1",
        )
        .bind(MOST)
        .try_map(|row: Row| canonical_name(row.try_get("server")?, row.try_get("tool")?))
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.fault("read the names of calls", error))?;
        Ok(tools.into_iter().flatten().collect())
    }
}

fn insert(rows: usize) -> String {
    let places: Vec<String> = (1..=rows * COLUMNS.len()).map(|place| format!("${place}")).collect();
    let tuples: Vec<String> =
        places.chunks(COLUMNS.len()).map(|row| format!("({})", row.join(", "))).collect();
    format!(
        "INSERT INTO calls ({}) VALUES {} ON CONFLICT (id) DO NOTHING",
        COLUMNS.join(", "),
        tuples.join(", "),
    )
}

/// Adds the conditions of a filter, except its page.
pub(crate) fn push_filter<'q>(query: &mut QueryBuilder<'q>, filter: &'q CallFilter) {
    if let Some(tool) = &filter.tool {
        query.push(" AND (tool = ").push_bind(tool);
        query.push(" OR requested = ").push_bind(tool);
        query.push(" OR tool = server || '.' || ").push_bind(tool).push(")");
    }
    if let Some(server) = &filter.server {
        query.push(" AND server = ").push_bind(server);
    }
    if !filter.sessions.is_empty() {
        let mut sessions = query.push(" AND session IN (").separated();
        for session in &filter.sessions {
            sessions.push_bind(session);
        }
        query.push(")");
    }
    if let Some(face) = filter.face {
        query.push(" AND face = ").push_bind(face.as_str());
    }
    if let Some(least) = filter.min_run {
        let least = i64::try_from(least.as_nanos()).unwrap_or(i64::MAX);
        query.push(" AND run_ns >= ").push_bind(least);
    }
    if let Some(outcome) = filter.outcome {
        query.push(" AND outcome = ").push_bind(outcome.as_str());
    }
    if let Some(principal) = &filter.principal {
        query.push(" AND (principal = ").push_bind(principal);
        query.push(" OR key_name = ").push_bind(principal).push(")");
    }
    if let Some(person) = &filter.person {
        query.push(" AND person = ").push_bind(person);
    }
    if let Some(owner) = &filter.owner {
        query.push(" AND owner = ").push_bind(owner);
    }
    if let Some(principal) = &filter.visible_to {
        push_visible(query, principal);
    }
    if let Some(since) = filter.since_ms {
        query.push(" AND started_at_ms >= ").push_bind(since);
    }
    if let Some(until) = filter.until_ms {
        query.push(" AND started_at_ms < ").push_bind(until);
    }
    if let Some(since) = filter.ended_since_ms {
        query.push(" AND started_at_ms + (wait_ns + run_ns) / 1000000 >= ").push_bind(since);
    }
}

fn push_visible<'q>(query: &mut QueryBuilder<'q>, principal: &'q str) {
    query.push(" AND (principal = ").push_bind(principal);
    query.push(" OR owner = ").push_bind(principal).push(")");
}
