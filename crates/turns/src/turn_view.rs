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
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// The provider that it asked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that it asked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The revision of the tools that the model was given last. The session may have a newer one: that is for the next
    /// turn, unless it is applied now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_revision: Option<u64>,
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
        let request = turn.request();
        Self {
            id: turn.id.clone(),
            session: turn.session.clone(),
            status: end.map_or("running", |end| end.status.as_str()),
            started_at_ms: turn.started_at_ms,
            provider: request.as_ref().map(|request| request.provider.clone()),
            model: request.as_ref().map(|request| request.model.clone()),
            tools_revision: request.as_ref().map(|request| request.tools_revision),
            events: *turn.follow().borrow(),
            text: end.map(crate::TurnEnd::text),
            stop: end.and_then(|end| end.stop),
            usage: end.map(|end| end.usage),
            error: end.and_then(|end| end.error.clone()),
            messages: end.map(|end| end.messages.clone()).unwrap_or_default(),
        }
    }
}
