//! Prints what starting, idling and calling cost. Run it with `make bench`; it asserts nothing, because times on
//! a shared machine are noise. Ratios within one run and the trend over runs are what to look at.

mod calls;
mod idle;
mod start;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let program = std::env::args().nth(1).map(PathBuf::from);
    let program = program.context("usage: switchboard-bench PATH_TO_SWITCHBOARD")?;
    ensure!(program.is_file(), "{} is not there: build it first", program.display());
    let mut out = std::io::stdout();
    writeln!(out, "{:<52} {:>14} {:>12}", "WHAT", "MEASURED", "AIM")?;
    for row in start::measure(&program)? {
        writeln!(out, "{row}")?;
    }
    for row in idle::measure(&program).await? {
        writeln!(out, "{row}")?;
    }
    for row in calls::measure().await? {
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// One line of the table.
struct Row {
    what: String,
    measured: String,
    aim: &'static str,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<52} {:>14} {:>12}", self.what, self.measured, self.aim)
    }
}
