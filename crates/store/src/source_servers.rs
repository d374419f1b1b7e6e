//! The last known servers of sources, so that a source that is away at the next start costs none of them.

use switchboard_model::FoundServer;

use crate::rows::{found_servers_from_json, found_servers_json};
use crate::statement::{query, query_scalar};
use crate::{Store, StoreError};

/// How many sources are remembered. A source that was removed from the configuration keeps its row until then.
const MOST_SOURCES: i64 = 1000;

const PRUNE: &str = "DELETE FROM source_servers WHERE source NOT IN
     (SELECT source FROM source_servers ORDER BY seen_at_ms DESC, source LIMIT $1)";

impl Store {
    /// Replaces the remembered servers of a source. `fingerprint` identifies its settings.
    pub async fn remember_source_servers(
        &self,
        source: &str,
        fingerprint: &str,
        servers: &[FoundServer],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("remember the servers of a source").await?;
        query(
            "INSERT INTO source_servers (source, fingerprint, servers, seen_at_ms) VALUES ($1, $2, $3, $4)
             ON CONFLICT (source) DO UPDATE SET fingerprint = excluded.fingerprint, servers = excluded.servers,
                 seen_at_ms = excluded.seen_at_ms",
        )
        .bind(source)
        .bind(fingerprint)
        .bind(found_servers_json(servers))
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        let prune = query(PRUNE).bind(MOST_SOURCES);
        prune.execute(write.on()).await.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The remembered servers of a source with these settings; `None` if there are none. A server that this version cannot
    /// read is left out.
    pub async fn remembered_source_servers(
        &self,
        source: &str,
        fingerprint: &str,
    ) -> Result<Option<Vec<FoundServer>>, StoreError> {
        let servers: Option<String> = query_scalar(
            "SELECT servers FROM source_servers WHERE source = $1 AND fingerprint = $2",
        )
        .bind(source)
        .bind(fingerprint)
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.fault("read the servers of a source", error))?;
        Ok(servers.map(|servers| found_servers_from_json(&servers)))
    }
}
