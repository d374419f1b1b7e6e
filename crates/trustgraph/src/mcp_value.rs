//! Values of the type `mcp`: servers of `toolbox.mcps` with an address and a `tool_allowlist` of one tool.

use serde_json::{Value, json};
use switchboard_config::{ConfigEdit, EntryList};
use url::Url;

use crate::error::TrustGraphError;
use crate::value_text::{
    ShownValue, WrittenFields, check_members, entry_of, read_object, shown, text_of, written,
};

/// Shown in place of credentials.
const MASK: &str = "***";
const MEMBERS: [&str; 3] = ["remote-name", "url", "auth-token"];

/// The servers as the clients read them, in file order.
pub fn shown_servers<'a>(entries: impl IntoIterator<Item = &'a WrittenFields>) -> Vec<ShownValue> {
    entries.into_iter().filter_map(shown_server).collect()
}

fn shown_server(entry: &WrittenFields) -> Option<ShownValue> {
    let name = entry.get("name")?.as_str()?;
    let url = shown(entry.get("url")?);
    let remote = match entry.get("tool_allowlist")?.as_array()?.as_slice() {
        [only] if !is_pattern(only.as_str()?) => shown(only),
        _ => return None,
    };
    if entry.contains_key("command") {
        return None;
    }
    let mut value = WrittenFields::new();
    value.insert("remote-name".into(), remote);
    value.insert("url".into(), json!(without_credentials(url.as_str()?)));
    if entry.get("auth").is_some_and(|auth| !auth.is_null()) {
        value.insert("auth-token".into(), json!(MASK));
    }
    Some(ShownValue { key: name.to_owned(), value, entry: name.to_owned() })
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

fn without_credentials(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return url.to_owned() };
    if parsed.username().is_empty() && parsed.password().is_none() {
        return url.to_owned();
    }
    let _has_host = parsed.set_username(MASK).and_then(|()| parsed.set_password(None));
    parsed.into()
}

/// The edit that sets a server.
#[derive(Debug, Clone, PartialEq)]
pub struct PutServer {
    pub edit: ConfigEdit,
    /// The address, if the file does not have it yet. It must pass the egress check before the edit is made.
    pub new_address: Option<Url>,
}

/// A value of the type `mcp` that can be used.
struct NewServer {
    remote: String,
    address: String,
    url: Url,
    token: Option<String>,
}

impl NewServer {
    fn read(key: &str, text: &str) -> Result<Self, TrustGraphError> {
        let place = format!("mcp '{key}'");
        let refuse = |message: String| Err(TrustGraphError::config(message));
        let value = read_object(&place, text)?;
        check_members(&value, &place, &MEMBERS)?;
        let remote = text_of(&value, &place, "remote-name")?.unwrap_or_else(|| key.to_owned());
        if remote.is_empty() || is_pattern(&remote) {
            return refuse(format!(
                "`remote-name` of {place} must be the name of one tool, without * and ?"
            ));
        }
        let Some(address) = text_of(&value, &place, "url")? else {
            return refuse(format!("{place} needs a `url`"));
        };
        let url = match Url::parse(&address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => url,
            Ok(_) | Err(_) => {
                return refuse(format!("`url` of {place} must be an http or https address"));
            }
        };
        let token = text_of(&value, &place, "auth-token")?.filter(|token| !token.is_empty());
        if token.as_deref().is_some_and(|token| token.starts_with("file:")) {
            return refuse(format!(
                "`auth-token` of {place} must be a token: only the configuration file itself can name files"
            ));
        }
        Ok(Self { remote, address, url, token })
    }
}

/// The edit that sets a server. A new server need not be reachable.
pub fn put_server(
    servers: &[&WrittenFields],
    key: &str,
    text: &str,
) -> Result<PutServer, TrustGraphError> {
    let place = format!("mcp '{key}'");
    let refuse = |message: String| Err(TrustGraphError::config(message));
    let NewServer { remote, address, url, token } = NewServer::read(key, text)?;
    let known = shown_servers(servers.iter().copied());
    let existing = entry_of(&known, key);
    let written_entry =
        servers.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(key));
    if existing.is_none() && written_entry.is_some() {
        return refuse(format!(
            "the configuration file has a server '{key}' that is more than one MCP tool: choose another id, or edit the file"
        ));
    }
    let is_same_url = existing.is_some_and(|it| it.value.get("url") == Some(&json!(address)));
    if !is_same_url && (!url.username().is_empty() || url.password().is_some()) {
        return refuse(format!("`url` of {place} has credentials: give them as `auth-token`"));
    }
    let auth = written_entry.and_then(|entry| entry.get("auth")).filter(|auth| !auth.is_null());
    let has_bearer = auth.is_some_and(|auth| auth.get("bearer").is_some());
    let keeps_auth = match &token {
        Some(token) => token == MASK && auth.is_some(),
        None => auth.is_some() && !has_bearer,
    };
    let has_headers = written_entry.is_some_and(|entry| entry.contains_key("headers"));
    // Otherwise a change of the address would send the credentials of the file to another host.
    if existing.is_some() && !is_same_url && (has_headers || keeps_auth) {
        return refuse(format!(
            "{place} has credentials in the configuration file, which belong to its present address: give the token again, or edit the file"
        ));
    }
    let mut fields = WrittenFields::new();
    if !is_same_url {
        fields.insert("url".into(), written(&json!(address)));
    }
    if existing.is_none_or(|it| it.value.get("remote-name") != Some(&json!(remote))) {
        fields.insert("tool_allowlist".into(), json!([written(&json!(remote))]));
    }
    match token {
        _ if keeps_auth => {}
        Some(token) if token == MASK => {
            return refuse(format!(
                "`auth-token` of {place} holds the mask '{MASK}' instead of a token: send the token, or leave `auth-token` out"
            ));
        }
        Some(token) => {
            fields.insert("auth".into(), json!({"bearer": written(&json!(token))}));
        }
        None if auth.is_some() => {
            fields.insert("auth".into(), Value::Null);
        }
        None => {}
    }
    if existing.is_none() {
        fields.insert("mode".into(), json!("dynamic"));
        fields.insert("default_tool_config".into(), json!({}));
        // As in TrustGraph, a server that does not answer delays neither this request nor the start.
        fields.insert("required".into(), json!(false));
    }
    let edit = ConfigEdit::Patch { list: EntryList::Servers, name: key.to_owned(), fields };
    Ok(PutServer { edit, new_address: (!is_same_url).then_some(url) })
}

#[cfg(test)]
#[path = "mcp_value_tests.rs"]
mod tests;
