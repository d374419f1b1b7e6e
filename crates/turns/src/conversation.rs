//! The stored conversation of a session.

use switchboard_chat::{Broken, History, Message, ToolReturn, answer_dangling, check};
use switchboard_store::Store;

use crate::TurnError;

/// A conversation as it was read, and how much of it is stored as it is here.
#[derive(Debug)]
pub(crate) struct StoredConversation {
    store: Store,
    session: String,
    /// How many messages the store has.
    stored: usize,
    /// What is stored is not how it begins here.
    is_torn: bool,
}

impl StoredConversation {
    /// Reads what a session has said. Calls that were interrupted are answered, with the results that came before the
    /// interruption where there are some: those answers are new, and kept with the next messages.
    pub(crate) async fn read(
        store: &Store,
        session: &str,
    ) -> Result<(Self, Vec<Message>), TurnError> {
        // Before the messages: results that become messages meanwhile are found there.
        let results = store.call_results(session).await?;
        let texts = store.messages(session).await?;
        let mut messages = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let message = serde_json::from_str(text)
                .map_err(|error| TurnError::Damaged { index, reason: error.to_string() })?;
            messages.push(message);
        }
        let stored = messages.len();
        // An interrupted conversation ends with calls. One that is broken before its end is stored anew.
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

    /// One that is to be replaced, whatever it is: also one that cannot be read any more.
    pub(crate) async fn unread(store: &Store, session: &str) -> Result<Self, TurnError> {
        let stored = store.messages(session).await?.len();
        Ok(Self { store: store.clone(), session: session.to_owned(), stored, is_torn: false })
    }

    /// Stores what is new.
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

    /// Stores the result of a call while others of the same reply still run.
    pub(crate) async fn keep_result(&self, result: &ToolReturn) -> Result<(), TurnError> {
        let text =
            serde_json::to_string(result).map_err(|error| TurnError::Store(error.to_string()))?;
        Ok(self.store.keep_call_result(&self.session, &result.call, &text).await?)
    }

    /// Stores a whole conversation in the place of the one that was read.
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

/// What a session has said, whole and valid.
pub(crate) async fn history(store: &Store, session: &str) -> Result<History, TurnError> {
    let (_, messages) = StoredConversation::read(store, session).await?;
    Ok(History::new(messages))
}

fn written(messages: &[Message]) -> Result<Vec<String>, TurnError> {
    let texts = messages.iter().map(serde_json::to_string);
    texts.collect::<Result<_, _>>().map_err(|error| TurnError::Store(error.to_string()))
}
