//! The messages of a session, and results of calls that are not part of a message yet.

use crate::backend::Transaction;
use crate::rows::signed;
use crate::statement::{Statement, query, query_scalar};
use crate::{Store, StoreError};

impl Store {
    /// Appends messages to those of a session. `expected` is the number of messages that it has. If the number differs,
    /// another process has written in the meantime: nothing is stored and `false` is returned.
    pub async fn append_messages(
        &self,
        session: &str,
        expected: u64,
        messages: &[String],
    ) -> Result<bool, StoreError> {
        let mut write = self.write("keep messages").await?;
        write.lock(session_row(session)).await?;
        let count: i64 = query_scalar("SELECT COUNT(*) FROM session_messages WHERE session = $1")
            .bind(session)
            .fetch_one(write.on())
            .await
            .map_err(|error| write.fault(error))?;
        if count != signed(expected) {
            write.roll_back().await?;
            return Ok(false);
        }
        let put = put_messages(write.on(), session, count, messages).await;
        put.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(true)
    }

    /// Replaces the messages of a session. `expected` is the number of messages that it has. If the number differs,
    /// another process has written in the meantime: nothing is stored and `false` is returned.
    pub async fn replace_messages(
        &self,
        session: &str,
        expected: u64,
        messages: &[String],
    ) -> Result<bool, StoreError> {
        let mut write = self.write("replace messages").await?;
        write.lock(session_row(session)).await?;
        let deleted = query("DELETE FROM session_messages WHERE session = $1")
            .bind(session)
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
        if deleted != expected {
            write.roll_back().await?;
            return Ok(false);
        }
        let put = put_messages(write.on(), session, 0, messages).await;
        put.map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(true)
    }

    /// The messages of a session, in order.
    pub async fn messages(&self, session: &str) -> Result<Vec<String>, StoreError> {
        query_scalar("SELECT message FROM session_messages WHERE session = $1 ORDER BY position")
            .bind(session)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read messages", error))
    }

    /// Stores the result of a call while other calls of the same reply are running, until the next messages are stored.
    pub async fn keep_call_result(
        &self,
        session: &str,
        call: &str,
        result: &str,
    ) -> Result<(), StoreError> {
        let mut write = self.write("keep the result of a call").await?;
        query(
            "INSERT INTO session_call_results (session, call_id, result) VALUES ($1, $2, $3)
             ON CONFLICT (session, call_id) DO UPDATE SET result = excluded.result",
        )
        .bind(session)
        .bind(call)
        .bind(result)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// The call results of a session that are not part of its messages yet.
    pub async fn call_results(&self, session: &str) -> Result<Vec<String>, StoreError> {
        query_scalar("SELECT result FROM session_call_results WHERE session = $1 ORDER BY call_id")
            .bind(session)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.fault("read results of calls", error))
    }
}

/// The row of a session, which is locked while its messages are counted and changed.
fn session_row(session: &str) -> Statement<'_> {
    query("SELECT id FROM sessions WHERE id = $1 FOR UPDATE").bind(session)
}

/// Stores messages from a position on. Deletes the separately stored call results: the messages contain them, or they
/// are obsolete.
async fn put_messages(
    on: &mut Transaction,
    session: &str,
    first: i64,
    messages: &[String],
) -> Result<(), sqlx::Error> {
    query("DELETE FROM session_call_results WHERE session = $1")
        .bind(session)
        .execute(&mut *on)
        .await?;
    for (position, message) in (first..).zip(messages) {
        query("INSERT INTO session_messages (session, position, message) VALUES ($1, $2, $3)")
            .bind(session)
            .bind(position)
            .bind(message)
            .execute(&mut *on)
            .await?;
    }
    Ok(())
}
