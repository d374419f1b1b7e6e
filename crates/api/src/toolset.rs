//! Toolsets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A named group of tools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolsetView {
    pub name: String,
    pub description: String,
    /// The number of its tools.
    pub tools: usize,
    /// When a model should enable it.
    #[serde(default)]
    #[schema(required)]
    pub when_to_use: Option<String>,
    /// The canonical names of its tools.
    #[serde(default)]
    #[schema(required)]
    pub members: Vec<String>,
}

/// One toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolsetDetail {
    pub name: String,
    pub description: String,
    /// When a model should enable it.
    #[schema(required)]
    pub when_to_use: Option<String>,
    /// The canonical names of its tools.
    pub members: Vec<String>,
    /// The cost of its tools in tokens, by provider.
    pub tokens: BTreeMap<String, usize>,
    /// The rules of the configuration that it is made by; `null` for a toolset of a server, and for clients.
    #[schema(required)]
    pub rules: Option<ToolsetRules>,
    /// Its entry in the configuration file; `null` if the file has none, and for clients.
    #[serde(default)]
    #[schema(required, value_type = Option<Object>)]
    pub declared: Option<Value>,
    /// Where each declared value is written, by its JSON pointer in `declared`: `FILE:LINE:COLUMN`.
    #[serde(default)]
    #[schema(required)]
    pub origins: BTreeMap<String, String>,
    /// The version of the entry, which is also the `ETag` of the response; `null` if there is no entry, and for clients.
    #[serde(default)]
    #[schema(required)]
    pub etag: Option<String>,
}

/// An entry of `toolsets` as the API takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsetDeclaration {
    /// Describes the contents to a model that has to choose a toolset.
    #[schema(min_length = 1, example = "Stock prices")]
    pub description: String,
    /// When a model should enable it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1)]
    pub when_to_use: Option<String>,
    /// Servers whose tools are all members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub servers: Option<Vec<String>>,
    /// Further members: `tool` or `server.tool`, as names or patterns with `*` and `?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tools: Option<Vec<String>>,
}

/// Which tools a toolset has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsetRules {
    /// `tool` or `server.tool`, as names or patterns with `*` and `?`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Servers whose tools are all members.
    #[serde(default)]
    pub servers: Vec<String>,
}

/// The tools that a toolset would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolsetMembers {
    /// The canonical names of the tools.
    pub members: Vec<String>,
    /// Their cost in tokens, by provider.
    pub tokens: BTreeMap<String, usize>,
}

/// All toolsets, and the default exposure of MCP clients.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ToolsetList {
    /// `legacy`, `static` or `dynamic`.
    pub exposure: String,
    /// The configuration that decided the exposure.
    pub reason: String,
    pub toolsets: Vec<ToolsetView>,
}
