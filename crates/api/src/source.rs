//! Sources of servers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All sources of servers, in the order of precedence: where two name the same server, the first one counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SourceList {
    pub sources: Vec<SourceView>,
}

/// A source of servers and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    /// The name in the configuration; `auto` for the source that the environment chose.
    #[schema(example = "team")]
    pub name: String,
    /// `manifest`, `gateway` or `registry`.
    #[serde(rename = "type")]
    #[schema(pattern = "^(manifest|gateway|registry)$")]
    pub kind: String,
    /// The file or the address, without credentials.
    pub place: String,
    /// `ok`; `failing` while it cannot be read, which keeps its last known servers; `waiting` before the first attempt.
    #[schema(pattern = "^(ok|failing|waiting)$")]
    pub state: String,
    /// Why the environment chose it; absent for a configured source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_because: Option<String>,
    /// The interval between two looks at it.
    #[schema(example = "5m")]
    pub refresh: String,
    /// When it was last read successfully.
    #[schema(required)]
    pub last_success_ms: Option<i64>,
    /// Why it cannot be read.
    #[schema(required)]
    pub error: Option<String>,
    /// How to repair the error, if that is known.
    #[schema(required)]
    pub hint: Option<String>,
    /// When it last failed.
    #[schema(required)]
    pub error_at_ms: Option<i64>,
    /// How many attempts have failed since the last success.
    pub failures: u64,
    /// The servers that it adds.
    pub servers: Vec<SourceServerView>,
    /// What it names and does not add.
    pub left_out: Vec<LeftOutView>,
    /// Warnings about what it answered.
    pub warnings: Vec<String>,
}

/// A server that a source adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SourceServerView {
    /// The name of the server here.
    pub name: String,
    /// Its name in the source.
    pub original_name: String,
    /// Its address, without credentials.
    pub place: String,
}

/// An entry of a source that adds no server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeftOutView {
    /// Its name in the source.
    pub name: String,
    pub reason: String,
}
