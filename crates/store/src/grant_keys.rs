//! The keys of a store: which one encrypts, which ones decrypt, and whether clear text is allowed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use switchboard_model::{GrantId, GrantOwner, StoreKeys};

use crate::grant_cipher::{GrantCiphers, SealedContent};
use crate::grants::ReencryptedGrants;
use crate::postgres_transaction::WriteKind;
use crate::row::Row;
use crate::statement::{query, query_scalar};
use crate::store::Write;
use crate::{Store, StoreError};

/// Shared by the clones of a store.
#[derive(Debug, Default)]
pub(crate) struct GrantKeys {
    ciphers: ArcSwap<GrantCiphers>,
    refuses_clear_text: AtomicBool,
}

impl GrantKeys {
    pub(crate) fn ciphers(&self) -> Arc<GrantCiphers> {
        self.ciphers.load_full()
    }

    /// Whether contents can be stored: encrypted, or in clear text where that is allowed.
    pub(crate) fn may_write(&self) -> bool {
        self.ciphers.load().current_id().is_some()
            || !self.refuses_clear_text.load(Ordering::Relaxed)
    }
}

impl Store {
    /// Sets the keys for grants, for all clones. What is stored already is not changed; see
    /// [`Store::reencrypt_grants`].
    pub fn set_grant_keys(&self, keys: &StoreKeys) {
        self.grant_keys.ciphers.store(Arc::new(GrantCiphers::new(keys)));
    }

    /// Refuses to store grants in clear text from now on, for boards that other machines can reach.
    pub fn refuse_clear_text_grants(&self) {
        self.grant_keys.refuses_clear_text.store(true, Ordering::Relaxed);
    }

    /// Whether new grants are encrypted.
    pub fn encrypts_grants(&self) -> bool {
        self.grant_keys.ciphers().current_id().is_some()
    }

    /// Encrypts every grant with the current key that is in clear text or has a previous key, and erases the earlier
    /// bytes from the database file; `PostgreSQL` erases them when it vacuums. Without a current key it changes nothing. Versions stay: the tokens are the same.
    pub async fn reencrypt_grants(&self) -> Result<ReencryptedGrants, StoreError> {
        let ciphers = self.grant_keys.ciphers();
        let mut done = ReencryptedGrants::default();
        let Some(current) = ciphers.current_id() else { return Ok(done) };
        if !self.has_other_keys(current).await? {
            return Ok(done);
        }
        let mut write = self.write_as(WriteKind::Maintenance, "encrypt the sign-ins").await?;
        // SQLite leaves deleted bytes in the file otherwise.
        self.secure_delete(&mut write, "PRAGMA secure_delete = ON").await?;
        let rows = query(
            "SELECT purpose, owner, issuer, key_id, content FROM grants
             WHERE key_id IS NULL OR key_id <> $1",
        )
        .bind(current)
        .fetch_all(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        for row in rows {
            let again = again(&row, &ciphers).map_err(|error| write.fault(error))?;
            let Some((key, sealed)) = again else {
                done.locked += 1;
                continue;
            };
            query(
                "UPDATE grants SET key_id = $4, content = $5
                 WHERE purpose = $1 AND owner = $2 AND issuer = $3",
            )
            .bind(&key[0])
            .bind(&key[1])
            .bind(&key[2])
            .bind(sealed.key_id)
            .bind(sealed.bytes)
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
            done.changed += 1;
        }
        self.secure_delete(&mut write, "PRAGMA secure_delete = FAST").await?;
        write.commit().await?;
        if done.changed > 0 && !self.is_shared() {
            // The write-ahead log still has the earlier bytes.
            let truncated = query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.pool).await;
            truncated.map_err(|error| self.fault("encrypt the sign-ins", error))?;
        }
        Ok(done)
    }

    async fn secure_delete(
        &self,
        write: &mut Write,
        pragma: &'static str,
    ) -> Result<(), StoreError> {
        if self.is_shared() {
            return Ok(());
        }
        query(pragma).execute(write.on()).await.map_err(|error| write.fault(error))?;
        Ok(())
    }

    async fn has_other_keys(&self, current: &str) -> Result<bool, StoreError> {
        let found: Option<i64> = query_scalar(
            "SELECT CAST(1 AS BIGINT) FROM grants WHERE key_id IS NULL OR key_id <> $1 LIMIT 1",
        )
        .bind(current)
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.fault("read the sign-ins", error))?;
        Ok(found.is_some())
    }
}

/// The place of a row and its content with the current key; `None` if it cannot be decrypted.
fn again(
    row: &Row,
    ciphers: &GrantCiphers,
) -> Result<Option<([String; 3], SealedContent)>, sqlx::Error> {
    let key: [String; 3] = [row.try_get("purpose")?, row.try_get("owner")?, row.try_get("issuer")?];
    let stored = SealedContent { key_id: row.try_get("key_id")?, bytes: row.try_get("content")? };
    let Ok(purpose) = key[0].parse() else { return Ok(None) };
    let id = GrantId { purpose, owner: GrantOwner::from(key[1].as_str()) };
    let opened = ciphers.open(&id, &key[2], stored).ok();
    let sealed = opened.and_then(|content| ciphers.seal(&id, &key[2], &content));
    Ok(sealed.map(|sealed| (key, sealed)))
}
