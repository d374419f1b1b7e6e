//! The catalog revision, which only ever grows, over all processes and restarts.

use crate::rows::{signed, unsigned};
use crate::{Store, StoreError};

impl Store {
    /// The revision of the catalog with this fingerprint: the last one if it is the same catalog as last time,
    /// else the next. The first is 1. A catalog that comes back after another one gets a new revision.
    pub async fn revision_for(&self, fingerprint: &str) -> Result<u64, StoreError> {
        let mut write = self.write("take a revision").await?;
        let revision: i64 = sqlx::query_scalar(
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

    /// Notes that the catalog with this fingerprint was published with this revision, and gives the revision that is
    /// stored then: a larger one where another process was ahead.
    pub async fn advance_revision(
        &self,
        fingerprint: &str,
        published: u64,
    ) -> Result<u64, StoreError> {
        let mut write = self.write("write a revision").await?;
        let revision: i64 = sqlx::query_scalar(
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
