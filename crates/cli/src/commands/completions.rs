//! `completions`: prints what a shell reads to complete commands and options.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::args::CommandArguments;
use crate::output::Output;

pub(crate) fn run(shell: Shell, output: Output) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandArguments::command(), "switchboard", &mut script);
    if output.is_json() {
        let script = String::from_utf8_lossy(&script);
        output.json(&json!({"shell": shell.to_string(), "script": script}));
    } else {
        output.bytes(&script);
    }
    ExitCode::SUCCESS
}
