//! Tools that make a start fail. The texts are a stable interface that users match in logs.

use std::fmt;

use switchboard_model::{RootKey, ServerName};

/// A mismatch that makes the start fail: a tool without the entry that it needs in `toolbox.tools`, or a name in
/// `local_tools` without a built-in tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A tool of a strict server without an entry in `toolbox.tools`.
    UnconfiguredTool { root: RootKey, server: ServerName, tool: String, configured: Vec<String> },
    /// A built-in tool without an entry; built-in tools are always strict.
    UnconfiguredLocalTool { root: RootKey, tool: String, configured: Vec<String> },
    /// `local_tools` names a built-in tool that does not exist.
    UnknownLocalTool { root: RootKey, tool: String, known: Vec<String> },
}

impl Violation {
    /// The server that offered the tool; `None` for a built-in one.
    pub fn server(&self) -> Option<&ServerName> {
        match self {
            Self::UnconfiguredTool { server, .. } => Some(server),
            Self::UnconfiguredLocalTool { .. } | Self::UnknownLocalTool { .. } => None,
        }
    }

    /// The tool's own name.
    pub fn tool(&self) -> &str {
        match self {
            Self::UnconfiguredTool { tool, .. }
            | Self::UnconfiguredLocalTool { tool, .. }
            | Self::UnknownLocalTool { tool, .. } => tool,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnconfiguredTool { root, server, tool, configured } => write!(
                f,
                "Tool '{tool}' from MCP server '{server}' is not configured in the toolbox.\n\
                 \n\
                 MCP Server: {server}\n\
                 Mode: strict\n\
                 Missing Tool: {tool}\n\
                 \n\
                 Configured tools: {}\n\
                 \n\
                 To resolve:\n\
                 1. Add the tool to {root}.toolbox.tools in your configuration, OR\n\
                 2. Change the MCP server mode to 'dynamic' and provide default_tool_config",
                listed(configured)
            ),
            Self::UnconfiguredLocalTool { root, tool, configured } => write!(
                f,
                "Tool '{tool}' (local tool) is not configured in the toolbox.\n\
                 \n\
                 Local tools must always be explicitly configured in {root}.toolbox.tools.\n\
                 \n\
                 Configured tools: {}",
                listed(configured)
            ),
            Self::UnknownLocalTool { root, tool, known } => write!(
                f,
                "Tool '{tool}' in {root}.toolbox.local_tools is not a local tool.\n\
                 \n\
                 Local tools of this program: {}",
                listed(known)
            ),
        }
    }
}

/// Formats names as `['a', 'b']`.
fn listed(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}
