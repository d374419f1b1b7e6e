//! The command line.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use switchboard_agent365::Framework;
use switchboard_api::{AccessChange, AccessView};
use switchboard_auth::Role;
use switchboard_config::ClientProgram;
use switchboard_telemetry::LogFormat;

use crate::calls_args::CallsArguments;
use crate::entry_args::{
    EntryDeleteArguments, ServerSetArguments, ToolSetArguments, ToolsetSetArguments,
};
use crate::exposure::ExposureArguments;
use crate::listen_address::listen_address;
use crate::mode_argument::ModeArgument;
use crate::version;

/// One board between models and tools.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version = version::shown(), about, propagate_version = true)]
#[command(after_help = "Exit codes: 0 done; 1 configuration or start failed; 2 usage; \
                        3 the tool answered with an error; 4 unreachable, refused or timed out.")]
pub(crate) struct CommandArguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Heading of the options that every command has; they are listed after the command's own.
const GLOBAL_HEADING: &str = "Global options";

#[derive(Debug, Args)]
pub(crate) struct Globals {
    /// The configuration file
    #[arg(
        long,
        short,
        global = true,
        help_heading = GLOBAL_HEADING,
        value_name = "FILE",
        help = "The configuration file [default: $SWITCHBOARD_CONFIG, ./switchboard.yaml, or the user's \
                configuration directory]"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the database: call records, stored results, sessions, API keys and tokens
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_HEADING,
        value_name = "DIR",
        env = "SWITCHBOARD_DATA_DIR",
        hide_env_values = true
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// Send the command to a running instance instead of starting one here
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_HEADING,
        value_name = "URL",
        env = "SWITCHBOARD_URL",
        hide_env_values = true
    )]
    pub(crate) url: Option<String>,
    /// With an https URL: trust the authorities in this PEM file too
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_HEADING,
        value_name = "FILE",
        env = "SWITCHBOARD_CA_FILE",
        hide_env_values = true
    )]
    pub(crate) ca_file: Option<PathBuf>,
    /// With an https URL: the certificate of this client and its private key, in one PEM file
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_HEADING,
        value_name = "FILE",
        env = "SWITCHBOARD_CLIENT_CERTIFICATE",
        hide_env_values = true
    )]
    pub(crate) client_certificate: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true, help_heading = GLOBAL_HEADING)]
    pub(crate) json: bool,
    /// Log more; twice for details, three times for everything
    #[arg(long, short, global = true, help_heading = GLOBAL_HEADING, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Log less
    #[arg(long, short, global = true, help_heading = GLOBAL_HEADING, action = clap::ArgAction::Count, conflicts_with = "verbose")]
    quiet: u8,
    /// The format of log lines
    #[arg(long, global = true, help_heading = GLOBAL_HEADING, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormatArgument,
}

impl Globals {
    /// The running instance from `--url` or its variable. With `--config` on the command line, the variable is ignored.
    pub(crate) fn instance(&self) -> Option<&str> {
        match self.config {
            Some(_) => of_flag(self.url.as_deref(), "SWITCHBOARD_URL"),
            None => self.url.as_deref(),
        }
    }

    pub(crate) fn verbosity(&self) -> i8 {
        let count = |n: u8| i8::try_from(n).unwrap_or(i8::MAX);
        count(self.verbose).saturating_sub(count(self.quiet))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormatArgument {
    Text,
    Json,
}

impl From<LogFormatArgument> for LogFormat {
    fn from(format: LogFormatArgument) -> Self {
        match format {
            LogFormatArgument::Text => Self::Text,
            LogFormatArgument::Json => Self::Json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Connect all servers and serve HTTP and MCP clients until stopped
    Serve(ServeArguments),
    /// Serve one MCP client over standard input and output
    Stdio(StdioArguments),
    /// Check the configuration, and with --connect the servers too
    Check(CheckArguments),
    /// Show the configuration, or the schema of its file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Convert the server list of another program to a Switchboard configuration
    Import(ImportArguments),
    /// Print, or write, the entry that an MCP client needs to reach this Switchboard
    Connect(ConnectArguments),
    /// Show, configure and test servers
    #[command(subcommand)]
    Server(ServerCommand),
    /// Show which servers the sources name, from where, and why some are left out
    Discover,
    /// Show, declare and call tools
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Show toolsets, and propose new ones
    #[command(subcommand)]
    Toolset(ToolsetCommand),
    /// Show the agents of the configuration, and the servers that they find here
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Create, show and change sessions: each has its own view of the tools
    #[command(subcommand)]
    Session(SessionCommand),
    /// Chat with a model that has the tools of a session
    Chat(ChatArguments),
    /// Show the LLM providers
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Show the tools of a session in the format of a provider
    Render(RenderArguments),
    /// Show recent calls, or a large result that was stored
    #[command(args_conflicts_with_subcommands = true)]
    Calls(Box<CallsArguments>),
    /// Create, list and revoke API keys for clients
    #[command(subcommand)]
    Key(KeyCommand),
    /// Back up, restore, copy and migrate the database
    #[command(subcommand)]
    Store(StoreCommand),
    /// Sign in to MCP servers and LLM providers that use OAuth
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Check configuration, servers and credentials; with --url those of a running instance
    Doctor,
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Manual { directory: PathBuf },
    /// Run a small MCP server for trying things out
    DemoServer(DemoArguments),
    /// Run a command, and end it and its child processes when the parent process ends
    #[command(hide = true)]
    Guard(GuardArguments),
}

impl Command {
    /// Whether the command logs at info level by default. Long-running commands do; others log warnings only.
    pub(crate) fn logs_at_info(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Stdio(_))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on: an address, `localhost:PORT`, or a port of this machine; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SWITCHBOARD_LISTEN",
        hide_env_values = true,
        default_value = "127.0.0.1:8420",
        value_parser = listen_address
    )]
    pub(crate) listen: SocketAddr,
    /// How many seconds new connections and requests are still accepted on shutdown, while `/readyz` already says 503
    #[arg(
        long,
        value_name = "SECONDS",
        env = "SWITCHBOARD_SHUTDOWN_DELAY",
        hide_env_values = true,
        default_value_t = 0
    )]
    pub(crate) shutdown_delay: u64,
    /// How many seconds running calls may take to finish on shutdown, after the delay
    #[arg(
        long,
        value_name = "SECONDS",
        env = "SWITCHBOARD_DRAIN",
        hide_env_values = true,
        default_value_t = 10
    )]
    pub(crate) drain: u64,
    #[command(flatten)]
    pub(crate) exposure: ExposureArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StdioArguments {
    #[command(flatten)]
    pub(crate) exposure: ExposureArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Also connect every server and check the admission of its tools
    #[arg(long)]
    pub(crate) connect: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every effective value and where it was set, without secrets
    Show,
    /// The JSON Schema of the configuration file, for editors
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// A file with `mcpServers` (Claude Desktop, Claude Code, Cursor, .mcp.json) or `servers` (VS Code), the
    /// `config.toml` of Codex, or a tool, a list of tools or a whole configuration of TrustGraph
    pub(crate) file: PathBuf,
    /// For a file with servers of projects, such as ~/.claude.json: import those of this project and the global ones
    /// [default: those of all projects]
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Add the servers to this configuration file instead of printing one; it is created if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) merge: Option<PathBuf>,
    /// The admission mode of the new servers
    #[arg(long, default_value = "dynamic")]
    pub(crate) mode: ModeArgument,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ConnectArguments {
    /// The client program
    pub(crate) client: ClientArgument,
    /// Merge the entry into the client's file instead of printing it
    #[arg(long)]
    pub(crate) write: bool,
    /// Replace an existing entry of the same name
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Move the client's other servers to the configuration file of Switchboard
    #[arg(long = "move", requires = "write")]
    pub(crate) take_over: bool,
    /// The name of the entry
    #[arg(long, value_name = "NAME", default_value = "switchboard")]
    pub(crate) name: String,
    /// Make the client start a program instead of using HTTP: a Switchboard of its own, or with --url a bridge to a
    /// running one
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Make the client send an API key, from the variable `SWITCHBOARD_API_KEY`; implied for another machine
    #[arg(long)]
    pub(crate) api_key: bool,
    /// The client's file, if it is not in the usual place
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ClientArgument {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    Vscode,
    Codex,
    #[value(alias = "gemini-cli")]
    Gemini,
}

impl From<ClientArgument> for ClientProgram {
    fn from(client: ClientArgument) -> Self {
        match client {
            ClientArgument::ClaudeDesktop => Self::ClaudeDesktop,
            ClientArgument::ClaudeCode => Self::ClaudeCode,
            ClientArgument::Cursor => Self::Cursor,
            ClientArgument::Vscode => Self::VsCode,
            ClientArgument::Codex => Self::Codex,
            ClientArgument::Gemini => Self::Gemini,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// All servers with their state
    List,
    /// One server: its state, and its entry in the configuration file
    Show { name: String },
    /// Add a server to the configuration, or change its entry
    Set(Box<ServerSetArguments>),
    /// Remove a server from the configuration
    Delete(EntryDeleteArguments),
    /// Make a running instance connect a server anew
    Reconnect { name: String },
    /// Connect one server and show its details and tools
    Test { name: String },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// All tools in the catalog
    List {
        /// Only tools of this server
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Also quarantined tools, with the reason
        #[arg(long)]
        all: bool,
    },
    /// One tool: limits and their source, arguments
    Show { name: String },
    /// Declare a tool in the configuration: description, arguments, limits
    Set(Box<ToolSetArguments>),
    /// Remove the entry of a tool from the configuration
    Delete(EntryDeleteArguments),
    /// Call a tool
    #[command(visible_alias = "invoke")]
    Call(ToolCallArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsetCommand {
    /// All toolsets, and what MCP clients see at first
    List,
    /// One toolset and its tools
    Show { name: String },
    /// Add a toolset to the configuration, or change its entry
    // Boxed: it is much larger than the others.
    Set(Box<ToolsetSetArguments>),
    /// Remove the entry of a toolset
    Delete(EntryDeleteArguments),
    /// Propose toolsets for a server, as YAML for the configuration file
    Draft(ToolsetDraftArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// All agents of the configuration
    List,
    /// One agent and the MCP endpoints of its servers; a session is an agent too
    Show {
        /// The name of an agent, or the id of a session
        name: String,
        /// Print the servers as a framework takes them
        #[arg(long = "as", value_name = "FRAMEWORK")]
        framework: Option<FrameworkArgument>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FrameworkArgument {
    #[value(name = "openai")]
    OpenAi,
    #[value(alias = "semantickernel")]
    SemanticKernel,
    #[value(alias = "agentframework")]
    AgentFramework,
    #[value(alias = "azureaifoundry")]
    AzureAiFoundry,
}

impl From<FrameworkArgument> for Framework {
    fn from(framework: FrameworkArgument) -> Self {
        match framework {
            FrameworkArgument::OpenAi => Self::OpenAi,
            FrameworkArgument::SemanticKernel => Self::SemanticKernel,
            FrameworkArgument::AgentFramework => Self::AgentFramework,
            FrameworkArgument::AzureAiFoundry => Self::AzureAiFoundry,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Sets come from the server's own `list_toolsets`, where it has that tool, then from the names \
                        of its tools and from what it says about reading and writing."
)]
pub(crate) struct ToolsetDraftArguments {
    /// The server whose tools to group
    #[arg(long, value_name = "NAME")]
    pub(crate) server: String,
    /// Take the server's own grouping from this JSON file, such as a result of `list_toolsets`
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ToolCallArguments {
    /// `tool`, `server.tool`, or the name that its entry exposes
    pub(crate) name: String,
    /// The arguments as a JSON object; `-` reads it from standard input
    #[arg(conflicts_with = "arg")]
    pub(crate) arguments: Option<String>,
    /// The same as an option
    #[arg(long, short = 'P', value_name = "JSON", conflicts_with_all = ["arg", "arguments"])]
    pub(crate) parameters: Option<String>,
    /// One argument, as `name=value`; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) arg: Vec<String>,
    /// Call it in this session, by the names that the session shows
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Create a session and print its id
    New(SessionNewArguments),
    /// All sessions
    List,
    /// One session: its settings and the tools that it sees
    Show { id: String },
    /// Bind a session to these servers only
    Bind {
        id: String,
        #[arg(required_unless_present = "all", value_name = "SERVER")]
        servers: Vec<String>,
        /// Bind it to all servers again
        #[arg(long, conflicts_with = "servers")]
        all: bool,
        /// Fail if the session's tools are no longer at this revision
        #[arg(long, value_name = "N")]
        revision: Option<u64>,
    },
    /// Enable toolsets or tools
    Enable(SessionSwitchArguments),
    /// Disable toolsets or tools
    Disable(SessionSwitchArguments),
    /// Attach an MCP server that only this session sees
    Attach(SessionAttachArguments),
    /// Detach a server that was attached to the session
    Detach {
        id: String,
        /// The name that it was attached under
        #[arg(value_name = "SERVER")]
        server: String,
        /// Apply to a running turn at once, not only to the next turn; needs a running instance
        #[arg(long)]
        now: bool,
    },
    /// Show the conversation of a session, export it to a file, or import it from one
    History(SessionHistoryArguments),
    /// Delete a session
    Delete { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct SessionAttachArguments {
    pub(crate) id: String,
    /// A name for the server; its tools are shown as `SERVER__tool`
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// The URL of the server, such as `https://example.com/mcp`
    // Not `url`: clap would take it for the global option of that name.
    #[arg(value_name = "URL")]
    pub(crate) address: String,
    /// Send this header with every request, such as `Authorization: Bearer ...`; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Use the older HTTP+SSE transport
    #[arg(long)]
    pub(crate) sse: bool,
    /// Do not wait until it has connected or failed
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Apply to a running turn at once, not only to the next turn; needs a running instance
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionHistoryArguments {
    pub(crate) id: String,
    /// Write the conversation to this file as JSON; `-` means standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Replace the conversation of the session with the one in this file; `-` means standard input
    #[arg(long, value_name = "FILE", conflicts_with = "export")]
    pub(crate) import: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionNewArguments {
    /// The id; without it, the session gets a random one
    pub(crate) id: Option<String>,
    /// A title for display
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// The LLM provider of the session
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// The model of the provider
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The credential of the provider, by name [default: its default one]
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<String>,
    /// How the model uses tools: native tool calls, or react, by the text of its answers [default: as the provider says]
    #[arg(long, value_name = "NAME", value_parser = ["native", "react"])]
    pub(crate) strategy: Option<String>,
    /// Bind it to this server; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// Enable this toolset; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) toolset: Vec<String>,
    /// Enable this tool; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Show providers only this tool, a name or a pattern; may be repeated
    #[arg(long, value_name = "PROVIDER=TOOL")]
    pub(crate) allow: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionSwitchArguments {
    pub(crate) id: String,
    /// Toolsets, or tools by the name that the session shows or by `server.tool`
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Treat every name as a tool's, even if a toolset has it too
    #[arg(long)]
    pub(crate) tool: bool,
    /// Fail if the session's tools are no longer at this revision
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<u64>,
    /// Apply to a running turn at once, not only to the next turn; needs a running instance
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "At the prompt, `/help` lists what can be typed beside messages. \
                        With --json each event is one line of JSON.")]
pub(crate) struct ChatArguments {
    /// Continue this session; without it, a new one is created
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    /// The LLM provider from now on [default: the session's, else the first one in the configuration, else demo]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The model of the provider
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The credential of the provider from now on, by name [default: the session's, else the default one]
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<String>,
    /// How the model uses tools from now on: native tool calls, or react, by the text of its answers [default: the
    /// session's, else as the provider says]
    #[arg(long, value_name = "NAME", value_parser = ["native", "react"])]
    pub(crate) strategy: Option<String>,
    /// Let the model use the tools of this group, and `*` those of every group; may be repeated [default: the group default]
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// The state in which each turn begins, for tools that are available in some states only
    #[arg(long, value_name = "NAME")]
    pub(crate) state: Option<String>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Send this message, print the answer and exit; `-` reads it from standard input
    #[arg(long, short = 'm', visible_alias = "message", value_name = "TEXT")]
    pub(crate) once: Option<String>,
    /// Request and show the model's reasoning
    #[arg(long)]
    pub(crate) show_thinking: bool,
    /// How many times per turn the model may be called again with results of tools [default: 25]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_rounds: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// All providers, and whether they have their credentials
    List,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    /// The session
    #[arg(long, value_name = "ID")]
    pub(crate) session: String,
    /// mcp, openai, openai-chat, anthropic, gemini, gemini-parameters, langchain, semantic-kernel or react
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: String,
    /// Show the size of each tool, and what was rewritten and why
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show the changes since this revision
    #[arg(long, value_name = "REVISION")]
    pub(crate) since: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Bring the layout of the database up to date, as every start does
    Migrate,
    /// Write everything to a new file, also while the board runs; it contains the sign-ins and secrets of the board
    Backup {
        /// A file that does not exist yet
        file: PathBuf,
    },
    /// Read a backup into the database, which must be empty
    Restore {
        /// A file that `backup` wrote
        file: PathBuf,
    },
    /// Copy everything to another, empty database, and compare both
    Copy {
        /// A data directory, `postgres://USER@HOST/DATABASE`, or `file:PATH` of a file with such an address
        #[arg(long, value_name = "PLACE")]
        to: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print it; it is not shown again
    Add(KeyAddArguments),
    /// Change what a key may use, its role, its user or its end; running sessions and calls follow
    Edit(KeyEditArguments),
    /// All keys, including revoked ones, without the keys themselves
    List,
    /// Revoke a key
    Revoke {
        /// The name or the id of the key
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Sign in to a server or an LLM provider and store its tokens; a running instance uses them without a restart
    Login {
        #[command(flatten)]
        name: AuthName,
        #[command(flatten)]
        way: SignInWay,
    },
    /// Store your own token for a server with `auth.bearer: {per: user}`; it is read from the standard input
    Set {
        /// The name of the server in the configuration
        server: String,
        /// Store it as the token of the board, which lists the tools; with --url this needs the role admin
        #[arg(long)]
        board: bool,
    },
    /// Which servers and providers need a sign-in, and which are signed in; with --url, your own accounts at its servers
    Status {
        /// With --url, show the accounts of the board and of all owners; needs the role operator
        #[arg(long)]
        all: bool,
    },
    /// Revoke the tokens of a server or provider, and delete them
    Logout {
        #[command(flatten)]
        name: AuthName,
    },
}

/// The server or provider of a sign-in.
#[derive(Debug, Args)]
pub(crate) struct AuthName {
    /// The name of the server or provider in the configuration
    pub(crate) name: String,
    /// It is a provider, even if a server has the name too
    #[arg(long, conflicts_with = "server")]
    pub(crate) provider: bool,
    /// It is a server, even if a provider has the name too
    #[arg(long)]
    pub(crate) server: bool,
    /// The credential of the provider, by name; a new name is a further sign-in [default: its default one]
    #[arg(long, value_name = "NAME", conflicts_with = "server", value_parser = credential_name)]
    pub(crate) credential: Option<String>,
    /// With --url, the account of the board at a server at which each user has one; needs the role admin
    #[arg(long, conflicts_with_all = ["provider", "credential"])]
    pub(crate) board: bool,
}

/// How a sign-in reaches the person.
#[derive(Debug, Args)]
pub(crate) struct SignInWay {
    /// Only print the URL, for a browser of your choice; its answer can be pasted
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Show a code to enter on another device, where the authorization server offers that
    #[arg(long, conflicts_with = "no_browser")]
    pub(crate) device: bool,
}

fn credential_name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("use up to 64 letters, digits, `_` and `-`".into())
}

#[derive(Debug, Args)]
pub(crate) struct KeyAddArguments {
    /// The name of the key: letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// The role of the key
    #[arg(long, default_value = "client")]
    pub(crate) role: RoleArgument,
    /// How long it is valid, such as `90d`, `12h` or `1y`; without this, until it is revoked
    #[arg(long, value_name = "DURATION")]
    pub(crate) expires: Option<String>,
    /// The person who uses the key, such as `anna`. Keys with the same label belong to one person
    #[arg(long, value_name = "LABEL")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) access: KeyAccessArguments,
}

/// What a key may use. Without `--toolsets` and `--tools`, everything.
#[derive(Debug, Args)]
pub(crate) struct KeyAccessArguments {
    /// Toolsets that it may use, separated by commas; an empty value grants none
    #[arg(long, value_name = "NAMES")]
    pub(crate) toolsets: Option<String>,
    /// Tools that it may use in addition, as names or patterns such as `docs.search_*`
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) tools: Option<String>,
    /// Tools that it may not use, as names or patterns
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) deny: Option<String>,
    /// Only tools that say that they change nothing (`readOnlyHint`)
    #[arg(long)]
    pub(crate) readonly: bool,
    /// How often it may call one tool, such as `60/min`
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// How many calls of one tool it may run at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_instances: Option<u32>,
}

impl KeyAccessArguments {
    /// What a new key grants.
    pub(crate) fn view(&self) -> AccessView {
        AccessView {
            toolsets: self.toolsets.as_deref().map(listed),
            tools: self.tools.as_deref().map(listed),
            deny: self.deny.as_deref().map(listed).unwrap_or_default(),
            readonly: self.readonly,
            max_instances: self.max_instances,
            rate: self.rate.clone(),
        }
    }
}

fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[derive(Debug, Args)]
pub(crate) struct KeyEditArguments {
    /// The name or the id of the key
    pub(crate) name: String,
    /// The role of the key
    #[arg(long)]
    pub(crate) role: Option<RoleArgument>,
    /// How long it is valid from now on, such as `90d`, `12h` or `1y`
    #[arg(long, value_name = "DURATION")]
    pub(crate) expires: Option<String>,
    /// The person who uses the key
    #[arg(long, value_name = "LABEL")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) access: KeyAccessArguments,
    /// Restrictions and settings to remove
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
        value_parser = ["toolsets", "tools", "deny", "readonly", "rate", "max-instances", "user", "expires"])]
    pub(crate) clear: Vec<String>,
}

impl KeyEditArguments {
    pub(crate) fn clears(&self, what: &str) -> bool {
        self.clear.iter().any(|cleared| cleared == what)
    }

    /// What is changed of what the key grants; `None` if nothing is.
    pub(crate) fn access_change(&self) -> Option<AccessChange> {
        #[expect(clippy::option_option, reason = "set, cleared, or left as it is")]
        fn changed<T>(is_cleared: bool, value: Option<T>) -> Option<Option<T>> {
            if is_cleared { Some(None) } else { value.map(Some) }
        }
        let texts = |what: &str, text: &Option<String>| {
            changed(self.clears(what), text.as_deref().map(listed))
        };
        let access = &self.access;
        let change = AccessChange {
            toolsets: texts("toolsets", &access.toolsets),
            tools: texts("tools", &access.tools),
            deny: texts("deny", &access.deny),
            readonly: changed(self.clears("readonly"), access.readonly.then_some(true)),
            max_instances: changed(self.clears("max-instances"), access.max_instances),
            rate: changed(self.clears("rate"), access.rate.clone()),
        };
        (change != AccessChange::default()).then_some(change)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleArgument {
    Client,
    Operator,
    Admin,
}

impl From<RoleArgument> for Role {
    fn from(role: RoleArgument) -> Self {
        match role {
            RoleArgument::Client => Self::Client,
            RoleArgument::Operator => Self::Operator,
            RoleArgument::Admin => Self::Admin,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// The address to listen on for HTTP; the server answers at /mcp
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8421",
        value_parser = listen_address
    )]
    pub(crate) listen: SocketAddr,
    /// Use standard input and output instead
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GuardArguments {
    pub(crate) parent: u32,
    pub(crate) command: String,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

/// The value of a flag on the command line, ignoring its environment variable, which applies to every command.
pub(crate) fn of_flag<'a, T: AsRef<OsStr> + ?Sized>(
    given: Option<&'a T>,
    variable: &str,
) -> Option<&'a T> {
    given.filter(|given| {
        std::env::var_os(variable).is_none_or(|of_variable| of_variable != given.as_ref())
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::CommandArguments::command().debug_assert();
    }
}
