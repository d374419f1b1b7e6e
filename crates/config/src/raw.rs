//! The types of the configuration file.
//!
//! The JSON Schema for editors and for validation is generated from these types, so users read these doc comments while
//! they edit a file. Every field is an `Option`, because later steps must tell "present" from "absent", and an entry
//! with one invalid field is still checked for other problems.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use switchboard_model::{self as model, BUILT_IN_LIMITS};

use crate::raw_agent::RawAgent;
use crate::raw_discovery::RawDiscovery;
use crate::raw_grant::{RawClaimRule, RawDefaultGrant};
use crate::raw_provider::RawProvider;
use crate::raw_records::{RawRecord, RawRecords};
use crate::raw_store::RawStore;
use crate::raw_threat_protection::{RawContentCheck, RawThreatProtection};
use crate::raw_tls::RawTls;

/// The configuration below the root key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Switchboard")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawConfig {
    /// The servers, their tools, and the limits of tools.
    pub(crate) toolbox: Option<RawToolbox>,
    /// Named groups of tools that clients of the gateway enable and disable. Every server is also a toolset of its own.
    pub(crate) toolsets: Option<Vec<RawToolset>>,
    /// Which tools MCP clients see, and the limits of sessions.
    pub(crate) gateway: Option<RawGateway>,
    /// Accepted hosts, origins and tokens, and the addresses that servers of sessions may have.
    pub(crate) security: Option<RawSecurity>,
    /// The LLM providers for chats. `demo` and `ollama` always exist, and so do `openai`, `anthropic` and `gemini` with
    /// the API keys from the environment; an entry of the same name replaces one of them.
    pub(crate) providers: Option<Vec<RawProvider>>,
    /// Checks of conversations and tool calls by a threat-protection service before they go on.
    pub(crate) threat_protection: Option<RawThreatProtection>,
    /// Agents that find their MCP servers here, as those built on Microsoft's Agent 365 SDK do. Each entry names the part
    /// of the tools that one agent may use.
    pub(crate) agents: Option<Vec<RawAgent>>,
    /// Where servers are looked for besides `toolbox.mcps`: manifests, tooling gateways, MCP registries.
    pub(crate) discovery: Option<RawDiscovery>,
    /// How many records of calls are kept, and what is removed from them.
    pub(crate) records: Option<RawRecords>,
    /// The certificate of the HTTP server. With this section the server accepts HTTPS only.
    pub(crate) tls: Option<RawTls>,
    /// Where the data is kept: in the data directory, or in the database of a server, which several boards may share.
    pub(crate) store: Option<RawStore>,
}

/// The servers, their tools, and the limits of tools.
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
    /// Defaults for every server in `mcps`.
    pub(crate) defaults: Option<RawServerDefaults>,
    /// The built-in tools to register: `all`, or a list of names. Default: those with an entry in `tools`.
    pub(crate) local_tools: Option<RawLocalTools>,
}

/// Settings of one tool. A limit that is not set here comes from the server's `default_tool_config`, else from the
/// built-in limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tool")]
pub(crate) struct RawTool {
    /// `tool` for that tool of every server, or `server.tool` for one server. With `type: mcp-tool`: the name under which
    /// models see the tool.
    #[schemars(required, length(min = 1), extend("examples" = ["get_customer", "customers.get_customer"]))]
    pub(crate) name: Option<String>,
    /// `prompt`: a tool of its own, which a model answers; see `template`. `mcp-tool`: the entry is written as TrustGraph
    /// writes it: `mcp-tool` names the tool, and `name` is the name under which models see it.
    #[serde(rename = "type")]
    pub(crate) kind: Option<RawToolType>,
    /// With `type: mcp-tool`: the tool, as `tool` or `server.tool`, or the name of a server whose `tool_allowlist` has
    /// exactly one tool.
    #[serde(rename = "mcp-tool")]
    #[schemars(length(min = 1), extend("examples" = ["get_bank_balance", "bank.get_bank_balance"]))]
    pub(crate) mcp_tool: Option<String>,
    /// With a `type`: the id under which TrustGraph's clients know the entry. Default: its `name`.
    #[schemars(length(min = 1), extend("examples" = ["balance-tool"]))]
    pub(crate) id: Option<String>,
    /// How many calls of this tool run at the same time.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [10]))]
    pub(crate) max_instances: Option<u32>,
    /// How long one call may run. Each progress report restarts it.
    pub(crate) timeout: Option<RawDuration>,
    /// How long a call that reports progress may run in total; never less than `timeout`. Set it to the value of
    /// `timeout` so that progress does not extend a call.
    pub(crate) max_timeout: Option<RawDuration>,
    /// How long a call may wait for a free slot. Default: the value of `timeout`.
    pub(crate) queue_timeout: Option<RawDuration>,
    /// How long a running call may stay without any message from the server. Default: no such limit.
    pub(crate) inactivity_timeout: Option<RawDuration>,
    /// Larger results are stored, and the answer contains a preview.
    #[schemars(range(min = 1024), extend("examples" = [1_048_576]))]
    pub(crate) max_result_bytes: Option<u64>,
    /// How often the tool may be called, over all callers: `10/s`, `60/min`, `1000/h` or `5000/day`. Default: no such limit.
    #[schemars(extend("examples" = ["60/min"]))]
    pub(crate) rate: Option<String>,
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
    /// Declares arguments. What is declared wins over the schema of the server; what is not declared comes from it.
    pub(crate) arguments: Option<Vec<RawArgument>>,
    /// Whether arguments are checked before a call is sent. Default: as the server's entry says, else `true`.
    pub(crate) validate_arguments: Option<bool>,
    /// The checks of its calls by `threat_protection.endpoint`. What is not set here comes from the server's entry.
    pub(crate) content_check: Option<RawContentCheck>,
    /// Whether its arguments and results are recorded. What is not set here comes from the server's entry.
    pub(crate) record: Option<RawRecord>,
    /// The groups of the tool, for turns that ask for groups. Default: the group `default`. `[]` means no group: only a
    /// turn that asks for `*` sees the tool.
    #[schemars(extend("examples" = [["read-only", "bank"]]))]
    pub(crate) group: Option<Vec<String>>,
    /// The state of the conversation after a call of this tool succeeded.
    #[schemars(extend("examples" = ["authenticated"]))]
    pub(crate) state: Option<String>,
    /// The states of the conversation in which the tool is available. Default: all. `[]` means none.
    #[schemars(extend("examples" = [["authenticated"]]))]
    pub(crate) applicable_states: Option<Vec<String>>,
    /// Alias of `applicable_states`.
    #[serde(rename = "applicable-states")]
    pub(crate) applicable_states_alias: Option<Vec<String>>,
    /// With `type: prompt`: the text that the model is asked, as a Jinja template. The declared arguments are its
    /// variables; one that a caller does not give is empty.
    #[schemars(length(min = 1), extend("examples" = ["Summarise in {{ words }} words:\n{{ text }}"]))]
    pub(crate) template: Option<String>,
    /// With `type: prompt`: the provider of the model. Default: the first of `providers`, else `demo`.
    #[schemars(length(min = 1), extend("examples" = ["ollama"]))]
    pub(crate) provider: Option<String>,
    /// With `type: prompt`: the model. Default: the model of the provider.
    #[schemars(length(min = 1))]
    pub(crate) model: Option<String>,
    /// With `type: prompt`: the system instructions of the model.
    pub(crate) instructions: Option<String>,
    /// With `type: prompt`: the tools that the model may call, as names or patterns. Default: none.
    #[schemars(extend("examples" = [["files.read_*"]]))]
    pub(crate) tools: Option<Vec<String>>,
    /// With `type: prompt`: how many prompt tools may run inside each other. With 1 the model may call other tools, but no
    /// prompt tool.
    #[schemars(range(min = 1, max = 8), extend("default" = model::DEFAULT_PROMPT_DEPTH))]
    pub(crate) max_depth: Option<u32>,
}

/// One declared argument of a tool. What is not set here comes from the schema of the server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Argument")]
pub(crate) struct RawArgument {
    /// The name of the argument.
    #[schemars(required, length(min = 1))]
    pub(crate) name: Option<String>,
    /// The JSON type of the argument.
    #[serde(rename = "type")]
    pub(crate) kind: Option<RawArgumentType>,
    /// What the argument means, for the model.
    pub(crate) description: Option<String>,
    /// Whether it must be given. Without this key the server's own schema decides.
    pub(crate) required: Option<bool>,
    /// The accepted values.
    #[serde(rename = "enum")]
    #[schemars(length(min = 1), extend("examples" = [["celsius", "fahrenheit"]]))]
    pub(crate) choices: Option<Vec<Value>>,
    /// Sent when a caller does not give the argument.
    pub(crate) default: Option<Value>,
    /// With `type: array`: the JSON Schema of the elements.
    #[schemars(extend("type" = "object", "examples" = [{"type": "string"}]))]
    pub(crate) items: Option<Value>,
    /// With `type: object`: the JSON Schema of each member, by name.
    #[schemars(extend("type" = "object", "examples" = [{"zip": {"type": "string"}}]))]
    pub(crate) properties: Option<Value>,
    /// A fixed value: sent with every call. Models and clients do not see the argument and cannot give it. Use `${VAR}`
    /// for a secret.
    pub(crate) value: Option<Value>,
    /// `true` hides the argument from models and clients, which then cannot give it; its `default` is sent.
    #[schemars(extend("default" = false))]
    pub(crate) hidden: Option<bool>,
}

/// The kinds of tool entries that have a `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum RawToolType {
    McpTool,
    Prompt,
}

/// One MCP server: how to reach it, and which of its tools exist here.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Server")]
pub(crate) struct RawServer {
    /// A name of your choice, unique in this file; `local` is reserved.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["customers"]))]
    pub(crate) name: Option<String>,
    /// `streamable_http`, `sse` (the HTTP+SSE transport of 2024-11-05) or `stdio`. Default: `stdio` with a `command`,
    /// `streamable_http` with a `url`.
    pub(crate) transport: Option<RawTransport>,
    /// The address of a server that is reached over HTTP.
    #[schemars(extend("format" = "uri"), extend("examples" = ["http://localhost:8180/mcp"]))]
    pub(crate) url: Option<String>,
    /// HTTP headers that are sent with every request. Values are secrets: use `${VAR}` or `file:/path`.
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// The credentials for the server.
    pub(crate) auth: Option<RawAuth>,
    /// Whose account lists the tools, where each user or session has an account (`auth.oauth.per`). `first`: the board's
    /// account if it is signed in, else the first one that signs in. `board`: the board's account alone.
    #[schemars(extend("default" = "first"))]
    pub(crate) listing: Option<RawListing>,
    /// The program of a `stdio` server.
    #[schemars(extend("examples" = ["npx"]))]
    pub(crate) command: Option<String>,
    /// The arguments of the program.
    pub(crate) args: Option<Vec<String>>,
    /// Environment variables of the program. Values are secrets: use `${VAR}` or `file:/path`.
    pub(crate) env: Option<BTreeMap<String, String>>,
    /// The working directory of the program; relative to this file.
    pub(crate) cwd: Option<String>,
    /// `shared`: one connection for all sessions. `per_session`: each session has its own connection with its own
    /// state, elicitations and roots, opened by its first call. A connection is a process of a `stdio` server, or an
    /// MCP session of an HTTP server.
    #[schemars(extend("default" = "shared"))]
    pub(crate) connection: Option<RawConnection>,
    /// With `connection: per_session`: how many sessions may have a connection at the same time. For a further session,
    /// the connection that has been idle for longest is closed; while all are in use, its calls are refused. Where each
    /// user has an account (`auth.oauth.per`), the same for users; the default is 256 then.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("default" = model::DEFAULT_MAX_CONNECTIONS))]
    pub(crate) max_connections: Option<u32>,
    /// With `connection: per_session`, or where each user has an account: how long a connection is kept without a call.
    /// The next call opens a new one.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_CONNECTION_IDLE)))]
    pub(crate) connection_idle_timeout: Option<RawDuration>,
    /// Alias of `connection`, for `stdio` servers.
    pub(crate) process: Option<RawConnection>,
    /// Alias of `max_connections`, for `stdio` servers.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    pub(crate) max_processes: Option<u32>,
    /// Alias of `connection_idle_timeout`, for `stdio` servers.
    pub(crate) process_idle_timeout: Option<RawDuration>,
    /// `strict`: every tool of the server must have an entry in `toolbox.tools`. `dynamic`: tools without an entry run
    /// with the limits of `default_tool_config`.
    #[schemars(required)]
    pub(crate) mode: Option<RawMode>,
    /// Limits of tools without an entry in `toolbox.tools`; required with `mode: dynamic`, here or in
    /// `toolbox.defaults`.
    pub(crate) default_tool_config: Option<RawToolDefaults>,
    /// If set, only tools that match one of these patterns exist.
    #[schemars(extend("examples" = [["get_*"]]))]
    pub(crate) tool_allowlist: Option<Vec<String>>,
    /// Tools that match one of these patterns do not exist.
    #[schemars(extend("examples" = [["delete_*"]]))]
    pub(crate) tool_denylist: Option<Vec<String>>,
    /// Whether the start fails when the server cannot be reached. With `false` Switchboard starts without it, and adds
    /// its tools once it is connected.
    #[schemars(extend("default" = true))]
    pub(crate) required: Option<bool>,
    /// The toolset of its tools; servers with the same value share it. Default: the name of the server. `none` makes no
    /// toolset: its tools are members only of the `toolsets` that list them.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub(crate) toolset: Option<String>,
    /// The prompts of the server that clients see: names or patterns. Default: all; `[]` means none.
    #[schemars(extend("examples" = [["greeting", "review_*"]]))]
    pub(crate) prompts: Option<Vec<String>>,
    /// The protocol era of the server; `auto` detects it.
    #[schemars(extend("default" = "auto"))]
    pub(crate) era: Option<RawEra>,
    /// How long connecting and the first listing may take. Default: 30s, or 5m for a `stdio` server, which may have to
    /// be downloaded first.
    pub(crate) connect_timeout: Option<RawDuration>,
    /// Interval of listing the tools again, for servers that send no change notifications.
    pub(crate) poll_interval: Option<RawDuration>,
    /// Whether the arguments of its tools are checked before a call is sent. With `false` the server alone checks them.
    #[schemars(extend("default" = true))]
    pub(crate) validate_arguments: Option<bool>,
    /// The checks of the calls of its tools by `threat_protection.endpoint`. What is not set here comes from
    /// `toolbox.defaults`.
    pub(crate) content_check: Option<RawContentCheck>,
    /// Whether the arguments and results of its tools are recorded. What is not set here comes from `toolbox.defaults`.
    pub(crate) record: Option<RawRecord>,
}

/// Defaults for every server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ServerDefaults")]
pub(crate) struct RawServerDefaults {
    /// Whether the start fails when a server cannot be reached.
    #[schemars(extend("default" = true))]
    pub(crate) required: Option<bool>,
    /// How long connecting and the first listing may take. Default: 30s, or 5m for a `stdio` server.
    pub(crate) connect_timeout: Option<RawDuration>,
    /// Limits of tools without an entry in `tools`. A server's own `default_tool_config` wins, field by field.
    pub(crate) default_tool_config: Option<RawToolDefaults>,
    /// The checks of the calls of all tools of servers by `threat_protection.endpoint`.
    pub(crate) content_check: Option<RawContentCheck>,
    /// Whether the arguments and results of all tools of servers are recorded, also of servers that sources name.
    pub(crate) record: Option<RawRecord>,
}

/// The credentials for a server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Auth")]
pub(crate) struct RawAuth {
    /// Sent as `Authorization: Bearer ...`. A secret: use `${VAR}` or `file:/path`. With `{per: user}` each user stores a
    /// token of their own with `switchboard auth set NAME`.
    pub(crate) bearer: Option<RawBearer>,
    /// OAuth. With `oauth: {}` everything is discovered from the server. Then run `switchboard auth login NAME`.
    pub(crate) oauth: Option<RawOAuth>,
}

/// The OAuth client of Switchboard at the authorization server of an MCP server. All keys are optional: without them,
/// the client is registered dynamically where the authorization server supports it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OAuth")]
pub(crate) struct RawOAuth {
    /// `sign_in`: a person signs in with a browser (authorization code). `client_credentials`: the program has access
    /// of its own, and no person signs in. `token_exchange`: the token that a caller showed to the board is exchanged for
    /// one for this server (RFC 8693); it needs `security.jwt`.
    #[schemars(extend("default" = "sign_in"))]
    pub(crate) grant: Option<RawGrant>,
    /// The id of a client that was registered beforehand.
    #[schemars(length(min = 1), extend("examples" = ["switchboard"]))]
    pub(crate) client_id: Option<String>,
    /// The secret of that client, if it has one: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${CLIENT_SECRET}"]))]
    pub(crate) client_secret: Option<String>,
    /// For `client_credentials`: the issuer that registered the client; no other one receives the credentials. Default:
    /// the first issuer that the server names, which is then kept. For `token_exchange`: the issuer that exchanges tokens;
    /// no other one receives the tokens of callers. Default: the issuer of `security.jwt`.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com"]))]
    pub(crate) issuer: Option<String>,
    /// For `client_credentials`, instead of a secret: the private key of the client, as PEM (PKCS #8). Use `${VAR}` or
    /// `file:/path`. It signs assertions and is never sent.
    #[schemars(length(min = 1), extend("examples" = ["file:/run/secrets/client-key.pem"]))]
    pub(crate) private_key: Option<String>,
    /// For `token_exchange`: the `audience` of the request, for issuers that do not read `resource`.
    #[schemars(length(min = 1), extend("examples" = ["tracker"]))]
    pub(crate) audience: Option<String>,
    /// The signature algorithm of `private_key`.
    #[schemars(extend("default" = "ES256"))]
    pub(crate) signing_algorithm: Option<RawSigningAlgorithm>,
    /// The https URL of a client id metadata document, for authorization servers that support such documents.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://example.com/switchboard.json"]))]
    pub(crate) client_metadata_url: Option<String>,
    /// The scopes to request, instead of those that the server names.
    #[schemars(extend("examples" = [["read", "write"]]))]
    pub(crate) scopes: Option<Vec<String>>,
    /// The port of the redirect URI on this machine. Default: any free port.
    #[schemars(range(min = 1, max = 65_535), extend("examples" = [8765]))]
    pub(crate) redirect_port: Option<u16>,
    /// The host of the redirect URI: authorization servers compare it as text with what the client was registered with.
    #[schemars(extend("default" = "127.0.0.1"))]
    pub(crate) redirect_host: Option<RawRedirectHost>,
    /// The path of the redirect URI.
    #[schemars(extend("default" = "/callback", "examples" = ["/auth/callback"]))]
    pub(crate) redirect_path: Option<String>,
    /// Whose account a call uses. `board`: one account for all callers. `user`: the account of the person who calls;
    /// each person signs in once. `session`: an account for each session.
    #[schemars(extend("default" = "board"))]
    pub(crate) per: Option<RawAccountScope>,
}

/// A token, or whose token is used; parsed when the plan is made.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawBearer {
    Token(String),
    PerOwner(RawPerOwner),
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawPerOwner {
    pub(crate) per: Option<RawAccountScope>,
}

impl JsonSchema for RawBearer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bearer".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "object"],
            "properties": {"per": {
                "type": "string",
                "enum": ["user", "session"],
                "description": "Whose token a call uses: that of the person who calls, or of the session.",
            }},
            "required": ["per"],
            "additionalProperties": false,
            "examples": ["${TOKEN}", "file:/run/secrets/token", {"per": "user"}],
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawAccountScope {
    User,
    Board,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawListing {
    First,
    Board,
}

/// The host of a redirect URI on this machine.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(rename = "RedirectHost")]
pub(crate) enum RawRedirectHost {
    #[serde(rename = "127.0.0.1")]
    Address,
    #[serde(rename = "localhost")]
    Localhost,
}

/// Limits of tools without an entry in `toolbox.tools`.
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
    /// How long one call may run. Each progress report restarts it.
    #[schemars(extend("default" = model::render_duration(BUILT_IN_LIMITS.timeout)))]
    pub(crate) timeout: Option<RawDuration>,
    /// How long a call that reports progress may run in total; never less than `timeout`. Set it to the value of
    /// `timeout` so that progress does not extend a call.
    #[schemars(extend("default" = model::render_duration(BUILT_IN_LIMITS.max_timeout)))]
    pub(crate) max_timeout: Option<RawDuration>,
    /// How long a call may wait for a free slot. Default: the value of `timeout`.
    pub(crate) queue_timeout: Option<RawDuration>,
    /// How long a running call may stay without any message from the server. Default: no such limit.
    pub(crate) inactivity_timeout: Option<RawDuration>,
    /// Larger results are stored, and the answer contains a preview.
    #[schemars(range(min = 1024), extend("default" = BUILT_IN_LIMITS.max_result_bytes))]
    pub(crate) max_result_bytes: Option<u64>,
    /// How often each tool may be called, over all callers: `10/s`, `60/min`, `1000/h` or `5000/day`. Default: no such
    /// limit.
    #[schemars(extend("examples" = ["60/min"]))]
    pub(crate) rate: Option<String>,
}

/// A named group of tools that is enabled and disabled as one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Toolset")]
pub(crate) struct RawToolset {
    /// A name of your choice, unique in this file. An entry with the name of a server's own toolset and without
    /// `servers` and `tools` describes that toolset.
    #[schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"), extend("examples" = ["quotes"]))]
    pub(crate) name: Option<String>,
    /// Describes the contents to a model that has to choose a toolset.
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

/// Which tools MCP clients see, and the limits of sessions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Gateway")]
pub(crate) struct RawGateway {
    /// `legacy` shows all tools, `static` the tools of `tool_sets`, `dynamic` only meta-tools that enable toolsets on
    /// demand. Default: `static` with `tool_sets`, else `legacy`.
    pub(crate) exposure: Option<RawExposure>,
    /// The toolsets to show; with `exposure: dynamic` those that are enabled at first.
    #[schemars(extend("examples" = [["quotes"]]))]
    pub(crate) tool_sets: Option<Vec<String>>,
    /// How tools are named: `prefixed` means `server__tool`, `bare` means `tool`. If two tools have the same bare name,
    /// the last registered one wins.
    #[schemars(extend("default" = "prefixed"))]
    pub(crate) naming: Option<RawNaming>,
    /// How many toolsets one client may have enabled at the same time. Default: no limit.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [3]))]
    pub(crate) max_active_toolsets: Option<u32>,
    /// If set, clients can use only these toolsets.
    pub(crate) allow_toolsets: Option<Vec<String>>,
    /// Toolsets that no client can use, even if `allow_toolsets` lists them.
    pub(crate) deny_toolsets: Option<Vec<String>>,
    /// The scope of `enable_toolset` for clients of 2026-07-28, which have no session: `none`, or `principal`, which is
    /// shared by all clients with the same credential.
    #[schemars(extend("default" = "none"))]
    pub(crate) stateless_state: Option<RawStatelessState>,
    /// A session without a request for this long is removed.
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
    /// Larger request bodies are refused.
    #[schemars(range(min = 1024), extend("default" = model::DEFAULT_MAX_BODY_BYTES))]
    pub(crate) max_body_bytes: Option<u64>,
    /// How long a client that connects while servers are still connecting waits for their tools. After that it gets the
    /// tools that are available, and is notified of the others as they arrive.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_STARTUP_WAIT)))]
    pub(crate) startup_wait: Option<RawDuration>,
    /// `true` serves TrustGraph's clients below `/trustgraph/`: they can manage tools, call them and ask the agent.
    #[schemars(extend("default" = false))]
    pub(crate) trustgraph: Option<bool>,
    /// The address under which clients reach this board, such as that of a proxy in front of it. The URLs of MCP servers
    /// that agents get begin with it. Default: the host that each request names, over http.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://tools.example.com"]))]
    pub(crate) public_url: Option<String>,
}

/// Accepted hosts, origins and tokens, and the addresses that servers of sessions may have.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Security")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawSecurity {
    /// Accepted `Host` names in addition to the loopback names. A name without a port is accepted with every port.
    #[schemars(extend("examples" = [["gateway.example.com"]]))]
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Accepted origins of web pages, in addition to those of this machine.
    #[schemars(extend("examples" = [["https://app.example.com"]]))]
    pub(crate) allowed_origins: Option<Vec<String>>,
    /// Accepts the access tokens of an authorization server.
    pub(crate) jwt: Option<RawJwt>,
    /// Which addresses the MCP servers may have that sessions attach, and those that tooling gateways and registries
    /// name. Default: public internet addresses, but neither this machine nor private networks.
    pub(crate) egress: Option<RawEgress>,
    /// The key that encrypts the sign-ins in the data directory: 32 random bytes in base64 or hexadecimal, such as those
    /// of `openssl rand -base64 32`. A secret: use `${VAR}`, `file:/path`, or `keyring:NAME` for an entry of the keyring
    /// of the operating system. Default: sign-ins are kept in clear text, which only a board on a loopback address may do.
    #[schemars(
        length(min = 1),
        extend("examples" = ["file:/run/secrets/store-key", "${SWITCHBOARD_STORE_KEY}", "keyring:store-key"])
    )]
    pub(crate) store_key: Option<String>,
    /// Earlier values of `store_key`. Sign-ins that they encrypt are encrypted again with `store_key`.
    #[schemars(extend("examples" = [["file:/run/secrets/old-store-key"]]))]
    pub(crate) previous_store_keys: Option<Vec<String>>,
}

/// Exceptions to the addresses that servers of sessions, of tooling gateways and of registries may have. Servers in this
/// file may have any address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Egress")]
#[expect(dead_code, reason = "its parts are read one by one, so that one fault hides no other")]
pub(crate) struct RawEgress {
    /// Networks, addresses and host names that are allowed although they are not public. `*.example.com` means every
    /// subdomain of `example.com`.
    #[schemars(extend("examples" = [["10.20.0.0/16", "mcp.corp.example"]]))]
    pub(crate) allow: Option<Vec<String>>,
    /// Networks, addresses and host names that are refused even if `allow` lists them. A host can have many names, so
    /// prefer networks here.
    #[schemars(extend("examples" = [["10.20.30.0/24"]]))]
    pub(crate) deny: Option<Vec<String>>,
}

/// Which tokens are accepted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Jwt")]
pub(crate) struct RawJwt {
    /// The exact `iss` of accepted tokens.
    #[schemars(required, extend("format" = "uri"), extend("examples" = ["https://issuer.example.com"]))]
    pub(crate) issuer: Option<String>,
    /// The `aud` that tokens must contain.
    #[schemars(required, length(min = 1), extend("examples" = ["https://gateway.example.com/mcp"]))]
    pub(crate) audience: Option<String>,
    /// The URL of the issuer's keys. Set either this or `jwks_file`.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://issuer.example.com/jwks"]))]
    pub(crate) jwks_url: Option<String>,
    /// The file with the keys of the issuer; relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) jwks_file: Option<String>,
    /// Scopes that a token must have, all of them.
    #[schemars(extend("examples" = [["mcp"]]))]
    pub(crate) required_scopes: Option<Vec<String>>,
    /// Allowed clock difference between the issuer and this machine.
    #[schemars(extend("default" = model::render_duration(model::DEFAULT_JWT_LEEWAY)))]
    pub(crate) leeway: Option<RawDuration>,
    /// The `resource` of the protected resource metadata (RFC 9728). Default: the audience.
    #[schemars(extend("format" = "uri"))]
    pub(crate) resource: Option<String>,
    /// The client of the board at the issuer. With it, people show on sign-in pages who they are by signing in at the issuer,
    /// instead of entering a code.
    pub(crate) page_client: Option<RawPageClient>,
    /// What tokens may use, by their claims. Without this list, every token may use every tool; with it, a token that
    /// matches no rule gets `default_grant`.
    pub(crate) grants: Option<Vec<RawClaimRule>>,
    /// What tokens may use that match no rule of `grants`. Default: nothing.
    pub(crate) default_grant: Option<RawDefaultGrant>,
}

/// The OAuth client of the board at the issuer of its tokens. Its redirect URI is `/oauth/callback` below the public address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PageClient")]
pub(crate) struct RawPageClient {
    /// The id of the client that you registered at the issuer.
    #[schemars(required, length(min = 1), extend("examples" = ["switchboard"]))]
    pub(crate) client_id: Option<String>,
    /// Its secret, if it has one: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${CLIENT_SECRET}"]))]
    pub(crate) client_secret: Option<String>,
    /// The scopes to request, so that the issuer gives a token for this board. Default: `required_scopes`.
    #[schemars(extend("examples" = [["mcp"]]))]
    pub(crate) scopes: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawGrant {
    SignIn,
    ClientCredentials,
    TokenExchange,
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

/// A duration in any accepted notation; parsed by [`crate::duration`].
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

/// `all` or a list of names; parsed when the plan is made.
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
        // `pattern` applies only to strings and `items` only to lists, so `anyOf`, whose failures cannot be explained
        // in one sentence, is not needed.
        json_schema!({
            "type": ["string", "array"],
            "pattern": "^all$",
            "items": {"type": "string"},
            "examples": ["all", ["sum_numbers"]],
        })
    }
}
