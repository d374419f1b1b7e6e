//! The entry that an MCP client needs in its own configuration file to reach Switchboard.
//!
//! Edits keep everything else in the client's file, with its comments; a file that cannot be edited in this way is
//! refused. API keys are written as a reference to an environment variable, never in plain text.

mod json_file;
mod toml_file;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value as Json, json};
use switchboard_model::is_on_this_machine;
use url::Url;

/// The default address of a running Switchboard.
pub const DEFAULT_MCP_URL: &str = "http://127.0.0.1:8420/mcp";

/// The environment variable that clients read the API key from.
pub const API_KEY_VARIABLE: &str = "SWITCHBOARD_API_KEY";

/// The id of the VS Code input that asks for the API key; VS Code keeps the answer in its secret storage.
const KEY_INPUT: &str = "switchboard-api-key";

/// MCP clients whose configuration files are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientProgram {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    Gemini,
}

impl ClientProgram {
    pub const ALL: [Self; 6] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
    ];

    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The product name.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Whether the file can hold servers that are reached over HTTP. Claude Desktop's cannot: remote servers are added
    /// in its settings.
    pub fn speaks_http(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// The text of a client's file with servers removed. `leaving` maps the key path of a server list to the names to
    /// remove. Everything else in the file stays unchanged.
    pub fn without_servers(
        self,
        text: &str,
        leaving: &BTreeMap<Vec<String>, Vec<&str>>,
    ) -> Result<String, Unwritable> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        leaving.iter().try_fold(text.to_owned(), |text, (list, names)| match self {
            Self::Codex => toml_file::remove(list, &text, names),
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor | Self::VsCode | Self::Gemini => {
                json_file::remove(list, &text, names)
            }
        })
    }

    /// The key of the server list.
    fn list_key(self) -> &'static str {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor | Self::Gemini => "mcpServers",
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
        }
    }

    fn names_its_transports(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::VsCode)
    }
}

/// How the client reaches Switchboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Over HTTP, to a running instance.
    Http { url: Url, key: KeyUse },
    /// Over stdio: the client starts a program.
    Stdio { command: String, args: Vec<String>, key: KeyUse },
}

/// Whether the client sends an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    None,
    /// As a reference to [`API_KEY_VARIABLE`], in the client's own syntax.
    FromVariable,
}

/// Completes an address with a scheme: `host:port` becomes an http URL.
pub fn with_scheme(given: &str) -> Cow<'_, str> {
    let authority = given.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host_and_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if is_host_and_port { format!("http://{given}").into() } else { given.into() }
}

/// The URL of the MCP endpoint of a running instance. An address without a path gets the path `/mcp`.
pub fn mcp_address(given: Option<&str>) -> Result<Url, String> {
    let text = with_scheme(given.unwrap_or(DEFAULT_MCP_URL));
    let mut url = Url::parse(&text).map_err(|error| format!("the URL is not valid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("the URL is not an http or https address".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL holds a user or a password; pass an API key separately".into());
    }
    if url.path() == "/" {
        url.set_path("/mcp");
    }
    Ok(url)
}

/// Whether clients need an API key: an instance on another machine requires one.
pub fn needs_key(url: &Url) -> bool {
    !is_on_this_machine(url)
}

/// One server entry for one client.
#[derive(Debug, Clone)]
pub struct ClientEntry {
    client: ClientProgram,
    name: String,
    reach: Reach,
}

/// What to do with an existing entry of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameName {
    Refuse,
    Replace,
}

/// The result of adding an entry to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Laid {
    /// The file already has this entry.
    Unchanged,
    /// The new text of the file.
    Changed(String),
}

/// Why a file is not changed. Each text completes the sentence "the file ...".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwritable {
    /// Invalid JSON or TOML; with the reason.
    Unreadable { format: &'static str, reason: String },
    /// The file or a part of it has the wrong type.
    WrongShape { part: String, wanted: &'static str },
    /// An entry of this name exists with other content.
    NameTaken { name: String },
}

impl Unwritable {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } | Self::WrongShape { .. } => {
                "repair the file, or write another one with --file"
            }
            Self::NameTaken { .. } => "--force replaces it, --name chooses another name",
        }
    }
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { format, reason } => write!(f, "is not valid {format}: {reason}"),
            Self::WrongShape { part, wanted } => write!(f, "has no {wanted} at {part}"),
            Self::NameTaken { name } => write!(f, "has another entry `{name}` already"),
        }
    }
}

impl ClientEntry {
    pub fn new(client: ClientProgram, name: impl Into<String>, reach: Reach) -> Self {
        Self { client, name: name.into(), reach }
    }

    /// A complete file with this entry only.
    pub fn file_text(&self) -> String {
        match self.client {
            ClientProgram::Codex => toml_file::document(self).to_string(),
            ClientProgram::ClaudeDesktop
            | ClientProgram::ClaudeCode
            | ClientProgram::Cursor
            | ClientProgram::VsCode
            | ClientProgram::Gemini => json_file::document(self),
        }
    }

    /// Adds the entry to the text of an existing file.
    pub fn lay_into(&self, text: &str, same_name: SameName) -> Result<Laid, Unwritable> {
        if text.trim().is_empty() {
            return Ok(Laid::Changed(self.file_text()));
        }
        match self.client {
            ClientProgram::Codex => toml_file::lay_into(self, text, same_name),
            ClientProgram::ClaudeDesktop
            | ClientProgram::ClaudeCode
            | ClientProgram::Cursor
            | ClientProgram::VsCode
            | ClientProgram::Gemini => json_file::lay_into(self, text, same_name),
        }
    }

    /// The entry itself, as JSON.
    pub fn to_json(&self) -> Json {
        match &self.reach {
            Reach::Stdio { command, args, key } => {
                let mut entry = if self.client.names_its_transports() {
                    json!({"type": "stdio", "command": command, "args": args})
                } else {
                    json!({"command": command, "args": args})
                };
                match (self.client, key) {
                    // Claude Desktop has no syntax for variables: the user adds the key to the file.
                    (_, KeyUse::None) | (ClientProgram::ClaudeDesktop, KeyUse::FromVariable) => {}
                    (ClientProgram::Codex, KeyUse::FromVariable) => {
                        entry["env_vars"] = json!([API_KEY_VARIABLE]);
                    }
                    (_, KeyUse::FromVariable) => {
                        entry["env"] = json!({API_KEY_VARIABLE: self.key_reference()});
                    }
                }
                entry
            }
            Reach::Http { url, key } => {
                let key = match key {
                    KeyUse::None => None,
                    KeyUse::FromVariable => Some(self.key_reference()),
                };
                let url = url.as_str();
                let mut entry = match self.client {
                    ClientProgram::Gemini => json!({"httpUrl": url}),
                    _ if self.client.names_its_transports() => json!({"type": "http", "url": url}),
                    _ => json!({"url": url}),
                };
                match (self.client, key) {
                    (_, None) => {}
                    (ClientProgram::Codex, Some(variable)) => {
                        entry["bearer_token_env_var"] = json!(variable);
                    }
                    (_, Some(reference)) => {
                        entry["headers"] = json!({"Authorization": format!("Bearer {reference}")});
                    }
                }
                entry
            }
        }
    }

    /// The API key in the client's syntax for "the value of a variable".
    fn key_reference(&self) -> String {
        match self.client {
            ClientProgram::ClaudeDesktop | ClientProgram::ClaudeCode => {
                format!("${{{API_KEY_VARIABLE}}}")
            }
            ClientProgram::Cursor => format!("${{env:{API_KEY_VARIABLE}}}"),
            ClientProgram::VsCode => format!("${{input:{KEY_INPUT}}}"),
            ClientProgram::Codex => API_KEY_VARIABLE.into(),
            ClientProgram::Gemini => format!("${API_KEY_VARIABLE}"),
        }
    }

    /// The declaration of the VS Code input that asks for the API key.
    fn key_input(&self) -> Option<Json> {
        let (Reach::Http { key, .. } | Reach::Stdio { key, .. }) = &self.reach;
        let asks = self.client == ClientProgram::VsCode && *key == KeyUse::FromVariable;
        asks.then(|| {
            json!({
                "type": "promptString",
                "id": KEY_INPUT,
                "description": "API key of Switchboard",
                "password": true,
            })
        })
    }
}

#[cfg(test)]
#[path = "clients/clients_tests.rs"]
mod tests;
