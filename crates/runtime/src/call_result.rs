//! The results of calls: parsed for the API, as JSON text for MCP clients.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use switchboard_mcp_client::RpcError;
use switchboard_model::{CallError, CallId, CanonicalName, ToolResult};
use switchboard_protocol::{ResultContent, ResultHead, ResultKind};

use crate::sign_in_prompt::SignInPrompt;

/// Identifies a result that is kept in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultHandle(pub String);

impl fmt::Display for ResultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of a call, with its measurements.
#[derive(Debug)]
pub struct CallReport {
    pub id: CallId,
    /// The tool that the name resolved to.
    pub tool: Option<CanonicalName>,
    pub revision: u64,
    pub result: Result<ToolResult, CallError>,
    pub wait: Duration,
    pub run: Duration,
    /// The handle of the full result, if `result` holds only its beginning.
    pub whole_result: Option<ResultHandle>,
}

/// The result of a raw call, with its measurements.
#[derive(Debug)]
pub struct RawReport {
    pub id: CallId,
    pub tool: Option<CanonicalName>,
    pub revision: u64,
    pub result: Result<RawCallResult, CallFailed>,
    pub wait: Duration,
    pub run: Duration,
    pub whole_result: Option<ResultHandle>,
}

/// A result as the server sent it.
#[derive(Debug, Clone)]
pub struct RawCallResult {
    /// JSON text.
    pub json: Bytes,
    pub head: ResultHead,
}

impl RawCallResult {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        // It was validated as UTF-8 when it was read.
        std::str::from_utf8(&self.json).unwrap_or("{}")
    }

    pub(crate) fn of(result: &ToolResult) -> Self {
        Self {
            json: result.to_value().to_string().into(),
            head: ResultHead {
                kind: ResultKind::Complete,
                is_typed: false,
                is_error: result.is_error,
                content: ResultContent::Present,
            },
        }
    }
}

/// A call that failed without a result.
#[derive(Debug, Clone)]
pub struct CallFailed {
    pub error: CallError,
    /// The JSON-RPC error of the server, if it sent one.
    pub rpc: Option<RpcError>,
    /// Asks the person to sign in, if that is what the call needs.
    pub sign_in: Option<Box<SignInPrompt>>,
}

impl From<CallError> for CallFailed {
    fn from(error: CallError) -> Self {
        Self { error, rpc: None, sign_in: None }
    }
}
