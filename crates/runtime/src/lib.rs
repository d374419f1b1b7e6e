//! The board: supervised server connections, one catalog, limited calls and their records.
//!
//! Changing state is either an immutable snapshot that is replaced as a whole ([`Board::snapshot`]), or the state of a
//! single task: each server has a supervisor, and one reconciler computes snapshots from their reports.

mod absent_tool;
mod account_error;
mod accounts;
mod activity;
mod arguments;
mod arguments_check;
mod attach;
mod attach_error;
mod attachments;
mod board;
mod board_accounts;
mod board_lease;
mod cached_view;
mod call;
mod call_accounting;
mod call_checks;
mod call_errors;
mod call_log;
mod call_result;
mod caller_headers;
mod catalog_reconciler;
mod catalog_writer;
mod check_redaction;
mod config_edit;
mod config_file;
mod config_source;
mod connect_flow;
mod connection_pool;
mod connection_task;
mod content_check;
mod content_check_http;
mod content_checks;
mod declared_arguments;
mod egress_check;
mod exposure_rule;
mod first_attempts;
mod follow_discovery;
mod grant_encryption;
mod heartbeat;
mod known_owners;
mod lent_slots;
mod list_again;
mod listing_account;
mod live_config;
mod local;
mod max_instances;
mod memory;
mod offers;
mod open_connection;
mod os_keyring;
mod owner_connection;
mod policy_digest;
mod prompt_tools;
mod prompts_resources;
mod rate_limits;
mod readable_json;
mod reconnect;
mod reconnect_backoff;
mod record_redaction;
mod records;
mod redirected_values;
mod refused_call;
mod reload;
mod result_cap;
mod running;
mod running_calls;
mod server;
mod server_context;
mod server_instructions;
mod server_trial;
mod sign_in_pages;
mod sign_in_prompt;
mod slot_lender;
mod snapshot;
mod start_error;
mod startup;
mod supervisor;
mod tokens;
mod waiting;

pub use account_error::AccountError;
pub use accounts::{Accounts, random_text};
pub use activity::BoardActivity;
pub use attach::MAX_SERVERS_PER_OWNER;
pub use attach_error::AttachError;
pub use board::{Board, BoardOptions};
pub use board_accounts::{AccountChoice, AccountState, SessionAccount};
pub use cached_view::{CachedView, Comparison};
pub use call::{CallCheck, CallRequest, ForwardedContext, Progress, RawCall, ToolChoice};
pub use call_result::{CallFailed, CallReport, RawCallResult, RawReport, ResultHandle};
pub use config_edit::{EditError, ProposedEdit};
pub use config_file::ReplaceError;
pub use config_source::{CONFIG_VARIABLE, ConfigError, ConfigSource, LoadedConfig};
pub use connect_flow::{ConnectFlow, FLOW_LIFETIME, FlowEnd, SignInOffer};
pub use connection_pool::ClientProfile;
pub use content_check::{
    CheckInput, CheckedConversation, CheckedMessage, CheckedRole, ContentCheck, MAX_CHECKED_BYTES,
};
pub use content_check_http::HOOK_HEADER;
pub use content_checks::{CheckSubject, ContentBlocked, reach_check_endpoint};
pub use declared_arguments::Contradiction;
pub use egress_check::AddressRefused;
pub use exposure_rule::ExposureRule;
pub use first_attempts::{COMMAND_WAIT, SERVING_WAIT, StartEvent};
pub use follow_discovery::follow_discovery;
pub use live_config::{
    AppliedEdit, ConfigFault, ConfigState, ExpectedEntry, LiveConfig, RefusedConfig, ReloadOutcome,
    WrittenEntry,
};
pub use local::{LocalTool, LocalTools};
pub use memory::Memory;
pub use offers::{Offers, PassFailure, ServerNews};
pub use prompt_tools::{PromptCall, PromptRunner};
pub use prompts_resources::{ListKind, PromptsResources};
pub use readable_json::readable_json;
pub use refused_call::RefusedCall;
pub use reload::watch_config;
pub use running_calls::RunningCall;
pub use server::ServerStatus;
pub use server_instructions::ServerInstructions;
pub use server_trial::{TrialFailure, TriedServer};
pub use sign_in_pages::SignInPages;
pub use sign_in_prompt::SignInPrompt;
pub use snapshot::{PublishedSnapshot, Snapshot};
pub use start_error::{StartError, StartFailure};
pub use startup::{StartingBoard, Startup, StartupStage};
pub use switchboard_mcp_client::{
    EventReceiver, EventSender, Listed, RawResult, RequestFailure, RpcError, UpstreamEvent,
    UpstreamRequest, event_channel,
};
pub use tokens::StoredTokens;
pub use waiting::Waiting;
