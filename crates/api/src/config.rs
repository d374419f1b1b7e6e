//! The configuration in force.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::FieldError;

/// The configuration in force, value by value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigView {
    /// Counts the configurations that have been in force since the start.
    pub revision: u64,
    pub loaded_at_ms: i64,
    /// The file; `null` if the configuration comes from the environment alone.
    #[schema(required)]
    pub file: Option<String>,
    /// Every effective value, defaults included.
    pub values: Vec<ConfigValueView>,
    /// Warnings about the configuration.
    pub warnings: Vec<String>,
    /// The last version of the file, if it was refused. The configuration before it stays in force.
    #[schema(required)]
    pub refused: Option<RefusedConfigView>,
}

/// One value and where it was set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigValueView {
    /// The JSON pointer of the value, from the root key.
    #[schema(example = "/switchboard/toolbox/max_concurrent")]
    pub pointer: String,
    /// The value; `***` for a secret.
    pub value: Value,
    /// Whether the value is a secret and therefore not shown.
    pub secret: bool,
    pub origin: ConfigOriginView,
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigOriginView {
    /// `file`, `environment` or `default`.
    pub kind: String,
    /// The name of the file or of the environment variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub column: Option<usize>,
}

/// A configuration that was not applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedConfigView {
    pub at_ms: i64,
    pub errors: Vec<FieldError>,
}

/// The outcome of reading the configuration again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReloadView {
    /// `applied`, `unchanged`, or `refused`: then the configuration before it stays in force.
    #[schema(pattern = "^(applied|unchanged|refused)$")]
    pub outcome: String,
    /// The number of the configuration in force.
    pub revision: u64,
    /// Why the configuration was refused.
    pub errors: Vec<FieldError>,
}
