//! Sources of servers: where servers are looked for besides the configuration file, under which policy, and what was
//! found there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::{
    AdmissionMode, ContentCheckOverlay, HttpTransport, LimitsOverlay, RecordOverlay, Secret,
    redact_url,
};

/// The name of the source that is chosen by the environment.
pub const AUTO_SOURCE: &str = "auto";

/// Default of `refresh` for a source that is fetched over HTTP.
pub const DEFAULT_SOURCE_REFRESH: Duration = Duration::from_mins(5);

/// The same for a file, which is cheap to read.
pub const DEFAULT_FILE_REFRESH: Duration = Duration::from_secs(5);

/// Default of `max_servers`: how many servers one source may add.
pub const DEFAULT_SOURCE_SERVERS: u32 = 1000;

/// The `discovery` section.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveryPlan {
    /// Whether the environment may choose a further source, [`AUTO_SOURCE`].
    pub auto: bool,
    /// The name of the program that uses the servers, for the `User-Agent` of requests to a tooling gateway.
    pub orchestrator_name: Option<String>,
    /// The agent whose servers a tooling gateway lists, unless a source names its own.
    pub agent_id: Option<String>,
    /// The token for tooling gateways, unless a source has its own.
    pub token: Option<Secret>,
    /// The base address of tooling gateways, unless a source has its own.
    pub endpoint: Option<Url>,
    /// The policy of the source that the environment chooses.
    pub policy: SourcePolicy,
    /// The configured sources. Earlier ones win where two name the same server.
    pub sources: Vec<SourcePlan>,
}

/// The plan of an absent section: only the environment can choose a source.
impl Default for DiscoveryPlan {
    fn default() -> Self {
        Self {
            auto: true,
            orchestrator_name: None,
            agent_id: None,
            token: None,
            endpoint: None,
            policy: SourcePolicy::default(),
            sources: Vec::new(),
        }
    }
}

impl DiscoveryPlan {
    /// The policies of all sources by name, in the order of precedence: the configured ones, then the one that the
    /// environment chooses.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &SourcePolicy)> {
        let configured = self.sources.iter().map(|source| (source.name.as_str(), &source.policy));
        configured.chain(self.auto.then_some((AUTO_SOURCE, &self.policy)))
    }
}

/// One entry of `discovery.sources`.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcePlan {
    pub name: String,
    pub kind: SourceKind,
    /// The interval between two fetches.
    pub refresh: Duration,
    pub policy: SourcePolicy,
}

/// What a source reads.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceKind {
    /// A `ToolingManifest.json`; without a path it is searched for.
    Manifest { path: Option<PathBuf> },
    /// A tooling gateway, which lists the servers of an agent.
    Gateway(GatewaySource),
    /// `server.json` documents of MCP registries.
    Registry(RegistryPlace),
}

impl SourceKind {
    /// The word of the configuration file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Manifest { .. } => "manifest",
            Self::Gateway(_) => "gateway",
            Self::Registry(_) => "registry",
        }
    }

    /// The interval between two fetches when the configuration does not say.
    pub fn default_refresh(&self) -> Duration {
        if self.is_file() { DEFAULT_FILE_REFRESH } else { DEFAULT_SOURCE_REFRESH }
    }

    /// Whether it is a file of this machine. Its servers are trusted like those of the configuration file; the addresses
    /// of all others must pass the egress check.
    pub fn is_file(&self) -> bool {
        match self {
            Self::Manifest { .. } | Self::Registry(RegistryPlace::File(_)) => true,
            Self::Gateway(_) | Self::Registry(RegistryPlace::Url { .. }) => false,
        }
    }
}

/// How to ask a tooling gateway. What is `None` comes from the section, else from the environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GatewaySource {
    /// The base address.
    pub url: Option<Url>,
    pub agent_id: Option<String>,
    pub token: Option<Secret>,
    /// The path below the address, with `{agent_id}`.
    pub path_template: Option<String>,
}

/// Where the documents of a registry are.
#[derive(Debug, Clone, PartialEq)]
pub enum RegistryPlace {
    File(PathBuf),
    Url {
        url: Url,
        /// Sent to that address as a bearer token, and to no server.
        token: Option<Secret>,
    },
}

/// What is admitted of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcePolicy {
    pub mode: AdmissionMode,
    /// Limits of tools without an entry in `toolbox.tools`.
    pub default_limits: LimitsOverlay,
    /// If set, only tools that match one of these patterns are admitted.
    pub tool_allowlist: Option<Vec<String>>,
    pub tool_denylist: Vec<String>,
    /// If set, only servers whose name in the source matches one of these patterns are added.
    pub server_allowlist: Option<Vec<String>>,
    pub server_denylist: Vec<String>,
    /// Put before the name of each server.
    pub prefix: String,
    /// How many servers are added at most.
    pub max_servers: u32,
    /// How long connecting a server and its first listing may take; `None` for the default.
    pub connect_timeout: Option<Duration>,
    /// The checks of the calls of its tools, with those of `toolbox.defaults` below them.
    pub content_check: ContentCheckOverlay,
    /// Which contents of the calls of its tools are recorded, as `toolbox.defaults` says.
    pub record: RecordOverlay,
}

impl Default for SourcePolicy {
    fn default() -> Self {
        Self {
            mode: AdmissionMode::Dynamic,
            default_limits: LimitsOverlay::default(),
            tool_allowlist: None,
            tool_denylist: Vec::new(),
            server_allowlist: None,
            server_denylist: Vec::new(),
            prefix: String::new(),
            max_servers: DEFAULT_SOURCE_SERVERS,
            connect_timeout: None,
            content_check: ContentCheckOverlay::default(),
            record: RecordOverlay::default(),
        }
    }
}

/// A server as a source describes it. It has no command on purpose: a discovered server never starts a program.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// The name in the source, which may hold any characters.
    pub name: String,
    pub url: Url,
    pub transport: HttpTransport,
    /// Sent with every request to this server.
    pub headers: BTreeMap<String, Secret>,
}

/// Leaves out the parts of the address that may be keys.
impl fmt::Debug for FoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundServer")
            .field("name", &self.name)
            .field("url", &redact_url(&self.url))
            .field("transport", &self.transport)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// The last known servers of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceServers {
    /// The name of the source.
    pub source: String,
    /// Whether it is a file of this machine; see [`SourceKind::is_file`].
    pub is_file: bool,
    pub servers: Vec<FoundServer>,
}

/// The origin of a server that is not written in the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredFrom {
    /// The name of the source.
    pub source: String,
    /// The name of the server in the source.
    pub original_name: String,
}

/// A server that a source names and that is not added.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeftOutServer {
    /// The name of the source.
    pub source: String,
    /// The name of the server in the source.
    pub name: String,
    pub reason: String,
}
