//! Entries of a list of servers: manifest and gateway use the same members.
//!
//! An entry that cannot be used is reported with its place and its name, and costs no other entry.

use std::collections::HashMap;

use serde_json::{Map, Value};
use url::{ParseError, Url};

use crate::environment::Environment;
use crate::error::ToolingError;
use crate::models::{Connectivity, McpServerConfig};
use crate::urls::{absolute, build_mcp_server_url, get_mcp_base_url};

/// The most characters of a foreign text that a message quotes.
const LONGEST_QUOTE: usize = 100;

/// What a manifest or a gateway names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundServers {
    /// The servers, in the order of the list. No two have the same name.
    pub servers: Vec<McpServerConfig>,
    /// The entries that cannot be used.
    pub problems: Vec<EntryProblem>,
    /// What somebody should know who wonders about the list: another shape than expected, a token that was not sent.
    pub warnings: Vec<String>,
    /// Whether there was a list at all. If not, a warning says what was there instead, and a caller that has an earlier
    /// list keeps it.
    pub is_list: bool,
    /// The connections behind all servers together.
    pub connectivity: Connectivity,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryProblem {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl FoundServers {
    /// A source that holds no list.
    pub(crate) fn without_list(warning: impl Into<String>) -> Self {
        Self { warnings: vec![warning.into()], ..Self::default() }
    }

    /// The servers whose connections are missing, as the error of a caller that requires all of them.
    pub fn require_connections(&self) -> Result<(), ToolingError> {
        let pending = self.servers.iter().filter(|server| server.connectivity.is_pending());
        let pending: Vec<_> = pending.collect();
        if pending.is_empty() && !self.connectivity.is_pending() {
            return Ok(());
        }
        let pages = pending.iter().map(|server| &server.connectivity).chain([&self.connectivity]);
        let url = self.connectivity.missing_connections_url.clone();
        let url =
            url.or_else(|| pages.into_iter().find_map(|it| it.missing_connections_url.clone()));
        let servers = pending.iter().map(|server| server.mcp_server_name.clone()).collect();
        Err(ToolingError::ConnectionsRequired { servers, url: url.unwrap_or_default() })
    }
}

/// Reads all entries of a list.
pub(crate) fn parse_entries(entries: Vec<Value>, environment: &Environment) -> FoundServers {
    let mut found = FoundServers { is_list: true, ..FoundServers::default() };
    let mut taken: HashMap<String, usize> = HashMap::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let name = match &entry {
            Value::Object(members) => text(members, "mcpServerName").map(str::to_owned),
            _ => None,
        };
        let parsed = parse_entry(&entry, environment, &mut found.warnings).and_then(|server| {
            match taken.get(&server.mcp_server_name) {
                Some(first) => {
                    Err(format!("entry {first} has the same mcpServerName; that one is used"))
                }
                None => Ok(server),
            }
        });
        match parsed {
            Ok(server) => {
                taken.insert(server.mcp_server_name.clone(), index);
                found.servers.push(server);
            }
            Err(message) => found.problems.push(EntryProblem { index, name, message }),
        }
    }
    found
}

/// Reads the connectivity of a server or of the whole answer.
pub(crate) fn parse_connectivity(members: &Map<String, Value>) -> Connectivity {
    let filled = |key| text(members, key).filter(|it| !it.trim().is_empty()).map(str::to_owned);
    Connectivity {
        status: filled("connectivityStatus"),
        missing_connections_url: filled("missingConnectionsUrl"),
        all_connections_url: filled("allConnectionsUrl"),
    }
}

fn parse_entry(
    entry: &Value,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<McpServerConfig, String> {
    let Value::Object(members) = entry else {
        return Err(format!(
            "Failed to parse server config from element {}: it is no object",
            quoted(entry)
        ));
    };
    let name = required_name(members)?;
    let unique_name = match members.get("mcpServerUniqueName") {
        Some(Value::String(unique)) if unique.trim().is_empty() => {
            return Err("mcp_server_unique_name cannot be empty".to_owned());
        }
        Some(Value::String(unique)) => unique,
        Some(_) | None => name,
    };
    let url = address_of(members, name, unique_name, environment, warnings)?;
    Ok(McpServerConfig {
        // A sentinel stands for an absent value in what real gateways send.
        audience: unless(members, "audience", "default"),
        scope: unless(members, "scope", "null"),
        publisher: text(members, "publisher").map(str::to_owned),
        connectivity: parse_connectivity(members),
        ..McpServerConfig::new(name, unique_name, url)
    })
}

fn required_name(members: &Map<String, Value>) -> Result<&str, String> {
    match members.get("mcpServerName") {
        None => Err("mcpServerName is missing".to_owned()),
        Some(Value::String(name)) if name.trim().is_empty() => {
            Err("mcp_server_name cannot be empty".to_owned())
        }
        Some(Value::String(name)) => Ok(name),
        Some(other) => Err(format!("mcpServerName is {}, which is no string", quoted(other))),
    }
}

/// `url` when it is absolute, else the unique name when that is an address, else the unique name below the base.
fn address_of(
    members: &Map<String, Value>,
    name: &str,
    unique_name: &str,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Url, String> {
    let told = |error: ToolingError| error.to_string();
    let written = match members.get("url") {
        None | Some(Value::Null) => None,
        Some(Value::String(url)) => Some(url.trim()).filter(|url| !url.is_empty()),
        Some(other) => return Err(format!("url is {}, which is no string", quoted(other))),
    };
    let Some(written) = written else {
        return build_mcp_server_url(environment, unique_name).map_err(told);
    };
    if let Some(url) = absolute(written) {
        return Ok(url);
    }
    let unusable = || format!("url '{}' is no http or https address", cut(written));
    if Url::parse(written) != Err(ParseError::RelativeUrlWithoutBase) {
        return Err(unusable());
    }
    // A relative address is meant below the base, as samples of the platform write it.
    let base = get_mcp_base_url(environment).map_err(told)?;
    let mut directory = base.clone();
    directory.set_path(&format!("{}/", base.path().trim_end_matches('/')));
    let url = directory.join(written).map_err(|_| unusable())?;
    if url.origin() != base.origin() {
        return Err(unusable());
    }
    warnings.push(format!(
        "url '{}' of MCP server '{}' is not absolute and was resolved below {}{}",
        cut(written),
        cut(name),
        base.origin().ascii_serialization(),
        base.path()
    ));
    Ok(url)
}

fn text<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    members.get(key).and_then(Value::as_str)
}

/// A text that is neither blank nor the word that stands for an absent one.
fn unless(members: &Map<String, Value>, key: &str, sentinel: &str) -> Option<String> {
    let text = text(members, key)?.trim();
    let is_absent = text.is_empty() || text.eq_ignore_ascii_case(sentinel);
    (!is_absent).then(|| text.to_owned())
}

/// A value as a message quotes it.
fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", cut(text)),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => cut(&value.to_string()),
    }
}

/// The beginning of a foreign text, without control characters.
fn cut(text: &str) -> String {
    let shown: String =
        text.chars().take(LONGEST_QUOTE).map(|it| if it.is_control() { ' ' } else { it }).collect();
    if text.chars().nth(LONGEST_QUOTE).is_some() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
