//! The server list of Codex: TOML tables below `mcp_servers`, converted to the keys of `mcpServers`.

use serde_json::{Map, Value as Json, json};
use toml_edit::{DocumentMut, Item, Value};

use super::lists::{ImportedServers, ServerPlace};
use crate::place::{Extent, ValueOrigin};
use crate::problem::{BoxedProblem, ConfigProblem};
use crate::source::SourceText;

const LIST_KEY: &str = "mcp_servers";

/// The servers of a Codex file, each with the keys of `mcpServers`.
pub(super) fn servers(
    source: &SourceText<'_>,
    text: &str,
) -> Result<ImportedServers, BoxedProblem> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let reason = error.message().lines().next().unwrap_or_default().to_owned();
        let at = ValueOrigin::File(Extent::point(line, column));
        Box::new(source.locate(&at, ConfigProblem::error(format!("not valid TOML: {reason}"))))
    })?;
    let refuse = |message: &str| {
        let help = "expected tables such as `[mcp_servers.files]` (Codex)";
        let at = ValueOrigin::File(Extent::point(1, 1));
        Box::new(source.locate(&at, ConfigProblem::error(message).help(help)))
    };
    let list =
        document.get(LIST_KEY).ok_or_else(|| refuse("the file has no table `mcp_servers`"))?;
    let list = list.as_table_like().ok_or_else(|| refuse("`mcp_servers` is not a table"))?;
    let servers = list.iter().map(|(name, item)| (name.to_owned(), in_common_words(to_json(item))));
    let place = ServerPlace::for_every_project(&[LIST_KEY]);
    Ok(ImportedServers { place, servers: servers.collect() })
}

/// Renames Codex's own keys, and turns names of variables into references to them.
fn in_common_words(entry: Json) -> Json {
    let Json::Object(mut entry) = entry else { return entry };
    let mut headers = match entry.remove("http_headers") {
        Some(Json::Object(headers)) => headers,
        _ => Map::new(),
    };
    if let Some(Json::Object(named)) = entry.remove("env_http_headers") {
        let named = named.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        headers.extend(named.map(|(name, value)| (name.clone(), json!(format!("${{{value}}}")))));
    }
    if let Some(Json::String(variable)) = entry.remove("bearer_token_env_var") {
        headers.insert("Authorization".into(), json!(format!("Bearer ${{{variable}}}")));
    }
    if !headers.is_empty() {
        entry.insert("headers".into(), Json::Object(headers));
    }
    if let Some(Json::Array(passed)) = entry.remove("env_vars") {
        let env = entry.entry("env").or_insert_with(|| json!({}));
        for variable in passed.iter().filter_map(|name| name.as_str().or(name["name"].as_str())) {
            if let Some(env) = env.as_object_mut() {
                env.entry(variable).or_insert_with(|| json!(format!("${{{variable}}}")));
            }
        }
    }
    let seconds = |value: &Json| Some(format!("{}s", value.as_number()?));
    if let Some(text) = entry.remove("startup_timeout_sec").as_ref().and_then(seconds) {
        entry.insert("connect_timeout".into(), json!(text));
    }
    if let Some(text) = entry.remove("tool_timeout_sec").as_ref().and_then(seconds) {
        entry.insert("tool_timeout".into(), json!(text));
    }
    Json::Object(entry)
}

fn to_json(item: &Item) -> Json {
    if let Some(table) = item.as_table_like() {
        let members = table.iter().map(|(key, item)| (key.to_owned(), to_json(item)));
        return Json::Object(members.collect());
    }
    match item.as_value() {
        Some(Value::String(text)) => json!(text.value()),
        Some(Value::Integer(number)) => json!(number.value()),
        Some(Value::Float(number)) => json!(number.value()),
        Some(Value::Boolean(flag)) => json!(flag.value()),
        Some(Value::Array(items)) => {
            items.iter().map(|value| to_json(&Item::Value(value.clone()))).collect()
        }
        Some(Value::Datetime(_) | Value::InlineTable(_)) | None => Json::Null,
    }
}
