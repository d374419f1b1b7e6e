//! One `tools/call`, and its cancellation when nobody waits for it any more.

use rmcp::RoleClient;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use switchboard_model::ToolResult;
use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::http_client::{CLOSED, UNREADABLE, describe_transport};

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
    Rpc { code: i32, message: String },
    /// The server answered with something that is no result.
    #[error("{0}")]
    BadAnswer(String),
}

impl Connection {
    /// Calls a tool. Dropping the future cancels the call on the server.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<ToolResult, CallFailure> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle =
            self.peer().send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = match handle {
            Ok(handle) => handle,
            Err(error) => return Err(self.describe(&error).await),
        };
        self.progress().insert(handle.progress_token.clone(), progress);
        let mut running = Running { handle: Some(handle), connection: self };
        let answer = running.answer().await;
        running.finish();
        match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
            Ok(result) => read_result(&result),
            Err(error) => Err(self.describe(&error).await),
        }
    }

    async fn describe(&self, error: &ServiceError) -> CallFailure {
        match error {
            ServiceError::McpError(error) if error.code == UNREADABLE => {
                CallFailure::BadAnswer(error.message.to_string())
            }
            ServiceError::McpError(error) => {
                CallFailure::Rpc { code: error.code.0, message: shortened(&error.message) }
            }
            error => {
                let found = describe_service_error(error);
                if let Some(child) = self.lost_child(&found).await {
                    let message = format!("the connection closed: {}", child.reason());
                    return CallFailure::Unavailable(message);
                }
                match found.kind {
                    ConnectErrorKind::Protocol => CallFailure::BadAnswer(found.message),
                    ConnectErrorKind::Unreachable
                    | ConnectErrorKind::Overloaded
                    | ConnectErrorKind::Unauthorized
                    | ConnectErrorKind::Timeout
                    | ConnectErrorKind::Process => CallFailure::Unavailable(found.message),
                }
            }
        }
    }
}

/// A request on its way. Dropped before it is finished, it is cancelled upstream.
struct Running<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    connection: &'a Connection,
}

impl Running<'_> {
    async fn answer(
        &mut self,
    ) -> Result<Result<ServerResult, ServiceError>, tokio::sync::oneshot::error::RecvError> {
        match &mut self.handle {
            Some(handle) => (&mut handle.rx).await,
            None => Ok(Err(ServiceError::TransportClosed)),
        }
    }

    fn finish(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.connection.progress().remove(&handle.progress_token);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.connection.progress().remove(&handle.progress_token);
        self.connection.cancelling().spawn(async move {
            // A server that is gone needs no cancellation.
            let _gone = handle.cancel(Some("the caller no longer waits".into())).await;
        });
    }
}

fn read_result(result: &ServerResult) -> Result<ToolResult, CallFailure> {
    let value = match result {
        // What rmcp's types cannot hold, such as a content type of tomorrow, passes through as it is.
        ServerResult::CustomResult(result) => result.0.clone(),
        typed => serde_json::to_value(typed)
            .map_err(|error| CallFailure::BadAnswer(error.to_string()))?,
    };
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
    use rmcp::model::CustomResult;
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<ToolResult, String> {
        let result = ServerResult::CustomResult(CustomResult::new(value));
        read_result(&result).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_result_keeps_what_it_is_not_asked_about() {
        let result = read(json!({
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
            assert_eq!(read(value).unwrap_err(), expected);
        }
    }
}
