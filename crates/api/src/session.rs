//! Session endpoints and toolsets.

use serde::{Deserialize, Serialize};

/// What a new session is to be.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Its name; without one it gets one that cannot be guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A session endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionView {
    pub id: String,
    /// Where MCP clients find it on this server.
    pub path: String,
    pub owner: String,
    pub enabled_toolsets: Vec<String>,
    pub created_at_ms: i64,
}

/// All session endpoints that the asker may see.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
}

/// A named group of tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolsetView {
    pub name: String,
    pub description: String,
    /// How many tools it has.
    pub tools: usize,
}

/// All toolsets, and what MCP clients see at first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolsetList {
    /// `legacy`, `static` or `dynamic`.
    pub exposure: String,
    /// Who decided that.
    pub reason: String,
    pub toolsets: Vec<ToolsetView>,
}
