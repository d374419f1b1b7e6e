//! The arguments of commands that change an entry of the configuration.

use clap::Args;

use crate::call_policy_args::CallPolicyArguments;
use crate::mode_argument::ModeArgument;

#[derive(Debug, Args)]
#[command(
    after_help = "Fields that no option names stay as they are. Without --url the configuration file is changed; with --url \
                  that of the running instance, which applies the change at once (role admin)."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ToolSetArguments {
    /// `tool` for that tool of every server, or `server.tool`
    pub(crate) name: String,
    /// The description that models see
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// An argument, as `name:type:description`; may be repeated. Types are string, number, integer, boolean, object and
    /// array; a description may have colons. The arguments of the entry become exactly these, and the fixed and hidden
    /// ones that it has
    #[arg(long, value_name = "NAME:TYPE:DESCRIPTION", help_heading = "Arguments of the tool")]
    pub(crate) argument: Vec<String>,
    /// Remove an argument of the entry; may be repeated. Only this removes a fixed or hidden one
    #[arg(long, value_name = "ARGUMENT", help_heading = "Arguments of the tool")]
    pub(crate) remove_argument: Vec<String>,
    /// An argument that must be given; may be repeated
    #[arg(long, value_name = "ARGUMENT", help_heading = "Arguments of the tool")]
    pub(crate) required: Vec<String>,
    /// An argument that need not be given; may be repeated
    #[arg(long, value_name = "ARGUMENT", help_heading = "Arguments of the tool")]
    pub(crate) optional: Vec<String>,
    /// An accepted value of an argument; may be repeated. The values of the argument become exactly these
    #[arg(long = "enum", value_name = "ARGUMENT=VALUE", help_heading = "Arguments of the tool")]
    pub(crate) choice: Vec<String>,
    /// The value that is sent when a caller does not give the argument; may be repeated
    #[arg(long, value_name = "ARGUMENT=VALUE", help_heading = "Arguments of the tool")]
    pub(crate) default: Vec<String>,
    /// The JSON Schema of the elements of an array, such as `to={"type": "string"}`; may be repeated
    #[arg(long, value_name = "ARGUMENT=JSON", help_heading = "Arguments of the tool")]
    pub(crate) items: Vec<String>,
    /// The JSON Schema of each member of an object, such as `address={"zip": {"type": "string"}}`; may be repeated
    #[arg(long, value_name = "ARGUMENT=JSON", help_heading = "Arguments of the tool")]
    pub(crate) properties: Vec<String>,
    /// A fixed value: sent with every call, never shown to models and clients; may be repeated. Better `'${VARIABLE}'` for a
    /// secret
    #[arg(long, value_name = "ARGUMENT=VALUE", help_heading = "Arguments of the tool")]
    pub(crate) value: Vec<String>,
    /// An argument that models and clients do not see; its default is sent. May be repeated
    #[arg(long, value_name = "ARGUMENT", help_heading = "Arguments of the tool")]
    pub(crate) hidden: Vec<String>,
    #[command(flatten)]
    pub(crate) calls: CallPolicyArguments,
    /// The name under which models see the tool
    #[arg(long, value_name = "NAME")]
    pub(crate) expose_as: Option<String>,
    /// How many calls run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) max_instances: Option<u32>,
    /// How long a call may run, such as 30s
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// How long a call that reports progress may run
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_timeout: Option<String>,
    /// How long a call may wait for a slot
    #[arg(long, value_name = "DURATION")]
    pub(crate) queue_timeout: Option<String>,
    /// How long a call may stay without any message
    #[arg(long, value_name = "DURATION")]
    pub(crate) inactivity_timeout: Option<String>,
    /// Larger results are stored
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_result_bytes: Option<u64>,
    /// How often the tool may be called, such as 60/min
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// Show the tool
    #[arg(long, conflicts_with = "disabled")]
    pub(crate) enabled: bool,
    /// Hide the tool
    #[arg(long)]
    pub(crate) disabled: bool,
    /// The admission mode of the tool
    #[arg(long)]
    pub(crate) mode: Option<ModeArgument>,
    /// A group of the tool; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Groups and states")]
    pub(crate) group: Vec<String>,
    /// The tool has no group: only turns that ask for `*` see it
    #[arg(long, conflicts_with = "group", help_heading = "Groups and states")]
    pub(crate) no_group: bool,
    /// The state of a turn after the tool was called
    #[arg(long, value_name = "NAME", help_heading = "Groups and states")]
    pub(crate) state: Option<String>,
    /// A state of a turn in which the tool may be used; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Groups and states")]
    pub(crate) applicable_state: Vec<String>,
    /// The tool may be used in no state
    #[arg(long, conflicts_with = "applicable_state", help_heading = "Groups and states")]
    pub(crate) no_applicable_state: bool,
    /// The kind of the entry, such as `mcp-tool` or `prompt`
    #[arg(long = "type", value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// With --type mcp-tool: the tool that the entry stands for
    #[arg(long, value_name = "TOOL")]
    pub(crate) mcp_tool: Option<String>,
    /// With --type: the id under which TrustGraph's clients know the entry
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// With --type prompt: the template of the message
    #[arg(long, help_heading = "Prompt tools")]
    pub(crate) template: Option<String>,
    /// With --type prompt: the provider that answers
    #[arg(long, value_name = "NAME", help_heading = "Prompt tools")]
    pub(crate) provider: Option<String>,
    /// With --type prompt: the model that answers
    #[arg(long, value_name = "NAME", help_heading = "Prompt tools")]
    pub(crate) model: Option<String>,
    /// With --type prompt: the system instructions of the model
    #[arg(long, value_name = "TEXT", help_heading = "Prompt tools")]
    pub(crate) instructions: Option<String>,
    /// With --type prompt: a tool that the model may call, as a name or pattern; may be repeated
    #[arg(long = "tool", value_name = "PATTERN", help_heading = "Prompt tools")]
    pub(crate) tools: Vec<String>,
    /// With --type prompt: how many prompt tools may run inside each other
    #[arg(long, value_name = "N", help_heading = "Prompt tools")]
    pub(crate) max_depth: Option<u32>,
    /// Remove a field of the entry, such as `timeout` or `arguments`; may be repeated
    #[arg(long, value_name = "FIELD")]
    pub(crate) unset: Vec<String>,
    /// Show the change of the file as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Fields that no option names stay as they are. A new server has the mode dynamic, with 5 instances and 30s \
                  for each tool, if no option says otherwise. Without --url the configuration file is changed; with --url \
                  that of the running instance, which applies the change at once (role admin)."
)]
pub(crate) struct ServerSetArguments {
    pub(crate) name: String,
    /// The address of the server
    // Not `url`: clap would take it for the global option of that name.
    #[arg(long = "tool-url", alias = "address", value_name = "URL", conflicts_with = "command")]
    pub(crate) address: Option<String>,
    /// The program of the server; its arguments follow after `--`. In the file only, never with --url
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
    /// The arguments of the program
    #[arg(last = true, requires = "command", value_name = "ARGUMENT")]
    pub(crate) args: Vec<String>,
    /// A variable of the program, as `NAME=VALUE`; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// The working directory of the program
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// `streamable_http`, `sse` or `stdio`
    #[arg(long)]
    pub(crate) transport: Option<String>,
    /// A header of every request, as `Name: value`; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The bearer token; better `'${VARIABLE}'` or `file:PATH`, which the file may refer to
    #[arg(long, value_name = "TOKEN")]
    pub(crate) bearer: Option<String>,
    /// The admission mode
    #[arg(long)]
    pub(crate) mode: Option<ModeArgument>,
    /// For tools without an entry: how many calls run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) max_instances: Option<u32>,
    /// For tools without an entry: how long a call may run
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// The board does not start without the server
    #[arg(long, conflicts_with = "not_required")]
    pub(crate) required: bool,
    /// The board starts without the server
    #[arg(long)]
    pub(crate) not_required: bool,
    /// Only tools that match one of these patterns exist; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Tools that match one of these patterns do not exist; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// The toolset of its tools
    #[arg(long, value_name = "NAME")]
    pub(crate) toolset: Option<String>,
    /// The prompts that clients see, as names or patterns; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) prompt: Vec<String>,
    /// The protocol era: `auto`, `legacy` or `modern`
    #[arg(long)]
    pub(crate) era: Option<String>,
    /// How long connecting may take
    #[arg(long, value_name = "DURATION")]
    pub(crate) connect_timeout: Option<String>,
    /// Interval of listing the tools again
    #[arg(long, value_name = "DURATION")]
    pub(crate) poll_interval: Option<String>,
    #[command(flatten)]
    pub(crate) calls: CallPolicyArguments,
    /// Remove a field of the entry, such as `headers`; may be repeated
    #[arg(long, value_name = "FIELD")]
    pub(crate) unset: Vec<String>,
    /// Show the change of the file as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Fields that no option names stay as they are. Without --url the configuration file is changed; with --url \
                  that of the running instance, which applies the change at once (role admin)."
)]
pub(crate) struct ToolsetSetArguments {
    pub(crate) name: String,
    /// Describes the contents to a model that has to choose a toolset
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// When a model should enable it
    #[arg(long, value_name = "TEXT")]
    pub(crate) when_to_use: Option<String>,
    /// A server whose tools are all members; may be repeated. The servers of the entry become exactly these
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// A member: `tool` or `server.tool`, as a name or a pattern; may be repeated. The tools of the entry become exactly these
    #[arg(long, value_name = "PATTERN")]
    pub(crate) tool: Vec<String>,
    /// Remove a field of the entry, such as `servers`; may be repeated
    #[arg(long, value_name = "FIELD")]
    pub(crate) unset: Vec<String>,
    /// Show the change of the file as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EntryDeleteArguments {
    /// The name of the entry
    pub(crate) name: String,
    /// Show the change of the file as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
