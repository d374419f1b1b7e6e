//! Streams that run at the same time: how many completed, and what they cost the board.

use anyhow::ensure;
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::Client;
use super::script;
use crate::Row;
use crate::gateway::Process;

/// Runs the streams that `begin` starts, after the fakes have their `steps`. The connections are open by then.
pub(super) async fn at_once(
    (models, board): (&Process, &Process),
    what: &str,
    steps: Map<String, Value>,
    begin: impl FnOnce(&mut JoinSet<anyhow::Result<()>>),
) -> anyhow::Result<Vec<Row>> {
    let before = board.resident()?;
    script(models, &Value::Object(steps)).await?;
    let (start, cpu) = (Instant::now(), board.cpu_time()?);
    let mut running = JoinSet::new();
    begin(&mut running);
    let mut completed = 0;
    while let Some(ended) = running.join_next().await {
        ended??;
        completed += 1;
    }
    let (took, cpu) = (start.elapsed(), board.cpu_time()?.since(cpu).total());
    let seen = Client::open(&models.address).await?.get("/_fake/seen").await?;
    let peak = seen.get("peak_streams").and_then(Value::as_u64).unwrap_or_default();
    let broken = seen.get("violations").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(broken == 0, "the fakes found {broken} violations");
    let row = |what: &str, measured: String, aim| Row { what: what.into(), measured, aim };
    Ok(vec![
        row(&format!("{what} at the same time, at most"), peak.to_string(), "1000"),
        row(&format!("{what} that completed"), completed.to_string(), "1000"),
        row("RSS of the board before them", format!("{before:.1} MB"), ""),
        row("RSS of the board, at most", format!("{:.1} MB", board.peak_resident()?), "< 200 MB"),
        row("all of them took", format!("{:.1} s", took.as_secs_f64()), ""),
        row("CPU of the board for them", format!("{:.1} s", cpu.as_secs_f64()), ""),
    ])
}
