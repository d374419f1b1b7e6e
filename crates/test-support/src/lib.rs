//! Support for the tests of the other crates: a scripted MCP server that can misbehave on purpose, realistic tools for
//! it, fake model backends, and helpers for integration tests.
//!
//! The server writes JSON-RPC by hand on real sockets, because a library would refuse to send most of what is needed
//! here. It runs on its own runtime, so killing it closes its connections, and a paused clock in the test does not stop
//! it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test crate")]

mod account_server;
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
mod postgres;
mod round_robin;
mod server;
mod shelf;
mod sse_transport;
mod state;
mod stats;
mod temp_config;
mod threat_endpoint;
mod tool;
mod wait;

pub use account_server::{AccountEra, AccountServer};
pub use catalogue::demo_catalogue;
pub use fake_auth_server::{CODE, FakeAuthServer, OWN_CLIENT};
pub use fault::{Fault, Stage};
pub use malformed::{Fate, Malformed, malformed_tools};
pub use market::{market_catalogue, market_sets, market_toolsets_yaml};
pub use postgres::{PostgresCluster, PostgresDatabase};
pub use round_robin::RoundRobin;
pub use server::{ScriptedServer, ScriptedServerBuilder};
pub use stats::{SeenRequest, StartedCall, Stats};
pub use temp_config::TempConfig;
pub use threat_endpoint::{ThreatAnswer, ThreatEndpoint, ThreatRequest};
pub use tool::{Asks, Flood, Reply, Tool};
pub use wait::{free_port, wait_until};
