//! `check`: validates the configuration, and with `--connect` whether it would start.

use std::process::ExitCode;

use serde_json::json;
use switchboard_config::{ConfigProblem, Loaded};
use switchboard_http::present;
use switchboard_runtime::{Board, ExposureRule, Memory};

use crate::args::{CheckArguments, Globals};
use crate::embedded::{config_source, end_board, load_config, open_store, start_board};
use crate::failure::{EXIT_START, Failure};
use crate::output::Output;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &CheckArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let loaded = load_config(globals, output)?;
    let source = config_source(globals);
    let file =
        source.path().map_or_else(|| "the environment".into(), |path| path.display().to_string());
    let (servers, tools) = (loaded.plan.servers.len(), loaded.plan.tools.len());
    let mut warnings: Vec<_> = loaded.warnings.iter().map(ConfigProblem::to_json).collect();
    if !wanted.connect {
        if output.is_json() {
            let document = json!({"file": file, "servers": servers, "tool_entries": tools, "warnings": warnings});
            output.json(&document);
        } else {
            output.data(&format!("{file} is valid: {servers} servers, {tools} tool entries"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let store = open_store(globals).await?;
    let board =
        start_board(loaded.plan.clone(), store, Memory::ReadOnly, ExposureRule::default()).await?;
    for warning in toolset_warnings(&loaded, &board) {
        output.warn(&warning.to_string());
        warnings.push(warning.to_json());
    }
    let contradictions = contradictions(&loaded, &board);
    for contradiction in &contradictions {
        output.warn(&contradiction.to_string());
        warnings.push(contradiction.to_json());
    }
    let (servers, readiness) = (present::servers(&board), present::readiness(&board));
    if output.is_json() {
        let document = json!({"file": file, "warnings": warnings, "readiness": readiness, "servers": servers.servers});
        output.json(&document);
    } else {
        super::server_list::show(&servers, output);
        output.data(&format!("{file} would start {}: {} tools", readiness.status, readiness.tools));
    }
    end_board(&board).await;
    // The board would start, but without tools that the file configures.
    Ok(if contradictions.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_START) })
}

/// Declared arguments that a server would refuse. Their tools are left out.
fn contradictions(loaded: &Loaded, board: &Board) -> Vec<ConfigProblem> {
    let found = board.contradictions(&loaded.plan).into_iter();
    found
        .map(|it| {
            let help = "the tool is left out: change the value, or remove it".to_owned();
            loaded.warning_at(&it.path(), it.message, Some(help))
        })
        .collect()
}

/// Warnings about toolset patterns that match no tool.
pub(super) fn toolset_warnings(loaded: &Loaded, board: &Board) -> Vec<ConfigProblem> {
    let unmatched = board.unmatched_patterns().into_iter();
    unmatched
        .map(|it| {
            let help = it.nearest.as_ref().map(|near| format!("did you mean `{near}`?"));
            loaded.warning_at(&it.path, it.to_string(), help)
        })
        .collect()
}
