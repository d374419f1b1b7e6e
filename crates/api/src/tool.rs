//! Tools of the catalog.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One tool of the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolView {
    /// The canonical name, `server.tool`.
    pub name: String,
    pub server: String,
    /// The server's name of the tool.
    pub tool: String,
    #[schema(required)]
    pub title: Option<String>,
    #[schema(required)]
    pub description: Option<String>,
    /// Whether its server is connected.
    pub available: bool,
    /// `strict` or `dynamic`.
    pub mode: String,
    /// Where its limits come from: `explicit`, `merged` or `default`.
    pub configured: String,
    pub limits: LimitsView,
    /// The toolset that it belongs to; `null` if its server has `toolset: none`.
    #[schema(required)]
    pub toolset: Option<String>,
    /// The exposed name, if the configuration sets one.
    #[schema(required)]
    pub expose_as: Option<String>,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// The JSON Schema of its structured results, if it has one.
    #[schema(required, value_type = Option<Object>)]
    pub output_schema: Option<Value>,
    /// The server's annotations of the tool, such as `readOnlyHint`.
    #[schema(required, value_type = Option<Object>)]
    pub annotations: Option<Value>,
    /// Whether arguments are checked before a call is sent.
    #[serde(default = "yes")]
    #[schema(required)]
    pub validates_arguments: bool,
    /// The groups of the tool, if the configuration sets them.
    #[serde(default)]
    #[schema(required)]
    pub group: Option<Vec<String>>,
    /// The state of a conversation after a call of the tool succeeded, if the configuration sets one.
    #[serde(default)]
    #[schema(required)]
    pub state: Option<String>,
    /// The states in which the tool is available, if the configuration sets them.
    #[serde(default)]
    #[schema(required)]
    pub applicable_states: Option<Vec<String>>,
    /// Differences between the definition that MCP clients get and the server's, because strict clients would refuse that.
    #[serde(default)]
    #[schema(required)]
    pub repairs: Vec<String>,
    /// The arguments that callers neither see nor can give, because the configuration gives them. Only for operators, and
    /// only where one tool is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_arguments: Option<Vec<HiddenArgument>>,
}

/// An argument that callers neither see nor can give. Its value is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HiddenArgument {
    #[schema(example = "tenant_key")]
    pub name: String,
    /// `fixed` if a `value` is sent with every call, `hidden_default` if a `default` is, `withheld` if it is never sent.
    #[schema(example = "fixed")]
    pub source: String,
}

fn yes() -> bool {
    true
}

/// A tool that its server lists but that is not in the catalog, because its definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedToolView {
    pub server: String,
    /// The server's name of the tool, if it has a valid one.
    #[schema(required)]
    pub tool: Option<String>,
    pub reason: String,
}

/// The limits of a tool's calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsView {
    /// The maximum number of calls that run at the same time.
    pub max_instances: u32,
    /// How long a call may run: a duration such as `30s`.
    pub timeout: String,
    /// How long a call that reports progress may run.
    pub max_timeout: String,
    /// How long a call may wait for its slots.
    pub queue_timeout: String,
    /// How long a running call may send nothing.
    #[schema(required)]
    pub inactivity_timeout: Option<String>,
    /// Larger results are stored; the response has their beginning only.
    pub max_result_bytes: u64,
    /// How often the tool may be called, over all callers.
    #[serde(default)]
    #[schema(required, example = "60/min")]
    pub rate: Option<String>,
}

/// The catalog at one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    /// Changes when the tools or their limits change.
    pub revision: u64,
    pub tools: Vec<ToolView>,
    /// Tools that cannot be used, with the reason. For operators only.
    #[serde(default)]
    #[schema(required)]
    pub quarantined: Vec<QuarantinedToolView>,
    /// With `all`: tools that are not in the catalog, and tools that policy hides from clients. For operators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hidden: Option<Vec<HiddenToolView>>,
}

/// A tool that clients do not see, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HiddenToolView {
    /// The canonical name, `server.tool`.
    pub name: String,
    pub server: String,
    /// The server's name of the tool.
    pub tool: String,
    #[schema(required)]
    pub title: Option<String>,
    #[schema(required)]
    pub description: Option<String>,
    /// `disabled`, `not_listed`, `not_admitted`, `not_chosen`, `quarantined`, or `denied` for a tool that is in the catalog and
    /// that policy hides from clients.
    pub reason: String,
    /// What hides it, in words.
    pub by: String,
    /// How to show it.
    #[schema(required)]
    pub hint: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_an_older_board_is_read_with_the_meaning_that_it_had_there() {
        let limits = json!({
            "max_instances": 5, "timeout": "30s", "max_timeout": "10m", "queue_timeout": "30s",
            "inactivity_timeout": null, "max_result_bytes": 1024,
        });
        let tool = json!({
            "name": "demo.echo", "server": "demo", "tool": "echo", "title": null, "description": null,
            "available": true, "mode": "dynamic", "configured": "default", "limits": limits,
            "toolset": "demo", "expose_as": null, "input_schema": {"type": "object"},
            "output_schema": null, "annotations": null,
        });
        let list: ToolList =
            serde_json::from_value(json!({"revision": 3, "tools": [tool]})).unwrap();
        let tool = &list.tools[0];
        assert!(tool.validates_arguments, "older boards check the arguments of every tool");
        assert_eq!((&tool.group, &tool.state, &tool.applicable_states), (&None, &None, &None));
        assert!(tool.repairs.is_empty() && list.quarantined.is_empty());
    }
}
