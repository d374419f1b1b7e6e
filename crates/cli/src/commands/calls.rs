//! `calls`: shows recent call records, follows new ones, or prints a stored result.

use std::process::ExitCode;

use comfy_table::Cell;
use jiff::Timestamp;
use switchboard_api::{RecordList, RecordView};
use switchboard_model::CallOutcome;
use switchboard_store::CallFilter;

use super::calls_follow::{Follower, NewRecords};
use super::calls_none::{KnownNames, no_calls};
use super::calls_source::{CallSource, filter};
use super::{calls_export, calls_show, interrupted};
use crate::args::Globals;
use crate::calls_args::{CallsArguments, CallsCommand};
use crate::failure::Failure;
use crate::output::{Output, cell, harmless, state_cell};
use crate::session_backend::LOCAL_OWNER;

/// How many bytes of a stored result are read per request.
const SLICE: u64 = 1024 * 1024;
/// Maximum number of characters of an error in the table; `--json` has the whole text.
const MAX_ERROR: usize = 100;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &CallsArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    match &wanted.command {
        Some(CallsCommand::Show { id }) => return calls_show::run(globals, id, output).await,
        Some(CallsCommand::Export(wanted)) => {
            return calls_export::run(globals, wanted, output).await;
        }
        None => {}
    }
    let filter = CallFilter { limit: wanted.limit, ..filter(&wanted.filter, Timestamp::now())? };
    let source = CallSource::open(globals).await?;
    if let Some(handle) = &wanted.result {
        return print_result(&source, handle, output).await;
    }
    let filter = source.prepared(filter).await?;
    if wanted.follow {
        let following = follow(&source, Follower::new(filter), output);
        tokio::select! {
            failed = following => return Err(failed),
            () = interrupted() => return Ok(ExitCode::SUCCESS),
        }
    }
    let list = RecordList { calls: source.read(&filter).await? };
    if list.calls.is_empty() {
        let known = if filter.tool.is_some() || filter.server.is_some() {
            source.known_names().await?
        } else {
            KnownNames::default()
        };
        output.note(&no_calls(&filter, &known));
    }
    if output.is_json() {
        output.json(&list);
    } else if !list.calls.is_empty() {
        // A filter for failures implies that the reasons are shown.
        let is_long =
            wanted.long || wanted.filter.outcome.is_some_and(|how| how != CallOutcome::Ok);
        let mut header = vec!["time", "tool", "outcome", "waited", "ran", "bytes", "via"];
        if is_long {
            header.extend(["session", "id", "error"]);
        }
        output.table(&header, list.calls.iter().map(|call| row(call, is_long)).collect());
    }
    Ok(ExitCode::SUCCESS)
}

fn row(call: &RecordView, is_long: bool) -> Vec<Cell> {
    let mut row = vec![
        cell(&call.started_at),
        cell(tool(call)),
        state_cell(&call.outcome),
        cell(format!("{:.1} ms", call.wait_ms)),
        cell(format!("{:.1} ms", call.run_ms)),
        cell(call.result_bytes),
        cell(via(call)),
    ];
    if is_long {
        row.push(cell(call.session.as_deref().unwrap_or("-")));
        row.push(cell(&call.id));
        row.push(cell(error(call).unwrap_or_default()));
    }
    row
}

/// The interface, the client, and the API key or the principal unless it is the local user.
fn via(call: &RecordView) -> String {
    let principal = call.key.as_deref().or(call.principal.as_deref());
    let principal = principal.filter(|principal| *principal != LOCAL_OWNER);
    let parts = [Some(call.face.as_str()), call.client.as_deref(), principal];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn tool(call: &RecordView) -> String {
    call.tool.clone().unwrap_or_else(|| format!("{} (unknown)", call.requested))
}

/// The first line of the error.
fn error(call: &RecordView) -> Option<String> {
    let text = call.message.as_deref()?.trim();
    let line = text.lines().next()?;
    let is_whole = line == text && line.chars().count() <= MAX_ERROR;
    let shown: String = line.chars().take(MAX_ERROR).collect();
    Some(if is_whole { shown } else { format!("{shown}…") })
}

/// Shows new records until reading fails.
async fn follow(source: &CallSource, mut follower: Follower, output: Output) -> Failure {
    let mut news = follower.first(source).await;
    loop {
        match news {
            Ok(NewRecords { calls, is_incomplete }) => {
                for call in &calls {
                    output.data(&line(call, output));
                }
                if is_incomplete {
                    output.note("more calls ended than can be followed; some are not shown");
                }
            }
            Err(failure) => return failure,
        }
        news = follower.next(source).await;
    }
}

fn line(call: &RecordView, output: Output) -> String {
    if output.is_json() {
        return serde_json::to_string(call).unwrap_or_default();
    }
    let mut parts = vec![
        call.started_at.clone(),
        tool(call),
        call.outcome.clone(),
        format!("{:.1} ms", call.wait_ms + call.run_ms),
        format!("{} bytes", call.result_bytes),
        via(call),
    ];
    parts.extend(error(call));
    harmless(&parts.join("  "))
}

async fn print_result(
    source: &CallSource,
    handle: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let mut offset = 0;
    loop {
        let Some((bytes, total)) = source.result(handle, offset, SLICE).await? else {
            return Err(Failure::usage(format!("there is no result '{handle}'"))
                .with_hint(Some("large results are kept for a day".into())));
        };
        output.bytes(&bytes);
        offset += bytes.len() as u64;
        if bytes.is_empty() || offset >= total {
            output.bytes(b"\n");
            return Ok(ExitCode::SUCCESS);
        }
    }
}
