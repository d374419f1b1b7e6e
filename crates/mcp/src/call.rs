//! One `tools/call` with everything parsed, for callers who look into the result.

use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_model::{JsonText, ToolResult};
use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::envelope::quoted;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::exchange::{Ask, AskEvent, AskFailure};
use crate::http_client::{CLOSED, describe_transport};

/// Events between a server and the caller who hears only of progress; what does not fit is dropped.
const WAITING_EVENTS: usize = 16;

/// A sign of life of a running call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Why a server gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallFailure {
    /// The server could not be reached, or went away while it worked.
    #[error("{0}")]
    Unavailable(String),
    /// The server answered with a JSON-RPC error.
    #[error("{message} (JSON-RPC error {code})")]
    Rpc { code: i64, message: String },
    /// The server answered with something that is no result.
    #[error("{0}")]
    BadAnswer(String),
}

impl From<AskFailure> for CallFailure {
    fn from(failure: AskFailure) -> Self {
        match failure {
            AskFailure::Unavailable(message) => Self::Unavailable(message),
            AskFailure::BadAnswer(message) => Self::BadAnswer(message),
            AskFailure::Rpc(error) => {
                Self::Rpc { code: error.code, message: shortened(&error.message) }
            }
        }
    }
}

impl Connection {
    /// Calls a tool. Dropping the future cancels the call on the server.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<ToolResult, CallFailure> {
        let mirrors = self.mirrors_of(tool);
        let mirrored = mirrors.map(|mirrors| mirrors.headers(&arguments)).unwrap_or_default();
        let arguments = Value::Object(arguments);
        let ask = Ask {
            method: "tools/call",
            name: Some(tool.to_owned()),
            params: format!(r#""name":{},"arguments":{arguments}"#, quoted(tool)),
            wants_progress: true,
            mirrored,
            ..Ask::default()
        };
        let (events, mut heard) = mpsc::channel(WAITING_EVENTS);
        let mut asking = std::pin::pin!(self.ask(ask, Some(events)));
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = heard.recv() => pass_on(event, &progress),
                answer = &mut asking => break answer,
            }
        };
        while let Ok(event) = heard.try_recv() {
            pass_on(event, &progress);
        }
        read_result(answer?.as_str())
    }
}

fn pass_on(event: AskEvent, progress: &mpsc::Sender<Progress>) {
    match event {
        AskEvent::Progress(params) => {
            if let Some(sign) = read_progress(&params) {
                // A listener that does not keep up has enough signs of life already.
                let _full = progress.try_send(sign);
            }
        }
        AskEvent::Log(_) => {}
        AskEvent::Question { method, reply, .. } => {
            // Any other question is refused by being dropped.
            if method == "roots/list" {
                let none = JsonText::from(&serde_json::json!({"roots": []}));
                let _gone = reply.send(Ok(none));
            }
        }
    }
}

fn read_progress(params: &JsonText) -> Option<Progress> {
    #[derive(Deserialize)]
    struct Written {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let Written { progress, total, message } = serde_json::from_str(params.as_str()).ok()?;
    Some(Progress { progress, total, message })
}

fn read_result(result: &str) -> Result<ToolResult, CallFailure> {
    let value =
        serde_json::from_str(result).map_err(|error| CallFailure::BadAnswer(error.to_string()))?;
    let Value::Object(mut whole) = value else {
        return Err(CallFailure::BadAnswer("the result is not an object".into()));
    };
    match whole.shift_remove("resultType") {
        None => {}
        Some(kind) if kind == "complete" => {}
        Some(kind) if kind == "input_required" => {
            return Err(CallFailure::BadAnswer(
                "the tool asks for more input, which this face cannot give".into(),
            ));
        }
        Some(kind) => {
            return Err(CallFailure::BadAnswer(format!("a result of the unknown type {kind}")));
        }
    }
    let content = match whole.shift_remove("content") {
        Some(Value::Array(content)) => content,
        None if whole.contains_key("structuredContent") => Vec::new(),
        _ => return Err(CallFailure::BadAnswer("the result has no content".into())),
    };
    let structured = whole.shift_remove("structuredContent");
    let is_error = whole.shift_remove("isError").is_some_and(|flag| flag == true);
    Ok(ToolResult { content, structured, is_error, extra: whole })
}

/// What a server says about its failure, up to a page.
fn shortened(message: &str) -> String {
    const PAGE: usize = 4000;
    match message.char_indices().nth(PAGE) {
        None => message.to_owned(),
        Some((end, _)) => {
            let head = message.get(..end).unwrap_or_default();
            format!("{head}… ({} bytes in all)", message.len())
        }
    }
}

/// A failure that is no answer, in words, without the names of rmcp's internals.
pub(crate) fn describe_service_error(error: &ServiceError) -> ConnectError {
    use ConnectErrorKind::{Protocol, Unreachable};
    match error {
        ServiceError::TransportSend(error) => describe_transport(error),
        ServiceError::TransportClosed => ConnectError::new(Unreachable, CLOSED),
        ServiceError::UnexpectedResponse => {
            ConnectError::new(Protocol, "an answer of another kind than the request asks for")
        }
        other => ConnectError::new(Protocol, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<ToolResult, String> {
        read_result(&value.to_string()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_result_keeps_what_it_is_not_asked_about() {
        let result = read(&json!({
            "resultType": "complete", "content": [{"type": "hologram"}], "isError": true, "weather": "fine",
        }))
        .unwrap();
        let expected =
            json!({"weather": "fine", "content": [{"type": "hologram"}], "isError": true});
        assert_eq!(result.to_value(), expected);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for (value, expected) in [
            (json!([1]), "the result is not an object"),
            (json!({"weather": "fine"}), "the result has no content"),
            (json!({"content": "text"}), "the result has no content"),
            (json!({"resultType": "task", "content": []}), "a result of the unknown type \"task\""),
        ] {
            assert_eq!(read(&value).unwrap_err(), expected);
        }
    }
}
