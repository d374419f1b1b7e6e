//! Grants: the results of sign-ins, one row for each purpose, owner and issuer, and what the next sign-in must request.
//!
//! Contents are opaque here and are encrypted if there is a key (`grant_cipher`). A row that cannot be decrypted is
//! never overwritten; only [`Store::forget_grants`] removes it.
//!
//! Renewal over processes: [`Store::begin_renewal`] gives the turn to one process, [`Store::finish_renewal`] writes the
//! renewed content if the row is still the one that was renewed. Both are single statements.

use switchboard_model::{GrantId, GrantOwner, GrantPurpose, RenewalTurn, Secret};

use crate::grant_cipher::{GrantCiphers, GrantLock, SealedContent};
use crate::row::Row;
use crate::statement::{query, query_scalar};
use crate::store::Write;
use crate::{Store, StoreError};

/// How long the turn of a renewal lasts.
pub const RENEWAL_TURN_MS: i64 = 20_000;

/// A stored grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    pub id: GrantId,
    pub issuer: String,
    pub content: Result<Secret, GrantLock>,
    pub is_encrypted: bool,
    /// Grows with every change of the content.
    pub version: i64,
    pub renewing_until_ms: i64,
    pub updated_at_ms: i64,
}

/// The result of [`Store::reencrypt_grants`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReencryptedGrants {
    pub changed: usize,
    /// Grants whose key is not configured, or that were changed from outside. They stay as they are.
    pub locked: usize,
}

impl Store {
    /// The grant of the last sign-in or, with an issuer, of the one at that issuer.
    pub async fn grant(
        &self,
        id: &GrantId,
        issuer: Option<&str>,
    ) -> Result<Option<GrantRow>, StoreError> {
        let row = query(
            "SELECT * FROM grants WHERE purpose = $1 AND owner = $2 AND ($3 IS NULL OR issuer = $3)
             ORDER BY updated_at_ms DESC, issuer LIMIT 1",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.fault("read a sign-in", error))?;
        let ciphers = self.grant_keys.ciphers();
        let row = row.map(|row| grant_from_row(&row, &ciphers)).transpose();
        row.map_err(|error| self.fault("read a sign-in", error))
    }

    /// All grants, ordered by purpose, owner and issuer.
    pub async fn grants(&self) -> Result<Vec<GrantRow>, StoreError> {
        let ciphers = self.grant_keys.ciphers();
        query("SELECT * FROM grants ORDER BY purpose, owner, issuer")
            .try_map(|row: Row| grant_from_row(&row, &ciphers))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read the sign-ins", error))
    }

    /// Stores the result of a sign-in, in place of an earlier one at the same issuer, and ends the need for one.
    pub async fn save_grant(
        &self,
        id: &GrantId,
        issuer: &str,
        content: &Secret,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let sealed = self.seal(id, issuer, content)?;
        let mut write = self.write("keep a sign-in").await?;
        self.check_key(&mut write, id, issuer).await?;
        query(
            "INSERT INTO grants (purpose, owner, issuer, key_id, content, version, updated_at_ms)
             VALUES ($1, $2, $3, $4, $5, 1, $6)
             ON CONFLICT (purpose, owner, issuer) DO UPDATE SET key_id = excluded.key_id,
                 content = excluded.content, version = grants.version + 1, renewing_until_ms = 0,
                 updated_at_ms = excluded.updated_at_ms",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .bind(sealed.key_id)
        .bind(sealed.bytes)
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        forget_need(&mut write, id).await?;
        write.commit().await
    }

    /// Takes the turn to renew the grant that had this version. `abandoned` is the end of a turn whose holder was
    /// watched for longer than a turn lasts without an effect: such a turn is taken over, whatever the clock says. The
    /// clock is that of the database: a board whose clock is wrong would end the turns of others.
    pub async fn begin_renewal(
        &self,
        id: &GrantId,
        issuer: &str,
        version: i64,
        abandoned: Option<i64>,
    ) -> Result<RenewalTurn, StoreError> {
        // Renewed tokens that cannot be kept would be lost: everything is checked before the issuer is asked.
        self.check_clear_text(id)?;
        let mut write = self.write("begin to renew a sign-in").await?;
        self.check_key(&mut write, id, issuer).await?;
        let now_ms = async { self.clock().fetch_one(write.on()).await?.try_get("now_ms") }.await;
        let now_ms: i64 = now_ms.map_err(|error| write.fault(error))?;
        let taken: Option<i64> = query_scalar(
            "UPDATE grants SET renewing_until_ms = $5 + $6
             WHERE purpose = $1 AND owner = $2 AND issuer = $3 AND version = $4
                 AND (renewing_until_ms < $5 OR renewing_until_ms = $7)
             RETURNING renewing_until_ms",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .bind(version)
        .bind(now_ms)
        .bind(RENEWAL_TURN_MS)
        .bind(abandoned)
        .fetch_optional(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        if taken.is_some() {
            write.commit().await?;
            return Ok(RenewalTurn::Taken);
        }
        let held: Option<i64> = query_scalar(
            "SELECT renewing_until_ms FROM grants
             WHERE purpose = $1 AND owner = $2 AND issuer = $3 AND version = $4",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .bind(version)
        .fetch_optional(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.roll_back().await?;
        Ok(held.map_or(RenewalTurn::Changed, |until_ms| RenewalTurn::Held { until_ms }))
    }

    /// Writes the renewed content and ends the turn, if the grant still has this version. Returns whether it had.
    pub async fn finish_renewal(
        &self,
        id: &GrantId,
        issuer: &str,
        version: i64,
        content: &Secret,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let sealed = self.seal(id, issuer, content)?;
        let mut write = self.write("keep a renewed sign-in").await?;
        let kept = query(
            "UPDATE grants SET key_id = $5, content = $6, version = version + 1, renewing_until_ms = 0,
                 updated_at_ms = $7
             WHERE purpose = $1 AND owner = $2 AND issuer = $3 AND version = $4",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .bind(version)
        .bind(sealed.key_id)
        .bind(sealed.bytes)
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(kept > 0)
    }

    /// Ends a turn without a result.
    pub async fn end_renewal(
        &self,
        id: &GrantId,
        issuer: &str,
        version: i64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("end the renewal of a sign-in").await?;
        query(
            "UPDATE grants SET renewing_until_ms = 0
             WHERE purpose = $1 AND owner = $2 AND issuer = $3 AND version = $4",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .bind(version)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// Deletes all grants of this purpose and owner, and the need for a sign-in. Returns whether there were any grants.
    pub async fn forget_grants(&self, id: &GrantId) -> Result<bool, StoreError> {
        let mut write = self.write("forget a sign-in").await?;
        let gone = query("DELETE FROM grants WHERE purpose = $1 AND owner = $2")
            .bind(id.purpose.to_string())
            .bind(id.owner.to_string())
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
        forget_need(&mut write, id).await?;
        write.commit().await?;
        Ok(gone > 0)
    }

    /// Why a sign-in is required, and what it must request; `None` if none is.
    pub async fn grant_need(&self, id: &GrantId) -> Result<Option<String>, StoreError> {
        query_scalar("SELECT content FROM grant_needs WHERE purpose = $1 AND owner = $2")
            .bind(id.purpose.to_string())
            .bind(id.owner.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.fault("read what a sign-in has to request", error))
    }

    /// Notes that a sign-in is required.
    pub async fn need_grant(&self, id: &GrantId, need: &str) -> Result<(), StoreError> {
        let mut write = self.write("note that a sign-in is required").await?;
        query(
            "INSERT INTO grant_needs (purpose, owner, content) VALUES ($1, $2, $3)
             ON CONFLICT (purpose, owner) DO UPDATE SET content = excluded.content",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(need)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }

    fn seal(
        &self,
        id: &GrantId,
        issuer: &str,
        content: &Secret,
    ) -> Result<SealedContent, StoreError> {
        self.check_clear_text(id)?;
        let sealed = self.grant_keys.ciphers().seal(id, issuer, content);
        sealed.ok_or_else(|| StoreError::NotEncrypted {
            database: self.location(),
            grant: id.to_string(),
        })
    }

    fn check_clear_text(&self, id: &GrantId) -> Result<(), StoreError> {
        if self.grant_keys.may_write() {
            return Ok(());
        }
        let (database, grant) = (self.location(), id.to_string());
        Err(StoreError::ClearText { database, grant })
    }

    /// Refuses to replace a content that cannot be decrypted.
    async fn check_key(
        &self,
        write: &mut Write,
        id: &GrantId,
        issuer: &str,
    ) -> Result<(), StoreError> {
        let present: Option<Option<String>> = query_scalar(
            "SELECT key_id FROM grants WHERE purpose = $1 AND owner = $2 AND issuer = $3",
        )
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .bind(issuer)
        .fetch_optional(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        let unknown = present.flatten().filter(|key_id| !self.grant_keys.ciphers().knows(key_id));
        unknown.map_or(Ok(()), |key_id| Err(self.locked(id, GrantLock::UnknownKey(key_id))))
    }

    /// The error for a grant that cannot be decrypted.
    pub fn locked(&self, id: &GrantId, lock: GrantLock) -> StoreError {
        StoreError::GrantLocked { database: self.location(), grant: id.to_string(), lock }
    }
}

async fn forget_need(write: &mut Write, id: &GrantId) -> Result<(), StoreError> {
    query("DELETE FROM grant_needs WHERE purpose = $1 AND owner = $2")
        .bind(id.purpose.to_string())
        .bind(id.owner.to_string())
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
    Ok(())
}

pub(crate) fn grant_from_row(row: &Row, ciphers: &GrantCiphers) -> Result<GrantRow, sqlx::Error> {
    let purpose: String = row.try_get("purpose")?;
    let purpose: GrantPurpose = purpose.parse().map_err(|_| sqlx::Error::ColumnDecode {
        index: "purpose".into(),
        source: "unknown purpose of a grant".into(),
    })?;
    let owner: String = row.try_get("owner")?;
    let id = GrantId { purpose, owner: GrantOwner::from(owner.as_str()) };
    let issuer: String = row.try_get("issuer")?;
    let stored = SealedContent { key_id: row.try_get("key_id")?, bytes: row.try_get("content")? };
    let is_encrypted = stored.key_id.is_some();
    Ok(GrantRow {
        content: ciphers.open(&id, &issuer, stored),
        id,
        issuer,
        is_encrypted,
        version: row.try_get("version")?,
        renewing_until_ms: row.try_get("renewing_until_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
    })
}
