//! The types of the `discovery` section. As in [`crate::raw`], their doc comments become the JSON Schema that users read.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_model as model;

use crate::raw::{RawDuration, RawMode, RawToolDefaults};
use crate::raw_threat_protection::RawContentCheck;

/// Where servers are looked for besides `toolbox.mcps`. A discovered server is never required and never a program.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Discovery")]
#[expect(dead_code, reason = "`sources` is read entry by entry, so that one fault hides no other")]
pub(crate) struct RawDiscovery {
    /// Whether the environment may choose a further source, named `auto`: a `ToolingManifest.json` that is found, if
    /// `ENVIRONMENT` is `Development`; else the tooling gateway, if its address, an agent id and a token are set here or
    /// in `MCP_PLATFORM_ENDPOINT`, `SWITCHBOARD_AGENT_ID` and `SWITCHBOARD_AGENT_TOKEN`.
    #[schemars(extend("default" = true))]
    pub(crate) auto: Option<bool>,
    /// The name of your program in the `User-Agent` of requests to tooling gateways.
    #[schemars(length(min = 1), extend("examples" = ["LangChain"]))]
    pub(crate) orchestrator_name: Option<String>,
    /// The agent whose servers tooling gateways list. Default: `SWITCHBOARD_AGENT_ID`.
    #[schemars(length(min = 1), extend("examples" = ["app-id-123"]))]
    pub(crate) agent_id: Option<String>,
    /// The token for tooling gateways. A secret: use `${VAR}` or `file:/path`. Default: `SWITCHBOARD_AGENT_TOKEN`.
    #[schemars(length(min = 1), extend("examples" = ["${AGENT_TOKEN}", "file:/run/secrets/agent-token"]))]
    pub(crate) token: Option<String>,
    /// The base address of tooling gateways. Default: `MCP_PLATFORM_ENDPOINT`.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://gateway.example.com"]))]
    pub(crate) endpoint: Option<String>,
    /// The admission mode of the source `auto`, and of sources that set none.
    #[schemars(extend("default" = "dynamic"))]
    pub(crate) mode: Option<RawMode>,
    /// Limits of tools without an entry in `toolbox.tools`, for the source `auto` and for sources that set none. Default:
    /// those of `toolbox.defaults`.
    pub(crate) default_tool_config: Option<RawToolDefaults>,
    /// How long connecting a server and its first listing may take, for the source `auto` and for sources that set none.
    /// Default: as in `toolbox.defaults`, else 30s.
    pub(crate) connect_timeout: Option<RawDuration>,
    /// The checks of the calls of tools by `threat_protection.endpoint`, for the source `auto` and for sources that set
    /// none. Default: those of `toolbox.defaults`.
    pub(crate) content_check: Option<RawContentCheck>,
    /// The sources. Servers of `toolbox.mcps` win over discovered ones of the same name, earlier sources over later ones.
    pub(crate) sources: Option<Vec<RawSource>>,
}

/// A source of servers, and the policy for what it names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Source")]
pub(crate) struct RawSource {
    /// A name of your choice, unique in this file; `auto` is reserved.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["team"]))]
    pub(crate) name: Option<String>,
    /// `manifest`: a `ToolingManifest.json`. `gateway`: a tooling gateway. `registry`: `server.json` documents of an MCP
    /// registry.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(crate) kind: Option<RawSourceType>,
    /// The file of a `manifest` or `registry`; relative to this file. Default of a manifest: `ToolingManifest.json` in the
    /// working directory, its parent, or the directory of this file.
    #[schemars(length(min = 1), extend("examples" = ["ToolingManifest.json"]))]
    pub(crate) path: Option<String>,
    /// The base address of a `gateway`, or the address of the documents of a `registry`.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://registry.example.com/v0/servers"]))]
    pub(crate) url: Option<String>,
    /// The agent whose servers a `gateway` lists. Default: `discovery.agent_id`.
    #[schemars(length(min = 1), extend("examples" = ["app-id-123"]))]
    pub(crate) agent_id: Option<String>,
    /// The token for the `gateway` or the `registry`. A secret: use `${VAR}` or `file:/path`. Default for a gateway:
    /// `discovery.token`.
    #[schemars(length(min = 1), extend("examples" = ["${AGENT_TOKEN}"]))]
    pub(crate) token: Option<String>,
    /// The path of the list of a `gateway`, below its address.
    #[schemars(
        length(min = 1),
        extend("examples" = ["/mcp/servers?agentId={agent_id}"], "default" = "/agents/v2/{agent_id}/mcpServers")
    )]
    pub(crate) path_template: Option<String>,
    /// The interval between two looks at the source. Default: 5m, or 5s for a file.
    pub(crate) refresh: Option<RawDuration>,
    /// `dynamic`: tools without an entry in `toolbox.tools` run with the limits of `default_tool_config`. `strict`: they
    /// do not exist. Default: `discovery.mode`.
    pub(crate) mode: Option<RawMode>,
    /// Limits of tools without an entry in `toolbox.tools`. Default: `discovery.default_tool_config`.
    pub(crate) default_tool_config: Option<RawToolDefaults>,
    /// If set, only tools that match one of these patterns exist.
    #[schemars(extend("examples" = [["get_*"]]))]
    pub(crate) allow: Option<Vec<String>>,
    /// Tools that match one of these patterns do not exist.
    #[schemars(extend("examples" = [["delete_*"]]))]
    pub(crate) deny: Option<Vec<String>>,
    /// Which servers of the source are added.
    pub(crate) servers: Option<RawSourceServers>,
    /// Put before the name of each server.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$"), extend("examples" = ["team-"]))]
    pub(crate) prefix: Option<String>,
    /// How many servers are added at most; the others are reported.
    #[schemars(range(min = 1, max = 100_000u32), extend("default" = model::DEFAULT_SOURCE_SERVERS))]
    pub(crate) max_servers: Option<u32>,
    /// How long connecting a server and its first listing may take. Default:
    /// `discovery.connect_timeout`.
    pub(crate) connect_timeout: Option<RawDuration>,
    /// The checks of the calls of its tools by `threat_protection.endpoint`. Default: `discovery.content_check`.
    pub(crate) content_check: Option<RawContentCheck>,
}

/// Which servers of a source are added, by their names in the source.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SourceServers")]
pub(crate) struct RawSourceServers {
    /// If set, only servers that match one of these patterns are added.
    #[schemars(extend("examples" = [["io.github.example/*"]]))]
    pub(crate) allow: Option<Vec<String>>,
    /// Servers that match one of these patterns are not added.
    #[schemars(extend("examples" = [["*-beta"]]))]
    pub(crate) deny: Option<Vec<String>>,
}

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawSourceType {
    Manifest,
    Gateway,
    Registry,
}
