//! The client command of the conformance suite: starts Switchboard in front of the suite's server and uses it as a
//! client of the scenario's protocol version.
//!
//! The suite passes the address of its server as the last argument, and everything else in the environment. With
//! `--direct` the client connects to that server itself, which shows that a failure is not the client's.

mod client;
mod sample;
mod sign_in;
mod switchboard;

use std::env;
use std::error::Error;

use serde_json::Value;

use crate::client::Client;
use crate::switchboard::Switchboard;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().next_back().ok_or("the address of the server is missing")?;
    let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    if env::args().any(|argument| argument == "--direct") {
        return use_everything(&url, &version, &context).await;
    }
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    if scenario.starts_with("auth/") {
        return sign_in::run(&url, &scenario, &version, &context).await;
    }
    let switchboard = Switchboard::before(&url, "")?;
    let used = use_everything(&switchboard.url, &version, &context).await;
    switchboard.stop();
    used
}

/// Lists everything, and calls, gets and reads what is listed.
async fn use_everything(url: &str, version: &str, context: &Value) -> Result<(), Box<dyn Error>> {
    let client = Client::connect(url, version).await?;
    let tools = client.tools().await?;
    match context["toolCalls"].as_array() {
        Some(calls) => {
            for call in calls {
                client.call(&call["name"], &call["arguments"]).await;
            }
        }
        None => {
            for tool in &tools {
                client.call(&tool["name"], &sample::arguments(tool, &tools)).await;
            }
        }
    }
    client.get_prompts().await;
    client.read_resources().await;
    client.close().await;
    Ok(())
}
