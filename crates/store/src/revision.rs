//! The catalog revision, which only increases, across all processes and restarts.

use crate::rows::{signed, unsigned};
use crate::statement::query_scalar;
use crate::{Store, StoreError};

impl Store {
    /// The revision of the catalog with this fingerprint: the current one if the fingerprint is the stored one, else
    /// the next. The first is 1. A catalog that returns after another one gets a new revision.
    pub async fn revision_for(&self, fingerprint: &str) -> Result<u64, StoreError> {
        let mut write = self.write("take a revision").await?;
        let revision: i64 = query_scalar(
            "INSERT INTO catalog_revision (singleton, revision, fingerprint) VALUES (1, 1, $1)
             ON CONFLICT (singleton) DO UPDATE SET
                 revision = catalog_revision.revision
                     + CASE WHEN catalog_revision.fingerprint = excluded.fingerprint THEN 0 ELSE 1 END,
                 fingerprint = excluded.fingerprint
             RETURNING revision",
        )
        .bind(fingerprint)
        .fetch_one(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(unsigned(revision))
    }

    /// Records that the catalog with this fingerprint was published with this revision. Returns the stored revision,
    /// which is larger if another process was ahead.
    pub async fn advance_revision(
        &self,
        fingerprint: &str,
        published: u64,
    ) -> Result<u64, StoreError> {
        let mut write = self.write("write a revision").await?;
        let revision: i64 = query_scalar(
            "INSERT INTO catalog_revision (singleton, revision, fingerprint) VALUES (1, $2, $1)
             ON CONFLICT (singleton) DO UPDATE SET
                 revision = CASE
                     WHEN catalog_revision.revision < excluded.revision THEN excluded.revision
                     WHEN catalog_revision.fingerprint = excluded.fingerprint THEN catalog_revision.revision
                     ELSE catalog_revision.revision + 1 END,
                 fingerprint = excluded.fingerprint
             RETURNING revision",
        )
        .bind(fingerprint)
        .bind(signed(published))
        .fetch_one(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(unsigned(revision))
    }
}
