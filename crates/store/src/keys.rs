//! API keys: who may ask. The store sees hashes only; what a key looks like is no concern of it.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::rows::{bytes32, key_from_row};
use crate::{Store, StoreError};

/// What is known of an API key, except what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Made once and never used for another key.
    pub id: String,
    /// What people call it. No two keys that are not revoked have the same.
    pub name: String,
    /// `admin`, `operator` or `client`.
    pub role: String,
    /// When it was made.
    pub created_at_ms: i64,
    /// When it last opened the door, give or take the pause between two notes.
    pub last_used_at_ms: Option<i64>,
    /// Since when it opens nothing.
    pub revoked_at_ms: Option<i64>,
    /// From when on it opens nothing.
    pub expires_at_ms: Option<i64>,
}

impl Store {
    /// Keeps a key under the hash by which it will be known again. A name that another key has, unless that one is
    /// revoked, is [`StoreError::NameTaken`].
    pub async fn add_key(&self, key: &StoredKey, hash: &[u8; 32]) -> Result<(), StoreError> {
        let mut write = self.write("add a key").await?;
        let added = sqlx::query(
            "INSERT INTO api_keys
                 (id, name, role, hash, created_at_ms, last_used_at_ms, revoked_at_ms, expires_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (name) WHERE revoked_at_ms IS NULL DO NOTHING",
        )
        .bind(&key.id)
        .bind(&key.name)
        .bind(&key.role)
        .bind(hash.as_slice())
        .bind(key.created_at_ms)
        .bind(key.last_used_at_ms)
        .bind(key.revoked_at_ms)
        .bind(key.expires_at_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?
        .rows_affected();
        if added == 0 {
            let (file, name) = (self.file.to_path_buf(), key.name.clone());
            return Err(StoreError::NameTaken { file, name });
        }
        write.commit().await
    }

    /// Every key that there ever was, oldest first.
    pub async fn keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        sqlx::query("SELECT * FROM api_keys ORDER BY created_at_ms, id")
            .try_map(|row: SqliteRow| key_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the keys", error))
    }

    /// The keys that are not revoked, with their hashes. Whether one has expired is for the caller to see, who
    /// knows what time it is.
    pub async fn key_hashes(&self) -> Result<Vec<(StoredKey, [u8; 32])>, StoreError> {
        sqlx::query("SELECT * FROM api_keys WHERE revoked_at_ms IS NULL ORDER BY created_at_ms, id")
            .try_map(|row: SqliteRow| {
                Ok((key_from_row(&row)?, bytes32("hash", row.try_get("hash")?)?))
            })
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the keys", error))
    }

    /// Revokes the key with this id or, if there is none, with this name. False when there is neither, or it was
    /// revoked before.
    pub async fn revoke_key(&self, id_or_name: &str, now_ms: i64) -> Result<bool, StoreError> {
        let mut write = self.write("revoke a key").await?;
        let mut revoked = 0;
        // A name may look like the id of another key; that other key must not go with it.
        for update in [
            "UPDATE api_keys SET revoked_at_ms = $2 WHERE revoked_at_ms IS NULL AND id = $1",
            "UPDATE api_keys SET revoked_at_ms = $2 WHERE revoked_at_ms IS NULL AND name = $1",
        ] {
            if revoked == 0 {
                revoked = sqlx::query(update)
                    .bind(id_or_name)
                    .bind(now_ms)
                    .execute(write.on())
                    .await
                    .map_err(|error| write.fault(error))?
                    .rows_affected();
            }
        }
        write.commit().await?;
        Ok(revoked > 0)
    }

    /// Notes that a key was used. Never goes back in time, whatever order notes come in.
    pub async fn touch_key(&self, id: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut write = self.write("note the use of a key").await?;
        sqlx::query(
            "UPDATE api_keys SET last_used_at_ms = $2
             WHERE id = $1 AND (last_used_at_ms IS NULL OR last_used_at_ms < $2)",
        )
        .bind(id)
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }
}
