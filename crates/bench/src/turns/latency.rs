//! The latency of a delta: directly from the fake, through a bare proxy, and through the board.
//!
//! The fake writes the time of sending into each delta. The three paths alternate, so that other load on the machine
//! affects them alike.

use anyhow::ensure;
use serde_json::{Value, json};
use switchboard_test_support::model_backends::{STAMP, nanoseconds, stamps};

use super::client::Client;
use super::{model_of, new_session, script};
use crate::Row;
use crate::gateway::Process;

const ROUNDS: usize = 12;
const DELTAS: usize = 250;
/// Interval between deltas; longer than any path needs for one.
const PACE_MS: u64 = 2;
/// Number of runs after which connections, caches and the board's connection pool are warm.
const WARM_UP: usize = 2;

pub(super) async fn measure(
    models: &Process,
    proxy: &Process,
    board: &Process,
) -> anyhow::Result<Vec<Row>> {
    let asked = json!({"model": model_of("openai-chat"), "stream": true, "messages": [{"role": "user", "content": "go"}]});
    let said = json!({"message": "go"});
    let mut direct = Client::open(&models.address).await?;
    let mut through_proxy = Client::open(&proxy.address).await?;
    let mut through_board = Client::open(&board.address).await?;
    let turns = new_session(&mut through_board, "openai-chat").await?;
    let completions = "/v1/chat/completions";
    let (mut straight, mut proxied, mut boarded) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round == WARM_UP {
            (straight, proxied, boarded) = (Vec::new(), Vec::new(), Vec::new());
        }
        straight.extend(one(models, &mut direct, completions, &asked).await?);
        proxied.extend(one(models, &mut through_proxy, completions, &asked).await?);
        boarded.extend(one(models, &mut through_board, &turns, &said).await?);
    }
    let (straight, proxied, boarded) =
        (Times::of(straight), Times::of(proxied), Times::of(boarded));
    let mut rows = vec![
        straight.row("a delta straight from the fake"),
        proxied.row("a delta through a bare proxy"),
        boarded.row("a delta through the board"),
    ];
    for (what, times, aim) in [("a bare proxy", &proxied, ""), ("the board", &boarded, "< 100 µs")]
    {
        rows.push(Row {
            what: format!("added to a delta by {what} (p50)"),
            measured: format!("{:.0} µs", times.p50 - straight.p50),
            aim,
        });
    }
    Ok(rows)
}

/// Lets the fake stream once and returns the latency of each delta, in microseconds.
async fn one(
    models: &Process,
    client: &mut Client,
    path: &str,
    asked: &Value,
) -> anyhow::Result<Vec<f64>> {
    let step = json!({"repeat_delta": {"count": DELTAS, "text": format!("{STAMP} ")}, "pace_ms": PACE_MS, "stamped": true});
    script(models, &json!({"openai-chat": [step]})).await?;
    let mut times = Vec::with_capacity(DELTAS);
    client.post_stream(path, asked, |piece| times.extend(stamped(piece))).await?;
    ensure!(times.len() == DELTAS, "{} of {DELTAS} deltas came through {path}", times.len());
    Ok(times)
}

/// The ages of the deltas in a piece of a stream, in microseconds.
pub(super) fn stamped(piece: &[u8]) -> Vec<f64> {
    let now = nanoseconds();
    #[expect(clippy::cast_precision_loss, reason = "some microseconds")]
    stamps(piece).into_iter().map(|sent| (now - sent) as f64 / 1e3).collect()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) p50: f64,
    p99: f64,
}

impl Times {
    pub(super) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        Self { p50: at(times.len() / 2), p99: at(times.len() * 99 / 100) }
    }

    pub(super) fn row(&self, what: &str) -> Row {
        Row {
            what: format!("{what} (p50, p99)"),
            measured: format!("{:.0}, {:.0} µs", self.p50, self.p99),
            aim: "",
        }
    }
}
