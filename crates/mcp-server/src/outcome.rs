//! Results and errors of requests, before a transport writes them.

use bytes::Bytes;
use serde_json::json;
use switchboard_model::{CallError, SignInPage, ToolResult};
use switchboard_protocol::{
    ErrorBody, Need, ResultContent, code, response_frame, with_members, without_member,
};
use switchboard_runtime::{CallFailed, PassFailure, RawCallResult, RequestFailure, RpcError};
use switchboard_view::ListEra;

use crate::body::GatewayBody;

/// Results up to this size are copied into one buffer, because sending three chunks costs more.
const COPIED: usize = 16 * 1024;

/// The result or the error of a request.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The result as JSON text.
    Result(Bytes),
    /// An error. The status applies to HTTP responses of the stateless era; those of the session era are always 200.
    Error { status: u16, error: ErrorBody },
}

impl Outcome {
    pub(crate) fn text(result: impl Into<String>) -> Self {
        Self::Result(Bytes::from(result.into()))
    }

    /// An error with HTTP status 200: clients of both eras take other statuses as a sign of the server's era.
    pub(crate) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error { status: 200, error: ErrorBody::new(code, message) }
    }

    /// A tool result that Switchboard makes itself.
    pub(crate) fn tool(era: ListEra, result: &ToolResult) -> Self {
        let text = result.to_value().to_string();
        Self::text(match era {
            ListEra::Session => text,
            ListEra::Stateless => with_members(&text, &[COMPLETE]),
        })
    }

    pub(crate) fn tool_error(era: ListEra, message: impl Into<String>) -> Self {
        Self::tool(era, &ToolResult::error(message))
    }

    /// The body of the JSON-RPC response.
    pub(crate) fn body(self, id: &str) -> GatewayBody {
        match self {
            Self::Result(result) if result.len() > COPIED => {
                GatewayBody::framed(response_frame(id), result, b"}")
            }
            short => GatewayBody::text(short.message(id)),
        }
    }

    /// The JSON-RPC response as one text.
    pub(crate) fn message(self, id: &str) -> String {
        match self {
            Self::Result(result) => {
                let result = std::str::from_utf8(&result).unwrap_or_default();
                switchboard_protocol::response(id, result)
            }
            Self::Error { error, .. } => switchboard_protocol::error_response(Some(id), &error),
        }
    }
}

pub(crate) const COMPLETE: (&str, &str) = ("resultType", "\"complete\"");

/// A tool's result, changed only as far as the client's era requires.
pub(crate) fn of_answer(era: ListEra, answer: RawCallResult) -> Outcome {
    match era {
        ListEra::Stateless if !answer.head.is_typed => {
            Outcome::text(with_members(answer.as_str(), &[COMPLETE]))
        }
        ListEra::Session if answer.head.content == ResultContent::BareStructure => {
            Outcome::text(without_member(answer.as_str(), "structuredContent"))
        }
        ListEra::Stateless | ListEra::Session => Outcome::Result(answer.json),
    }
}

/// The member of `_meta` that says after how many seconds the call may be made again.
const RETRY_AFTER_META: &str = "switchboard/retryAfterSeconds";

/// The tool error of a failed call, written for a model to act on. A JSON-RPC error of the server is passed on.
pub(crate) fn of_failed_call(era: ListEra, failed: CallFailed) -> Outcome {
    if let Some(rpc) = failed.rpc {
        return of_rpc(era, rpc);
    }
    Outcome::tool(era, &failed_result(&failed.error))
}

/// A failed call as a tool result: the message, and the sign-in page as structured data if the call needs one.
fn failed_result(error: &CallError) -> ToolResult {
    let mut result = ToolResult::error(error.for_caller());
    if let Some(page) = &error.sign_in {
        // In `_meta`, because the structured content must fit the tool's own schema.
        let meta =
            json!({ SIGN_IN_META: page.to_value(), "switchboard/outcome": error.kind.as_str() });
        result.extra.insert("_meta".into(), meta);
    }
    if let Some(wait) = error.retry_after {
        let meta = json!({
            RETRY_AFTER_META: wait.as_secs(),
            "switchboard/outcome": error.kind.as_str(),
        });
        result.extra.insert("_meta".into(), meta);
    }
    result
}

/// The member of `_meta` that names the page where the person signs in.
pub(crate) const SIGN_IN_META: &str = "switchboard/signIn";

/// The error of the session era that names pages to be opened first.
pub(crate) fn url_required(page: &SignInPage, id: &str, message: &str) -> Outcome {
    let elicitation =
        json!({ "mode": "url", "elicitationId": id, "url": page.url, "message": message });
    let data = json!({ "elicitations": [elicitation] }).to_string();
    let error = ErrorBody::new(code::LEGACY_URL_ELICITATION_REQUIRED, message).with_data(data);
    Outcome::Error { status: 200, error }
}

pub(crate) fn of_failed_pass(era: ListEra, failed: PassFailure, uri: Option<&str>) -> Outcome {
    match failed {
        PassFailure::Unavailable(message)
        | PassFailure::Timeout(message)
        | PassFailure::Refused(message) => Outcome::error(code::INTERNAL_ERROR, message),
        PassFailure::SignIn(prompt) => {
            let message = format!("{} Open {}", prompt.message(), prompt.page.url);
            let data = json!({ SIGN_IN_META: prompt.page.to_value() }).to_string();
            let error = ErrorBody::new(code::INTERNAL_ERROR, message).with_data(data);
            Outcome::Error { status: 200, error }
        }
        PassFailure::Server(RequestFailure::Rpc(mut error)) => {
            if error.code == code::LEGACY_RESOURCE_NOT_FOUND && era == ListEra::Stateless {
                error.code = code::INVALID_PARAMS;
                if error.data.is_none() {
                    error.data = uri.map(|uri| (&json!({ "uri": uri })).into());
                }
            }
            of_rpc(era, error)
        }
        PassFailure::Server(failure) => Outcome::error(code::INTERNAL_ERROR, failure.to_string()),
    }
}

fn of_rpc(era: ListEra, error: RpcError) -> Outcome {
    let status = match error.code {
        code::MISSING_CLIENT_CAPABILITY if era == ListEra::Stateless => 400,
        _ => 200,
    };
    let data = error.data.map(|data| data.as_str().to_owned());
    Outcome::Error { status, error: ErrorBody { code: error.code, message: error.message, data } }
}

/// The error for a client that lacks a capability which the server's request needs.
pub(crate) fn missing_capability(need: Need) -> Outcome {
    let message = format!("the request needs the client capability `{}`", need.name());
    let data = format!(r#"{{"requiredCapabilities":{}}}"#, need.declared());
    let error = ErrorBody::new(code::MISSING_CLIENT_CAPABILITY, message).with_data(data);
    Outcome::Error { status: 400, error }
}
