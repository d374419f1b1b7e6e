//! The events of a turn, from a running instance or an embedded board.

use futures::stream::BoxStream;
use serde::Deserialize;
use serde_json::Value;
use switchboard_chat::{Part, Usage};

use crate::failure::Failure;

/// All events of one turn. Dropping the stream does not cancel the turn.
pub(crate) type FollowedTurn<'a> = BoxStream<'a, Result<News, Failure>>;

/// An event or a change of the connection.
#[derive(Debug)]
pub(crate) enum News {
    Told(Told),
    /// The connection was lost; the stream is being opened again.
    Lost,
}

/// An event as JSON and parsed.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) json: String,
    pub(crate) event: Event,
}

impl Told {
    /// Parses an event. Unknown kinds of events are kept as JSON only.
    pub(crate) fn of(json: String) -> Self {
        let event = serde_json::from_str(&json).unwrap_or(Event::Other);
        Self { json, event }
    }
}

/// The parts of an event that the terminal shows.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    Started {
        provider: String,
        model: String,
    },
    Content {
        delta: String,
    },
    Thinking {
        delta: String,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: Value,
    },
    ToolProgress {
        id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    ToolResult {
        name: String,
        is_error: bool,
        content: Vec<Part>,
        latency_ms: Option<u64>,
    },
    Observation {
        id: Option<String>,
        text: String,
    },
    Strategy {
        strategy: String,
        reason: String,
    },
    State {
        state: String,
    },
    Restarted {
        tools_revision: u64,
    },
    Retrying {
        attempt: u32,
        after_ms: u64,
        error: Trouble,
    },
    Error {
        error: Trouble,
    },
    Done {
        status: Status,
        usage: Usage,
    },
    #[serde(other)]
    Other,
}

/// An error and its hint.
#[derive(Debug, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) message: String,
    pub(crate) advice: String,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Completed,
    Cancelled,
    Failed,
    Limited,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_future_are_passed_over() {
        let known = r#"{"type":"done","status":"limited","usage":{"input_tokens":1,"output_tokens":2},"messages":3}"#;
        let told = Told::of(known.into());
        assert!(matches!(told.event, Event::Done { status: Status::Limited, .. }), "{told:?}");
        for unknown in [r#"{"type":"applause"}"#, r#"{"type":"content"}"#, "?"] {
            assert!(matches!(Told::of(unknown.into()).event, Event::Other), "{unknown}");
        }
    }
}
