//! Sources of servers besides the configuration file: `ToolingManifest.json`, tooling gateways and MCP registries.
//!
//! A [`ServerSource`] is fetched and answers with servers or with a reason. [`Discovery`] fetches each source at its own
//! interval, keeps the last known servers of one that fails, and announces changes. It changes no board: the program
//! gives what was found to the configuration in force, which merges it into the plan.
//!
//! Nothing here starts a program, and no token of a source is sent to a server, except the one that is for that server.

mod auto_choice;
mod backoff;
mod discovery;
mod found_entries;
mod gateway_source;
mod manifest_source;
mod registry_document;
mod registry_source;
mod running_source;
mod source;
mod source_memory;
mod source_spec;
mod status;

pub use auto_choice::{AutoChoice, choose_source};
pub use discovery::{Discovery, DiscoveryContext};
pub use source::{FetchedServers, ServerSource, SourceError, UnusableEntry};
pub use status::{SourceFailure, SourceStatus};
