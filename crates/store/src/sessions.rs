//! Sessions: their selections, and the tools that each saw last.

use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::statement::{query, query_scalar};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The number of writes of its row. A session that is written names the version that its writer has seen; 0 means that
    /// it is new.
    pub version: u64,
}

/// Tells whether a session is the one that somebody holds, and in the state that it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionVersion {
    pub version: u64,
    pub created_at_ms: i64,
}

/// The tools that sessions have seen; shared by many sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSnapshot {
    pub digest: String,
    /// A JSON array.
    pub tools: String,
}

impl Store {
    /// Stores sessions and the snapshots that they refer to, in one transaction. A session replaces the row with its id
    /// and version, except for the time of its creation; an existing snapshot is left unchanged.
    ///
    /// Returns the ids of the sessions that were not stored, because somebody else has written, made or deleted them since
    /// their writer read them.
    pub async fn put_sessions(
        &self,
        sessions: &[StoredSession],
        snapshots: &[SessionSnapshot],
    ) -> Result<BTreeSet<String>, StoreError> {
        if sessions.is_empty() && snapshots.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut write = self.write("keep sessions").await?;
        let put = put_sessions(write.on(), sessions, snapshots).await;
        let superseded = put.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(superseded)
    }

    /// The versions of the rows of these sessions. Those that do not exist are left out.
    pub async fn session_versions(
        &self,
        ids: &[&str],
    ) -> Result<BTreeMap<String, SessionVersion>, StoreError> {
        let mut versions = BTreeMap::new();
        for some in ids.chunks(ROWS_AT_ONCE) {
            let mut select =
                QueryBuilder::new("SELECT id, version, created_at_ms FROM sessions WHERE id IN (");
            let mut listed = select.separated();
            for id in some {
                listed.push_bind(*id);
            }
            select.push(")");
            let found = select.build().try_map(|row: Row| {
                let version = unsigned(row.try_get("version")?);
                let created_at_ms = row.try_get("created_at_ms")?;
                Ok((row.try_get::<String>("id")?, SessionVersion { version, created_at_ms }))
            });
            let found = found.fetch_all(&self.pool).await;
            versions.extend(found.map_err(|error| self.fault("read versions of sessions", error))?);
        }
        Ok(versions)
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

/// Returns the ids of the sessions that were superseded, as [`Store::put_sessions`] does.
pub(crate) async fn put_sessions(
    on: &mut Transaction,
    sessions: &[StoredSession],
    snapshots: &[SessionSnapshot],
) -> Result<BTreeSet<String>, sqlx::Error> {
    for snapshot in snapshots {
        put_snapshot(&mut *on, snapshot).await?;
    }
    let last = last_of_each(sessions, |session| session.id.as_str());
    let mut superseded: BTreeSet<String> = last.iter().map(|session| session.id.clone()).collect();
    let (new, known): (Vec<_>, Vec<_>) = last.into_iter().partition(|session| session.version == 0);
    for some in new.chunks(ROWS_AT_ONCE) {
        for id in insert_rows(&mut *on, some).await? {
            superseded.remove(&id);
        }
    }
    for some in known.chunks(ROWS_AT_ONCE) {
        for id in update_rows(&mut *on, some).await? {
            superseded.remove(&id);
        }
    }
    Ok(superseded)
}

/// Raises the versions of sessions without another change.
pub(crate) async fn raise_versions(
    on: &mut Transaction,
    ids: &[String],
) -> Result<(), sqlx::Error> {
    for id in last_of_each(ids, String::as_str) {
        let raise = query("UPDATE sessions SET version = version + 1 WHERE id = $1").bind(id);
        raise.execute(&mut *on).await?;
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

/// Inserts the rows that do not exist, and returns their ids.
async fn insert_rows(
    on: &mut Transaction,
    some: &[&StoredSession],
) -> Result<Vec<String>, sqlx::Error> {
    let mut insert = QueryBuilder::new(
        "INSERT INTO sessions (id, kind, owner, title, provider, model, state, tools_revision, snapshot, created_at_ms,
             updated_at_ms, version) ",
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
            .push_bind(session.updated_at_ms)
            .push_bind(1_i64);
    });
    insert.push(" ON CONFLICT (id) DO NOTHING RETURNING id");
    insert.build().try_map(|row: Row| row.try_get("id")).fetch_all(on).await
}

/// Updates the rows that still have the version that their writer has seen, and returns their ids.
async fn update_rows(
    on: &mut Transaction,
    some: &[&StoredSession],
) -> Result<Vec<String>, sqlx::Error> {
    if some.len() > 1 {
        lock_rows(&mut *on, some).await?;
    }
    let mut update = QueryBuilder::new(
        "WITH written (of_id, of_owner, of_title, of_provider, of_model, of_state, of_revision, of_snapshot, of_update,
             of_version) AS (",
    );
    update.push_values(some, |row, session| {
        row.push_bind(&session.id)
            .push_bind(&session.owner)
            .push_bind(&session.title)
            .push_bind(&session.provider)
            .push_bind(&session.model)
            .push_bind(&session.state)
            .push_bind(signed(session.tools_revision))
            .push_bind(&session.snapshot)
            .push_bind(session.updated_at_ms)
            .push_bind(signed(session.version));
    });
    update.push(
        ") UPDATE sessions SET owner = of_owner, title = of_title, provider = of_provider, model = of_model,
             state = of_state, tools_revision = of_revision, snapshot = of_snapshot, updated_at_ms = of_update,
             version = version + 1
         FROM written WHERE id = of_id AND version = of_version RETURNING id",
    );
    update.build().try_map(|row: Row| row.try_get("id")).fetch_all(on).await
}

/// Locks rows in the order of their ids: an update of several rows locks them in any order, and two boards could wait for
/// each other.
async fn lock_rows(on: &mut Transaction, some: &[&StoredSession]) -> Result<(), sqlx::Error> {
    let mut lock = QueryBuilder::new("SELECT id FROM sessions WHERE id IN (");
    let mut listed = lock.separated();
    for session in some {
        listed.push_bind(&session.id);
    }
    lock.push(") ORDER BY id FOR UPDATE");
    lock.build().lock(on).await
}
