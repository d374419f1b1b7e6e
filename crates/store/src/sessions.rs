//! Sessions: their selections, and the tools that each saw last.

use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};

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
        sqlx::query("SELECT * FROM sessions WHERE id = $1")
            .bind(id)
            .try_map(|row: SqliteRow| session_from_row(&row))
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.fault("read a session", error))
    }

    /// The sessions of an owner, or all, oldest first.
    pub async fn sessions(&self, owner: Option<&str>) -> Result<Vec<StoredSession>, StoreError> {
        let mut query = QueryBuilder::<Sqlite>::new("SELECT * FROM sessions");
        if let Some(owner) = owner {
            query.push(" WHERE owner = ").push_bind(owner);
        }
        query.push(" ORDER BY created_at_ms, id");
        query
            .build()
            .try_map(|row: SqliteRow| session_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read sessions", error))
    }

    /// How many sessions of a kind an owner has.
    pub async fn count_sessions(&self, owner: &str, kind: &str) -> Result<u64, StoreError> {
        let count: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM sessions WHERE owner = $1 AND kind = $2")
                .bind(owner)
                .bind(kind)
                .fetch_one(&self.pool)
                .await
                .map_err(|error| self.fault("count sessions", error))?;
        Ok(unsigned(count))
    }

    /// The tools of a snapshot, as a JSON array.
    pub async fn snapshot(&self, digest: &str) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("SELECT tools FROM tool_snapshots WHERE digest = $1")
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
        let expired = sqlx::query(
            "DELETE FROM sessions WHERE kind = $1 AND updated_at_ms < $2
                 AND NOT EXISTS (SELECT 1 FROM gateway_sessions WHERE gateway_sessions.session = sessions.id)",
        )
        .bind(kind)
        .bind(changed_before_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?
        .rows_affected();
        write.commit().await?;
        Ok(expired)
    }

    /// Deletes snapshots that no session refers to, and returns their number.
    pub async fn prune_snapshots(&self) -> Result<u64, StoreError> {
        let mut write = self.write("forget snapshots").await?;
        let pruned = sqlx::query(
            "DELETE FROM tool_snapshots WHERE NOT EXISTS
                 (SELECT 1 FROM sessions WHERE sessions.snapshot = tool_snapshots.digest)",
        )
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?
        .rows_affected();
        write.commit().await?;
        Ok(pruned)
    }
}

pub(crate) async fn put_sessions(
    on: &mut SqliteConnection,
    sessions: &[StoredSession],
    snapshots: &[SessionSnapshot],
) -> Result<(), sqlx::Error> {
    for snapshot in snapshots {
        put_snapshot(&mut *on, snapshot).await?;
    }
    for some in sessions.chunks(ROWS_AT_ONCE) {
        put_rows(&mut *on, some).await?;
    }
    Ok(())
}

pub(crate) async fn delete_sessions(
    on: &mut SqliteConnection,
    ids: &[String],
) -> Result<u64, sqlx::Error> {
    let mut deleted = 0;
    for some in ids.chunks(ROWS_AT_ONCE) {
        let mut delete = QueryBuilder::<Sqlite>::new("DELETE FROM sessions WHERE id IN (");
        let mut listed = delete.separated(", ");
        for id in some {
            listed.push_bind(id);
        }
        delete.push(")");
        deleted += delete.build().execute(&mut *on).await?.rows_affected();
    }
    Ok(deleted)
}

async fn put_snapshot(
    on: &mut SqliteConnection,
    snapshot: &SessionSnapshot,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO tool_snapshots (digest, tools) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
    )
    .bind(&snapshot.digest)
    .bind(&snapshot.tools)
    .execute(on)
    .await
    .map(drop)
}

async fn put_rows(on: &mut SqliteConnection, some: &[StoredSession]) -> Result<(), sqlx::Error> {
    let mut insert = QueryBuilder::<Sqlite>::new(
        "INSERT INTO sessions (id, kind, owner, title, provider, model, state, tools_revision, snapshot, created_at_ms,
             updated_at_ms) ",
    );
    insert.push_values(some, |mut row, session| {
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
