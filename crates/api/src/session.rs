//! Session endpoints and toolsets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a new session is to be.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Its name; without one it gets one that cannot be guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", max_length = 64, example = "work")]
    pub id: Option<String>,
}

/// A session endpoint.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    pub id: String,
    /// Where MCP clients find it on this server.
    pub path: String,
    /// Whose it is: the name of a key, the subject of a token, or `local`.
    pub owner: String,
    /// The toolsets that its clients see now.
    pub enabled_toolsets: Vec<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// All session endpoints that the asker may see.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
}

/// A named group of tools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolsetView {
    pub name: String,
    pub description: String,
    /// How many tools it has.
    pub tools: usize,
}

/// All toolsets, and what MCP clients see at first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolsetList {
    /// `legacy`, `static` or `dynamic`.
    pub exposure: String,
    /// Who decided that.
    pub reason: String,
    pub toolsets: Vec<ToolsetView>,
}
