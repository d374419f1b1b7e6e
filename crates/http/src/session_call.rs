//! Tool calls in a session, with results in the types of the API.

use std::sync::Arc;

use serde_json::Value;
use switchboard_api::{CallView, Problem, SessionCallBody};
use switchboard_model::Caller;
use switchboard_render::{Provider, UnknownRenderTarget};
use switchboard_sessions::{Session, SessionCall, SessionReply, SessionService};

use crate::present;
use crate::problem::ProblemResponse;

/// Calls a tool in the name of a session. A tool that the session does not see is answered as unknown.
pub async fn call(
    sessions: &Arc<SessionService>,
    session: &Arc<Session>,
    tool: String,
    body: SessionCallBody,
    caller: Caller,
) -> Result<CallView, Box<Problem>> {
    let arguments = match &body.provider {
        Some(provider) => restored(session, provider, &tool, body.arguments)
            .map_err(|error| Box::new(Problem::new("bad_request", 422, error.to_string())))?,
        None => body.arguments,
    };
    let call = SessionCall {
        tool,
        arguments,
        caller,
        progress: None,
        seen: None,
        scope: None,
        conversation: None,
    };
    match sessions.call_in(session, call).await {
        SessionReply::Called(shown, report) => present::call(&report)
            .map(|call| CallView { tool: shown.to_string(), ..call })
            .map_err(|error| ProblemResponse::of_call(error, Some(&report.id)).0),
        SessionReply::Refused(error, id) => Err(ProblemResponse::of_call(&error, Some(&id)).0),
        SessionReply::Meta(tool, result) => Ok(CallView {
            id: String::new(),
            tool: tool.name().into(),
            revision: session.now().cached.view.index().revision(),
            outcome: if result.is_error { "tool_error" } else { "ok" }.into(),
            result: result.to_value(),
            wait_ms: 0,
            run_ms: 0,
            result_handle: None,
        }),
    }
}

/// The arguments with the server's own names, where the provider's schema had renamed them.
fn restored(
    session: &Session,
    provider: &str,
    tool: &str,
    arguments: Value,
) -> Result<Value, UnknownRenderTarget> {
    let provider: Provider = provider.parse()?;
    let rendering = session.now().cached.rendering(provider);
    let map = rendering.tool(tool).and_then(|tool| tool.arguments.as_ref());
    Ok(map.map_or(arguments.clone(), |map| map.restore(arguments)))
}
