//! The board at work: servers kept connected, one catalog, limited calls, records.
//!
//! What changes over time is either an immutable snapshot that is swapped whole ([`Board::catalog`]), or the
//! state of one task: each server has a supervisor, and one conductor turns what they report into catalogs.

mod arguments;
mod attach;
mod attachments;
mod board;
mod call;
mod call_errors;
mod conductor;
mod config_source;
mod first_attempts;
mod ledger;
mod list_again;
mod local;
mod offers;
mod records;
mod reload;
mod results;
mod running;
mod slots;
mod start_error;
mod startup;
mod supervisor;
mod tokens;
mod tools;

pub use attach::{AttachError, MAX_SERVERS_PER_OWNER};
pub use board::{Board, BoardOptions, Memory, StartEvent};
pub use call::{
    CallFailed, CallReport, CallRequest, Passing, Progress, RawAnswer, RawCall, RawReport,
    ResultHandle, ToolChoice,
};
pub use config_source::{CONFIG_VARIABLE, ConfigError, ConfigSource, LoadedConfig};
pub use first_attempts::Waiting;
pub use local::{LocalTool, LocalTools};
pub use offers::{Offers, PassFailure, ServerNews};
pub use reload::{ReloadOutcome, watch_config};
pub use start_error::{StartError, StartFailure};
pub use startup::{StartingBoard, Startup, StartupStage};
pub use supervisor::ServerStatus;
pub use switchboard_mcp::{
    Ask, AskEvent, AskFailure, Ear, Heard, Listed, RawResult, RpcError, ear,
};
pub use tokens::StoredTokens;
