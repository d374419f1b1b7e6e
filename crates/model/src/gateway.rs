//! What the gateway shows to whom: toolsets, exposure, sessions and who is let in.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use wildmatch::WildMatch;

use crate::{EgressPolicy, ServerName};

/// The tools that the gateway itself adds; no configured tool may be shown under one of these names.
pub const META_TOOLS: [&str; 7] = [
    "enable_toolset",
    "disable_toolset",
    "list_toolsets",
    "describe_toolset",
    "search_tools",
    "describe_tool",
    "call_tool",
];

/// How long a session lives without a request when the configuration does not say.
pub const DEFAULT_SESSION_IDLE: Duration = Duration::from_mins(30);
/// How long a client waits for tools while the servers are being connected. A client that gives up before has no tools for
/// its whole life, and Codex never lists again: so as long as clients wait, with a margin. Measured: Codex 0.166 gives its
/// handshake and first list 30 seconds, Claude Code 2.1 its connection 30 seconds; the TypeScript SDK gives each request 60.
pub const DEFAULT_STARTUP_WAIT: Duration = Duration::from_secs(25);

/// How many sessions live at the same time when the configuration does not say.
pub const DEFAULT_MAX_SESSIONS: u32 = 10_000;

/// How many of them may belong to one principal.
pub const DEFAULT_MAX_SESSIONS_PER_PRINCIPAL: u32 = 1_000;

/// How many servers all sessions together may bring with them.
pub const DEFAULT_MAX_SESSION_SERVERS: u32 = 256;

/// The largest request body that is read.
pub const DEFAULT_MAX_BODY_BYTES: u64 = 4 << 20;

/// How far the clocks of an issuer and of this machine may differ.
pub const DEFAULT_JWT_LEEWAY: Duration = Duration::from_secs(30);

/// A named group of tools that is switched on and off as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsetPlan {
    /// Unique among all sets, written and implied.
    pub name: String,
    /// What is in it, for a model that has to choose.
    pub description: String,
    /// When a model should enable it.
    pub when_to_use: Option<String>,
    /// Servers whose tools are all members.
    pub servers: Vec<ServerName>,
    /// Further members: `tool` or `server.tool`, as names or patterns with `*` and `?`.
    pub tools: Vec<String>,
}

impl ToolsetPlan {
    /// Whether it has whatever a server may offer: it names the server, or has a pattern for all of its tools.
    pub fn has_all_of(&self, server: &ServerName) -> bool {
        let any_tool = format!("{server}.");
        self.servers.contains(server)
            || self.tools.iter().any(|pattern| WildMatch::new(pattern).matches(&any_tool))
    }
}

/// Which of these servers are in a denied set: as a whole, whatever other sets they are in.
pub fn denied_servers<'p>(
    servers: impl Iterator<Item = &'p ServerName>,
    toolsets: &[ToolsetPlan],
    denied: &[String],
) -> HashSet<&'p ServerName> {
    let denied: Vec<_> = toolsets.iter().filter(|set| denied.contains(&set.name)).collect();
    servers.filter(|server| denied.iter().any(|set| set.has_all_of(server))).collect()
}

/// What a client of the gateway sees at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExposureMode {
    /// Every tool.
    #[default]
    Legacy,
    /// The tools of named toolsets.
    Static,
    /// Meta-tools that enable toolsets on demand.
    Dynamic,
}

impl ExposureMode {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// The exposure in force, from whichever source decided it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exposure {
    pub mode: ExposureMode,
    /// The sets that are shown (static) or enabled at first (dynamic); none in legacy mode.
    pub tool_sets: Vec<String>,
    /// Mode, sets and who said so, as a phrase for the start line.
    pub reason: String,
}

/// What tools are called in a `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// `server__tool`.
    #[default]
    Prefixed,
    /// `tool`; of two with one name, the last registered one.
    Bare,
}

impl Naming {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prefixed => "prefixed",
            Self::Bare => "bare",
        }
    }
}

/// What `enable_toolset` switches for a 2026-07-28 client that uses no session endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatelessState {
    /// Nothing: the answer has the definitions, and `call_tool` reaches the tools.
    #[default]
    None,
    /// The sets of everybody who presents the same credential.
    Principal,
}

impl StatelessState {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Principal => "principal",
        }
    }
}

/// The `gateway` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayPlan {
    /// As written. What is in force, command line and environment included, is an [`Exposure`].
    pub exposure: Option<ExposureMode>,
    /// As written, see `exposure`.
    pub tool_sets: Option<Vec<String>>,
    pub naming: Naming,
    /// How many sets one session may have enabled at the same time.
    pub max_active_toolsets: Option<u32>,
    /// With a list, only these sets exist for clients.
    pub allow_toolsets: Option<Vec<String>>,
    /// Sets that do not exist for clients, whatever the allow list says.
    pub deny_toolsets: Vec<String>,
    pub stateless_state: StatelessState,
    /// A session without a request for this long is forgotten.
    pub session_idle: Duration,
    /// How many sessions live at the same time.
    pub max_sessions: u32,
    /// How many of them may belong to one principal.
    pub max_sessions_per_principal: u32,
    /// How many servers all sessions together may bring with them.
    pub max_session_servers: u32,
    /// The largest request body that is read.
    pub max_body_bytes: u64,
    /// How long a client that comes while the servers are being connected waits for their tools.
    pub startup_wait: Duration,
}

impl GatewayPlan {
    /// Whether policy lets clients see a set; deny wins over allow.
    pub fn admits(&self, toolset: &str) -> bool {
        let is_in = |names: &Vec<String>| names.iter().any(|name| name == toolset);
        self.allow_toolsets.as_ref().is_none_or(is_in) && !is_in(&self.deny_toolsets)
    }
}

impl Default for GatewayPlan {
    fn default() -> Self {
        Self {
            exposure: None,
            tool_sets: None,
            naming: Naming::default(),
            max_active_toolsets: None,
            allow_toolsets: None,
            deny_toolsets: Vec::new(),
            stateless_state: StatelessState::default(),
            session_idle: DEFAULT_SESSION_IDLE,
            max_sessions: DEFAULT_MAX_SESSIONS,
            max_sessions_per_principal: DEFAULT_MAX_SESSIONS_PER_PRINCIPAL,
            max_session_servers: DEFAULT_MAX_SESSION_SERVERS,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            startup_wait: DEFAULT_STARTUP_WAIT,
        }
    }
}

/// The `security` section: who may ask, and what may be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecurityPlan {
    /// Names under which this machine may be addressed, beside its loopback names; in lower case, with
    /// a port where one was written.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may ask, as browsers send them: `scheme://host[:port]`.
    pub allowed_origins: Vec<String>,
    /// Accepts tokens of an authorization server.
    pub jwt: Option<JwtPlan>,
    /// Where servers that the file does not name may be.
    pub egress: EgressPolicy,
}

/// Which tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtPlan {
    /// `iss` as it must stand in a token, letter for letter.
    pub issuer: String,
    /// What `aud` must name.
    pub audience: String,
    /// Where the issuer's keys are.
    pub jwks: JwksSource,
    /// A token needs all of these.
    pub required_scopes: Vec<String>,
    /// How far the two clocks may differ.
    pub leeway: Duration,
    /// The resource that the metadata of RFC 9728 names.
    pub resource: Url,
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksSource {
    /// Fetched: https, or http on this machine.
    Url(Url),
    /// Read: absolute, or relative to the working directory of the process.
    File(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_over_allow() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let open = GatewayPlan::default();
        let denied = GatewayPlan { deny_toolsets: names(&["b"]), ..open.clone() };
        let allowed = GatewayPlan { allow_toolsets: Some(names(&["a", "b"])), ..denied.clone() };
        let nothing = GatewayPlan { allow_toolsets: Some(vec![]), ..open.clone() };
        let admitted = |plan: &GatewayPlan| ["a", "b", "c"].map(|name| plan.admits(name));
        assert_eq!(admitted(&open), [true, true, true]);
        assert_eq!(admitted(&denied), [true, false, true]);
        assert_eq!(admitted(&allowed), [true, false, false]);
        assert_eq!(admitted(&nothing), [false, false, false]);
    }
}
