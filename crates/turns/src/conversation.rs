//! The stored conversation of a session.

use switchboard_chat::{Broken, History, Message, ToolReturn, answer_dangling, check};
use switchboard_store::Store;

use crate::TurnError;

/// A conversation in memory, and how much of it is stored unchanged.
#[derive(Debug)]
pub(crate) struct StoredConversation {
    store: Store,
    session: String,
    /// Number of messages in the store.
    stored: usize,
    /// Whether the stored messages differ from the beginning of those in memory.
    is_torn: bool,
}

impl StoredConversation {
    /// Reads the conversation of a session. Interrupted calls are answered, with their results where some were stored
    /// before the interruption: these messages are new, and are stored with the next ones.
    pub(crate) async fn read(
        store: &Store,
        session: &str,
    ) -> Result<(Self, Vec<Message>), TurnError> {
        // Read before the messages: results that become messages in between are found there.
        let results = store.call_results(session).await?;
        let texts = store.messages(session).await?;
        let mut messages = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let message = serde_json::from_str(text)
                .map_err(|error| TurnError::Damaged { index, reason: error.to_string() })?;
            messages.push(message);
        }
        let stored = messages.len();
        // An interrupted conversation ends with calls. A conversation that is broken before its end is stored again as
        // a whole.
        let is_torn = matches!(check(&messages), Err(Broken::Between { .. }));
        if let Some(Message::Assistant(reply)) = messages.last() {
            let results = results.iter().filter_map(|text| serde_json::from_str(text).ok());
            let of_reply = |result: &ToolReturn| reply.calls().any(|call| call.id == result.call);
            let results: Vec<_> = results.filter(of_reply).map(Message::Tool).collect();
            messages.extend(results);
        }
        answer_dangling(&mut messages);
        let session = session.to_owned();
        let conversation = Self { store: store.clone(), session, stored, is_torn };
        Ok((conversation, messages))
    }

    /// A conversation that is going to be replaced, even if it cannot be read.
    pub(crate) async fn unread(store: &Store, session: &str) -> Result<Self, TurnError> {
        let stored = store.messages(session).await?.len();
        Ok(Self { store: store.clone(), session: session.to_owned(), stored, is_torn: false })
    }

    /// Stores the new messages.
    pub(crate) async fn keep(&mut self, messages: &[Message]) -> Result<(), TurnError> {
        if self.is_torn {
            return self.replace(messages).await;
        }
        let new = messages.get(self.stored..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        let texts = written(new)?;
        let expected = u64::try_from(self.stored).unwrap_or(u64::MAX);
        if !self.store.append_messages(&self.session, expected, &texts).await? {
            return Err(TurnError::Raced);
        }
        self.stored = messages.len();
        Ok(())
    }

    /// Stores the result of a call while others of the same reply are running.
    pub(crate) async fn keep_result(&self, result: &ToolReturn) -> Result<(), TurnError> {
        let text =
            serde_json::to_string(result).map_err(|error| TurnError::Store(error.to_string()))?;
        Ok(self.store.keep_call_result(&self.session, &result.call, &text).await?)
    }

    /// Replaces the stored conversation.
    pub(crate) async fn replace(&mut self, messages: &[Message]) -> Result<(), TurnError> {
        let texts = written(messages)?;
        let expected = u64::try_from(self.stored).unwrap_or(u64::MAX);
        if !self.store.replace_messages(&self.session, expected, &texts).await? {
            return Err(TurnError::Raced);
        }
        (self.stored, self.is_torn) = (messages.len(), false);
        Ok(())
    }
}

/// The complete conversation of a session, validated.
pub(crate) async fn history(store: &Store, session: &str) -> Result<History, TurnError> {
    let (_, messages) = StoredConversation::read(store, session).await?;
    Ok(History::new(messages))
}

fn written(messages: &[Message]) -> Result<Vec<String>, TurnError> {
    let texts = messages.iter().map(serde_json::to_string);
    texts.collect::<Result<_, _>>().map_err(|error| TurnError::Store(error.to_string()))
}
