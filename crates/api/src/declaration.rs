//! What the configuration file declares about a tool, beside what its server says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::call::RecordDeclaration;
use crate::content_check::ContentCheckDeclaration;
use crate::problem::FieldError;

/// The entry of a tool in `toolbox.tools`. What is absent comes from the server or from defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolDeclaration {
    /// Replaces the server's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// Declared arguments; an empty list declares none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub arguments: Option<Vec<ArgumentDeclaration>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub limits: Option<LimitsDeclaration>,
    /// `strict` or `dynamic`: overrides the mode of the server for this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "strict")]
    pub mode: Option<String>,
    /// The name under which models see the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expose_as: Option<String>,
    /// `false` hides the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enabled: Option<bool>,
    /// Whether arguments are checked before a call is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub validate_arguments: Option<bool>,
    /// The checks of its calls by the threat-protection endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content_check: Option<ContentCheckDeclaration>,
    /// Whether arguments and results of its calls are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub record: Option<RecordDeclaration>,
    /// The groups in which a turn may use the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub group: Option<Vec<String>>,
    /// The state of a turn after the tool was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<String>,
    /// The states of a turn in which the tool may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub applicable_states: Option<Vec<String>>,
    /// The kind of the entry: `mcp-tool` or `prompt`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kind: Option<String>,
    /// With `type` `mcp-tool`: the tool that the entry stands for.
    #[serde(default, rename = "mcp-tool", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mcp_tool: Option<String>,
    /// With a `type`: the id under which TrustGraph's clients know the entry. Without it, that is its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1)]
    pub id: Option<String>,
    /// With `type` `prompt`: the text that the model is asked, as a Jinja template. The declared arguments are its
    /// variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, example = "Summarise: {{ text }}")]
    pub template: Option<String>,
    /// With `type` `prompt`: the provider of the model. Without it, the first configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1)]
    pub provider: Option<String>,
    /// With `type` `prompt`: the model. Without it, that of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1)]
    pub model: Option<String>,
    /// With `type` `prompt`: the system instructions of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instructions: Option<String>,
    /// With `type` `prompt`: names or patterns of the tools that the model may call. Without it, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tools: Option<Vec<String>>,
    /// With `type` `prompt`: how many prompt tools may run inside each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 8)]
    pub max_depth: Option<u32>,
}

/// One declared argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentDeclaration {
    #[schema(min_length = 1)]
    pub name: String,
    /// `string`, `number`, `integer`, `boolean`, `object` or `array`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "string")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// Whether it must be given. Without it the server's schema decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub required: Option<bool>,
    /// The accepted values.
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_items = 1)]
    pub choices: Option<Vec<Value>>,
    /// Sent when a caller does not give the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub default: Option<Value>,
    /// With the type `array`: the JSON Schema of the elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub items: Option<Value>,
    /// With the type `object`: the JSON Schema of each member, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub properties: Option<Value>,
    /// A fixed value that is sent with every call. Shown as `***`; `***` keeps the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value: Option<Value>,
    /// `true` hides the argument from models and clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hidden: Option<bool>,
}

/// Declared limits. Durations are texts such as `30s`, or seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsDeclaration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub max_instances: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "30s")]
    pub timeout: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "10m")]
    pub max_timeout: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "30s")]
    pub queue_timeout: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "30s")]
    pub inactivity_timeout: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1024)]
    pub max_result_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "60/min")]
    pub rate: Option<String>,
}

/// A tool as it is declared, as its server defines it, and as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolDeclarationView {
    /// The name of the entry.
    pub name: String,
    /// The entry of exactly this name; `null` if the file has none. Texts are as they are written in the file: `${VAR}`
    /// is a reference, `$${` stands for `${`.
    #[schema(required, value_type = Option<ToolDeclaration>)]
    pub declared: Option<Value>,
    /// The server's own definition; `null` if no server has the tool at the moment.
    #[schema(required)]
    pub server: Option<ToolDefinitionView>,
    /// The definition that callers see; `null` if the tool is not in the catalog.
    #[schema(required)]
    pub merged: Option<ToolDefinitionView>,
    /// Why the tool is not in the catalog; `null` if it is.
    #[serde(default)]
    #[schema(required)]
    pub absent: Option<AbsentTool>,
    /// Where each declared value is written, by its JSON pointer in `declared`: `FILE:LINE:COLUMN`.
    pub origins: BTreeMap<String, String>,
    /// The version of the entry, which is also the `ETag` of the response; `null` if there is no entry.
    #[schema(required)]
    pub etag: Option<String>,
    /// The revision of the catalog.
    pub revision: u64,
}

/// Why a tool is not in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AbsentTool {
    /// `disabled`, `quarantined`, `not_listed`, `not_admitted`, `not_chosen`, `not_offered` or `server_unavailable`.
    #[schema(example = "disabled")]
    pub reason: String,
    /// The reason as a sentence.
    pub message: String,
    /// The way out, if there is one.
    #[schema(required)]
    pub hint: Option<String>,
}

/// The description and the schema of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolDefinitionView {
    #[schema(required)]
    pub description: Option<String>,
    #[schema(value_type = Object)]
    pub input_schema: Value,
}

/// The effect that a declaration would have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeclarationPreview {
    /// The schema that callers would see.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// Problems that do not prevent the declaration, such as a fixed value that the server would refuse.
    pub warnings: Vec<String>,
    /// The cost of the tool in tokens, for each provider that can declare it.
    pub tokens: BTreeMap<String, usize>,
}

/// The result of checking arguments without calling the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ArgumentsCheck {
    pub ok: bool,
    /// Empty if `ok`.
    pub errors: Vec<FieldError>,
}
