//! Agents and the servers that they find here.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The agent profiles of the configuration that the credentials may use, in its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentSummary>,
}

/// One agent profile in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentSummary {
    /// The id with which the agent asks for its servers.
    #[schema(example = "invoicing")]
    pub name: String,
    #[schema(required)]
    pub description: Option<String>,
    /// The names of its servers.
    pub servers: Vec<String>,
    /// The number of tools that the agent sees, over all its servers.
    pub tools: usize,
}

/// An agent: a profile of the configuration, or a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentView {
    /// The name of the profile, or the id of the session.
    pub name: String,
    /// `profile` or `session`.
    #[schema(pattern = "^(profile|session)$")]
    pub kind: String,
    #[schema(required)]
    pub description: Option<String>,
    pub limits: AgentLimitsView,
    /// The address of the tooling gateway for this agent: `MCP_PLATFORM_ENDPOINT` of Microsoft's Agent 365 SDK.
    pub platform_endpoint: String,
    /// The address at which the SDK asks for the servers.
    pub discovery_url: String,
    pub servers: Vec<AgentServerView>,
}

/// The limits of an agent's calls beside those of each tool. A limit that is `null` is not set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentLimitsView {
    /// The maximum number of calls that run at the same time, over all tools and clients of the agent.
    #[schema(required)]
    pub max_concurrent: Option<u32>,
    /// How long one call may run: a duration such as `30s`.
    #[schema(required)]
    pub timeout: Option<String>,
    /// How long a call may wait for its slots.
    #[schema(required)]
    pub queue_timeout: Option<String>,
    /// Larger results are stored; the response has their beginning only.
    #[schema(required)]
    pub max_result_bytes: Option<u64>,
}

/// A server that an agent may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentServerView {
    pub name: String,
    /// The MCP endpoint at which the agent finds exactly this server, narrowed to its tools.
    pub url: String,
    /// `ready`, `connecting` or `unavailable`.
    pub state: String,
    /// `Ready`, or `Pending` while a person must sign in before the server can be used.
    #[schema(pattern = "^(Ready|Pending)$")]
    pub connectivity: String,
    /// The number of tools that the agent sees.
    pub tools: usize,
}

/// The servers of an agent in the form that one framework takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentFrameworkView {
    /// `openai`, `semantic-kernel`, `agent-framework` or `azure-ai-foundry`.
    pub framework: String,
    /// The extension of Microsoft's SDK that registers the same servers by itself.
    pub package: String,
    /// The name that the extension sends as orchestrator.
    pub orchestrator_name: String,
    /// The classes and their arguments, or the bodies that the framework sends. The API key is not in it: it is written as
    /// `${SWITCHBOARD_API_KEY}`.
    #[schema(value_type = Object)]
    pub config: Value,
}
