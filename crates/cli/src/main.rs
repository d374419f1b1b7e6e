//! The `switchboard` program: parses the command line, does what it says, and turns the outcome into an exit
//! code. One file per command in `commands`.

mod args;
mod backend;
mod commands;
mod data_dir;
mod embedded;
mod exposure;
mod failure;
mod file_limit;
mod history_text;
mod listen_address;
mod output;
mod progress;
mod remote;
mod remote_turn;
mod replace_file;
mod session_backend;
mod single_connection;
mod turn_backend;
mod turn_news;

use std::process::ExitCode;

use clap::Parser;
use switchboard_telemetry::{LogOptions, init_logging};

use crate::args::{Arguments, Command};
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse_usage(&error),
    };
    if let Command::Guard(guard) = &arguments.command {
        // The guard must stay small: no logging, no threads but its own.
        return switchboard_mcp::run_guard(guard.parent, &guard.command, &guard.arguments);
    }
    let news = i8::from(arguments.command.tells_the_news());
    let verbosity = arguments.globals.verbosity().saturating_add(news);
    // Dropped last: it sends what a collector has not got yet.
    let _tracing =
        init_logging(LogOptions { format: arguments.globals.log_format.into(), verbosity });
    let log_format = arguments.globals.log_format.into();
    let is_service = arguments.command.tells_the_news();
    let output = Output::new(arguments.globals.json).with_log(is_service, log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&failure::Failure::start(error.to_string())),
    };
    let outcome = runtime.block_on(commands::run(arguments, output));
    // Whatever still blocks, such as a read from a dead terminal, must not keep the program alive.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(failure) => output.fail(&failure),
    }
}

/// Help and version are no failures; a mistake is told as JSON to whoever asked for that.
fn refuse_usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        let message = error.to_string();
        let message = message.trim().trim_start_matches("error: ");
        return Output::new(true).fail(&failure::Failure::usage(message));
    }
    // A reader that is gone has seen enough.
    let _reader_is_gone = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(failure::EXIT_USAGE))
}
