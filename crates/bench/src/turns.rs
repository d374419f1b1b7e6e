//! The cost of turns: parsing streams, a thousand concurrent turns, and the latency that the board adds to each delta; the
//! same for apps of providers.

mod at_once;
mod client;
mod injected;
mod latency;
mod many;
mod parsing;
mod splicing;
mod streams;

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use switchboard_test_support::model_backends::FakeBackends;
use tokio::io::AsyncReadExt as _;

use crate::gateway::{Process, allow_many_files};
use client::Client;

/// Provider names on the board, and in the scripts of the fake providers.
const PROVIDERS: [(&str, &str); 4] =
    [("openai", "/v1"), ("openai-chat", "/v1"), ("anthropic", ""), ("gemini", "/v1beta")];

/// Measures the parsing speed only, which needs no other process.
pub(crate) fn measure_parsing() -> anyhow::Result<()> {
    crate::show(parsing::measure()?)
}

/// Measures what joining answers costs, which needs no other process.
pub(crate) fn measure_splicing() -> anyhow::Result<()> {
    crate::show(splicing::measure()?)
}

/// Prints the table. A failing turn is an error; a slow one is not.
pub(crate) async fn measure(program: &Path) -> anyhow::Result<()> {
    let mut rows = parsing::measure()?;
    allow_many_files()?;
    let directory = tempfile::tempdir()?;
    let models = Process::peer(&["models"])?;
    let proxy = Process::peer(&["proxy", &models.address])?;
    let board = Process::gateway(program, directory.path(), &config(&models))?;
    rows.extend(latency::measure(&models, &proxy, &board).await?);
    drop(board);
    let board = Process::gateway(program, &directory.path().join("many"), &config(&models))?;
    rows.extend(many::measure(&models, &board).await?);
    crate::show(rows)
}

/// Measures the answers to apps of providers.
pub(crate) async fn measure_injected(program: &Path) -> anyhow::Result<()> {
    allow_many_files()?;
    let directory = tempfile::tempdir()?;
    let (models, tools) = (Process::peer(&["models"])?, Process::peer(&["upstream"])?);
    let proxy = Process::peer(&["proxy", &models.address])?;
    let config = injected::config(&models, &tools);
    let board = Process::gateway(program, directory.path(), &config)?;
    let mut rows = splicing::measure()?;
    rows.extend(injected::latency(&models, &proxy, &board).await?);
    drop(board);
    let board = Process::gateway(program, &directory.path().join("many"), &config)?;
    rows.extend(injected::many(&models, &board).await?);
    crate::show(rows)
}

/// Runs the fakes of all providers in this process.
pub(crate) async fn models() -> anyhow::Result<()> {
    let fakes = FakeBackends::start().await;
    let mut out = std::io::stdout();
    writeln!(out, "serving at {}", fakes.root_url())?;
    out.flush()?;
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// A board with the fake providers and without tools, so that only the streaming path is measured.
fn config(models: &Process) -> String {
    let address = &models.address;
    let providers = PROVIDERS.map(|(kind, path)| {
        format!(
            "    - {{name: {kind}, kind: {kind}, base_url: 'http://{address}{path}', api_key: key, model: {}}}\n",
            model_of(kind)
        )
    });
    format!(
        "switchboard:\n  gateway: {{max_sessions_per_principal: 5000}}\n  toolbox: {{tools: []}}\n  providers:\n{}",
        providers.concat()
    )
}

fn model_of(kind: &str) -> &'static str {
    match kind {
        "anthropic" => "claude-opus-5-5",
        "gemini" => "gemini-3.1-pro-preview",
        _ => "gpt-5.5",
    }
}

/// Sets the next responses of the fakes.
async fn script(models: &Process, steps: &Value) -> anyhow::Result<()> {
    let mut client = Client::open(&models.address).await?;
    let answer = client.post_whole("/_fake/script", steps).await;
    answer.map(drop).context("the fakes take no script")
}

/// Creates a session with this provider.
async fn new_session(client: &mut Client, provider: &str) -> anyhow::Result<String> {
    let wanted = json!({"provider": provider});
    let session = client.post_whole("/api/v1/sessions", &wanted).await?;
    let id = session.get("id").and_then(Value::as_str).context("a session without an id")?;
    Ok(format!("/api/v1/sessions/{id}/turns"))
}
