//! Sessions and clients of many callers in one transaction.

use crate::clients::{delete_clients, put_clients, touch_clients};
use crate::sessions::{delete_sessions, put_sessions};
use crate::{SessionSnapshot, Store, StoreError, StoredClient, StoredSession};

/// What one transaction changes. Deletions come last: what is put and deleted in one batch is gone.
#[derive(Debug, Default)]
pub struct SessionBatch {
    pub snapshots: Vec<SessionSnapshot>,
    pub sessions: Vec<StoredSession>,
    pub clients: Vec<StoredClient>,
    /// Ids that clients have, and when they were last seen.
    pub touched_clients: Vec<(String, i64)>,
    pub deleted_clients: Vec<String>,
    pub deleted_sessions: Vec<String>,
}

impl SessionBatch {
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
            && self.sessions.is_empty()
            && self.clients.is_empty()
            && self.touched_clients.is_empty()
            && self.deleted_clients.is_empty()
            && self.deleted_sessions.is_empty()
    }
}

impl Store {
    /// Writes a batch, all of it or nothing.
    pub async fn write_sessions(&self, batch: &SessionBatch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut write = self.write("keep sessions").await?;
        let on = write.on();
        let written = async {
            put_sessions(on, &batch.sessions, &batch.snapshots).await?;
            put_clients(on, &batch.clients).await?;
            touch_clients(on, &batch.touched_clients).await?;
            delete_clients(on, &batch.deleted_clients).await?;
            delete_sessions(on, &batch.deleted_sessions).await
        };
        written.await.map_err(|error| write.fault(error))?;
        write.commit().await
    }
}
