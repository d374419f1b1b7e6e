//! Edits of a conversation that apply to the requests of one turn: messages are inserted, deleted or replaced. The
//! stored conversation stays unchanged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Broken, Message, check};

/// Maximum number of edits.
const MAX_EDITS: usize = 256;

/// One edit. Its index is that of a stored message, independent of other edits; a negative index counts from the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "op",
    rename_all = "snake_case",
    deny_unknown_fields,
    expecting = "an edit such as {\"op\": \"delete_at\", \"index\": 0}"
)]
pub enum Edit {
    InsertBefore { index: i64, message: Message },
    InsertAfter { index: i64, message: Message },
    DeleteAt { index: i64 },
    ReplaceAt { index: i64, message: Message },
}

/// Why an overlay is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    #[error("edits[{edit}]: there is no message {index}; the conversation has {count}")]
    NoMessage { edit: usize, index: i64, count: usize },
    #[error("edits[{edit}]: message {index} is deleted or replaced twice")]
    Twice { edit: usize, index: i64 },
    #[error(
        "edits[{edit}]: {reason}; a call and its results stay together, with nothing between them"
    )]
    Torn { edit: usize, reason: Broken },
    #[error("the conversation would not be valid: {0}")]
    Broken(Broken),
    #[error("the conversation would have no message of a user")]
    Empty,
    #[error(
        "the conversation would end with an answer; it must end with what the model is to answer"
    )]
    EndsWithAnswer,
    #[error("there are {0} edits; the maximum is {MAX_EDITS}")]
    TooMany(usize),
}

/// The edits of one turn. Their positions are fixed when it starts; messages that the turn adds follow all edits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overlay {
    before: BTreeMap<usize, Vec<Message>>,
    after: BTreeMap<usize, Vec<Message>>,
    instead: BTreeMap<usize, Option<Message>>,
}

impl Overlay {
    /// Resolves the positions of edits and checks that the edited conversation is valid.
    pub fn new(messages: &[Message], edits: Vec<Edit>) -> Result<Self, OverlayError> {
        if edits.len() > MAX_EDITS {
            return Err(OverlayError::TooMany(edits.len()));
        }
        let mut overlay = Self::default();
        let count = messages.len();
        let mut authors = BTreeMap::new();
        for (edit, change) in edits.into_iter().enumerate() {
            let (Edit::InsertBefore { index, .. }
            | Edit::InsertAfter { index, .. }
            | Edit::DeleteAt { index }
            | Edit::ReplaceAt { index, .. }) = change;
            let place = usize::try_from(index)
                .ok()
                .or_else(|| count.checked_sub(usize::try_from(index.unsigned_abs()).ok()?))
                .filter(|place| *place < count)
                .ok_or(OverlayError::NoMessage { edit, index, count })?;
            authors.insert(place, edit);
            match change {
                Edit::InsertBefore { message, .. } => {
                    overlay.before.entry(place).or_default().push(message);
                }
                Edit::InsertAfter { message, .. } => {
                    overlay.after.entry(place).or_default().push(message);
                }
                Edit::DeleteAt { .. } | Edit::ReplaceAt { .. } => {
                    let instead = match change {
                        Edit::ReplaceAt { message, .. } => Some(message),
                        _ => None,
                    };
                    if overlay.instead.insert(place, instead).is_some() {
                        return Err(OverlayError::Twice { edit, index });
                    }
                }
            }
        }
        let view = overlay.lay_over(messages);
        overlay.judge(messages, &view, &authors)?;
        Ok(overlay)
    }

    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.instead.is_empty()
    }

    /// Applies the edits to a conversation.
    pub fn lay_over(&self, messages: &[Message]) -> Vec<Message> {
        let mut shown = Vec::with_capacity(messages.len());
        for (place, message) in messages.iter().enumerate() {
            shown.extend(self.before.get(&place).into_iter().flatten().cloned());
            match self.instead.get(&place) {
                Some(instead) => shown.extend(instead.clone()),
                None => shown.push(message.clone()),
            }
            shown.extend(self.after.get(&place).into_iter().flatten().cloned());
        }
        shown
    }

    fn judge(
        &self,
        messages: &[Message],
        view: &[Message],
        authors: &BTreeMap<usize, usize>,
    ) -> Result<(), OverlayError> {
        if let Err(reason) = check(view) {
            // Blames an edit that breaks the conversation on its own.
            let alone = |place: &usize| {
                let one = self.part_at(*place);
                check(&one.lay_over(messages)).is_err()
            };
            let blamed = authors.iter().find(|(place, _)| alone(place));
            return Err(match blamed {
                Some((_, edit)) => OverlayError::Torn { edit: *edit, reason },
                None => OverlayError::Broken(reason),
            });
        }
        let is_user = |message: &Message| matches!(message, Message::User(_));
        if !view.iter().any(is_user) {
            return Err(OverlayError::Empty);
        }
        match view.last() {
            Some(Message::User(_) | Message::Tool(_)) => Ok(()),
            Some(Message::Assistant(_) | Message::System(_)) | None => {
                Err(OverlayError::EndsWithAnswer)
            }
        }
    }

    /// Only the edits at one position.
    fn part_at(&self, place: usize) -> Self {
        fn at<T: Clone>(all: &BTreeMap<usize, T>, place: usize) -> BTreeMap<usize, T> {
            all.get(&place).map(|one| (place, one.clone())).into_iter().collect()
        }
        Self {
            before: at(&self.before, place),
            after: at(&self.after, place),
            instead: at(&self.instead, place),
        }
    }
}
