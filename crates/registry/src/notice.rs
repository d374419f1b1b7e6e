//! Messages about an admission. Their texts are a stable interface that users match in logs.

use std::fmt;

use switchboard_model::{CanonicalName, LimitsOverlay, QuarantinedTool, ServerName, ToolLimits};

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

/// Something that happened to a tool or a server while the catalog was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A server offers no tools.
    NoTools { server: ServerName, place: String },
    /// A tool without an entry is registered with the server's defaults.
    UsingDefault { server: ServerName, tool: String },
    /// Like `UsingDefault`, for a tool that the server did not offer when it was last listed.
    NewTool { server: ServerName, tool: String },
    /// A tool that the server offered when it was last listed is gone.
    NoLongerAvailable { server: ServerName, tool: String },
    /// An entry names a tool that its server does not offer, or, without a server, that no server offers.
    NotOffered { server: Option<ServerName>, tool: String },
    /// A tool is registered with the limits of its entry.
    Explicit { tool: String, limits: ToolLimits },
    /// A tool is registered with the limits of its entry merged over the server's defaults.
    Merged { tool: String, explicit: LimitsOverlay, default: LimitsOverlay, limits: ToolLimits },
    /// Two tools have the same bare name, which then means the later one. Canonical names are not affected.
    Collision { bare: String, loser: CanonicalName, winner: CanonicalName, is_used: bool },
    /// A strict server offers, after the start, a tool without an entry.
    Refused { message: String },
    /// A discovered server whose source is strict offers a tool without an entry, which is not registered.
    NotAdmitted { server: ServerName, source: String, tool: String },
    /// One server offers the same tool name twice; the later one wins.
    DuplicateTool { server: ServerName, tool: String },
    /// An allow or deny list names, without a wildcard, a tool that the server does not offer.
    ListedToolMissing { server: ServerName, list: &'static str, tool: String },
    /// A tool whose definition is invalid.
    Quarantined { server: ServerName, tool: QuarantinedTool },
    /// Tools whose definitions strict clients would reject; lists show them repaired. One notice per server.
    Repaired { server: ServerName, count: usize, tool: String, repair: String },
}

impl Notice {
    /// The severity of this notice.
    pub fn level(&self) -> Level {
        match self {
            Self::UsingDefault { .. } | Self::NewTool { .. } | Self::NotAdmitted { .. } => {
                Level::Info
            }
            Self::Explicit { .. }
            | Self::Merged { .. }
            | Self::Collision { is_used: false, .. } => Level::Debug,
            Self::Refused { .. } => Level::Error,
            Self::NoTools { .. }
            | Self::NoLongerAvailable { .. }
            | Self::NotOffered { .. }
            | Self::Collision { is_used: true, .. }
            | Self::DuplicateTool { .. }
            | Self::ListedToolMissing { .. }
            | Self::Quarantined { .. }
            | Self::Repaired { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTools { server, place } => {
                write!(f, "MCP server '{server}' at {place} returned no tools")
            }
            Self::UsingDefault { server, tool } => write!(
                f,
                "Tool '{tool}' from MCP '{server}' not explicitly configured, using default configuration"
            ),
            Self::NewTool { server, tool } => write!(
                f,
                "New tool '{tool}' discovered from MCP server '{server}', registering with default configuration"
            ),
            Self::NoLongerAvailable { server, tool } => write!(
                f,
                "Tool '{tool}' was configured but is no longer available from MCP server '{server}'"
            ),
            Self::NotOffered { server: Some(server), tool } => write!(
                f,
                "Tool '{tool}' is configured for MCP server '{server}', which does not offer it"
            ),
            Self::NotOffered { server: None, tool } => {
                write!(f, "Tool '{tool}' is configured in the toolbox, but no MCP server offers it")
            }
            Self::Explicit { tool, limits } => {
                write!(f, "Tool '{tool}' registered with explicit configuration: {limits}")
            }
            Self::Merged { tool, explicit, default, limits } => write!(
                f,
                "Tool '{tool}' configuration merged: explicit={explicit}, default={default}, final={limits}"
            ),
            Self::Collision { bare, loser, winner, is_used: _ } => write!(
                f,
                "Tool name '{bare}' is used by '{loser}' and '{winner}': the bare name means '{winner}', \
                 '{loser}' is reached by its full name"
            ),
            Self::Refused { message } => f.write_str(message),
            Self::NotAdmitted { server, source, tool } => write!(
                f,
                "Tool '{tool}' from MCP '{server}' is not registered: it has no entry in the toolbox, and the source \
                 '{source}' is strict"
            ),
            Self::DuplicateTool { server, tool } => write!(
                f,
                "MCP server '{server}' lists tool '{tool}' more than once; the last definition is used"
            ),
            Self::ListedToolMissing { server, list, tool } => write!(
                f,
                "{list} of MCP server '{server}' names tool '{tool}', which the server does not have"
            ),
            Self::Quarantined { server, tool: QuarantinedTool { tool, reason } } => match tool {
                Some(tool) => {
                    write!(f, "Tool '{tool}' of MCP server '{server}' is quarantined: {reason}")
                }
                None => write!(f, "A tool of MCP server '{server}' is quarantined: {reason}"),
            },
            Self::Repaired { server, count: 1, tool, repair } => write!(
                f,
                "Tool '{tool}' of MCP server '{server}' is listed in a repaired form, because strict clients \
                 refuse its definition: {repair}"
            ),
            Self::Repaired { server, count, tool, repair } => write!(
                f,
                "{count} tools of MCP server '{server}' are listed in a repaired form, because strict clients \
                 refuse their definitions; the first is '{tool}': {repair}"
            ),
        }
    }
}
