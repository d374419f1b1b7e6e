//! `config show` and `config schema`.

use std::process::ExitCode;

use crate::args::{ConfigCommand, Globals};
use crate::embedded::load_config;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(
    globals: &Globals,
    wanted: &ConfigCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    match wanted {
        ConfigCommand::Schema => output.json(&switchboard_config::json_schema()),
        ConfigCommand::Show => {
            let loaded = load_config(globals, output)?;
            if output.is_json() {
                output.json(&loaded.to_json());
            } else {
                output.document(&loaded.to_yaml());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
