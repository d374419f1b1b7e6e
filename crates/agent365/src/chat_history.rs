//! The models of a chat message that is reported to a threat-protection endpoint, and their JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The instructions of the agent.
    System,
}

impl ChatRole {
    /// The word of the wire format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// A message or request that the endpoint would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChatMessage {
    /// A message of the history without text.
    #[error("content cannot be empty or whitespace")]
    BlankContent,
    /// A required member of a request without text; its name in the JSON.
    #[error("{member}: Field cannot be empty or whitespace")]
    BlankMember {
        /// The member.
        member: &'static str,
    },
    /// The text is not the JSON of a request.
    #[error("not a chat message: {reason}")]
    Unreadable {
        /// What the parser says, with the place.
        reason: String,
    },
}

/// One earlier message of the conversation. Its content is never blank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChatHistoryMessage {
    /// The message's id.
    pub id: Option<String>,
    /// Its author.
    pub role: ChatRole,
    /// Its text.
    pub content: String,
    /// When it was written, in RFC 3339.
    pub timestamp: Option<String>,
}

impl ChatHistoryMessage {
    /// A message without id and timestamp.
    pub fn new(role: ChatRole, content: impl Into<String>) -> Result<Self, InvalidChatMessage> {
        let content = content.into();
        if content.trim().is_empty() {
            return Err(InvalidChatMessage::BlankContent);
        }
        Ok(Self { id: None, role, content, timestamp: None })
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the time at which it was written, in RFC 3339.
    #[must_use]
    pub fn with_timestamp(mut self, timestamp: impl Into<String>) -> Self {
        self.timestamp = Some(timestamp.into());
        self
    }
}

/// The body of a report: a user's message and the conversation before it. No text in it is blank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChatMessageRequest {
    /// The conversation's id.
    pub conversation_id: String,
    /// The id of the user's message.
    pub message_id: String,
    /// The user's message.
    pub user_message: String,
    /// The messages before it, oldest first.
    pub chat_history: Vec<ChatHistoryMessage>,
}

impl ChatMessageRequest {
    /// Checks that no text is blank.
    pub fn new(
        conversation_id: impl Into<String>,
        message_id: impl Into<String>,
        user_message: impl Into<String>,
        chat_history: Vec<ChatHistoryMessage>,
    ) -> Result<Self, InvalidChatMessage> {
        let filled = |member: &'static str, text: String| {
            let is_blank = text.trim().is_empty();
            if is_blank { Err(InvalidChatMessage::BlankMember { member }) } else { Ok(text) }
        };
        Ok(Self {
            conversation_id: filled("conversationId", conversation_id.into())?,
            message_id: filled("messageId", message_id.into())?,
            user_message: filled("userMessage", user_message.into())?,
            chat_history,
        })
    }

    /// Reads a request that an endpoint received.
    pub fn parse(body: &[u8]) -> Result<Self, InvalidChatMessage> {
        let raw: RawChatMessage = serde_json::from_slice(body)
            .map_err(|error| InvalidChatMessage::Unreadable { reason: error.to_string() })?;
        let history = raw.chat_history.into_iter().map(|message| {
            let RawHistoryMessage { id, role, content, timestamp } = message;
            Ok(ChatHistoryMessage { id, timestamp, ..ChatHistoryMessage::new(role, content)? })
        });
        let history = history.collect::<Result<_, _>>()?;
        Self::new(raw.conversation_id, raw.message_id, raw.user_message, history)
    }

    /// The request as JSON, with `null` for an absent id or timestamp.
    pub fn to_json(&self) -> Value {
        // Strings, lists and unit variants always serialise.
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawChatMessage {
    conversation_id: String,
    message_id: String,
    user_message: String,
    chat_history: Vec<RawHistoryMessage>,
}

#[derive(Deserialize)]
struct RawHistoryMessage {
    id: Option<String>,
    role: ChatRole,
    content: String,
    timestamp: Option<String>,
}

/// What a turn of an agent says about itself. Each member may be absent; the operations say which they require.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnContext {
    /// `activity.conversation.id`.
    pub conversation_id: Option<String>,
    /// `activity.id`; also the correlation id of requests in the turn.
    pub message_id: Option<String>,
    /// `activity.text`.
    pub user_message: Option<String>,
    /// The blueprint of the agent that sent the activity, for the header `x-ms-agentid`.
    pub agent_blueprint_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chat_history_message_rejects_blank_content() {
        for blank in ["", " ", "\n\t", "\u{3000}"] {
            let error = ChatHistoryMessage::new(ChatRole::User, blank).unwrap_err();
            assert_eq!(error.to_string(), "content cannot be empty or whitespace");
        }
    }

    #[test]
    fn chat_role_is_user_assistant_or_system() {
        for (role, word) in [
            (ChatRole::User, "user"),
            (ChatRole::Assistant, "assistant"),
            (ChatRole::System, "system"),
        ] {
            assert_eq!(role.as_str(), word);
            assert_eq!(serde_json::to_value(role).unwrap(), json!(word));
            assert_eq!(serde_json::from_value::<ChatRole>(json!(word)).unwrap(), role);
        }
        for other in ["tool", "User", ""] {
            assert!(serde_json::from_value::<ChatRole>(json!(other)).is_err(), "{other}");
        }
    }

    #[test]
    fn chat_message_request_is_camel_case_with_null_for_absent_members() {
        let history = vec![
            ChatHistoryMessage::new(ChatRole::User, "Hello").unwrap(),
            ChatHistoryMessage::new(ChatRole::Assistant, "Hi!")
                .unwrap()
                .with_id("m1")
                .with_timestamp("2026-01-02T03:04:05Z"),
        ];
        let request = ChatMessageRequest::new("conv", "msg", "What now?", history).unwrap();
        let expected = json!({
            "conversationId": "conv",
            "messageId": "msg",
            "userMessage": "What now?",
            "chatHistory": [
                {"id": null, "role": "user", "content": "Hello", "timestamp": null},
                {"id": "m1", "role": "assistant", "content": "Hi!", "timestamp": "2026-01-02T03:04:05Z"},
            ],
        });
        assert_eq!(request.to_json(), expected);
        let read = ChatMessageRequest::parse(expected.to_string().as_bytes()).unwrap();
        assert_eq!(read, request, "what is written is read");
    }

    #[test]
    fn chat_message_request_rejects_what_the_package_rejects() {
        let check = |body: Value, expected: &str| {
            let error = ChatMessageRequest::parse(body.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        };
        let good = json!({
            "conversationId": "c", "messageId": "m", "userMessage": "u",
            "chatHistory": [{"role": "user", "content": "x"}],
        });
        assert!(ChatMessageRequest::parse(good.to_string().as_bytes()).is_ok());
        for member in ["conversationId", "messageId", "userMessage"] {
            let mut blank = good.clone();
            blank[member] = json!(" ");
            check(blank, &format!("{member}: Field cannot be empty or whitespace"));
            let mut missing = good.clone();
            missing.as_object_mut().unwrap().remove(member);
            check(missing, &format!("missing field `{member}`"));
        }
        let mut blank = good.clone();
        blank["chatHistory"][0]["content"] = json!("");
        check(blank, "content cannot be empty or whitespace");
        let mut role = good.clone();
        role["chatHistory"][0]["role"] = json!("tool");
        check(role, "expected one of `user`, `assistant`, `system`");
        check(json!([]), "not a chat message");
        let mut history = good;
        history["chatHistory"] = json!(null);
        check(history, "not a chat message");
    }
}
