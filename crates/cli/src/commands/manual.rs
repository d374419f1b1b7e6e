//! `manual`: writes the manual pages, for packages.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::CommandArguments;
use crate::failure::Failure;
use crate::output::Output;

/// Writes `switchboard.1` and a page for each command into the directory.
pub(crate) fn run(directory: &Path, output: Output) -> Result<ExitCode, Failure> {
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(CommandArguments::command(), directory))
        .map_err(|error| Failure::start(format!("cannot write the manual pages: {error}")))?;
    output.note(&format!("the manual pages are in {}", directory.display()));
    Ok(ExitCode::SUCCESS)
}
