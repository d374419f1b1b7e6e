//! The `server.json` documents of MCP registries: one document, a list of them, or a page of a registry's list.
//!
//! Only `remotes` are read. `packages` are programs, and a discovered server never starts a program.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use switchboard_model::{FoundServer, HttpTransport, Secret};
use url::Url;

use crate::source::{FetchedServers, UnusableEntry};

/// Where the official registry puts its own data about a document.
const OFFICIAL_META: &str = "io.modelcontextprotocol.registry/official";

/// Maximum length of a server's name.
const LONGEST_NAME: usize = 256;

/// The documents of one text.
#[derive(Debug, Default)]
pub(crate) struct RegistryPage {
    pub(crate) fetched: FetchedServers,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

/// Reads documents. An entry that cannot be used costs only itself.
pub(crate) fn parse_registry(text: &[u8]) -> Result<RegistryPage, String> {
    let document: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let (entries, next) = match &document {
        Value::Array(entries) => (entries.iter().collect(), None),
        Value::Object(map) => match map.get("servers") {
            Some(Value::Array(entries)) => (entries.iter().collect(), next_cursor(map)),
            Some(_) => return Err("`servers` is not a list".into()),
            None if map.contains_key("name") || map.contains_key("server") => {
                (vec![&document], None)
            }
            None => return Err(SHAPES.into()),
        },
        _ => return Err(SHAPES.into()),
    };
    let mut fetched = FetchedServers::default();
    for (index, entry) in entries.into_iter().enumerate() {
        match server(entry) {
            Ok(Some(server)) => fetched.servers.push(server),
            Ok(None) => {}
            Err(reason) => {
                let name = document_of(entry).get("name").and_then(Value::as_str);
                let name = name.map_or_else(|| format!("entry {index}"), shortened);
                fetched.unusable.push(UnusableEntry { name, reason });
            }
        }
    }
    Ok(RegistryPage { fetched, next })
}

const SHAPES: &str =
    "expected a server.json document, a list of documents, or an object with the list `servers`";

fn next_cursor(page: &Map<String, Value>) -> Option<String> {
    let metadata = page.get("metadata")?;
    let cursor = metadata.get("nextCursor").or_else(|| metadata.get("next_cursor"))?.as_str()?;
    Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty())
}

/// The document of an entry: registries wrap it into `server` beside their own data.
fn document_of(entry: &Value) -> &Value {
    entry.get("server").filter(|server| server.is_object()).unwrap_or(entry)
}

/// The server of an entry; `None` for an older version, which the list has beside the latest one.
fn server(entry: &Value) -> Result<Option<FoundServer>, String> {
    let document = document_of(entry);
    let Value::Object(map) = document else { return Err("it is not an object".into()) };
    let name = map.get("name").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if name.is_empty() {
        return Err("it has no `name`".into());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("its name is longer than {LONGEST_NAME} bytes"));
    }
    let official = [entry, document].into_iter().find_map(|it| it.get("_meta")?.get(OFFICIAL_META));
    if official.and_then(|it| it.get("isLatest")?.as_bool()) == Some(false) {
        return Ok(None);
    }
    let status = official.and_then(|it| it.get("status")).or_else(|| map.get("status"));
    if status.and_then(Value::as_str) == Some("deleted") {
        return Err("the registry has marked it as deleted".into());
    }
    let remotes = map.get("remotes").and_then(Value::as_array).map(Vec::as_slice);
    let (remote, transport) = match best_remote(remotes.unwrap_or_default()) {
        Some(found) => found,
        None if map.get("packages").and_then(Value::as_array).is_some_and(|it| !it.is_empty()) => {
            return Err(
                "it has packages only, and a discovered server never starts a program".into()
            );
        }
        None => return Err("it has no remote of type streamable-http or sse".into()),
    };
    let address = remote.get("url").and_then(Value::as_str).unwrap_or_default();
    let address = filled(address, remote.get("variables"))
        .map_err(|variable| format!("its address needs a value for `{{{variable}}}`{BY_HAND}"))?;
    let url = Url::parse(&address).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
    let url = url.filter(Url::has_host).ok_or("its address is no absolute http or https URL")?;
    let headers = headers(remote)?;
    Ok(Some(FoundServer { name: name.to_owned(), url, transport, headers }))
}

const BY_HAND: &str = "; add the server to `toolbox.mcps` with it";

/// The first remote over streamable HTTP, else the first over SSE.
fn best_remote(remotes: &[Value]) -> Option<(&Value, HttpTransport)> {
    let of = |words: [&str; 2], transport| {
        let is_it = |remote: &&Value| {
            let kind = remote.get("type").or_else(|| remote.get("transport_type"));
            kind.and_then(Value::as_str).is_some_and(|kind| words.contains(&kind))
        };
        remotes.iter().find(is_it).map(|remote| (remote, transport))
    };
    of(["streamable-http", "streamable"], HttpTransport::StreamableHttp)
        .or_else(|| of(["sse", "sse"], HttpTransport::Sse))
}

fn headers(remote: &Value) -> Result<BTreeMap<String, Secret>, String> {
    let mut headers = BTreeMap::new();
    let inputs = remote.get("headers").and_then(Value::as_array);
    for input in inputs.into_iter().flatten() {
        let Some(name) = input.get("name").and_then(Value::as_str) else {
            return Err("one of its headers has no name".into());
        };
        let given = ["value", "default"].into_iter().find_map(|key| input.get(key)?.as_str());
        let value = given.map(|text| filled(text, input.get("variables"))).transpose();
        let is_required = input.get("isRequired").or_else(|| input.get("is_required"));
        let is_required = is_required.and_then(Value::as_bool).unwrap_or(false);
        match value {
            Ok(Some(value)) => {
                headers.insert(name.to_owned(), Secret::new(value));
            }
            Ok(None) | Err(_) if !is_required => {}
            Ok(None) | Err(_) => {
                return Err(format!("it needs a value for the header `{name}`{BY_HAND}"));
            }
        }
    }
    Ok(headers)
}

/// A text with the values of its `{variables}`. The error is a variable without a value.
fn filled(text: &str, variables: Option<&Value>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((variable, after)) = after.split_once('}') else { break };
        let input = variables.and_then(|variables| variables.get(variable));
        let value = ["value", "default"].into_iter().find_map(|key| input?.get(key)?.as_str());
        whole.push_str(before);
        whole.push_str(value.ok_or_else(|| variable.to_owned())?);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

fn shortened(name: &str) -> String {
    let end = name.floor_char_boundary(LONGEST_NAME);
    name.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "registry_document_tests.rs"]
mod tests;
