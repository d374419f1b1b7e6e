//! What is heard of a turn, from whoever runs it.

use futures::stream::BoxStream;
use serde::Deserialize;
use serde_json::Value;
use switchboard_chat::{Part, Usage};

use crate::failure::Failure;

/// All news of one turn. Dropping it does not end the turn.
pub(crate) type TurnNews<'a> = BoxStream<'a, Result<News, Failure>>;

/// Something new.
#[derive(Debug)]
pub(crate) enum News {
    Told(Told),
    /// The connection was lost; the turn is followed again.
    Lost,
}

/// An event, as it was written and as it is read.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) json: String,
    pub(crate) event: Event,
}

impl Told {
    /// What cannot be read is of a kind that this program does not know.
    pub(crate) fn of(json: String) -> Self {
        let event = serde_json::from_str(&json).unwrap_or(Event::Other);
        Self { json, event }
    }
}

/// What an event says that people are shown.
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

/// What went wrong, and what to do.
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
