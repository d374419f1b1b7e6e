//! A thousand concurrent turns over all providers.

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::at_once::at_once;
use super::client::Client;
use super::{PROVIDERS, new_session};
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
    let step = json!({"repeat_delta": {"count": DELTAS, "text": " a word"}, "pace_ms": PACE_MS});
    let each = TURNS.div_ceil(PROVIDERS.len());
    let steps = PROVIDERS.map(|(word, _)| (word.to_owned(), Value::from(vec![step.clone(); each])));
    at_once((models, board), "turns", Map::from_iter(steps), |running| {
        for (client, turns) in chats {
            running.spawn(one(client, turns));
        }
    })
    .await
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
