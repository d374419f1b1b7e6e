//! What apps of providers pay: the time to the first token and the latency of each delta through the board, beside a bare
//! proxy, and the memory of a thousand streams at the same time.
//!
//! Before its text, each answer through the board has a round with a call of a session tool, except where the time to the
//! first token is measured: there the board only adds the session's tools to the request.

use anyhow::ensure;
use serde_json::{Map, Value, json};
use switchboard_test_support::model_backends::STAMP;
use tokio::time::Instant;

use super::at_once::at_once;
use super::client::Client;
use super::latency::{Times, stamped};
use super::{PROVIDERS, model_of, script};
use crate::Row;
use crate::gateway::Process;

/// The tool of the bench server that is called, as a session exposes it.
const TOOL: &str = "bench__echo";
const ROUNDS: usize = 12;
const DELTAS: usize = 250;
const FIRST_TOKENS: usize = 300;
/// Number of runs after which connections and caches are warm.
const WARM_UP: usize = 2;
/// Interval between deltas; longer than any path needs for one.
const PACE_MS: u64 = 2;

const STREAMS: usize = 1_000;
const DELTAS_OF_MANY: usize = 150;
/// Long enough that the last stream begins before the first ends.
const PACE_OF_MANY_MS: u64 = 100;

/// The APIs whose latency is measured: the provider, and its path without `/v1`.
const MEASURED: [(&str, &str); 2] = [("openai-chat", "chat/completions"), ("openai", "responses")];

/// A configuration with the fake providers, a tool that is called, and many that are only declared.
pub(super) fn config(models: &Process, tools: &Process) -> String {
    let server = |name: &str, path: &str| {
        let address = &tools.address;
        format!(
            "      - {{name: {name}, url: 'http://{address}{path}', era: modern, mode: dynamic, default_tool_config: {{max_instances: 1000}}}}\n"
        )
    };
    let servers = [server("bench", "/echo"), server("many", "/tools/10")].concat();
    let plain = super::config(models);
    plain.replace(
        "toolbox: {tools: []}\n",
        &format!("toolbox:\n    max_concurrent: 1000\n    mcps:\n{servers}"),
    )
}

/// Time to the first token, and latency of deltas.
pub(super) async fn latency(
    models: &Process,
    proxy: &Process,
    board: &Process,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (provider, path) in MEASURED {
        let asked = asked(provider);
        let mut ways = [
            WayToModel::open("straight from the fake", models, &format!("/v1/{path}"), 0).await?,
            WayToModel::open("through a bare proxy", proxy, &format!("/v1/{path}"), 0).await?,
            WayToModel::open("with a session's tools", board, &format!("/openai/v1/{path}"), 1)
                .await?,
        ];
        for round in 0..FIRST_TOKENS {
            for way in &mut ways {
                let time = way.first_token(models, provider, &asked).await?;
                way.first.extend((round >= FIRST_TOKENS / 10).then_some(time));
            }
        }
        for round in 0..ROUNDS {
            for way in &mut ways {
                let times = way.deltas(models, provider, &asked).await?;
                way.later.extend(times.into_iter().filter(|_| round >= WARM_UP));
            }
        }
        let ways = ways.map(|way| (way.name, [Times::of(way.first), Times::of(way.later)]));
        let [(_, straight), others @ ..] = &ways;
        for (place, what) in ["first token", "delta"].into_iter().enumerate() {
            let named = ways.iter();
            rows.extend(
                named
                    .map(|(name, times)| times[place].row(&format!("{provider}: a {what} {name}"))),
            );
            for ((name, times), aim) in others.iter().zip(["", "< 150 µs"]) {
                rows.push(Row {
                    what: format!("{provider}: added to a {what} {name} (p50)"),
                    measured: format!("{:.0} µs", times[place].p50 - straight[place].p50),
                    aim,
                });
            }
        }
    }
    Ok(rows)
}

/// A way to the provider.
struct WayToModel {
    name: &'static str,
    client: Client,
    path: String,
    /// The number of rounds before the one with the text.
    hidden: usize,
    /// Times to first tokens, in microseconds.
    first: Vec<f64>,
    /// Latencies of deltas, in microseconds.
    later: Vec<f64>,
}

impl WayToModel {
    async fn open(
        name: &'static str,
        process: &Process,
        path: &str,
        hidden: usize,
    ) -> anyhow::Result<Self> {
        let client = Client::open(&process.address).await?;
        Ok(Self { name, client, path: path.to_owned(), hidden, first: vec![], later: vec![] })
    }

    /// The time from the request to the first piece of text.
    async fn first_token(
        &mut self,
        models: &Process,
        provider: &str,
        asked: &Value,
    ) -> anyhow::Result<f64> {
        script(models, &json!({provider: [{"text": "word"}]})).await?;
        let (start, mut first) = (Instant::now(), None);
        self.client
            .post_stream(&self.path, asked, |piece| {
                if first.is_none() && String::from_utf8_lossy(piece).contains("word") {
                    first = Some(start.elapsed());
                }
            })
            .await?;
        let first = first.ok_or_else(|| anyhow::anyhow!("{} gave no text", self.path))?;
        Ok(first.as_secs_f64() * 1e6)
    }

    /// Lets the fake stream once and returns the latency of each delta.
    async fn deltas(
        &mut self,
        models: &Process,
        provider: &str,
        asked: &Value,
    ) -> anyhow::Result<Vec<f64>> {
        let text = json!({"repeat_delta": {"count": DELTAS, "text": format!("{STAMP} ")}, "pace_ms": PACE_MS, "stamped": true});
        let mut steps = vec![call(); self.hidden];
        steps.push(text);
        script(models, &json!({provider: steps})).await?;
        let mut times = Vec::with_capacity(DELTAS);
        self.client.post_stream(&self.path, asked, |piece| times.extend(stamped(piece))).await?;
        // The last event of some APIs repeats the text.
        ensure!(times.len() >= DELTAS, "{} of {DELTAS} deltas came", times.len());
        times.truncate(DELTAS);
        Ok(times)
    }
}

fn call() -> Value {
    json!({"calls": [{"name": TOOL, "arguments": {"text": "hello"}}]})
}

/// A request of an app with a tool of its own.
fn asked(provider: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
    let model = model_of(provider);
    match provider {
        "openai" => {
            json!({"model": model, "stream": true, "store": false, "input": "go", "tools": [{"type": "function", "name": "weather", "parameters": schema, "strict": false}]})
        }
        "anthropic" => {
            json!({"model": model, "stream": true, "max_tokens": 100_000, "messages": [{"role": "user", "content": "go"}], "tools": [{"name": "weather", "input_schema": schema}]})
        }
        "gemini" => {
            json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": schema}]}]})
        }
        _ => {
            json!({"model": model, "stream": true, "messages": [{"role": "user", "content": "go"}], "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema}}]})
        }
    }
}

/// The path of an API at the board.
fn at_board(provider: &str) -> String {
    match provider {
        "openai" => "/openai/v1/responses".to_owned(),
        "anthropic" => "/anthropic/v1/messages".to_owned(),
        "gemini" => {
            let model = model_of(provider);
            format!("/gemini/v1beta/models/{model}:streamGenerateContent?alt=sse")
        }
        _ => "/openai/v1/chat/completions".to_owned(),
    }
}

/// A thousand streams at the same time over all APIs, each with a call of a session tool.
pub(super) async fn many(models: &Process, board: &Process) -> anyhow::Result<Vec<Row>> {
    let mut apps = Vec::new();
    for number in 0..STREAMS {
        let (provider, _) = PROVIDERS[number % PROVIDERS.len()];
        apps.push((Client::open(&board.address).await?, provider));
    }
    let text = json!({"repeat_delta": {"count": DELTAS_OF_MANY, "text": " a word"}, "pace_ms": PACE_OF_MANY_MS});
    let each = STREAMS.div_ceil(PROVIDERS.len());
    // Whichever step a request gets: in the end each stream has one text, and there are as many calls as streams.
    let steps = [vec![call(); each], vec![text; each]].concat();
    let steps = PROVIDERS.map(|(word, _)| (word.to_owned(), Value::from(steps.clone())));
    at_once((models, board), "injected streams", Map::from_iter(steps), |running| {
        for (client, provider) in apps {
            running.spawn(one(client, provider));
        }
    })
    .await
}

/// Runs one stream, which must deliver every word.
async fn one(mut client: Client, provider: &'static str) -> anyhow::Result<()> {
    let mut heard = Vec::new();
    let path = at_board(provider);
    client.post_stream(&path, &asked(provider), |piece| heard.extend_from_slice(piece)).await?;
    let heard = String::from_utf8_lossy(&heard);
    // The last events of some APIs repeat the text.
    let words = heard.matches(" a word").count();
    ensure!(words >= DELTAS_OF_MANY, "{words} of {DELTAS_OF_MANY} deltas came: {heard}");
    Ok(())
}
