//! The events of the board: one stream for everything that a console shows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::call::RecordView;

/// One server-sent event of the stream of the board, field by field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BoardStreamEvent {
    /// The `type` of the event.
    pub event: String,
    /// Rises with each event, also over restarts of the board.
    pub id: String,
    /// JSON. Its `type` is the name of the event.
    #[schema(
        content_media_type = "application/json",
        example = "{\"type\":\"session\",\"id\":\"work\",\"change\":\"changed\",\"tools_revision\":8}"
    )]
    pub data: String,
}

/// One event of the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BoardEvent {
    /// The beginning of a stream. All later events follow.
    Hello(BoardRevisions),
    /// The beginning of a stream, or a place in it, where events are missing: read again what you show.
    Reset(BoardRevisions),
    /// The tools of the catalog have changed.
    Catalog(CatalogChange),
    /// A server was connected, lost, listed other tools, or is no longer configured.
    Server(ServerChange),
    /// A call has begun.
    CallStarted(CallStart),
    /// A call has ended. The members are those of its record.
    CallEnded(Box<RecordView>),
    /// A session was created, changed or ended.
    Session(SessionNews),
    /// A turn has begun or ended.
    Turn(TurnNews),
    /// A configuration was applied or refused. For operators.
    Config(ConfigNews),
    /// A server has sent a log message. For operators.
    ServerLog(ServerLogEntry),
}

impl BoardEvent {
    /// The `type` of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Reset(_) => "reset",
            Self::Catalog(_) => "catalog",
            Self::Server(_) => "server",
            Self::CallStarted(_) => "call_started",
            Self::CallEnded(_) => "call_ended",
            Self::Session(_) => "session",
            Self::Turn(_) => "turn",
            Self::Config(_) => "config",
            Self::ServerLog(_) => "server_log",
        }
    }
}

/// What the board shows at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BoardRevisions {
    pub catalog_revision: u64,
    /// Counts the configurations that have been in force since the start.
    pub config_revision: u64,
    /// The time in milliseconds since 1970.
    pub at_ms: i64,
}

/// A change of the catalog: canonical names of tools that the caller may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogChange {
    pub revision: u64,
    pub added: Vec<String>,
    /// Empty for a caller whose access is narrowed.
    pub removed: Vec<String>,
    /// Tools whose definition or limits have changed.
    pub changed: Vec<String>,
    pub at_ms: i64,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerChange {
    pub name: String,
    /// `ready`, `connecting`, `unavailable`, or `removed` if it is no longer configured.
    pub state: String,
    /// Why the server is unavailable.
    #[schema(required)]
    pub error: Option<String>,
    /// How to repair the error, if that is known.
    #[schema(required)]
    pub hint: Option<String>,
    /// The number of tools that policy admits.
    pub tools: usize,
    /// The number of tools that the server lists.
    pub offered_tools: usize,
    /// Since when the server is in this state, in milliseconds since 1970.
    pub since_ms: i64,
}

/// The beginning of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallStart {
    /// The id of the call, and of its record when it has ended.
    pub id: String,
    /// The canonical name of the tool.
    pub tool: String,
    /// The session in which the call is made.
    #[schema(required)]
    pub session: Option<String>,
    /// The interface that the call came through: `cli`, `http`, `mcp` or `turn`.
    pub face: String,
    pub at_ms: i64,
}

/// A session that was created, changed or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionNews {
    pub id: String,
    pub change: SessionTransition,
    pub tools_revision: u64,
}

/// What happened to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionTransition {
    Created,
    Changed,
    Ended,
}

/// A turn that has begun or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnNews {
    pub session: String,
    pub id: String,
    /// `running`, `completed`, `cancelled`, `failed` or `limited`.
    #[schema(pattern = "^(running|completed|cancelled|failed|limited)$")]
    pub status: String,
}

/// A configuration that was applied or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigNews {
    /// The number of the configuration in force.
    pub revision: u64,
    pub outcome: ConfigOutcome,
    /// Why it was refused.
    #[schema(required)]
    pub error: Option<String>,
    pub at_ms: i64,
}

/// What became of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigOutcome {
    Applied,
    Refused,
}

/// A log message of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLogEntry {
    pub server: String,
    /// The MCP level, such as `info` or `error`.
    pub level: String,
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_an_event_is_its_name() {
        let revisions = BoardRevisions { catalog_revision: 1, config_revision: 1, at_ms: 0 };
        let session = SessionNews {
            id: "work".into(),
            change: SessionTransition::Changed,
            tools_revision: 8,
        };
        for event in [
            BoardEvent::Hello(revisions),
            BoardEvent::Reset(revisions),
            BoardEvent::Session(session),
        ] {
            let json = serde_json::to_value(&event).unwrap();
            assert_eq!(json["type"], event.name());
            assert_eq!(serde_json::from_value::<BoardEvent>(json).unwrap(), event);
        }
    }
}
