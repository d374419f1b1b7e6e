//! Records of content checks and of received chat messages: bounded when they are written, read newest first.

use switchboard_model::{CanonicalName, ContentCheckRecord};

use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::rows::{check_from_row, nanoseconds, signed};
use crate::statement::query;
use crate::{Store, StoreError};

const INSERT: &str = "INSERT INTO content_checks
     (id, at_ms, hook, verdict, blocked, reason, principal, conversation, message, server, tool, messages, bytes, took_ns)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (id) DO NOTHING";

/// Keeps the newest ones: ids begin with the time.
const PRUNE: &str = "DELETE FROM content_checks WHERE id <=
     (SELECT id FROM content_checks ORDER BY id DESC LIMIT 1 OFFSET $1)";

/// Selects records of content checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentCheckFilter {
    /// Maximum number of records.
    pub limit: u32,
    /// Only records of this session or conversation.
    pub conversation: Option<String>,
    /// Only records older than this one, which is the last of the previous page.
    pub before: Option<String>,
}

impl Store {
    /// Stores a record, and deletes the oldest ones beyond `most`.
    pub async fn record_content_check(
        &self,
        record: &ContentCheckRecord,
        most: u64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("record a content check").await?;
        // The limits hold after every commit, also where replicas write at the same time.
        write.lock_writers("content_checks").await?;
        let insert = query(INSERT)
            .bind(&record.id)
            .bind(record.at_ms)
            .bind(record.hook.as_str())
            .bind(&record.verdict)
            .bind(i64::from(record.blocked))
            .bind(record.reason.as_deref())
            .bind(record.principal.as_deref())
            .bind(record.conversation.as_deref())
            .bind(&record.message)
            .bind(record.tool.as_ref().map(|tool| tool.server().as_str()))
            .bind(record.tool.as_ref().map(CanonicalName::as_str))
            .bind(signed(record.messages))
            .bind(signed(record.bytes))
            .bind(nanoseconds(record.took));
        insert.execute(write.on()).await.map_err(|error| write.fault(error))?;
        let prune = query(PRUNE).bind(signed(most));
        prune.execute(write.on()).await.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The records that match the filter, newest first. A hook that only a newer version knows is
    /// [`StoreError::Unreadable`].
    pub async fn content_checks(
        &self,
        filter: &ContentCheckFilter,
    ) -> Result<Vec<ContentCheckRecord>, StoreError> {
        let mut query = QueryBuilder::new("SELECT * FROM content_checks WHERE 1 = 1");
        if let Some(conversation) = &filter.conversation {
            query.push(" AND conversation = ").push_bind(conversation);
        }
        if let Some(before) = &filter.before {
            query.push(" AND id < ").push_bind(before);
        }
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(filter.limit));
        query
            .build()
            .try_map(|row: Row| check_from_row(&row))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read content checks", error))
    }
}
