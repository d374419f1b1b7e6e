//! Agent programs (codex, claude, gemini), run whole and headless, with Switchboard as their only MCP server and the
//! test as their model: what the model is offered, and what it gets back for its calls.
//!
//! Each is connected by `switchboard connect --write`, over HTTP and over standard input and output. In `apps` it knows no
//! MCP server, and the board is its model. No test leaves a process behind.

mod apps;
mod board_restarts;
mod conversation;
mod gate;
mod list_changes;
mod malformed_tool;
mod program;
mod starting_board;
mod toolsets;
mod use_of_tools;

use switchboard_test_support::{Reply, ScriptedServer, Tool};

use self::program::Agent;
use crate::support::{Home, Serve, dynamic};

/// Where the board is that an agent talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    /// The agent starts a board of its own.
    Stdio,
}

/// A smallest PNG.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn tools() -> Vec<Tool> {
    let schema = serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let picture = serde_json::json!({"content": [
        {"type": "text", "text": "a pixel"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    ]});
    vec![
        Tool::echo("echo").schema(schema),
        Tool::new("refuse").replies(Reply::ToolError("the tool said no".to_owned())),
        Tool::new("picture").replies(Reply::Result(picture)),
    ]
}

async fn upstream(tools: Vec<Tool>) -> ScriptedServer {
    ScriptedServer::builder().dual().tools(tools).start().await
}

/// A configuration with this server behind it; `gateway` are the members of that section.
fn home(gateway: &str, url: &str) -> Home {
    let server = dynamic("demo", url);
    Home::new(format!(
        "switchboard:\n  gateway: {{{gateway}}}\n  toolbox:\n    mcps:\n      - {server}\n"
    ))
}

/// The same test for each agent over each transport.
macro_rules! agents {
    ($($test:ident)*) => {
        agents! {@each codex Codex: $($test)*}
        agents! {@each claude Claude: $($test)*}
        agents! {@each gemini Gemini: $($test)*}
    };
    (@each $module:ident $agent:ident: $($test:ident)*) => {
        mod $module {
            use crate::agents::{Agent, Transport};

            mod over_http {
                use super::*;
                $(#[tokio::test]
                async fn $test() {
                    super::super::$test(Agent::$agent, Transport::Http).await;
                })*
            }

            mod over_stdio {
                use super::*;
                $(#[tokio::test]
                async fn $test() {
                    super::super::$test(Agent::$agent, Transport::Stdio).await;
                })*
            }
        }
    };
}
use agents;
