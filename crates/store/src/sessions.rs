//! Sessions: their selections, and the tools that each saw last.

use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::statement::{query, query_scalar};
use std::collections::BTreeMap;

use crate::backend::Transaction;
use crate::rows::{session_from_row, signed, unsigned};
use crate::{Store, StoreError};

/// Number of rows of one statement, well below the limit of `SQLite` for bound values.
const ROWS_AT_ONCE: usize = 200;

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    pub id: String,
    /// `client`, `endpoint` or `principal`.
    pub kind: String,
    /// The principal that it belongs to.
    pub owner: String,
    pub title: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// JSON that only the session service interprets.
    pub state: String,
    pub tools_revision: u64,
    /// The digest of the [`SessionSnapshot`] that it saw last.
    pub snapshot: Option<String>,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

/// The tools that sessions have seen; shared by many sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSnapshot {
    pub digest: String,
    /// A JSON array.
    pub tools: String,
}

impl Store {
    /// Stores sessions and the snapshots that they refer to, in one transaction. A session with the same id is
    /// replaced, except for the time of its creation; an existing snapshot is left unchanged.
    pub async fn put_sessions(
        &self,
        sessions: &[StoredSession],
        snapshots: &[SessionSnapshot],
    ) -> Result<(), StoreError> {
        if sessions.is_empty() && snapshots.is_empty() {
            return Ok(());
        }
        let mut write = self.write("keep sessions").await?;
        let put = put_sessions(write.on(), sessions, snapshots).await;
        put.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The session with this id.
    pub async fn session(&self, id: &str) -> Result<Option<StoredSession>, StoreError> {
        query("SELECT * FROM sessions WHERE id = $1")
            .bind(id)
            .try_map(|row: Row| session_from_row(&row))
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.fault("read a session", error))
    }

    /// The sessions of an owner, or all, oldest first.
    pub async fn sessions(&self, owner: Option<&str>) -> Result<Vec<StoredSession>, StoreError> {
        let mut query = QueryBuilder::new("SELECT * FROM sessions");
        if let Some(owner) = owner {
            query.push(" WHERE owner = ").push_bind(owner);
        }
        query.push(" ORDER BY created_at_ms, id");
        query
            .build()
            .try_map(|row: Row| session_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read sessions", error))
    }

    /// How many sessions of a kind an owner has.
    pub async fn count_sessions(&self, owner: &str, kind: &str) -> Result<u64, StoreError> {
        let count: i64 =
            query_scalar("SELECT COUNT(*) FROM sessions WHERE owner = $1 AND kind = $2")
                .bind(owner)
                .bind(kind)
                .fetch_one(&self.pool)
                .await
                .map_err(|error| self.fault("count sessions", error))?;
        Ok(unsigned(count))
    }

    /// The tools of a snapshot, as a JSON array.
    pub async fn snapshot(&self, digest: &str) -> Result<Option<String>, StoreError> {
        query_scalar("SELECT tools FROM tool_snapshots WHERE digest = $1")
            .bind(digest)
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.fault("read a snapshot", error))
    }

    /// Deletes sessions with everything that belongs to them, and returns their number.
    pub async fn delete_sessions(&self, ids: &[String]) -> Result<u64, StoreError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut write = self.write("forget sessions").await?;
        let deleted = delete_sessions(write.on(), ids).await;
        let deleted = deleted.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(deleted)
    }

    /// Deletes sessions of a kind that have no client and were not changed since this time, and returns their number.
    pub async fn expire_client_sessions(
        &self,
        kind: &str,
        changed_before_ms: i64,
    ) -> Result<u64, StoreError> {
        let mut write = self.write("expire sessions").await?;
        let expired = query(
            "DELETE FROM sessions WHERE kind = $1 AND updated_at_ms < $2
                 AND NOT EXISTS (SELECT 1 FROM gateway_sessions WHERE gateway_sessions.session = sessions.id)",
        )
        .bind(kind)
        .bind(changed_before_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(expired)
    }

    /// Deletes snapshots that no session refers to, and returns their number.
    pub async fn prune_snapshots(&self) -> Result<u64, StoreError> {
        let mut write = self.write("forget snapshots").await?;
        let pruned = query(
            "DELETE FROM tool_snapshots WHERE NOT EXISTS
                 (SELECT 1 FROM sessions WHERE sessions.snapshot = tool_snapshots.digest)",
        )
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(pruned)
    }
}

/// The last entry for each key, in the order of the keys. One statement of `PostgreSQL` may write a row only once, and
/// replicas that lock rows in one order do not wait for each other in a circle.
pub(crate) fn last_of_each<'a, T>(entries: &'a [T], key: impl Fn(&'a T) -> &'a str) -> Vec<&'a T> {
    let last: BTreeMap<&str, &T> = entries.iter().map(|entry| (key(entry), entry)).collect();
    last.into_values().collect()
}

pub(crate) async fn put_sessions(
    on: &mut Transaction,
    sessions: &[StoredSession],
    snapshots: &[SessionSnapshot],
) -> Result<(), sqlx::Error> {
    for snapshot in snapshots {
        put_snapshot(&mut *on, snapshot).await?;
    }
    let last = last_of_each(sessions, |session| session.id.as_str());
    for some in last.chunks(ROWS_AT_ONCE) {
        put_rows(&mut *on, some).await?;
    }
    Ok(())
}

pub(crate) async fn delete_sessions(
    on: &mut Transaction,
    ids: &[String],
) -> Result<u64, sqlx::Error> {
    let mut deleted = 0;
    let ids = last_of_each(ids, String::as_str);
    for some in ids.chunks(ROWS_AT_ONCE) {
        let mut delete = QueryBuilder::new("DELETE FROM sessions WHERE id IN (");
        let mut listed = delete.separated();
        for id in some {
            listed.push_bind(id.as_str());
        }
        delete.push(")");
        deleted += delete.build().execute(&mut *on).await?;
    }
    Ok(deleted)
}

async fn put_snapshot(on: &mut Transaction, snapshot: &SessionSnapshot) -> Result<(), sqlx::Error> {
    query(
        "INSERT INTO tool_snapshots (digest, tools) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
    )
    .bind(&snapshot.digest)
    .bind(&snapshot.tools)
    .execute(on)
    .await
    .map(drop)
}

async fn put_rows(on: &mut Transaction, some: &[&StoredSession]) -> Result<(), sqlx::Error> {
    let mut insert = QueryBuilder::new(
        "INSERT INTO sessions (id, kind, owner, title, provider, model, state, tools_revision, snapshot, created_at_ms,
             updated_at_ms) ",
    );
    insert.push_values(some, |row, session| {
        row.push_bind(&session.id)
            .push_bind(&session.kind)
            .push_bind(&session.owner)
            .push_bind(&session.title)
            .push_bind(&session.provider)
            .push_bind(&session.model)
            .push_bind(&session.state)
            .push_bind(signed(session.tools_revision))
            .push_bind(&session.snapshot)
            .push_bind(session.created_at_ms)
            .push_bind(session.updated_at_ms);
    });
    insert.push(
        " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, title = excluded.title,
             provider = excluded.provider, model = excluded.model, state = excluded.state,
             tools_revision = excluded.tools_revision, snapshot = excluded.snapshot,
             updated_at_ms = excluded.updated_at_ms",
    );
    insert.build().execute(on).await.map(drop)
}
