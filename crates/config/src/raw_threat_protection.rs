//! The types of `threat_protection` and `content_check`. As in [`crate::raw`], their doc comments become the JSON Schema
//! that users read.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_model as model;

use crate::raw::RawDuration;

/// Checks of conversations and tool calls by a threat-protection service before they go on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThreatProtection")]
pub(crate) struct RawThreatProtection {
    /// The address that what is checked is sent to, as the chat message of the Microsoft Agent 365 SDK.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://threats.example.com/agents/real-time-threat-protection/chat-message"]))]
    pub(crate) endpoint: Option<String>,
    /// Sent to the endpoint as `Authorization: Bearer ...`. A secret: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${THREAT_TOKEN}", "file:/run/secrets/token"]))]
    pub(crate) token: Option<String>,
    /// How long one check may take.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_CHECK_TIMEOUT)))]
    pub(crate) timeout: Option<RawDuration>,
    /// What happens where a hook blocks and the endpoint gives no verdict: `open` goes on, `closed` ends the work as a
    /// refusal does.
    #[schemars(extend("default" = "closed"))]
    pub(crate) on_failure: Option<RawFailurePolicy>,
    /// The check before each model request of a turn: `off`, `observe` (the turn does not wait, refusals are recorded) or
    /// `block` (the turn waits, and a refusal ends it).
    #[schemars(extend("default" = "off"))]
    pub(crate) before_model: Option<RawCheckMode>,
    /// The check before each tool call of a turn.
    #[schemars(extend("default" = "off"))]
    pub(crate) before_tool: Option<RawCheckMode>,
    /// The check of the result of each tool call of a turn, before it is used.
    #[schemars(extend("default" = "off"))]
    pub(crate) after_tool: Option<RawCheckMode>,
    /// Regular expressions. What they match is replaced by `***` before anything is sent to the endpoint. The secrets of
    /// this file are always replaced.
    #[schemars(length(max = 100), extend("examples" = [["\\b\\d{3}-\\d{2}-\\d{4}\\b"]]))]
    pub(crate) redact: Option<Vec<String>>,
    /// Whether chat messages that agents send to this instance are accepted without credentials from other machines, too.
    #[schemars(extend("default" = false))]
    pub(crate) accept_without_key: Option<bool>,
}

/// The checks of tool calls, whoever makes them: MCP clients, the API, the command line and turns.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ContentCheck")]
pub(crate) struct RawContentCheck {
    /// The check before the tool runs: `off`, `observe` or `block`. Default: `off`.
    pub(crate) before_call: Option<RawCheckMode>,
    /// The check of the result before the caller gets it: `off`, `observe` or `block`. Default: `off`.
    pub(crate) after_call: Option<RawCheckMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawCheckMode {
    Off,
    Observe,
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawFailurePolicy {
    Open,
    Closed,
}
