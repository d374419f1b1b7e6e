//! The arguments of `calls`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use switchboard_model::CallOutcome;

#[derive(Debug, Args)]
pub(crate) struct CallsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<CallsCommand>,
    /// How many calls to show
    #[arg(long, short = 'n', default_value_t = 20)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) filter: CallFilterArguments,
    /// Also show the session, the id, and why a call failed; implied by an outcome that is a failure
    #[arg(long, short)]
    pub(crate) long: bool,
    /// Keep running and show calls as they end; with --json one line each
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Print the large result that was stored under this handle
    #[arg(
        long,
        value_name = "HANDLE",
        conflicts_with_all = [
            "tool", "server", "session", "principal", "person", "owner", "outcome", "since", "until", "follow"
        ]
    )]
    pub(crate) result: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallsCommand {
    /// Everything that is recorded of one call
    Show {
        /// The id of the call, as `calls --json` has it
        id: String,
    },
    /// Write the records of all calls as JSON lines, in the order in which the calls ended
    Export(CallsExportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CallsExportArguments {
    #[command(flatten)]
    pub(crate) filter: CallFilterArguments,
    /// Only records that were written after this one: the id of the last record of the previous export
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
}

/// Which calls.
#[derive(Debug, Args)]
pub(crate) struct CallFilterArguments {
    /// Only calls of this tool: `server.tool`, `tool`, or the name that the caller used
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of tools of this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only calls made in this session: its id, or the `Mcp-Session-Id` of an MCP client
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls of this principal, or of the API key of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only calls of this person: `user:` and the label of a key, `key:` and the id of a key, or `jwt:` and issuer and subject
    #[arg(long, value_name = "NAME")]
    pub(crate) person: Option<String>,
    /// Only calls in sessions of this owner, and calls that it made without a session
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Only calls with this outcome
    #[arg(long, value_parser = outcome_parser())]
    pub(crate) outcome: Option<CallOutcome>,
    /// Only calls since then: a duration such as `15m` or `2d`, a timestamp such as `2026-11-17T08:00:00Z`, or a date,
    /// which is its midnight in UTC
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls before then, written as --since
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
}

/// Parses outcomes; the error lists the valid ones.
fn outcome_parser() -> impl TypedValueParser<Value = CallOutcome> {
    PossibleValuesParser::new(CallOutcome::ALL.map(CallOutcome::as_str))
        .try_map(|word| CallOutcome::from_word(&word).ok_or("is not an outcome"))
}
