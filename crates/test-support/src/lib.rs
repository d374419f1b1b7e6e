//! What the tests of the other crates lean on: a scripted MCP server that can misbehave on
//! purpose, realistic tools to fill it with, and small things every integration test needs.
//!
//! The server speaks JSON-RPC by hand on real sockets, because a library would refuse to
//! send most of what is needed here. It runs on a runtime of its own, so killing it kills
//! its connections too, and a paused clock in the test does not stop it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test crate")]

mod base64;
mod call;
mod catalogue;
mod fake_auth_server;
mod fault;
mod frame;
mod http;
mod legacy;
mod listener;
mod listing;
mod malformed;
mod market;
pub mod model_backends;
mod modern;
mod own_runtime;
pub mod peers;
mod server;
mod shelf;
mod sse_transport;
mod state;
mod stats;
mod temp_config;
mod tool;
mod wait;

pub use catalogue::demo_catalogue;
pub use fake_auth_server::{CODE, FakeAuthServer, OWN_CLIENT};
pub use fault::{Fault, Stage};
pub use malformed::{Fate, Malformed, malformed_tools};
pub use market::{market_catalogue, market_sets, market_toolsets_yaml};
pub use server::{ScriptedServer, ScriptedServerBuilder};
pub use stats::{SeenRequest, StartedCall, Stats};
pub use temp_config::TempConfig;
pub use tool::{Asks, Flood, Reply, Tool};
pub use wait::{free_port, wait_until};
