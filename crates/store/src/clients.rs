//! MCP clients of the session era, which survive a restart of the process.
//!
//! The id of a `client` entry is its only credential, so the database must not reveal it. Such an entry is stored under
//! a hash of its id, and the hash is not accepted as an id.

use std::collections::BTreeMap;

use crate::backend::Transaction;
use crate::postgres_transaction::WriteKind;
use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::rows::client_from_row;
use crate::statement::query;
use crate::{Store, StoreError};

/// The kind whose ids are secret.
const CLIENT: &str = "client";
/// Number of rows of one statement, well below the limit of `SQLite` for bound values.
const ROWS_AT_ONCE: usize = 500;

/// The stored state of a session-era client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClient {
    /// Ids are unique within their kind. For a `client`, [`Store::clients`] returns a hash instead.
    pub id: String,
    /// `client`, `endpoint` or `principal`.
    pub kind: String,
    /// The principal that it belongs to.
    pub owner: String,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// JSON that only the MCP server interprets.
    pub state: String,
    /// When it was first stored.
    pub created_at_ms: i64,
    /// When it was last used.
    pub last_seen_at_ms: i64,
}

impl Store {
    /// Stores clients in one transaction, with their plain ids. An entry with the same kind and id is replaced, except
    /// for the time of its creation.
    pub async fn put_clients(&self, sessions: &[StoredClient]) -> Result<(), StoreError> {
        if sessions.is_empty() {
            return Ok(());
        }
        let mut write = self.write("keep sessions").await?;
        let put = put_clients(write.on(), sessions).await;
        put.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The client with this id; the returned id is the given one, so that it can be stored again. If a client and an
    /// endpoint have the same id, the client is returned.
    pub async fn client(&self, id: &str) -> Result<Option<StoredClient>, StoreError> {
        let found = query(
            "SELECT * FROM gateway_sessions WHERE (kind = 'client' AND id = $1) OR (kind <> 'client' AND id = $2)
             ORDER BY kind LIMIT 1",
        )
        .bind(hashed(id))
        .bind(id)
        .try_map(|row: Row| client_from_row(&row))
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.fault("read a session", error))?;
        Ok(found.map(|session| StoredClient { id: id.to_owned(), ..session }))
    }

    /// The clients of an owner, of a kind, or all, oldest first. Ids of kind `client` are hashes.
    pub async fn clients(
        &self,
        owner: Option<&str>,
        kind: Option<&str>,
    ) -> Result<Vec<StoredClient>, StoreError> {
        let mut query = QueryBuilder::new("SELECT * FROM gateway_sessions WHERE 1 = 1");
        if let Some(owner) = owner {
            query.push(" AND owner = ").push_bind(owner);
        }
        if let Some(kind) = kind {
            query.push(" AND kind = ").push_bind(kind);
        }
        query.push(" ORDER BY created_at_ms, id, kind");
        query
            .build()
            .try_map(|row: Row| client_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read sessions", error))
    }

    /// Deletes clients and returns their number. Accepts plain ids and those that [`Store::clients`] returns.
    pub async fn delete_clients(&self, ids: &[String]) -> Result<u64, StoreError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut write = self.write("forget sessions").await?;
        let deleted = delete_clients(write.on(), ids).await;
        let deleted = deleted.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(deleted)
    }

    /// Deletes the clients of a kind that were last seen before this time, and returns their number.
    pub async fn expire_clients(&self, kind: &str, seen_before_ms: i64) -> Result<u64, StoreError> {
        let mut write = self.write("expire sessions").await?;
        let expired =
            query("DELETE FROM gateway_sessions WHERE kind = $1 AND last_seen_at_ms < $2")
                .bind(kind)
                .bind(seen_before_ms)
                .execute(write.on())
                .await
                .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(expired)
    }

    /// Records when clients were last used, by their plain ids. A time never decreases; unknown ids are ignored.
    pub async fn touch_clients(&self, seen: &[(String, i64)]) -> Result<(), StoreError> {
        if seen.is_empty() {
            return Ok(());
        }
        let mut write = self.write_as(WriteKind::Deferred, "note the use of sessions").await?;
        let touched = touch_clients(write.on(), seen).await;
        touched.map_err(|error| write.fault(error))?;
        write.commit().await
    }
}

pub(crate) async fn put_clients(
    on: &mut Transaction,
    sessions: &[StoredClient],
) -> Result<(), sqlx::Error> {
    let last: BTreeMap<(&str, &str), &StoredClient> =
        sessions.iter().map(|one| ((one.kind.as_str(), one.id.as_str()), one)).collect();
    let last: Vec<&StoredClient> = last.into_values().collect();
    for some in last.chunks(ROWS_AT_ONCE) {
        let mut insert = QueryBuilder::new(
            "INSERT INTO gateway_sessions (id, kind, owner, session, state, created_at_ms, last_seen_at_ms) ",
        );
        insert.push_values(some, |row, session| {
            row.push_bind(stored_id(&session.kind, &session.id))
                .push_bind(&session.kind)
                .push_bind(&session.owner)
                .push_bind(&session.session)
                .push_bind(&session.state)
                .push_bind(session.created_at_ms)
                .push_bind(session.last_seen_at_ms);
        });
        insert.push(
            " ON CONFLICT (id, kind) DO UPDATE SET owner = excluded.owner, session = excluded.session,
                 state = excluded.state, last_seen_at_ms = excluded.last_seen_at_ms",
        );
        insert.build().execute(&mut *on).await?;
    }
    Ok(())
}

pub(crate) async fn delete_clients(
    on: &mut Transaction,
    ids: &[String],
) -> Result<u64, sqlx::Error> {
    let mut deleted = 0;
    for some in ids.chunks(ROWS_AT_ONCE) {
        let mut delete = QueryBuilder::new("DELETE FROM gateway_sessions WHERE id IN (");
        let mut listed = delete.separated();
        for id in some {
            listed.push_bind(id).push_bind(hashed(id));
        }
        delete.push(")");
        deleted += delete.build().execute(&mut *on).await?;
    }
    Ok(deleted)
}

pub(crate) async fn touch_clients(
    on: &mut Transaction,
    seen: &[(String, i64)],
) -> Result<(), sqlx::Error> {
    // One row per client: with two rows, the one that an update uses is undefined.
    let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
    for (id, at_ms) in seen {
        let known = latest.entry(id).or_insert(*at_ms);
        *known = (*known).max(*at_ms);
    }
    let rows: Vec<(String, bool, i64)> = latest
        .into_iter()
        .flat_map(|(id, at_ms)| [(hashed(id), true, at_ms), (id.to_owned(), false, at_ms)])
        .collect();
    for some in rows.chunks(ROWS_AT_ONCE) {
        let mut update = QueryBuilder::new("WITH seen (id, of_client, at_ms) AS (");
        update.push_values(some, |row, (id, of_client, at_ms)| {
            row.push_bind(id).push_bind(of_client).push_bind(at_ms);
        });
        update.push(
            ") UPDATE gateway_sessions SET last_seen_at_ms = seen.at_ms FROM seen
             WHERE gateway_sessions.id = seen.id AND (gateway_sessions.kind = 'client') = seen.of_client
                 AND gateway_sessions.last_seen_at_ms < seen.at_ms",
        );
        update.build().execute(&mut *on).await?;
    }
    Ok(())
}

/// The value of the column `id`.
fn stored_id(kind: &str, id: &str) -> String {
    if kind == CLIENT { hashed(id) } else { id.to_owned() }
}

/// A plain hash is enough, because ids are long and random.
fn hashed(id: &str) -> String {
    format!("blake3:{}", blake3::hash(id.as_bytes()).to_hex())
}
