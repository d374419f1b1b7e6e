//! The time from starting the process to its line that it serves.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use crate::Row;

const ROUNDS: usize = 21;

pub(crate) const LOCAL_ONLY: &str =
    "switchboard:\n  toolbox:\n    tools:\n      - name: sum_numbers\n";

pub(crate) fn measure(program: &Path) -> anyhow::Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("switchboard.yaml");
    std::fs::write(&config, LOCAL_ONLY)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut child = serve(program, &config, &directory.path().join("data"))?;
        wait_until_ready(&mut child)?;
        times.push(start.elapsed());
        child.kill()?;
        child.wait()?;
    }
    times.sort();
    let shown = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
    let best = times.first().copied().unwrap_or_default();
    Ok(vec![
        Row {
            what: "start to ready, no servers (median)".into(),
            measured: shown(median),
            aim: "< 50 ms",
        },
        Row { what: "start to ready, no servers (best)".into(), measured: shown(best), aim: "" },
    ])
}

pub(crate) fn serve(program: &Path, config: &Path, data: &Path) -> anyhow::Result<Child> {
    Command::new(program)
        .arg("--config")
        .arg(config)
        .arg("--data-dir")
        .arg(data)
        .args(["--quiet", "serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("switchboard does not start")
}

pub(crate) fn wait_until_ready(child: &mut Child) -> anyhow::Result<()> {
    let stdout = child.stdout.as_mut().context("no output")?;
    let mut lines = BufReader::new(stdout).lines();
    loop {
        let line = lines.next().context("it ended before it was ready")??;
        if line.contains("serving at") {
            return Ok(());
        }
    }
}
