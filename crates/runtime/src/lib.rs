//! The board at work: servers kept connected, one catalog, limited calls, records.
//!
//! What changes over time is either an immutable snapshot that is swapped whole ([`Board::snapshot`]), or the
//! state of one task: each server has a supervisor, and one conductor turns what they report into snapshots.

mod arguments;
mod attach;
mod attachments;
mod board;
mod call;
mod call_errors;
mod call_log;
mod catalog_writer;
mod conductor;
mod config_source;
mod connection_pool;
mod connection_task;
mod first_attempts;
mod ledger;
mod list_again;
mod local;
mod offers;
mod open_connection;
mod records;
mod reload;
mod results;
mod running;
mod slots;
mod snapshot;
mod start_error;
mod startup;
mod supervisor;
mod tokens;

pub use attach::{AttachError, MAX_SERVERS_PER_OWNER};
pub use board::{Board, BoardOptions, Memory, StartEvent};
pub use call::{
    CallCheck, CallFailed, CallReport, CallRequest, Passing, Progress, RawAnswer, RawCall,
    RawReport, ResultHandle, ToolChoice,
};
pub use config_source::{CONFIG_VARIABLE, ConfigError, ConfigSource, LoadedConfig};
pub use connection_pool::ClientProfile;
pub use first_attempts::{COMMAND_WAIT, Waiting};
pub use local::{LocalTool, LocalTools};
pub use offers::{Offers, PassFailure, ServerNews};
pub use reload::{ReloadOutcome, watch_config};
pub use snapshot::Snapshot;
pub use start_error::{StartError, StartFailure};
pub use startup::{StartingBoard, Startup, StartupStage};
pub use supervisor::ServerStatus;
pub use switchboard_mcp::{
    Ask, AskEvent, AskFailure, Ear, Heard, Listed, RawResult, RpcError, ear,
};
pub use tokens::StoredTokens;
