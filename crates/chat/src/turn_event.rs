//! Events that clients receive while a turn runs.

use serde::Serialize;
use serde_json::Value;
use switchboard_model::ToolStrategy;
use utoipa::ToSchema;

use crate::{ModelFault, Part, Stop, ToolCall, ToolReturn, Usage};

/// One event of a turn. Every turn ends with exactly one [`TurnEvent::Done`].
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnEvent {
    /// A model request starts.
    Started {
        turn: String,
        provider: String,
        model: String,
        tools_revision: u64,
        /// The strategy, if it is not the native one.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, example = "react")]
        strategy: Option<ToolStrategy>,
    },
    /// More text of the answer.
    Content {
        delta: String,
    },
    /// More text of the model's thinking.
    Thinking {
        delta: String,
    },
    /// The model begins a tool call.
    ToolCallBegun {
        index: usize,
        name: String,
    },
    /// More of the arguments of that call.
    ToolCallDelta {
        index: usize,
        delta: String,
    },
    /// A call is complete. It runs now, unless it is refused.
    ToolCall {
        id: String,
        name: String,
        arguments: Value,
    },
    /// Progress of a running call.
    ToolProgress {
        id: String,
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A call ended. Parallel calls end in any order.
    ToolResult {
        id: String,
        name: String,
        is_error: bool,
        content: Vec<Part>,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        latency_ms: Option<u64>,
    },
    /// A thought of a ReACT turn is complete. Its text came before as [`TurnEvent::Thinking`].
    Thought {
        text: String,
    },
    /// An action of a ReACT turn. A [`TurnEvent::ToolCall`] with the same id came before.
    Action {
        id: String,
        name: String,
        arguments: Value,
    },
    /// The observation that the model of a ReACT turn gets for an action, or for a reply that could not be used.
    Observation {
        /// The id of the action; absent for a reply that could not be used.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        is_error: bool,
        text: String,
    },
    /// The answer of a ReACT turn is complete. Its text came before as [`TurnEvent::Content`].
    Answer {
        text: String,
    },
    /// The turn goes on with another strategy.
    Strategy {
        #[schema(value_type = String, example = "react")]
        strategy: ToolStrategy,
        reason: String,
    },
    /// A call moved the turn to another state, in which other tools may be available.
    State {
        state: String,
    },
    /// The token usage of the last request and of the turn so far.
    Usage {
        usage: Usage,
        turn: Usage,
    },
    /// The tools changed: the response in progress was aborted and the request is repeated. Discard content,
    /// thinking and steps since the last [`TurnEvent::Started`].
    Restarted {
        tools_revision: u64,
    },
    /// The request failed and is repeated. Discard content and thinking since the last [`TurnEvent::Started`].
    Retrying {
        attempt: u32,
        after_ms: u64,
        error: TurnProblem,
    },
    Error {
        error: TurnProblem,
    },
    Done {
        status: TurnStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<Stop>,
        usage: Usage,
        /// Number of messages of the conversation.
        messages: usize,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Completed,
    Cancelled,
    Failed,
    /// A limit of the turn was reached.
    Limited,
}

impl TurnStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Limited => "limited",
        }
    }
}

/// An error, for people and programs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnProblem {
    pub kind: &'static str,
    pub message: String,
    /// The party that has to act: `you`, `provider`, `network`, `model` or `switchboard`.
    pub blame: &'static str,
    pub advice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl TurnProblem {
    /// The error for a reached limit of the turn.
    pub(crate) fn limit(message: String, advice: &'static str) -> Self {
        Self {
            kind: "limit",
            message,
            blame: "model",
            advice,
            status: None,
            code: None,
            retry_after_ms: None,
            request_id: None,
        }
    }
}

impl From<&ModelFault> for TurnProblem {
    fn from(fault: &ModelFault) -> Self {
        Self {
            kind: fault.kind.as_str(),
            message: fault.message.clone(),
            blame: fault.kind.blame().as_str(),
            advice: fault.kind.advice(),
            status: fault.status,
            code: fault.code.clone(),
            retry_after_ms: fault
                .retry_after
                .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            request_id: fault.request_id.clone(),
        }
    }
}

impl TurnEvent {
    pub(crate) fn called(call: &ToolCall) -> Self {
        let (id, name) = (call.id.clone(), call.name.clone());
        Self::ToolCall { id, name, arguments: call.arguments.clone() }
    }

    pub(crate) fn returned(result: &ToolReturn) -> Self {
        Self::ToolResult {
            id: result.call.clone(),
            name: result.name.clone(),
            is_error: result.is_error,
            content: result.content.clone(),
            structured: result.structured.clone(),
            latency_ms: result.latency_ms,
        }
    }

    /// The name of the event in streams.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Content { .. } => "content",
            Self::Thinking { .. } => "thinking",
            Self::ToolCallBegun { .. } => "tool_call_begun",
            Self::ToolCallDelta { .. } => "tool_call_delta",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolProgress { .. } => "tool_progress",
            Self::ToolResult { .. } => "tool_result",
            Self::Thought { .. } => "thought",
            Self::Action { .. } => "action",
            Self::Observation { .. } => "observation",
            Self::Answer { .. } => "answer",
            Self::Strategy { .. } => "strategy",
            Self::State { .. } => "state",
            Self::Usage { .. } => "usage",
            Self::Restarted { .. } => "restarted",
            Self::Retrying { .. } => "retrying",
            Self::Error { .. } => "error",
            Self::Done { .. } => "done",
        }
    }
}
