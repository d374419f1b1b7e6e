//! A turn as the API shows it.

use serde::Serialize;
use switchboard_chat::{Message, Stop, TurnProblem, Usage};
use utoipa::ToSchema;

use crate::LiveTurn;

/// The turns of a session that are still readable, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnList {
    pub turns: Vec<TurnView>,
}

/// One event of a turn's event stream, field by field.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnStreamEvent {
    /// `started`, `content`, `thinking`, `tool_call_begun`, `tool_call_delta`, `tool_call`, `tool_progress`, `tool_result`,
    /// `usage`, `restarted`, `retrying`, `strategy`, `state`, `error`, and at the end `done`. Turns with the strategy `react`
    /// also have `thought`, `action`, `observation` and `answer`.
    pub event: String,
    /// Counted from 1.
    pub id: String,
    /// JSON. Its `type` is the name of the event.
    #[schema(
        content_media_type = "application/json",
        example = "{\"type\":\"content\",\"delta\":\"Hello\"}"
    )]
    pub data: String,
}

/// A turn.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnView {
    pub id: String,
    pub session: String,
    /// `running`, `completed`, `cancelled`, `failed` or `limited`.
    #[schema(pattern = "^(running|completed|cancelled|failed|limited)$")]
    pub status: &'static str,
    /// The number of its events.
    pub events: u64,
    /// The text of the last reply, once the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnProblem>,
    /// The messages that the turn added to the conversation, the user's first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
}

impl From<&LiveTurn> for TurnView {
    fn from(turn: &LiveTurn) -> Self {
        let end = turn.end();
        Self {
            id: turn.id.clone(),
            session: turn.session.clone(),
            status: end.map_or("running", |end| end.status.as_str()),
            events: *turn.follow().borrow(),
            text: end.map(crate::TurnEnd::text),
            stop: end.and_then(|end| end.stop),
            usage: end.map(|end| end.usage),
            error: end.and_then(|end| end.error.clone()),
            messages: end.map(|end| end.messages.clone()).unwrap_or_default(),
        }
    }
}
