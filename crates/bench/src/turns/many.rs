//! A thousand concurrent turns over all providers.

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::Client;
use super::{PROVIDERS, new_session, script};
use crate::Row;
use crate::gateway::Process;

const TURNS: usize = 1_000;
const DELTAS: usize = 150;
/// Interval between deltas; long enough that the last turn starts before the first ends.
const PACE_MS: u64 = 100;

pub(super) async fn measure(models: &Process, board: &Process) -> anyhow::Result<Vec<Row>> {
    let mut first = Client::open(&board.address).await?;
    let mut chats = Vec::new();
    for number in 0..TURNS {
        let (provider, _) = PROVIDERS.get(number % PROVIDERS.len()).context("no providers")?;
        let turns = new_session(&mut first, provider).await?;
        chats.push((Client::open(&board.address).await?, turns));
    }
    let before = board.resident()?;
    let step = json!({"repeat_delta": {"count": DELTAS, "text": " a word"}, "pace_ms": PACE_MS});
    let each = TURNS.div_ceil(PROVIDERS.len());
    let steps = PROVIDERS.map(|(word, _)| (word.to_owned(), Value::from(vec![step.clone(); each])));
    script(models, &Value::Object(Map::from_iter(steps))).await?;
    let (start, cpu) = (Instant::now(), board.cpu_time()?);
    let mut running = JoinSet::new();
    for (client, turns) in chats {
        running.spawn(one(client, turns));
    }
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
        row("turns that ran at the same time, at most", peak.to_string(), "1000"),
        row("turns that completed", completed.to_string(), "1000"),
        row("RSS of the board before them", format!("{before:.1} MB"), ""),
        row("RSS of the board, at most", format!("{:.1} MB", board.peak_resident()?), "< 200 MB"),
        row("all of them took", format!("{:.1} s", took.as_secs_f64()), ""),
        row("CPU of the board for them", format!("{:.1} s", cpu.as_secs_f64()), ""),
    ])
}

/// Runs one turn, which must deliver every word and complete.
async fn one(mut client: Client, turns: String) -> anyhow::Result<()> {
    let mut heard = Vec::new();
    client
        .post_stream(&turns, &json!({"message": "go"}), |piece| heard.extend_from_slice(piece))
        .await?;
    let heard = String::from_utf8_lossy(&heard);
    // Deltas that arrive in one chunk are merged into one event.
    let words = heard.matches(" a word").count();
    ensure!(words == DELTAS, "{words} of {DELTAS} deltas came: {heard}");
    ensure!(heard.contains(r#""status":"completed""#), "a turn did not complete: {heard}");
    Ok(())
}
