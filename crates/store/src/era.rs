//! The protocol era of each server, so that a start need not probe it again.

use switchboard_model::{Era, ServerName};

use crate::rows::era_from_word;
use crate::statement::{query, query_scalar};
use crate::{Store, StoreError};

impl Store {
    /// Stores the era of a server. `fingerprint` identifies its endpoint; only the last era of a server is kept.
    pub async fn remember_era(
        &self,
        server: &ServerName,
        fingerprint: &str,
        era: Era,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("remember an era").await?;
        query(
            "INSERT INTO era_verdicts (server, fingerprint, era, decided_at_ms) VALUES ($1, $2, $3, $4)
             ON CONFLICT (server) DO UPDATE SET fingerprint = excluded.fingerprint, era = excluded.era,
                 decided_at_ms = excluded.decided_at_ms",
        )
        .bind(server.as_str())
        .bind(fingerprint)
        .bind(era.as_str())
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The era, if it was found for this endpoint at `not_older_than_ms` or later. A word that this version does not
    /// know counts as no era.
    pub async fn remembered_era(
        &self,
        server: &ServerName,
        fingerprint: &str,
        not_older_than_ms: i64,
    ) -> Result<Option<Era>, StoreError> {
        let word: Option<String> = query_scalar(
            "SELECT era FROM era_verdicts WHERE server = $1 AND fingerprint = $2 AND decided_at_ms >= $3",
        )
        .bind(server.as_str())
        .bind(fingerprint)
        .bind(not_older_than_ms)
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.fault("read an era", error))?;
        Ok(word.as_deref().and_then(era_from_word))
    }
}
