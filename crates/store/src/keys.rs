//! API keys. The store has only their hashes and does not know their format.

use crate::postgres_transaction::WriteKind;
use crate::row::Row;
use crate::rows::{bytes32, key_from_row};
use crate::statement::query;
use crate::{ChangeHint, HintTopic, Store, StoreError};

/// The metadata of an API key, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Unique; never used for another key.
    pub id: String,
    /// The display name. Keys that are not revoked have different names.
    pub name: String,
    /// `admin`, `operator` or `client`.
    pub role: String,
    /// When it was created.
    pub created_at_ms: i64,
    /// When it was last used; updated at intervals, so it may be slightly out of date.
    pub last_used_at_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_at_ms: Option<i64>,
    /// When it expires.
    pub expires_at_ms: Option<i64>,
    /// The label of the person who uses it.
    pub user: Option<String>,
    /// What it may use, as JSON; `None` if everything.
    pub access: Option<String>,
}

impl Store {
    /// Stores a key with its hash. A name that another key has, unless that one is revoked, is
    /// [`StoreError::NameTaken`].
    pub async fn add_key(&self, key: &StoredKey, hash: &[u8; 32]) -> Result<(), StoreError> {
        let mut write = self.write("add a key").await?;
        let added = query(
            "INSERT INTO api_keys
                 (id, name, role, hash, created_at_ms, last_used_at_ms, revoked_at_ms, expires_at_ms,
                  user_label, access)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
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
        .bind(&key.user)
        .bind(&key.access)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        if added == 0 {
            write.roll_back().await?;
            let (database, name) = (self.location(), key.name.clone());
            return Err(StoreError::NameTaken { database, name });
        }
        write.commit().await?;
        self.tell_of_key(&key.id);
        Ok(())
    }

    /// Tells other boards that a key was added, changed or revoked.
    fn tell_of_key(&self, key: &str) {
        let hint = ChangeHint { topic: HintTopic::Keys, key: key.to_owned(), version: 0 };
        self.hints().publish(hint);
    }

    /// All keys, including revoked ones, oldest first.
    pub async fn keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        query("SELECT * FROM api_keys ORDER BY created_at_ms, id")
            .try_map(|row: Row| key_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the keys", error))
    }

    /// The keys that are not revoked, with their hashes. The caller checks whether one has expired.
    pub async fn key_hashes(&self) -> Result<Vec<(StoredKey, [u8; 32])>, StoreError> {
        query("SELECT * FROM api_keys WHERE revoked_at_ms IS NULL ORDER BY created_at_ms, id")
            .try_map(|row: Row| Ok((key_from_row(&row)?, bytes32("hash", row.try_get("hash")?)?)))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the keys", error))
    }

    /// Changes the active key with this id or, if no active key has it, the active key with this name: its role, user,
    /// end and access. Returns the key as it is now; `None` if there is neither.
    pub async fn edit_key(
        &self,
        id_or_name: &str,
        change: impl FnOnce(&mut StoredKey),
    ) -> Result<Option<StoredKey>, StoreError> {
        let mut write = self.write("change a key").await?;
        let rows =
            query("SELECT id FROM api_keys WHERE id = $1 OR name = $1 ORDER BY id FOR UPDATE");
        write.lock(rows.bind(id_or_name)).await?;
        let found = query(
            "SELECT * FROM api_keys WHERE revoked_at_ms IS NULL AND (id = $1 OR name = $1)
             ORDER BY id = $1 DESC LIMIT 1",
        )
        .bind(id_or_name)
        .try_map(|row: Row| key_from_row(&row))
        .fetch_optional(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        let Some(mut key) = found else {
            write.roll_back().await?;
            return Ok(None);
        };
        change(&mut key);
        query(
            "UPDATE api_keys SET role = $2, user_label = $3, expires_at_ms = $4, access = $5
             WHERE id = $1",
        )
        .bind(&key.id)
        .bind(&key.role)
        .bind(&key.user)
        .bind(key.expires_at_ms)
        .bind(&key.access)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await?;
        self.tell_of_key(&key.id);
        Ok(Some(key))
    }

    /// Revokes the active key with this id or, if no active key has it, the active key with this name. Returns `false` if
    /// there is neither.
    pub async fn revoke_key(&self, id_or_name: &str, now_ms: i64) -> Result<bool, StoreError> {
        let mut write = self.write("revoke a key").await?;
        let mut revoked = 0;
        // A name may equal the id of another key, which must not be revoked with it.
        for update in [
            "UPDATE api_keys SET revoked_at_ms = $2 WHERE revoked_at_ms IS NULL AND id = $1",
            "UPDATE api_keys SET revoked_at_ms = $2 WHERE revoked_at_ms IS NULL AND name = $1",
        ] {
            if revoked == 0 {
                revoked = query(update)
                    .bind(id_or_name)
                    .bind(now_ms)
                    .execute(write.on())
                    .await
                    .map_err(|error| write.fault(error))?;
            }
        }
        write.commit().await?;
        if revoked > 0 {
            self.tell_of_key(id_or_name);
        }
        Ok(revoked > 0)
    }

    /// Records that a key was used. The time never decreases, in whatever order the updates arrive.
    pub async fn touch_key(&self, id: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut write = self.write_as(WriteKind::Deferred, "note the use of a key").await?;
        query(
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
