//! The plan: a configuration after parsing, expansion and validation.

use std::fmt;
use std::time::Duration;

use crate::{
    AgentPlan, ArgumentSpec, ContentCheckOverlay, DEFAULT_MAX_CONCURRENT, DiscoveredFrom,
    DiscoveryPlan, GatewayPlan, LimitsOverlay, PromptToolPlan, ProviderPlan, RecordOverlay,
    RecordsPlan, SecurityPlan, ServerSpec, StorePlan, ThreatProtectionPlan, TlsPlan, ToolGrouping,
    ToolsetPlan,
};

/// Value of a server's `toolset` that makes no toolset: its tools are members only of toolsets that list them.
pub const NO_TOOLSET: &str = "none";

/// A complete, valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The root key as written, for messages that name a path in the file.
    pub root: RootKey,
    /// Maximum number of calls that run at the same time over all tools.
    pub max_concurrent: u32,
    /// The entries of `toolbox.tools`, in file order.
    pub tools: Vec<ToolEntry>,
    /// The entries of `toolbox.mcps`, in file order, which is the order of registration; then discovered servers, in
    /// the order of their sources.
    pub servers: Vec<ServerPlan>,
    /// Which built-in tools are registered.
    pub local_tools: LocalToolChoice,
    /// Every toolset: those of `toolsets` in file order, then the ones made from servers.
    pub toolsets: Vec<ToolsetPlan>,
    /// Which tools the gateway exposes to clients, and the limits of sessions.
    pub gateway: GatewayPlan,
    /// Accepted hosts, origins and tokens, and the egress policy.
    pub security: SecurityPlan,
    /// The entries of `providers`, in file order, without the providers that need no entry.
    pub providers: Vec<ProviderPlan>,
    /// What is checked before it goes on, and by which service.
    pub threat_protection: ThreatProtectionPlan,
    /// The entries of `agents`, in file order.
    pub agents: Vec<AgentPlan>,
    /// Where servers are looked for besides the file.
    pub discovery: DiscoveryPlan,
    /// How many records of calls are kept.
    pub records: RecordsPlan,
    /// The certificate of the HTTP server; `None`: it serves HTTP without TLS.
    pub tls: Option<TlsPlan>,
    /// Where the data is kept.
    pub store: StorePlan,
}

/// The plan of an empty file.
impl Default for Plan {
    fn default() -> Self {
        Self {
            root: RootKey::default(),
            max_concurrent: DEFAULT_MAX_CONCURRENT,
            tools: Vec::new(),
            servers: Vec::new(),
            local_tools: LocalToolChoice::default(),
            toolsets: Vec::new(),
            gateway: GatewayPlan::default(),
            security: SecurityPlan::default(),
            providers: Vec::new(),
            threat_protection: ThreatProtectionPlan::default(),
            agents: Vec::new(),
            discovery: DiscoveryPlan::default(),
            records: RecordsPlan::default(),
            tls: None,
            store: StorePlan::default(),
        }
    }
}

impl Plan {
    /// The agent profile of a name.
    pub fn agent(&self, name: &str) -> Option<&AgentPlan> {
        self.agents.iter().find(|agent| agent.name == name)
    }
}

/// The root key of the file: `switchboard`, or `myai` of the chatagent format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RootKey {
    #[default]
    Switchboard,
    Myai,
}

impl RootKey {
    /// The key as written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Switchboard => "switchboard",
            Self::Myai => "myai",
        }
    }
}

impl fmt::Display for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which built-in tools are registered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LocalToolChoice {
    /// Those with an entry in `toolbox.tools`.
    #[default]
    NamedInTools,
    /// Every built-in tool.
    All,
    /// The listed ones.
    Only(Vec<String>),
}

/// Whether a tool without an entry in `toolbox.tools` is an error (strict) or gets the server's defaults (dynamic).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionMode {
    Strict,
    Dynamic,
}

impl AdmissionMode {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Dynamic => "dynamic",
        }
    }
}

/// One entry of `toolbox.tools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// `tool`, which applies to that tool of every server and to a built-in one, or `server.tool`.
    pub name: String,
    /// The id under which TrustGraph's clients know the entry; `None` if it is the exposed name.
    pub id: Option<String>,
    /// The limits as configured.
    pub limits: LimitsOverlay,
    /// Overrides the admission mode of the server for this tool.
    pub mode: Option<AdmissionMode>,
    /// Replaces the server's description.
    pub description: Option<String>,
    /// The exposed name, used instead of `server__tool`.
    pub expose_as: Option<String>,
    /// `false` keeps the tool out of the catalog.
    pub enabled: bool,
    /// Declared arguments; `None` when the key is absent.
    pub arguments: Option<Vec<ArgumentSpec>>,
    /// Whether arguments are checked before a call is sent; `None` keeps what the server's entry says.
    pub validate_arguments: Option<bool>,
    /// The checks of its calls as configured.
    pub content_check: ContentCheckOverlay,
    /// Which contents of its calls are recorded, as configured.
    pub record: RecordOverlay,
    /// The groups and states in which a turn may use the tool.
    pub grouping: ToolGrouping,
    /// What makes it a prompt tool; `None` for settings of another tool.
    pub prompt: Option<PromptToolPlan>,
}

impl ToolEntry {
    /// An entry with a name and no other field.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            id: None,
            limits: LimitsOverlay::default(),
            mode: None,
            description: None,
            expose_as: None,
            enabled: true,
            arguments: None,
            validate_arguments: None,
            content_check: ContentCheckOverlay::default(),
            record: RecordOverlay::default(),
            grouping: ToolGrouping::default(),
            prompt: None,
        }
    }
}

/// One entry of `toolbox.mcps`: how to reach a server and which of its tools are admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPlan {
    /// How to reach it.
    pub spec: ServerSpec,
    /// What happens to a tool without an entry in `toolbox.tools`.
    pub mode: AdmissionMode,
    /// `default_tool_config` as configured; always set in dynamic mode.
    pub default_limits: Option<LimitsOverlay>,
    /// If set, only tools that match one of these patterns are admitted.
    pub tool_allowlist: Option<Vec<String>>,
    /// Tools that match one of these patterns are not admitted, even if the allow list matches.
    pub tool_denylist: Vec<String>,
    /// Whether the start fails when the server cannot be reached.
    pub required: bool,
    /// Where the configuration says so, for messages.
    pub required_origin: RequiredOrigin,
    /// The toolset of its tools; the server's name if not configured. [`NO_TOOLSET`] means none.
    pub toolset: Option<String>,
    /// Patterns of the prompts that clients see; `None` means all.
    pub prompts: Option<Vec<String>>,
    /// Interval of listing again a server that sends no change notifications.
    pub poll_interval: Option<Duration>,
    /// Whether the arguments of its tools are checked before a call is sent; a tool entry can say otherwise.
    pub validate_arguments: bool,
    /// The checks of the calls of its tools, with those of `toolbox.defaults` below them; a tool entry can say otherwise.
    pub content_check: ContentCheckOverlay,
    /// Which contents of the calls of its tools are recorded, with `toolbox.defaults` below; a tool entry can say otherwise.
    pub record: RecordOverlay,
    /// The source that named the server; `None` for a server of the configuration file.
    pub discovered: Option<DiscoveredFrom>,
}

impl ServerPlan {
    /// Whether somebody elsewhere named the server: a gateway or a registry behind a URL. A manifest on this machine is
    /// trusted like the configuration file.
    pub fn is_foreign(&self) -> bool {
        self.discovered.is_some() && self.spec.egress.is_some()
    }
}

/// The place in the configuration that makes a server required, for messages. All values compare equal, so that a moved
/// line does not count as a change of the configuration.
#[derive(Debug, Clone, Default)]
pub enum RequiredOrigin {
    /// Unknown: the server comes from no file.
    #[default]
    Nowhere,
    /// The place of the key `required`.
    Written(String),
    /// The place of the server's entry, which has no such key.
    Entry(String),
}

impl PartialEq for RequiredOrigin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RequiredOrigin {}

/// Displays what to change so that the server is not required.
impl fmt::Display for RequiredOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("set `required: false` for the server"),
            Self::Written(place) => write!(f, "set `required: false` at {place}"),
            Self::Entry(place) => {
                write!(f, "add `required: false` to the server at {place}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_required_says_what_to_change_and_is_no_change_of_the_plan() {
        let (written, entry) = ("board.yaml:7:9".to_owned(), "board.yaml:5:3".to_owned());
        for (origin, text) in [
            (RequiredOrigin::Nowhere, "set `required: false` for the server"),
            (RequiredOrigin::Written(written), "set `required: false` at board.yaml:7:9"),
            (RequiredOrigin::Entry(entry), "add `required: false` to the server at board.yaml:5:3"),
        ] {
            assert_eq!(origin.to_string(), text);
            assert_eq!(origin, RequiredOrigin::default(), "a moved line is no change");
        }
    }
}
