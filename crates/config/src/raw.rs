//! The file as it is written.
//!
//! These types are the JSON Schema that editors use and that every file is checked against, so a doc
//! comment here is what people read while they type. Every field is an `Option`: the later steps must
//! tell "written" from "absent", and a half-valid entry must still be checked for its other faults.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use switchboard_model::{self as model, BUILT_IN_LIMITS};

use crate::raw_provider::RawProvider;

/// What stands below the root key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Switchboard")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawConfig {
    /// The servers, their tools and the limits under which they run.
    pub(crate) toolbox: Option<RawToolbox>,
    /// Named groups of tools that clients of the gateway switch on and off. Every server is a set of its
    /// own, too.
    pub(crate) toolsets: Option<Vec<RawToolset>>,
    /// What MCP clients see of the tools.
    pub(crate) gateway: Option<RawGateway>,
    /// Who may ask, and where servers of sessions may be.
    pub(crate) security: Option<RawSecurity>,
    /// The models that answer in chats. `demo` is always there, and so are `openai`, `anthropic` and `gemini` with the
    /// keys of the environment, and `ollama`; an entry of the same name replaces one of them.
    pub(crate) providers: Option<Vec<RawProvider>>,
}

/// The servers, their tools and the limits under which they run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Toolbox")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawToolbox {
    /// How many calls run at the same time over all tools.
    #[schemars(
        range(min = 1, max = 4_294_967_295u32),
        extend("examples" = [10], "default" = model::DEFAULT_MAX_CONCURRENT)
    )]
    pub(crate) max_concurrent: Option<u32>,
    /// Settings of single tools.
    pub(crate) tools: Option<Vec<RawTool>>,
    /// The MCP servers, in the order in which they are registered.
    pub(crate) mcps: Option<Vec<RawServer>>,
    /// What holds for every server of `mcps` that does not say otherwise.
    pub(crate) defaults: Option<RawServerDefaults>,
    /// The built-in tools to register: `all`, or a list of names. Without this key, those that `tools`
    /// names.
    pub(crate) local_tools: Option<RawLocalTools>,
}

/// Settings of one tool. What is not written here comes from the server's `default_tool_config`, and
/// then from the built-in limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tool")]
pub(crate) struct RawTool {
    /// `tool` for that tool of every server, or `server.tool` for just one.
    #[schemars(required, length(min = 1), extend("examples" = ["get_customer", "customers.get_customer"]))]
    pub(crate) name: Option<String>,
    /// How many calls of this tool run at the same time.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [10]))]
    pub(crate) max_instances: Option<u32>,
    /// How long one call may run, and, when it reports progress, how long after the last of it.
    pub(crate) timeout: Option<RawDuration>,
    /// How long a call may run that reports progress; never less than `timeout`. Set both to the same to switch this off.
    pub(crate) max_timeout: Option<RawDuration>,
    /// How long a call may wait for a free slot. Without it, as long as `timeout`.
    pub(crate) queue_timeout: Option<RawDuration>,
    /// How long a running call may stay silent. Without it, for the whole of `timeout`.
    pub(crate) inactivity_timeout: Option<RawDuration>,
    /// Larger results are stored and answered with a preview.
    #[schemars(range(min = 1024), extend("examples" = [1_048_576]))]
    pub(crate) max_result_bytes: Option<u64>,
    /// Overrides the mode of the server for this tool: `strict` or `dynamic`.
    pub(crate) mode: Option<RawMode>,
    /// Replaces the description that the server gives.
    pub(crate) description: Option<String>,
    /// The name under which models see the tool, instead of `server__tool`.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["find_customer"]))]
    pub(crate) expose_as: Option<String>,
    /// `false` hides the tool.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// Declares arguments, for servers that describe theirs badly.
    pub(crate) arguments: Option<Vec<RawArgument>>,
}

/// One declared argument of a tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Argument")]
pub(crate) struct RawArgument {
    /// The name of the argument.
    #[schemars(required, length(min = 1))]
    pub(crate) name: Option<String>,
    /// The JSON type of the argument.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(crate) kind: Option<RawArgumentType>,
    /// What the argument means, for the model.
    #[schemars(required)]
    pub(crate) description: Option<String>,
    /// Whether it must be given. Without this key the server's own schema decides.
    pub(crate) required: Option<bool>,
}

/// One MCP server: how to reach it and which of its tools exist here.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Server")]
pub(crate) struct RawServer {
    /// A name of your choice, unique in this file; `local` is taken.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["customers"]))]
    pub(crate) name: Option<String>,
    /// `streamable_http`, `sse` (the transport of 2024) or `stdio`. Without it: `stdio` when there is a
    /// `command`, `streamable_http` when there is a `url`.
    pub(crate) transport: Option<RawTransport>,
    /// The address of a server that is reached over HTTP.
    #[schemars(extend("format" = "uri"), extend("examples" = ["http://localhost:8180/mcp"]))]
    pub(crate) url: Option<String>,
    /// HTTP headers that are sent with every request. Values are secrets: use `${VAR}` or `file:/path`.
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// How to be let in.
    pub(crate) auth: Option<RawAuth>,
    /// The program of a `stdio` server.
    #[schemars(extend("examples" = ["npx"]))]
    pub(crate) command: Option<String>,
    /// The arguments of the program.
    pub(crate) args: Option<Vec<String>>,
    /// Environment variables of the program. Values are secrets: use `${VAR}` or `file:/path`.
    pub(crate) env: Option<BTreeMap<String, String>>,
    /// The directory that the program starts in; relative to this file.
    pub(crate) cwd: Option<String>,
    /// `shared`: one connection serves everybody; for a `stdio` server that is one process. `per_session`: each session
    /// has a connection of its own, opened by its first call, with its own state, questions and roots: a process of a
    /// `stdio` server, an MCP session of one that is reached over HTTP.
    #[schemars(extend("default" = "shared"))]
    pub(crate) connection: Option<RawConnection>,
    /// With `connection: per_session`: how many sessions may have a connection at the same time. For one more, the
    /// connection that has been idle for longest is closed; while all are in use, calls of further sessions are refused.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("default" = model::DEFAULT_MAX_CONNECTIONS))]
    pub(crate) max_connections: Option<u32>,
    /// With `connection: per_session`: how long a connection is kept without a call. The next call opens another one.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_CONNECTION_IDLE)))]
    pub(crate) connection_idle_timeout: Option<RawDuration>,
    /// Another name of `connection`, for `stdio` servers.
    pub(crate) process: Option<RawConnection>,
    /// Another name of `max_connections`, for `stdio` servers.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    pub(crate) max_processes: Option<u32>,
    /// Another name of `connection_idle_timeout`, for `stdio` servers.
    pub(crate) process_idle_timeout: Option<RawDuration>,
    /// `strict`: every tool of the server must be in `toolbox.tools`. `dynamic`: other tools run under
    /// `default_tool_config`.
    #[schemars(required)]
    pub(crate) mode: Option<RawMode>,
    /// Limits of tools that are not in `toolbox.tools`; required with `mode: dynamic`, here or in `toolbox.defaults`.
    pub(crate) default_tool_config: Option<RawToolDefaults>,
    /// With a list, only tools that match one of these patterns exist.
    #[schemars(extend("examples" = [["get_*"]]))]
    pub(crate) tool_allowlist: Option<Vec<String>>,
    /// Tools that match one of these patterns do not exist.
    #[schemars(extend("examples" = [["delete_*"]]))]
    pub(crate) tool_denylist: Option<Vec<String>>,
    /// Whether the start fails when the server cannot be reached. With `false` the board starts without it, and its
    /// tools come when it does.
    #[schemars(extend("default" = true))]
    pub(crate) required: Option<bool>,
    /// The toolset that its tools belong to; servers that name the same one share it. Default: the name
    /// of the server. `none` makes no set: then its tools are only in the sets of `toolsets` that name them.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub(crate) toolset: Option<String>,
    /// The prompts of the server that are passed on: names or patterns. Without this key all of them,
    /// with `[]` none.
    #[schemars(extend("examples" = [["greeting", "review_*"]]))]
    pub(crate) prompts: Option<Vec<String>>,
    /// Which protocol era to speak: `auto` asks the server.
    #[schemars(extend("default" = "auto"))]
    pub(crate) era: Option<RawEra>,
    /// How long connecting and the first listing may take. Without it 30s, and 5m for a `stdio` server, which may have
    /// to be downloaded first.
    pub(crate) connect_timeout: Option<RawDuration>,
    /// How often to ask for the tools again when the server does not say when to.
    pub(crate) poll_interval: Option<RawDuration>,
}

/// What holds for every server that does not say otherwise.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ServerDefaults")]
pub(crate) struct RawServerDefaults {
    /// Whether the start fails when a server cannot be reached.
    #[schemars(extend("default" = true))]
    pub(crate) required: Option<bool>,
    /// How long connecting and the first listing may take. Without it 30s, and 5m for a `stdio` server.
    pub(crate) connect_timeout: Option<RawDuration>,
    /// Limits of tools that are not in `tools`. What a server writes in its own `default_tool_config` goes before, field
    /// by field.
    pub(crate) default_tool_config: Option<RawToolDefaults>,
}

/// How to be let in by a server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Auth")]
pub(crate) struct RawAuth {
    /// Sent as `Authorization: Bearer ...`. A secret: use `${VAR}` or `file:/path`.
    #[schemars(extend("examples" = ["${TOKEN}", "file:/run/secrets/token"]))]
    pub(crate) bearer: Option<String>,
    /// Signs in with OAuth; `oauth: {}` asks the server for everything. Then run `switchboard auth login NAME`.
    pub(crate) oauth: Option<RawOAuth>,
}

/// Who Switchboard is to the authorization server of an MCP server. Everything may be left out: it registers
/// itself where it can.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OAuth")]
pub(crate) struct RawOAuth {
    /// Whose access it is: `sign_in`, that of a person who signs in with a browser; `client_credentials`, the
    /// program's own, and nobody signs in.
    #[schemars(extend("default" = "sign_in"))]
    pub(crate) grant: Option<RawGrant>,
    /// A client that was registered beforehand.
    #[schemars(length(min = 1), extend("examples" = ["switchboard"]))]
    pub(crate) client_id: Option<String>,
    /// Its secret, if it has one: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${CLIENT_SECRET}"]))]
    pub(crate) client_secret: Option<String>,
    /// For `client_credentials`: the issuer that registered the client, and to which alone it proves who it is. Without
    /// it, the first one that the server names, from then on.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com"]))]
    pub(crate) issuer: Option<String>,
    /// For `client_credentials`, instead of a secret: the private key of the client, as PEM (PKCS #8). Use `${VAR}` or
    /// `file:/path`. It is never sent; what is sent is signed with it.
    #[schemars(length(min = 1), extend("examples" = ["file:/run/secrets/client-key.pem"]))]
    pub(crate) private_key: Option<String>,
    /// How `private_key` signs.
    #[schemars(extend("default" = "ES256"))]
    pub(crate) signing_algorithm: Option<RawSigningAlgorithm>,
    /// The https address of a client metadata document, for authorization servers that read such documents.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://example.com/switchboard.json"]))]
    pub(crate) client_metadata_url: Option<String>,
    /// The scopes to ask for, instead of those that the server names.
    #[schemars(extend("examples" = [["read", "write"]]))]
    pub(crate) scopes: Option<Vec<String>>,
    /// The port on this machine to which the browser comes back. Without it, any that is free.
    #[schemars(range(min = 1, max = 65_535), extend("examples" = [8765]))]
    pub(crate) redirect_port: Option<u16>,
}

/// Limits of tools that are not in `toolbox.tools`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolDefaults")]
pub(crate) struct RawToolDefaults {
    /// How many calls of each tool run at the same time.
    #[schemars(
        range(min = 1, max = 4_294_967_295u32),
        extend("examples" = [10], "default" = BUILT_IN_LIMITS.max_instances)
    )]
    pub(crate) max_instances: Option<u32>,
    /// How long one call may run, and, when it reports progress, how long after the last of it.
    #[schemars(extend("default" = model::render_duration(BUILT_IN_LIMITS.timeout)))]
    pub(crate) timeout: Option<RawDuration>,
    /// How long a call may run that reports progress; never less than `timeout`. Set both to the same to switch this off.
    #[schemars(extend("default" = model::render_duration(BUILT_IN_LIMITS.max_timeout)))]
    pub(crate) max_timeout: Option<RawDuration>,
    /// How long a call may wait for a free slot. Without it, as long as `timeout`.
    pub(crate) queue_timeout: Option<RawDuration>,
    /// How long a running call may stay silent. Without it, for the whole of `timeout`.
    pub(crate) inactivity_timeout: Option<RawDuration>,
    /// Larger results are stored and answered with a preview.
    #[schemars(range(min = 1024), extend("default" = BUILT_IN_LIMITS.max_result_bytes))]
    pub(crate) max_result_bytes: Option<u64>,
}

/// A named group of tools that is switched on and off as one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Toolset")]
pub(crate) struct RawToolset {
    /// A name of your choice, unique in this file. With the name of a server's own set and without
    /// `servers` and `tools`, the entry describes that set.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["quotes"]))]
    pub(crate) name: Option<String>,
    /// What is in it, for a model that has to choose.
    #[schemars(required, length(min = 1))]
    pub(crate) description: Option<String>,
    /// When a model should enable it.
    #[schemars(length(min = 1))]
    pub(crate) when_to_use: Option<String>,
    /// Servers whose tools are all members.
    #[schemars(extend("examples" = [["market"]]))]
    pub(crate) servers: Option<Vec<String>>,
    /// Further members: `tool` or `server.tool`, as names or patterns.
    #[schemars(extend("examples" = [["get_quote", "market.get_*", "*_price"]]))]
    pub(crate) tools: Option<Vec<String>>,
}

/// What MCP clients see of the tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Gateway")]
pub(crate) struct RawGateway {
    /// `legacy` shows every tool, `static` those of `tool_sets`, `dynamic` only meta-tools that enable
    /// sets on demand. Without it: `static` when there are `tool_sets`, else `legacy`.
    pub(crate) exposure: Option<RawExposure>,
    /// The sets to show; with `exposure: dynamic` those that are enabled at first.
    #[schemars(extend("examples" = [["quotes"]]))]
    pub(crate) tool_sets: Option<Vec<String>>,
    /// How tools are called: `prefixed` is `server__tool`. With `bare` names the last of two equal ones
    /// wins.
    #[schemars(extend("default" = "prefixed"))]
    pub(crate) naming: Option<RawNaming>,
    /// How many sets one client may have enabled at the same time. Without it, any number.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [3]))]
    pub(crate) max_active_toolsets: Option<u32>,
    /// With a list, clients can use only these sets.
    pub(crate) allow_toolsets: Option<Vec<String>>,
    /// Sets that no client can use, whatever `allow_toolsets` says.
    pub(crate) deny_toolsets: Option<Vec<String>>,
    /// What `enable_toolset` switches for clients of 2026-07-28, which have no session: `none`, or the sets
    /// of the `principal`, so of all clients with the same credential.
    #[schemars(extend("default" = "none"))]
    pub(crate) stateless_state: Option<RawStatelessState>,
    /// A session without a request for this long is forgotten.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_SESSION_IDLE)))]
    pub(crate) session_idle: Option<RawDuration>,
    /// How many sessions live at the same time.
    #[schemars(
        range(min = 1, max = 4_294_967_295u32),
        extend("default" = model::DEFAULT_MAX_SESSIONS)
    )]
    pub(crate) max_sessions: Option<u32>,
    /// How many of them may belong to one principal.
    #[schemars(
        range(min = 1, max = 4_294_967_295u32),
        extend("default" = model::DEFAULT_MAX_SESSIONS_PER_PRINCIPAL)
    )]
    pub(crate) max_sessions_per_principal: Option<u32>,
    /// How many MCP servers all sessions together may bring with them. With 0 they bring none.
    #[schemars(
        range(min = 0, max = 4_294_967_295u32),
        extend("default" = model::DEFAULT_MAX_SESSION_SERVERS)
    )]
    pub(crate) max_session_servers: Option<u32>,
    /// Larger requests are refused.
    #[schemars(range(min = 1024), extend("default" = model::DEFAULT_MAX_BODY_BYTES))]
    pub(crate) max_body_bytes: Option<u64>,
    /// How long a client that comes while the servers are being connected waits for their tools. Then it gets those that
    /// are there, and is told of the others as they come.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_STARTUP_WAIT)))]
    pub(crate) startup_wait: Option<RawDuration>,
}

/// Who may ask, and where servers of sessions may be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Security")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawSecurity {
    /// Names under which clients may address this machine, beside its loopback names. A name without a
    /// port holds for every port.
    #[schemars(extend("examples" = [["gateway.example.com"]]))]
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Web pages that may ask, beside those of this machine.
    #[schemars(extend("examples" = [["https://app.example.com"]]))]
    pub(crate) allowed_origins: Option<Vec<String>>,
    /// Accepts the tokens of an authorization server.
    pub(crate) jwt: Option<RawJwt>,
    /// Where the MCP servers that sessions bring with them may be. Without it: anywhere in the public internet,
    /// but neither on this machine nor in a private network.
    pub(crate) egress: Option<RawEgress>,
}

/// Exceptions to where servers of sessions may be. Servers of this file may be anywhere.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Egress")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawEgress {
    /// Networks, addresses and host names that may be reached although they are not public. `*.example.com` is
    /// every name below `example.com`.
    #[schemars(extend("examples" = [["10.20.0.0/16", "mcp.corp.example"]]))]
    pub(crate) allow: Option<Vec<String>>,
    /// What may not be reached, whatever `allow` says. A host has many names, so networks hold better here.
    #[schemars(extend("examples" = [["10.20.30.0/24"]]))]
    pub(crate) deny: Option<Vec<String>>,
}

/// Which tokens are accepted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Jwt")]
pub(crate) struct RawJwt {
    /// The `iss` of the tokens, letter for letter.
    #[schemars(required, extend("format" = "uri"), extend("examples" = ["https://issuer.example.com"]))]
    pub(crate) issuer: Option<String>,
    /// What the `aud` of the tokens must name.
    #[schemars(required, length(min = 1), extend("examples" = ["https://gateway.example.com/mcp"]))]
    pub(crate) audience: Option<String>,
    /// Where the keys of the issuer are fetched. Either this or `jwks_file`.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://issuer.example.com/jwks"]))]
    pub(crate) jwks_url: Option<String>,
    /// The file with the keys of the issuer; relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) jwks_file: Option<String>,
    /// Scopes that a token needs, all of them.
    #[schemars(extend("examples" = [["mcp"]]))]
    pub(crate) required_scopes: Option<Vec<String>>,
    /// How far the clocks of the issuer and of this machine may differ.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_JWT_LEEWAY)))]
    pub(crate) leeway: Option<RawDuration>,
    /// The address that the metadata for clients (RFC 9728) names. Default: the audience.
    #[schemars(extend("format" = "uri"))]
    pub(crate) resource: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawGrant {
    SignIn,
    ClientCredentials,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(crate) enum RawSigningAlgorithm {
    Es256,
    Es384,
    Rs256,
    Rs384,
    Rs512,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawExposure {
    Legacy,
    Static,
    Dynamic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawNaming {
    Prefixed,
    Bare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawStatelessState {
    None,
    Principal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawMode {
    Strict,
    Dynamic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawTransport {
    StreamableHttp,
    Sse,
    Stdio,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawConnection {
    Shared,
    PerSession,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawEra {
    Auto,
    Legacy,
    Modern,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawArgumentType {
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array,
}

/// A duration in any of the accepted spellings; read by [`crate::duration`].
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct RawDuration(pub(crate) Value);

impl JsonSchema for RawDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "description": "A duration above zero: 30s, 1m30s, PT30S, 00:00:30, or seconds.",
            "examples": ["30s", "1m30s", "PT30S", "00:00:30", 30],
        })
    }
}

/// `all` or a list of names; read by the plan.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct RawLocalTools(#[expect(dead_code, reason = "see RawToolbox")] pub(crate) Value);

impl JsonSchema for RawLocalTools {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LocalTools".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `pattern` binds only strings and `items` only lists, so no `anyOf` is needed, whose failures
        // cannot be told in one sentence.
        json_schema!({
            "type": ["string", "array"],
            "pattern": "^all$",
            "items": {"type": "string"},
            "examples": ["all", ["sum_numbers"]],
        })
    }
}
