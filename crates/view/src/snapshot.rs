//! The stored form of a view: the identity of its tools and their names.

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_model::{CanonicalName, ServerName};

use crate::index::Entry;
use crate::past::DeclaredTool;
use crate::view::View;

/// The tools of a view, in their order. One name serves all providers, because exposed names are valid for each of
/// them.
pub fn snapshot_tools(view: &View) -> Value {
    view.tools().filter_map(one).collect()
}

fn one(entry: &Entry) -> Option<Value> {
    let (tool, name, shown) = (&entry.tool, entry.name.as_deref()?, entry.shown_name());
    let server = shown.server();
    let mut one = json!({
        "canonical_name": shown.as_str(),
        "provider_exposed_name": {"gemini": name, "openai": name, "anthropic": name},
        "connector_id": connector_id(server),
        "mcp_tool_name": tool.name.tool(),
        "server": server.as_str(),
        "parameters": tool.descriptor.input_schema.parse(),
    });
    if let (Some(one), Some(description)) = (one.as_object_mut(), &tool.descriptor.description) {
        one.insert("description".into(), description.as_str().into());
    }
    Some(one)
}

/// A UUID derived from the server name, so that it is the same on every machine.
fn connector_id(server: &ServerName) -> String {
    let hash = blake3::hash(format!("switchboard server {server}").as_bytes()).to_hex();
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default().to_owned();
    // UUID version 8: the content is defined by the application.
    format!("{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// The tools of a stored snapshot; unknown entries are skipped.
pub fn read_declared(tools: &Value) -> Vec<DeclaredTool> {
    #[derive(Deserialize)]
    struct Kept {
        provider_exposed_name: Names,
        mcp_tool_name: String,
        server: String,
    }
    #[derive(Deserialize)]
    struct Names {
        openai: String,
    }
    let tools = tools.as_array().into_iter().flatten();
    let kept = tools.filter_map(|tool| Kept::deserialize(tool).ok());
    kept.map(|kept| DeclaredTool {
        name: kept.provider_exposed_name.openai.into(),
        tool: CanonicalName::new(&ServerName::new(kept.server), &kept.mcp_tool_name),
    })
    .collect()
}
