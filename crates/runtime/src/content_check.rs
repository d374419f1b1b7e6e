//! What a content check is given, and the trait of the services that judge it.

use std::fmt::Debug;

use futures::future::BoxFuture;
use switchboard_model::{CheckHook, ContentVerdict};

/// Maximum size of the texts of one check. Older messages are left out to stay below it. What must be checked is never cut:
/// if it is larger, there is no verdict.
pub const MAX_CHECKED_BYTES: usize = 1 << 20;

/// Judges content before it goes on.
pub trait ContentCheck: Send + Sync + Debug {
    /// The verdict about the input. The caller limits the time; dropping the future abandons the check.
    fn check(&self, input: CheckInput) -> BoxFuture<'static, ContentVerdict>;
}

/// What is checked. Nothing in it is redacted: the implementation that sends it to another place redacts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckInput {
    pub hook: CheckHook,
    /// Identifies the conversation: the session, or the call if there is none.
    pub conversation: String,
    /// Identifies the turn or the call.
    pub message: String,
    /// The last message of the user. Without a conversation it is the content itself.
    pub user_message: String,
    /// Earlier messages, oldest first. They help to judge the content and may be left out.
    pub context: Vec<CheckedMessage>,
    /// The content to be judged.
    pub content: Vec<CheckedMessage>,
}

/// A message as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedMessage {
    pub role: CheckedRole,
    pub text: String,
}

/// The author of a message. Calls of a model and results of tools belong to the assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedRole {
    User,
    Assistant,
    System,
}

impl CheckedMessage {
    pub fn new(role: CheckedRole, text: impl Into<String>) -> Self {
        Self { role, text: text.into() }
    }
}

/// The conversation in which a model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedConversation {
    /// Identifies the turn.
    pub message: String,
    /// The last message of the user.
    pub user_message: String,
    /// The messages so far, oldest first.
    pub messages: Vec<CheckedMessage>,
}

impl CheckInput {
    /// The size of all texts.
    pub fn bytes(&self) -> usize {
        size(&self.context) + self.required_bytes()
    }

    /// The number of messages.
    pub fn messages(&self) -> usize {
        self.context.len() + self.content.len()
    }

    fn required_bytes(&self) -> usize {
        size(&self.content) + self.user_message.len()
    }

    /// Leaves out the oldest messages of the context until the rest fits. The error is the size of what cannot be left out.
    pub(crate) fn bounded(mut self, most: usize) -> Result<Self, usize> {
        let required = self.required_bytes();
        let mut free = most.checked_sub(required).ok_or(required)?;
        let kept = self.context.iter().rev().take_while(|message| {
            let left = free.checked_sub(message.text.len());
            free = left.unwrap_or_default();
            left.is_some()
        });
        let excess = self.context.len() - kept.count();
        self.context.drain(..excess);
        Ok(self)
    }
}

fn size(messages: &[CheckedMessage]) -> usize {
    messages.iter().map(|message| message.text.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(context: &[&str], content: &str, most: usize, expected: Result<&[&str], usize>) {
        let message = |text: &&str| CheckedMessage::new(CheckedRole::User, *text);
        let input = CheckInput {
            hook: CheckHook::BeforeModel,
            conversation: "c".into(),
            message: "m".into(),
            user_message: "hi".into(),
            context: context.iter().map(message).collect(),
            content: vec![message(&content)],
        };
        let bounded = input.bounded(most).map(|input| {
            assert_eq!(input.messages(), input.context.len() + 1);
            assert!(input.bytes() <= most);
            input.context.into_iter().map(|message| message.text).collect::<Vec<_>>()
        });
        let expected = expected.map(|texts| texts.iter().map(ToString::to_string).collect());
        assert_eq!(bounded, expected);
    }

    #[test]
    fn the_oldest_messages_are_left_out_and_the_content_never() {
        check(&["aaa", "bb", "c"], "xx", 100, Ok(&["aaa", "bb", "c"]));
        check(&["aaa", "bb", "c"], "xx", 10, Ok(&["aaa", "bb", "c"]));
        check(&["aaa", "bb", "c"], "xx", 9, Ok(&["bb", "c"]));
        check(&["a", "bbbb", "c"], "xx", 7, Ok(&["c"]));
        check(&["a"], "xx", 4, Ok(&[]));
        check(&["a"], "xx", 3, Err(4));
        check(&[], "", 2, Ok(&[]));
    }
}
