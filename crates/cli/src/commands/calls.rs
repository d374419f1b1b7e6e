//! `calls`: recent records, or a kept result.

use std::process::ExitCode;

use comfy_table::Cell;
use switchboard_api::{RecordList, RecordView};
use switchboard_http::present;
use switchboard_store::CallFilter;

use crate::args::{CallsArguments, Globals};
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::output::{Output, state_cell};
use crate::remote::Remote;

/// How much of a kept result is read at a time.
const SLICE: u64 = 1024 * 1024;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &CallsArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    if let Some(handle) = &wanted.result {
        return print_result(globals, handle, output).await;
    }
    let list = if let Some(url) = &globals.url {
        Remote::new(url)?.calls(wanted).await?
    } else {
        let filter = CallFilter {
            limit: wanted.limit,
            tool: wanted.tool.clone(),
            outcome: wanted.outcome.clone(),
            before: None,
        };
        let calls = open_store(globals).await?.recent_calls(&filter).await?;
        RecordList { calls: calls.iter().map(present::record).collect() }
    };
    if output.is_json() {
        output.json(&list);
    } else if list.calls.is_empty() {
        output.note("no calls are recorded");
    } else {
        let header = ["time", "tool", "outcome", "waited", "ran", "bytes", "via"];
        output.table(&header, list.calls.iter().map(row).collect());
    }
    Ok(ExitCode::SUCCESS)
}

fn row(call: &RecordView) -> Vec<Cell> {
    let unknown = || format!("{} (unknown)", call.requested);
    vec![
        Cell::new(&call.started_at),
        Cell::new(call.tool.clone().unwrap_or_else(unknown)),
        state_cell(&call.outcome),
        Cell::new(format!("{:.1} ms", call.wait_ms)),
        Cell::new(format!("{:.1} ms", call.run_ms)),
        Cell::new(call.result_bytes),
        Cell::new(&call.face),
    ]
}

async fn print_result(
    globals: &Globals,
    handle: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let remote = globals.url.as_deref().map(Remote::new).transpose()?;
    let store = if remote.is_none() { Some(open_store(globals).await?) } else { None };
    let mut offset = 0;
    loop {
        let slice = match (&remote, &store) {
            (Some(remote), _) => Some(remote.result(handle, offset).await?),
            (None, Some(store)) => {
                let slice = store.read_result(handle, offset, SLICE).await?;
                slice.map(|slice| (slice.bytes, slice.total))
            }
            (None, None) => None,
        };
        let Some((bytes, total)) = slice else {
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
