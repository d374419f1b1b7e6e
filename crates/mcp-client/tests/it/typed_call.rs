//! A `tools/call` with a parsed result, for tests that inspect it.

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_mcp_client::{
    Connection, RequestFailure, UpstreamEvent, UpstreamRequest, event_channel,
};
use switchboard_model::{JsonText, ToolResult};
use switchboard_protocol::quoted;
use tokio::sync::mpsc;

/// Events between a server and the caller who hears only of progress; what does not fit is dropped.
const WAITING_EVENTS: usize = 16;

/// A sign of life of a running call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Progress {
    #[serde(rename = "progress")]
    pub(crate) done: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

/// Why a server gave no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallFailure {
    /// The server could not be reached, or went away while it worked.
    Unavailable(String),
    /// The server answered with a JSON-RPC error.
    Rpc { code: i64, message: String },
    /// The server answered with something that is no result.
    BadAnswer(String),
}

impl std::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unavailable(text) | Self::BadAnswer(text) => f.write_str(text),
            Self::Rpc { code, message } => write!(f, "{message} (JSON-RPC error {code})"),
        }
    }
}

impl From<RequestFailure> for CallFailure {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Unavailable(message) | RequestFailure::SignIn(message) => {
                Self::Unavailable(message)
            }
            RequestFailure::BadAnswer(message) => Self::BadAnswer(message),
            RequestFailure::Rpc(error) => Self::Rpc { code: error.code, message: error.message },
        }
    }
}

/// Calls a tool. Dropping the future cancels the call on the server.
pub(crate) trait CallTool {
    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<ToolResult, CallFailure>;
}

impl CallTool for Connection {
    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<ToolResult, CallFailure> {
        let arguments = Value::Object(arguments);
        let ask = UpstreamRequest {
            method: "tools/call",
            name: Some(tool.to_owned()),
            params: format!(r#""name":{},"arguments":{arguments}"#, quoted(tool)),
            wants_progress: true,
            ..UpstreamRequest::default()
        };
        let (events, mut heard) = event_channel(WAITING_EVENTS);
        let mut asking = std::pin::pin!(self.ask(ask, Some(events)));
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = heard.next() => pass_on(event, &progress),
                answer = &mut asking => break answer,
            }
        };
        while let Some(event) = heard.next_now() {
            pass_on(event, &progress);
        }
        read_result(answer?.as_str())
    }
}

fn pass_on(event: UpstreamEvent, progress: &mpsc::Sender<Progress>) {
    match event {
        UpstreamEvent::Progress(params) => {
            if let Ok(sign) = serde_json::from_str(params.as_str()) {
                // A listener that does not keep up has enough signs of life already.
                let _full = progress.try_send(sign);
            }
        }
        UpstreamEvent::Log(_) | UpstreamEvent::ElicitationComplete(_) => {}
        UpstreamEvent::Question { method, reply, .. } => {
            // Any other question is refused by being dropped.
            if method == "roots/list" {
                let none = JsonText::from(&serde_json::json!({"roots": []}));
                let _gone = reply.send(Ok(none));
            }
        }
    }
}

fn read_result(result: &str) -> Result<ToolResult, CallFailure> {
    ToolResult::from_text(result).map_err(CallFailure::BadAnswer)
}
