//! `calls export`: writes records as JSON lines. Only one page of them is in memory at a time.

use std::process::ExitCode;

use jiff::Timestamp;

use super::calls_source::{CallSource, filter};
use crate::args::Globals;
use crate::calls_args::CallsExportArguments;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &CallsExportArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let filter = filter(&wanted.filter, Timestamp::now())?;
    let source = CallSource::open(globals).await?;
    let filter = source.prepared(filter).await?;
    let mut lines = source.export(filter, wanted.after.as_deref()).await?;
    while let Some(bytes) = lines.next().await? {
        output.bytes(&bytes);
    }
    Ok(ExitCode::SUCCESS)
}
