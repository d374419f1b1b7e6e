//! What a configuration means once it has been read, expanded and checked.

use std::fmt;
use std::time::Duration;

use crate::{
    DEFAULT_MAX_CONCURRENT, GatewayPlan, LimitsOverlay, ProviderPlan, SecurityPlan, ServerSpec,
    ToolsetPlan,
};

/// The word for `toolset` of a server that makes no toolset: its tools are only in those that name them.
pub const NO_TOOLSET: &str = "none";

/// The whole of a valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The root key as the user wrote it, for messages that name a path.
    pub root: RootKey,
    /// How many calls run at the same time over all tools.
    pub max_concurrent: u32,
    /// The entries of `toolbox.tools`, in their order.
    pub tools: Vec<ToolEntry>,
    /// The entries of `toolbox.mcps`, in their order, which is the order of registration.
    pub servers: Vec<ServerPlan>,
    /// Which built-in tools are registered.
    pub local_tools: LocalToolChoice,
    /// Every toolset: those of `toolsets` in their order, then the ones that servers make.
    pub toolsets: Vec<ToolsetPlan>,
    /// What clients of the gateway see.
    pub gateway: GatewayPlan,
    /// Who may ask.
    pub security: SecurityPlan,
    /// The entries of `providers`, in their order; those that need no entry are not among them.
    pub providers: Vec<ProviderPlan>,
}

/// What an empty file means.
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
        }
    }
}

/// The root key of the file: ours, or the one of seed 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RootKey {
    #[default]
    Switchboard,
    Myai,
}

impl RootKey {
    /// The key as it stands in the file.
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
    /// Those that `toolbox.tools` names.
    #[default]
    NamedInTools,
    /// Every one that the program has.
    All,
    /// Just these.
    Only(Vec<String>),
}

/// Whether a tool that nobody configured is an error or gets the server's defaults.
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
    /// `tool`, for that tool of every server and of this process, or `server.tool` for just one.
    pub name: String,
    /// The limits as written.
    pub limits: LimitsOverlay,
    /// Overrides the mode of the server for this tool (seed 000, 9.3).
    pub mode: Option<AdmissionMode>,
    /// Replaces the server's description.
    pub description: Option<String>,
    /// The name that renderings use instead of `server__tool`.
    pub expose_as: Option<String>,
    /// `false` hides the tool although it is configured.
    pub enabled: bool,
    /// Declared arguments; `None` when the key is absent.
    pub arguments: Option<Vec<ArgumentSpec>>,
}

impl ToolEntry {
    /// An entry that says nothing but a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: LimitsOverlay::default(),
            mode: None,
            description: None,
            expose_as: None,
            enabled: true,
            arguments: None,
        }
    }
}

/// A declared argument of a tool (seed 002).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentSpec {
    pub name: String,
    pub kind: ArgumentType,
    pub description: String,
    /// `None` leaves it to the server's schema.
    pub required: Option<bool>,
}

/// The types of a declared argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentType {
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array,
}

impl ArgumentType {
    /// The JSON Schema word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }
}

/// One entry of `toolbox.mcps`: how to reach a server and which of its tools exist here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPlan {
    /// How to reach it.
    pub spec: ServerSpec,
    /// What happens to a tool that nobody configured.
    pub mode: AdmissionMode,
    /// `default_tool_config` as written; always there in dynamic mode.
    pub default_limits: Option<LimitsOverlay>,
    /// With a list, only tools that match one of these patterns exist.
    pub tool_allowlist: Option<Vec<String>>,
    /// Tools that match one of these patterns do not exist, whatever the allow list says.
    pub tool_denylist: Vec<String>,
    /// Whether the start fails without it.
    pub required: bool,
    /// Where that is written.
    pub required_origin: RequiredOrigin,
    /// The toolset that its tools belong to; its own name when unwritten. [`NO_TOOLSET`] stands for none.
    pub toolset: Option<String>,
    /// Patterns of the prompts that are passed on; `None` passes on all of them.
    pub prompts: Option<Vec<String>>,
    /// How often to list again a server that does not say when to.
    pub poll_interval: Option<Duration>,
}

/// Where the configuration decides that a server is required, as people are told. All of them are equal: a line that
/// moved does not change what a configuration means.
#[derive(Debug, Clone, Default)]
pub enum RequiredOrigin {
    /// Nobody knows: the server is in no file.
    #[default]
    Nowhere,
    /// At this place stands `required`.
    Written(String),
    /// At this place stands the entry of the server, without the key.
    Entry(String),
}

impl PartialEq for RequiredOrigin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RequiredOrigin {}

/// What to change so that the server is not required.
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
