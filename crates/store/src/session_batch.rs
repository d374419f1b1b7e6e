//! Changes of many sessions and clients in one transaction.

use std::collections::BTreeSet;

use crate::clients::{delete_clients, put_clients, touch_clients};
use crate::sessions::{delete_sessions, put_sessions, raise_versions};
use crate::{SessionSnapshot, Store, StoreError, StoredClient, StoredSession};

/// The changes of one transaction. Deletions come last: an entry that one batch stores and deletes is deleted.
#[derive(Debug, Default)]
pub struct SessionBatch {
    pub snapshots: Vec<SessionSnapshot>,
    pub sessions: Vec<StoredSession>,
    pub clients: Vec<StoredClient>,
    /// Plain client ids, and when they were last seen.
    pub touched_clients: Vec<(String, i64)>,
    /// Sessions whose clients have changed. Their versions go up, so that other boards look at their clients, too.
    pub sessions_of_clients: Vec<String>,
    pub deleted_clients: Vec<String>,
    pub deleted_sessions: Vec<String>,
}

impl SessionBatch {
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
            && self.sessions.is_empty()
            && self.clients.is_empty()
            && self.touched_clients.is_empty()
            && self.sessions_of_clients.is_empty()
            && self.deleted_clients.is_empty()
            && self.deleted_sessions.is_empty()
    }
}

impl Store {
    /// Writes a batch in one transaction. Returns the ids of the sessions that were superseded and therefore not stored, as
    /// [`Store::put_sessions`] does; the rest of the batch is stored all the same.
    pub async fn write_sessions(
        &self,
        batch: &SessionBatch,
    ) -> Result<BTreeSet<String>, StoreError> {
        if batch.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut write = self.write("keep sessions").await?;
        let on = write.on();
        let written = async {
            let superseded = put_sessions(on, &batch.sessions, &batch.snapshots).await?;
            put_clients(on, &batch.clients).await?;
            touch_clients(on, &batch.touched_clients).await?;
            raise_versions(on, &batch.sessions_of_clients).await?;
            delete_clients(on, &batch.deleted_clients).await?;
            delete_sessions(on, &batch.deleted_sessions).await?;
            Ok(superseded)
        };
        let superseded = written.await.map_err(|error: sqlx::Error| write.fault(error))?;
        write.commit().await?;
        Ok(superseded)
    }
}
