//! HTTP to what runs on this machine: MCP servers and models of one's own.

mod connection;
mod pool;
mod response;

pub use pool::{
    LONGEST_CONNECT, LoopbackBody, LoopbackError, LoopbackPool, LoopbackRequest, RequestPhase,
    RetryPolicy, target,
};
pub use response::ResponseHead;
