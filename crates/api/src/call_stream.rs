//! A call as a stream of events, and its cancellation.

use serde::{Deserialize, Serialize};
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

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallProblem {
    pub problem: Problem,
}
