//! Imports the tools and MCP endpoints of a TrustGraph configuration.
//!
//! A file may hold one tool, a list of tools, or a whole configuration: `{"tool": {id: ...}, "mcp": {id: ...}}`, where each
//! value is an object or its JSON text. An endpoint becomes a server with one tool, which `mcp-tool` of a tool names.

use serde_json::{Map, Value as Json, json};

use super::jsonc;

/// The keys of a tool that Switchboard knows.
const TOOL_KEYS: [&str; 9] = [
    "type",
    "name",
    "description",
    "mcp-tool",
    "id",
    "arguments",
    "group",
    "state",
    "applicable-states",
];

/// The tools and servers of a TrustGraph file.
#[derive(Debug, Default)]
pub(super) struct TrustGraphFile {
    /// The servers, in the form of `mcpServers`.
    pub(super) servers: Map<String, Json>,
    /// The tools by their ids, or why one is skipped.
    pub(super) tools: Vec<(String, Result<TrustGraphTool, String>)>,
}

/// A tool as an entry of `toolbox.tools`, and notes about it.
#[derive(Debug)]
pub(super) struct TrustGraphTool {
    pub(super) entry: Map<String, Json>,
    pub(super) notes: Vec<String>,
}

/// The content of the file; `None` if it is not a TrustGraph file.
pub(super) fn read(text: &str) -> Option<TrustGraphFile> {
    let json: Json = jsonc::read(text).ok()??;
    let mut file = TrustGraphFile::default();
    match &json {
        Json::Object(tool) if is_tool(&json) => file.add_tool(&id_of(tool), &json),
        Json::Array(tools) if !tools.is_empty() && tools.iter().all(is_tool) => {
            for tool in tools {
                file.add_tool(&tool.as_object().map(id_of).unwrap_or_default(), tool);
            }
        }
        Json::Object(whole) if whole.contains_key("tool") || is_endpoints(whole.get("mcp")) => {
            for (id, tool) in entries(whole.get("tool")) {
                file.add_tool(id, &unpacked(tool));
            }
            for (id, endpoint) in entries(whole.get("mcp")) {
                file.servers.insert(id.clone(), server(&unpacked(endpoint)));
            }
        }
        _ => return None,
    }
    Some(file)
}

fn is_tool(json: &Json) -> bool {
    json.get("type").is_some_and(Json::is_string)
        && json.get("name").is_some_and(Json::is_string)
        && json.get("command").is_none()
}

/// VS Code also has a key `mcp`, with a list of servers below it.
fn is_endpoints(mcp: Option<&Json>) -> bool {
    let mut all = entries(mcp).peekable();
    all.peek().is_some() && all.all(|(_, endpoint)| unpacked(endpoint).get("url").is_some())
}

fn entries(map: Option<&Json>) -> impl Iterator<Item = (&String, &Json)> {
    map.and_then(Json::as_object).into_iter().flatten()
}

/// TrustGraph stores each value as JSON text.
fn unpacked(value: &Json) -> Json {
    let text = value.as_str();
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

fn id_of(tool: &Map<String, Json>) -> String {
    let id = tool.get("id").or_else(|| tool.get("name")).and_then(Json::as_str);
    id.unwrap_or_default().to_owned()
}

/// An endpoint in the form of `mcpServers`.
fn server(endpoint: &Json) -> Json {
    let mut server = json!({ "type": "http", "url": endpoint.get("url") });
    if let Some(name) = endpoint.get("remote-name").and_then(Json::as_str) {
        server["enabled_tools"] = json!([name]);
    }
    if let Some(token) = endpoint.get("auth-token").and_then(Json::as_str) {
        server["headers"] = json!({ "Authorization": format!("Bearer {token}") });
    }
    server
}

impl TrustGraphFile {
    fn add_tool(&mut self, id: &str, tool: &Json) {
        self.tools.push((id.to_owned(), convert(id, tool)));
    }
}

/// The entry of a tool. TrustGraph's clients know it by its id, which the entry keeps where it differs from the name.
fn convert(id: &str, tool: &Json) -> Result<TrustGraphTool, String> {
    let Json::Object(tool) = tool else { return Err("it is not an object".into()) };
    match tool.get("type").and_then(Json::as_str) {
        Some("mcp-tool") => {}
        Some("prompt") => {
            let id = tool.get("template").and_then(Json::as_str).unwrap_or("?");
            return Err(format!(
                "its template `{id}` is kept by TrustGraph: add a tool with `type: prompt` and the text of the template"
            ));
        }
        Some(other) => return Err(format!("only TrustGraph can run tools of the type `{other}`")),
        None => return Err("it has no `type`".into()),
    }
    let mut entry = Map::new();
    let mut notes = Vec::new();
    for (key, value) in tool {
        match key.as_str() {
            // An older key of the TrustGraph page.
            "mcp_tool_id" => {
                entry.entry("mcp-tool").or_insert_with(|| value.clone());
            }
            key if TOOL_KEYS.contains(&key) => {
                entry.insert(key.to_owned(), value.clone());
            }
            _ => notes.push(format!("`{key}` has no counterpart and was left out")),
        }
    }
    if !entry.get("mcp-tool").is_some_and(Json::is_string) {
        return Err("it has no `mcp-tool`, so it names no tool".into());
    }
    if !id.is_empty() && entry.get("name").is_some_and(|name| name != id) {
        entry.insert("id".into(), id.into());
    }
    Ok(TrustGraphTool { entry, notes })
}
