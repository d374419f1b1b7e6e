//! Settings of the gateway: toolsets, exposure, sessions and authentication.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use wildmatch::WildMatch;

use crate::{AccessRule, CallerLimits, EgressPolicy, Role, Secret, ServerName, StoreKeys};

/// Names of the gateway's meta-tools; no configured tool may be exposed under one of them.
pub const META_TOOLS: [&str; 7] = [
    "enable_toolset",
    "disable_toolset",
    "list_toolsets",
    "describe_toolset",
    "search_tools",
    "describe_tool",
    "call_tool",
];

/// Default of `session_idle`.
pub const DEFAULT_SESSION_IDLE: Duration = Duration::from_mins(30);
/// Default of `startup_wait`: how long a client's first request waits for tools while servers connect. A client that
/// gives up earlier may stay without tools for its whole life (Codex never lists again), so the value is just below the
/// clients' own timeouts. Measured: Codex 0.166 allows 30 seconds for handshake and first list, Claude Code 2.1 allows
/// 30 seconds to connect, the TypeScript SDK allows 60 seconds per request.
pub const DEFAULT_STARTUP_WAIT: Duration = Duration::from_secs(25);

/// Default of `max_sessions`.
pub const DEFAULT_MAX_SESSIONS: u32 = 10_000;

/// Default of `max_sessions_per_principal`.
pub const DEFAULT_MAX_SESSIONS_PER_PRINCIPAL: u32 = 1_000;

/// Default of `max_session_servers`.
pub const DEFAULT_MAX_SESSION_SERVERS: u32 = 256;

/// Default of `max_body_bytes`.
pub const DEFAULT_MAX_BODY_BYTES: u64 = 4 << 20;

/// Default of the allowed clock difference between a token issuer and this machine.
pub const DEFAULT_JWT_LEEWAY: Duration = Duration::from_secs(30);

/// A named group of tools that is enabled and disabled as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsetPlan {
    /// Unique among all toolsets, both configured and made from a server.
    pub name: String,
    /// Describes the contents to a model that has to choose a toolset.
    pub description: String,
    /// When a model should enable it.
    pub when_to_use: Option<String>,
    /// Servers whose tools are all members.
    pub servers: Vec<ServerName>,
    /// Further members: `tool` or `server.tool`, as names or patterns with `*` and `?`.
    pub tools: Vec<String>,
}

impl ToolsetPlan {
    /// Whether it contains every tool of the server: it names the server, or has a pattern that matches all of its
    /// tools.
    pub fn has_all_of(&self, server: &ServerName) -> bool {
        let any_tool = format!("{server}.");
        self.servers.contains(server)
            || self.tools.iter().any(|pattern| WildMatch::new(pattern).matches(&any_tool))
    }
}

/// The servers that are members of a denied toolset. They are denied as a whole, even if other toolsets contain them.
pub fn denied_servers<'p>(
    servers: impl Iterator<Item = &'p ServerName>,
    toolsets: &[ToolsetPlan],
    denied: &[String],
) -> HashSet<&'p ServerName> {
    let denied: Vec<_> = toolsets.iter().filter(|set| denied.contains(&set.name)).collect();
    servers.filter(|server| denied.iter().any(|set| set.has_all_of(server))).collect()
}

/// Which tools a client of the gateway sees at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExposureMode {
    /// All tools.
    #[default]
    Legacy,
    /// The tools of the listed toolsets.
    Static,
    /// Meta-tools, with which the client enables toolsets on demand.
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

/// The effective exposure, after command line, environment and file were considered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exposure {
    pub mode: ExposureMode,
    /// The toolsets that are shown (static) or initially enabled (dynamic); empty in legacy mode.
    pub tool_sets: Vec<String>,
    /// Mode, toolsets and the source that decided them, as a phrase for the start line.
    pub reason: String,
}

/// How tools are named in `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// `server__tool`.
    #[default]
    Prefixed,
    /// `tool`; if two tools share a name, the last registered one.
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

/// The scope of `enable_toolset` for a 2026-07-28 client that uses no session endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatelessState {
    /// No state: the response contains the tool definitions, and `call_tool` calls them.
    #[default]
    None,
    /// The enabled toolsets are shared by all clients with the same principal.
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
    /// As configured. The effective value, including command line and environment, is an [`Exposure`].
    pub exposure: Option<ExposureMode>,
    /// As configured, see `exposure`.
    pub tool_sets: Option<Vec<String>>,
    pub naming: Naming,
    /// How many toolsets one session may have enabled at the same time.
    pub max_active_toolsets: Option<u32>,
    /// If set, only these toolsets exist for clients.
    pub allow_toolsets: Option<Vec<String>>,
    /// Toolsets that do not exist for clients, even if the allow list contains them.
    pub deny_toolsets: Vec<String>,
    pub stateless_state: StatelessState,
    /// A session without a request for this long is removed.
    pub session_idle: Duration,
    /// Maximum number of sessions at the same time.
    pub max_sessions: u32,
    /// Maximum number of sessions of one principal at the same time.
    pub max_sessions_per_principal: u32,
    /// Maximum number of attached servers over all sessions.
    pub max_session_servers: u32,
    /// Maximum size of a request body.
    pub max_body_bytes: u64,
    /// How long a client that connects while servers are still connecting waits for their tools.
    pub startup_wait: Duration,
    /// Whether TrustGraph's clients are served.
    pub trustgraph: bool,
    /// The address under which clients reach the board, for URLs that it answers with; `None` takes the `Host` of each
    /// request.
    pub public_url: Option<Url>,
}

impl GatewayPlan {
    /// Whether policy lets clients see a toolset; deny wins over allow.
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
            trustgraph: false,
            public_url: None,
        }
    }
}

/// The `security` section: accepted hosts, origins and tokens, and the egress policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecurityPlan {
    /// Accepted `Host` values in addition to the loopback names; in lower case, with a port if one was configured.
    pub allowed_hosts: Vec<String>,
    /// Accepted `Origin` values: `scheme://host[:port]`.
    pub allowed_origins: Vec<String>,
    /// Accepts JWT access tokens of an authorization server.
    pub jwt: Option<JwtPlan>,
    /// Which addresses attached servers may have.
    pub egress: EgressPolicy,
    /// The keys that encrypt the sign-ins in the store.
    pub store_keys: StoreKeys,
}

/// Which tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtPlan {
    /// The exact `iss` of accepted tokens.
    pub issuer: String,
    /// The `aud` that tokens must contain.
    pub audience: String,
    /// The source of the issuer's public keys.
    pub jwks: JwksSource,
    /// Scopes that a token must have, all of them.
    pub required_scopes: Vec<String>,
    /// Allowed clock difference between the issuer and this machine.
    pub leeway: Duration,
    /// The `resource` of the protected resource metadata (RFC 9728).
    pub resource: Url,
    /// What tokens grant, by their claims.
    pub grants: JwtGrants,
    /// The client of the board at the issuer, with which people show on sign-in pages who they are.
    pub page_client: Option<PageClient>,
}

/// The OAuth client of the board at the issuer of its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageClient {
    pub id: String,
    pub secret: Option<Secret>,
    pub scopes: Vec<String>,
}

/// What tokens grant, by their claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JwtGrants {
    /// The rules; `None` if every token grants everything.
    pub rules: Option<Vec<ClaimRule>>,
    /// What a token grants that matches no rule; `None` for nothing.
    pub otherwise: Option<ClaimGrant>,
}

/// One rule of `security.jwt.grants`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRule {
    /// The name of the claim, or a JSON pointer into the claims.
    pub claim: String,
    /// The values of which the claim must have one.
    pub values: Vec<String>,
    pub grant: ClaimGrant,
}

/// What a matching token gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimGrant {
    /// A role, if the scopes of the token do not give a higher one.
    pub role: Option<Role>,
    pub rule: AccessRule,
    pub limits: CallerLimits,
}

/// The source of an issuer's public keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksSource {
    /// Fetched over https, or over http from this machine.
    Url(Url),
    /// Read from a file; relative paths start at the working directory of the process.
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
