//! Records of content checks, and the answer to a reported chat message.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Declared content checks, each `off`, `observe` or `block`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentCheckDeclaration {
    /// The check before the tool runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "observe")]
    pub before_call: Option<String>,
    /// The check of the result before the caller gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "block")]
    pub after_call: Option<String>,
}

/// The record of a content check that was not passed, or of a chat message that an agent reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContentCheckView {
    /// The id of the record. For the next page, use the last one of this page as `before`.
    pub id: String,
    /// When the check ended, an RFC 3339 timestamp.
    #[schema(format = DateTime)]
    pub at: String,
    /// Where it was checked: `before_model`, `before_tool`, `after_tool`, or `received` for a reported chat message.
    pub hook: String,
    /// `refused`, `failed` if there is no verdict, `allowed`, or `none` for a chat message that nothing has judged.
    pub verdict: String,
    /// Whether the turn or the call ended because of it.
    pub blocked: bool,
    /// The reason of the refusal or of the failure.
    #[schema(required)]
    pub reason: Option<String>,
    /// The principal of the turn, the call or the report; absent for a report without credentials.
    #[schema(required)]
    pub principal: Option<String>,
    /// The session of the turn or of the call, or the conversation of the report.
    #[schema(required)]
    pub conversation: Option<String>,
    /// The id of what was checked: of the turn before a model is asked, of the call for a tool call, of the message for a
    /// report of a client.
    pub message: String,
    /// The canonical name of the tool.
    #[schema(required)]
    pub tool: Option<String>,
    /// How many messages were checked or reported.
    pub messages: u64,
    /// The size of the texts.
    pub bytes: u64,
    /// How long the check took.
    pub took_ms: f64,
}

/// Records of content checks, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContentCheckList {
    pub checks: Vec<ContentCheckView>,
}

/// The answer to a reported chat message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatMessageAnswer {
    /// The id of the record.
    pub record: String,
    /// Whether the agent should stop.
    pub block_action: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
