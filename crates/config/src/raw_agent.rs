//! The type of an entry of `agents`. As in [`crate::raw`], its doc comments become the JSON Schema that users read.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::raw::RawDuration;

/// The part of the tools that one agent may use. It only narrows: what `gateway` hides from clients stays hidden.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
pub(crate) struct RawAgent {
    /// The id with which the agent asks for its servers; unique in this file.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["invoicing"]))]
    pub(crate) name: Option<String>,
    /// What the agent is for, for people who list the agents.
    pub(crate) description: Option<String>,
    /// Servers whose tools the agent may use. Without `servers` and `toolsets` it may use every tool that clients see.
    #[schemars(extend("examples" = [["crm", "mail"]]))]
    pub(crate) servers: Option<Vec<String>>,
    /// Toolsets whose tools the agent may use, in addition to those of `servers`.
    #[schemars(extend("examples" = [["quotes"]]))]
    pub(crate) toolsets: Option<Vec<String>>,
    /// Narrows these tools further.
    pub(crate) tools: Option<RawAgentTools>,
    /// Limits of the agent's calls, in addition to those of each tool: the narrower one counts.
    pub(crate) limits: Option<RawAgentLimits>,
    /// The API keys that may use this entry, by name or id, and principals of tokens such as `jwt:ISSUER|CLIENT|SUBJECT`.
    /// Keys of operators and administrators always may. Default: every key.
    #[schemars(extend("examples" = [["invoicing-bot"]]))]
    pub(crate) keys: Option<Vec<String>>,
}

/// Which of the tools of its servers and toolsets an agent may use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AgentTools")]
pub(crate) struct RawAgentTools {
    /// Only these: `tool` or `server.tool`, as names or patterns.
    #[schemars(extend("examples" = [["crm.get_*"]]))]
    pub(crate) allow: Option<Vec<String>>,
    /// Not these, even if `allow` lists them.
    #[schemars(extend("examples" = [["*_delete"]]))]
    pub(crate) deny: Option<Vec<String>>,
}

/// Limits of an agent's calls.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AgentLimits")]
pub(crate) struct RawAgentLimits {
    /// How many calls of the agent run at the same time, over all its tools and clients.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [4]))]
    pub(crate) max_concurrent: Option<u32>,
    /// How long one call may run, whatever progress it reports.
    pub(crate) timeout: Option<RawDuration>,
    /// How long a call may wait for a free slot.
    pub(crate) queue_timeout: Option<RawDuration>,
    /// Larger results are stored, and the answer contains a preview.
    #[schemars(range(min = 1024))]
    pub(crate) max_result_bytes: Option<u64>,
}
