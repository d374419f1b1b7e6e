//! A call as a stream of events, and its cancellation.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::call::CallView;
use crate::problem::Problem;

/// One server-sent event of a call, field by field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallStreamEvent {
    /// The `type` of the event.
    pub event: String,
    /// JSON. Its `type` is the name of the event.
    #[schema(
        content_media_type = "application/json",
        example = "{\"type\":\"progress\",\"progress\":1.0,\"total\":2.0,\"message\":null}"
    )]
    pub data: String,
}

/// One event of a call. The last one is `done` or `error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CallEvent {
    /// The tool is known, and the call waits for its slots or runs.
    Started(CallStarted),
    Progress(CallProgress),
    /// A log message of the server that belongs to the call.
    Log(CallLog),
    /// The server waits for an answer of the caller.
    Question(CallQuestion),
    /// The result. A tool that reports an error has the `outcome` `tool_error`.
    Done(CallView),
    /// The call failed.
    Error(CallProblem),
}

impl CallEvent {
    /// The `type` of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::Progress(_) => "progress",
            Self::Log(_) => "log",
            Self::Question(_) => "question",
            Self::Done(_) => "done",
            Self::Error(_) => "error",
        }
    }
}

/// The beginning of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallStarted {
    /// The id of the call, with which it can be cancelled.
    pub id: String,
    /// The revision of the catalog that has the tool.
    pub revision: u64,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallProgress {
    pub progress: f64,
    #[schema(required)]
    pub total: Option<f64>,
    #[schema(required)]
    pub message: Option<String>,
}

/// A log message of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallLog {
    /// The MCP level, such as `info` or `error`.
    pub level: String,
    pub text: String,
}

/// What a server asks the caller of a running call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallQuestion {
    /// Names the question among those of its call.
    pub id: String,
    /// What the server says.
    pub message: String,
    /// The JSON Schema of the answer.
    #[schema(value_type = Object)]
    pub schema: Value,
}

/// The answer to a question of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionAnswer {
    pub action: QuestionAction,
    /// What was asked for, by the schema of the question. Only if it is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub content: Option<Value>,
}

/// What a caller does with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAction {
    /// Answers it.
    Accept,
    /// Says no.
    Decline,
    /// Leaves without an answer.
    Cancel,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallProblem {
    pub problem: Problem,
}
