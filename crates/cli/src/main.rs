//! The `switchboard` program: parses the command line, runs the command, and maps the result to an exit code. Each
//! command has a file in `commands`.

mod args;
mod backend;
mod browser;
mod call_policy_args;
mod calls_args;
mod commands;
mod data_dir;
mod declared_arguments;
mod discovered;
mod embedded;
mod entry_args;
mod entry_change;
mod entry_fields;
mod exposure;
mod failure;
mod file_limit;
mod history_text;
mod instance_trust;
mod listen_address;
mod mcp_endpoint;
mod mode_argument;
mod output;
mod progress;
mod remote;
mod remote_turn;
mod replace_file;
mod server_accounts;
mod session_backend;
mod single_connection;
mod turn_backend;
mod turn_news;
mod version;

use std::process::ExitCode;

use clap::Parser;
use switchboard_telemetry::{LogFormat, LogOptions, init_logging};

use crate::args::{Command, CommandArguments};
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = match CommandArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse_usage(&error),
    };
    if let Command::Guard(guard) = &arguments.command {
        // The guard process must stay small: no logging and no further threads.
        return switchboard_mcp_client::run_guard(guard.parent, &guard.command, &guard.arguments);
    }
    let news = i8::from(arguments.command.logs_at_info());
    let verbosity = arguments.globals.verbosity().saturating_add(news);
    // Dropped last: it flushes telemetry that was not exported yet.
    let _tracing =
        init_logging(LogOptions { format: arguments.globals.log_format.into(), verbosity });
    let log_format = arguments.globals.log_format.into();
    let output = match arguments.command {
        // Chat output is for a person, whatever the log format is.
        Command::Chat(_) => Output::new(arguments.globals.json),
        _ => Output::new(arguments.globals.json).with_log(log_format),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&failure::Failure::start(error.to_string())),
    };
    let outcome = runtime.block_on(commands::run(arguments, output));
    // Blocked threads, such as a read from a dead terminal, must not keep the process alive.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(failure) => output.fail(&failure),
    }
}

/// Handles errors of clap. Help and version are no failures; errors are JSON if `--json` or a JSON log was asked for.
fn refuse_usage(error: &clap::Error) -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let logs_json = arguments.iter().any(|argument| argument == "--log-format=json")
        || arguments.windows(2).any(|pair| pair == ["--log-format", "json"]);
    if error.use_stderr() && (wants_json || logs_json) {
        let message = error.to_string();
        let message = message.trim().trim_start_matches("error: ");
        let log_format = if logs_json { LogFormat::Json } else { LogFormat::Text };
        let output = Output::new(wants_json).with_log(log_format);
        return output.fail(&failure::Failure::usage(message));
    }
    // Fails only if the reader of the output is gone.
    let _reader_is_gone = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(failure::EXIT_USAGE))
}
