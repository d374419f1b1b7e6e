//! Keeps and finds the records of turns, by which hidden rounds are put back.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use switchboard_splice::{RecordKey, Refusal, RefusalKind, TurnRecord};
use switchboard_store::{NewTurnRecord, Store, StoreError, StoreFailure, TurnRecordBounds};

/// How long a record is kept: an app that comes back later has the conversation without its hidden rounds.
const KEPT: Duration = Duration::from_hours(24);

const BOUNDS: TurnRecordBounds =
    TurnRecordBounds { owner_count: 2_000, owner_bytes: 64 << 20, total_bytes: 512 << 20 };

/// The records of the conversations of a principal in a session.
#[derive(Debug, Clone)]
pub(crate) struct TurnRecords {
    pub(crate) store: Store,
    pub(crate) owner: String,
    pub(crate) session: String,
}

impl TurnRecords {
    /// The records of these keys. A record that is missing, damaged or cannot be read is not an error: the conversation
    /// is then what the app sent.
    pub(crate) async fn find(&self, keys: &[RecordKey]) -> HashMap<RecordKey, TurnRecord> {
        if keys.is_empty() {
            return HashMap::new();
        }
        let wanted: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes().as_slice()).collect();
        let found = self.store.turn_records(&self.owner, &self.session, &wanted, now_ms()).await;
        let found = found.unwrap_or_else(|error| {
            let error = StoreFailure::from(error).in_full;
            tracing::warn!(
                session = self.session,
                error,
                "the hidden rounds of a conversation cannot be read"
            );
            Vec::new()
        });
        let by_bytes: HashMap<&[u8], RecordKey> =
            keys.iter().map(|key| (key.as_bytes().as_slice(), *key)).collect();
        let records = found.into_iter().filter_map(|(key, text)| {
            Some((*by_bytes.get(key.as_slice())?, TurnRecord::read(&text)?))
        });
        records.collect()
    }

    /// Deletes the name of a record. Returns whether there was one.
    pub(crate) async fn delete(&self, key: &RecordKey) -> Result<bool, Refusal> {
        let deleted = self.store.forget_turn_record(&self.owner, &self.session, key.as_bytes());
        deleted.await.map_err(|error| {
            let error = StoreFailure::from(error).in_full;
            tracing::warn!(session = self.session, error, "a stored answer cannot be deleted");
            Refusal::new(RefusalKind::Internal, "the store failed; the log says why")
        })
    }

    /// Keeps a record. A record that is too large is left out: the app's next request then lacks the hidden rounds.
    pub(crate) async fn keep(
        self,
        keys: Vec<RecordKey>,
        record: TurnRecord,
    ) -> Result<(), Refusal> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes().as_slice()).collect();
        let content = record.to_json();
        let now_ms = now_ms();
        let kept = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
        let new = NewTurnRecord {
            owner: &self.owner,
            session: &self.session,
            keys: &keys,
            content: &content,
            now_ms,
            expires_at_ms: now_ms.saturating_add(kept),
        };
        match self.store.keep_turn_record(&new, &BOUNDS).await {
            Ok(()) => Ok(()),
            Err(StoreError::TooLarge { bytes, .. }) => {
                tracing::warn!(
                    session = self.session,
                    bytes,
                    "the hidden rounds of an answer are too large to be kept: the app's next request goes on without them"
                );
                Ok(())
            }
            Err(error) => {
                let failure = StoreFailure::from(error);
                tracing::warn!(
                    session = self.session,
                    error = failure.in_full,
                    "an answer cannot be kept"
                );
                let text = "the calls of this answer could not be stored, so it was not finished; the log says why";
                Err(Refusal::new(RefusalKind::Internal, text))
            }
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
