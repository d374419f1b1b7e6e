//! The messages of TrustGraph's clients: requests, answers and errors, and how they correspond to entries of the
//! configuration file.
//!
//! TrustGraph keeps its configuration as texts under a type and a key. The type `tool` corresponds to the entries of
//! `toolbox.tools` that have a `type`, and the type `mcp` to the servers of `toolbox.mcps` that have an address and a
//! `tool_allowlist` of one tool. This crate converts; it reads and writes nothing.

mod agent_request;
mod agent_stream;
mod config_request;
mod error;
mod mcp_value;
mod tool_arguments;
mod tool_name;
mod tool_result;
mod tool_value;
mod value_text;

pub use agent_request::{AgentRequest, AuthFrame, SocketRequest};
pub use agent_stream::AgentStream;
pub use config_request::{ConfigKey, ConfigRequest, ConfigValue, ValueType};
pub use error::TrustGraphError;
pub use mcp_value::{PutServer, put_server, shown_servers};
pub use tool_name::tool_meant;
pub use tool_result::tool_answer;
pub use tool_value::{delete_tool, put_tool, shown_tools};
pub use value_text::{ShownValue, WrittenFields, entry_of};
