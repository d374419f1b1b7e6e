//! Microsoft Agent 365 tooling as a client: which MCP servers an agent has, and the report of a conversation to a
//! threat-protection endpoint.
//!
//! The functions and models are those of the Python package `microsoft-agents-a365-tooling`, in Rust's spelling. An
//! [`Environment`] says where the list of servers comes from: `ToolingManifest.json` (`manifest`) or a tooling gateway
//! (`gateway_answer`). All of that is pure; `client` sends the requests and `manifest_file` reads the file.
//!
//! No token reaches a server that it is not for (`tokens`): a server's own token goes to that server alone, and the
//! shared token goes only to servers of the platform's origin. A redirect never carries a token to another origin.

mod chat_history;
mod client;
mod entry;
mod environment;
mod error;
mod frameworks;
mod gateway_answer;
mod gateway_body;
mod gateway_path;
mod headers;
mod manifest;
mod manifest_file;
mod models;
mod operation_result;
mod tokens;
mod urls;
mod user_agent;

pub use chat_history::{
    ChatHistoryMessage, ChatMessageRequest, ChatRole, InvalidChatMessage, TurnContext,
};
pub use client::{ChatAnswer, REQUEST_TIMEOUT, ToolingClient};
pub use entry::{EntryProblem, FoundServers};
pub use environment::{DefaultEnvironment, Environment, EnvironmentKind};
pub use error::{InvalidTurn, ToolingError};
pub use frameworks::{Framework, FrameworkServer};
pub use gateway_answer::{MAX_BODY_BYTES, parse_gateway_answer};
pub use gateway_body::{ToolServerEntry, ToolServersAnswer};
pub use gateway_path::{GatewayPath, InvalidGatewayPath};
pub use headers::{AGENT_ID_HEADER, CORRELATION_ID_HEADER, agent_id_of_token};
pub use manifest::{MANIFEST_FILE_NAME, parse_manifest};
pub use manifest_file::{find_manifest, manifest_locations, read_manifest};
pub use models::{Connectivity, McpServerConfig, ToolOptions};
pub use operation_result::{OperationError, OperationResult};
pub use tokens::{
    PLATFORM_APP_ID, TokenExchange, attach_environment_tokens, attach_tokens, bare_token,
    needs_audience_token, token_scope,
};
pub use urls::{
    CHAT_HISTORY_PATH, PLATFORM_URL, build_mcp_server_url, get_chat_history_endpoint,
    get_mcp_base_url, get_tooling_gateway_for_digital_worker,
};
pub use user_agent::user_agent;
