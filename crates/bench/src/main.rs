//! Prints the cost of starting, idling and calling (`make bench`), of the gateway per call (`make bench-gateway`), of
//! the board per turn (`make bench-turns`) and of answers to apps of providers (`make bench-injected`). It asserts no
//! times, because times on a shared machine are noise: compare ratios within one run, and the trend over runs.

mod access;
mod calls;
mod gateway;
mod idle;
mod render;
mod sessions;
mod start;
mod turns;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use tokio::runtime::Builder;

const USAGE: &str = "usage: switchboard-bench [gateway | gateway-api | gateway-calls | gateway-instructions | turns | injected] PATH_TO_SWITCHBOARD, or switchboard-bench access | render | sessions | parsing | splicing";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The load comes from one thread, so that it disturbs the measurement little. The proxy and the server with fixed
    // responses use the same runtime as the gateway, because they are compared with it.
    let one_thread = || Builder::new_current_thread().enable_all().build();
    let as_the_gateway = || Builder::new_multi_thread().enable_all().build();
    match words.as_slice() {
        ["peer", "upstream"] => one_thread()?.block_on(gateway::upstream()),
        ["peer", "proxy", upstream] => as_the_gateway()?.block_on(gateway::proxy(upstream)),
        ["peer", "fixed", file] => as_the_gateway()?.block_on(gateway::fixed(file)),
        ["peer", "models"] => one_thread()?.block_on(turns::models()),
        ["parsing"] => turns::measure_parsing(),
        ["splicing"] => turns::measure_splicing(),
        ["turns", program] => {
            let program = built(program)?;
            one_thread()?.block_on(turns::measure(&program))
        }
        ["injected", program] => {
            let program = built(program)?;
            one_thread()?.block_on(turns::measure_injected(&program))
        }
        ["gateway", program] => {
            let program = built(program)?;
            one_thread()?.block_on(gateway::measure(&program))
        }
        ["render"] => show(render::measure()?),
        ["access"] => show(access::measure()?),
        ["sessions"] => show(as_the_gateway()?.block_on(sessions::measure())?),
        ["gateway-api", program] => {
            let program = built(program)?;
            one_thread()?.block_on(gateway::measure_api(&program))
        }
        ["gateway-calls", program] => {
            let program = built(program)?;
            one_thread()?.block_on(gateway::measure_calls(&program))
        }
        ["gateway-instructions", program] => {
            let program = built(program)?;
            one_thread()?.block_on(gateway::measure_instructions(&program))
        }
        [program] => {
            let program = built(program)?;
            as_the_gateway()?.block_on(everything_else(program))
        }
        _ => bail!(USAGE),
    }
}

fn built(program: &str) -> anyhow::Result<PathBuf> {
    let program = PathBuf::from(program);
    ensure!(program.is_file(), "{} is not there: build it first", program.display());
    program.canonicalize().context("the path of the binary cannot be resolved")
}

async fn everything_else(program: PathBuf) -> anyhow::Result<()> {
    let mut rows = start::measure(&program)?;
    rows.extend(idle::measure(&program).await?);
    rows.extend(calls::measure().await?);
    rows.extend(access::measure()?);
    rows.extend(render::measure()?);
    rows.extend(sessions::measure().await?);
    show(rows)
}

fn show(rows: Vec<Row>) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{:<52} {:>14} {:>12}", "WHAT", "MEASURED", "AIM")?;
    for row in rows {
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// One row of the table.
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
