//! An HTTP/1.1 client for servers on this machine: local MCP servers and local models.

mod connection;
mod pool;
mod response;

pub use pool::{
    LONGEST_CONNECT, LoopbackBody, LoopbackError, LoopbackPool, LoopbackRequest, RequestPhase,
    RetryPolicy, target,
};
pub use response::ResponseHead;
