//! Tool calls and their stored results.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use switchboard_api::{CallBody, CallStreamEvent, CallView};
use switchboard_auth::Principal;
use switchboard_model::{CallError, CallErrorKind, CallId, Face};
use switchboard_runtime::{Board, CallCheck, CallReport, CallRequest, RefusedCall};
use switchboard_sessions::SessionService;

use crate::answers::{
    BadRequest, CallFaulted, CallForbidden, CallRateLimited, CallTimedOut, CallUnavailable,
    Guarded, InvalidArguments, StoreFailed, TakesBody, UnknownResult, UnknownTool, UpstreamFailed,
};
use crate::call_stream::{stream_call, wants_events};
use crate::extract::{FromBody, FromPath, FromQuery};
use crate::inspect::{ToolName, finds_tool, no_such_tool};
use crate::present;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::{Ready, ReadySessions};
use crate::server_state::Shared;

/// The maximum size of a part of a stored result.
const MAX_SLICE: u64 = 8 * 1024 * 1024;
/// The largest integer that every JSON reader represents exactly.
const MAX_OFFSET: u64 = (1 << 53) - 1;

/// Call a tool
///
/// Waits for a slot, runs the tool and responds with its result. A tool that reports an error has status 200 and the
/// `outcome` `tool_error`. A result that is larger than the tool's `max_result_bytes` is stored: `result` then has its
/// beginning, and `result_handle` names the whole result. Closing the connection cancels the call.
///
/// With `Accept: text/event-stream` the response is a stream of server-sent events: `started` with the id of the call, `progress`
/// and `log` as the server sends them, and at the end `done` with the result, or `error` with the problem. If the body says that the
/// caller `answers_questions`, what the server asks arrives as `question` and waits for `answerQuestion`.
#[utoipa::path(
    post,
    path = "/api/v1/tools/{name}/call",
    operation_id = "callTool",
    tag = "tools",
    params(ToolName),
    request_body(
        content = CallBody,
        description = "The arguments.",
        example = json!({"arguments": {"text": "hello"}})
    ),
    responses(
        (
            status = 200,
            description = "The result of the tool, or its events.",
            content((CallView = "application/json"), (CallStreamEvent = "text/event-stream")),
            links(("whole" = (operation_id = "readResult", parameters(("handle" = "$response.body#/result_handle")))))
        ),
        Guarded,
        CallForbidden,
        TakesBody,
        UnknownTool,
        InvalidArguments,
        CallRateLimited,
        CallFaulted,
        UpstreamFailed,
        CallUnavailable,
        CallTimedOut,
    )
)]
pub(crate) async fn call(
    State(shared): State<Shared>,
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(ToolName { name }): FromPath<ToolName>,
    headers: HeaderMap,
    FromBody(body): FromBody<CallBody>,
) -> Result<Response, ProblemResponse> {
    let request = permitted_call(&board, &sessions, &principal, name, body.arguments).await?;
    if wants_events(&headers) {
        let questions = body.answers_questions.then(|| shared.questions.clone());
        return stream_call(board, request, principal, questions, call_problem).await;
    }
    let report = board.call(request).await;
    let view = present::call(&report);
    let view = view.map_err(|error| call_problem(error, &report.id, &principal))?;
    Ok(Json(view).into_response())
}

/// The problem of a failed call, as far as the caller may know it.
fn call_problem(error: &CallError, id: &CallId, principal: &Principal) -> ProblemResponse {
    let mut problem = ProblemResponse::of_call(error, Some(id));
    // The tool was removed a moment ago; the hint could name hidden tools.
    if !principal.oversees() && error.kind == CallErrorKind::UnknownTool {
        problem.0.hint = None;
    }
    problem
}

/// Calls a tool by its canonical or bare name, if the caller may see it.
pub(crate) async fn call_tool(
    board: &Board,
    sessions: &Arc<SessionService>,
    principal: &Principal,
    name: String,
    arguments: Value,
) -> Result<CallReport, ProblemResponse> {
    let request = permitted_call(board, sessions, principal, name, arguments).await?;
    Ok(board.call(request).await)
}

/// A call of a tool that the caller may see, by its canonical or bare name.
async fn permitted_call(
    board: &Board,
    sessions: &Arc<SessionService>,
    principal: &Principal,
    name: String,
    arguments: Value,
) -> Result<CallRequest, ProblemResponse> {
    let is_found = finds_tool(sessions, principal, &name).await;
    let caller = Arc::new(principal.caller(Face::Http));
    let is_client = !principal.oversees();
    // The board's error names similar tools, also hidden ones: only operators may see it.
    if is_client && !is_found {
        let error = CallError::new(CallErrorKind::UnknownTool, no_such_tool(&name));
        let refused = RefusedCall {
            requested: &name,
            tool: None,
            arguments: &arguments.to_string(),
            caller,
            error: &error,
        };
        let id = board.record_refused(refused).await;
        return Err(ProblemResponse::of_call(&error, Some(&id)));
    }
    // By the time the call runs, the name may mean another tool, which must be permitted too.
    let check = is_client.then(|| {
        let (sessions, access) = (sessions.clone(), principal.access.clone());
        CallCheck::new(move |tool| {
            let is_permitted = sessions.permits(tool.name.as_str(), &access);
            is_permitted
                .then_some(())
                .ok_or_else(|| "the tool is no longer available to this caller".into())
        })
    });
    let tool = name.into();
    Ok(CallRequest {
        tool,
        arguments,
        caller,
        requested: None,
        progress: None,
        check,
        conversation: None,
    })
}

/// Names a stored result.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ResultHandlePath {
    /// The handle from `result_handle` of the call.
    #[param(min_length = 1, example = "result-0190f3c2")]
    handle: String,
}

/// The part of a stored result to read.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SliceQuery {
    /// The position of the first byte.
    #[serde(default)]
    #[param(maximum = 9_007_199_254_740_991_u64, default = 0)]
    offset: u64,
    /// The number of bytes. A response has at most 8 MiB.
    #[param(maximum = 9_007_199_254_740_991_u64, nullable = false)]
    length: Option<u64>,
}

/// Read a stored result
///
/// A result that was too large for the response to its call is stored for a day. One request reads at most 8 MiB of it;
/// the header `x-result-bytes` has the size of the whole result.
#[utoipa::path(
    get,
    path = "/api/v1/results/{handle}",
    operation_id = "readResult",
    tag = "calls",
    params(ResultHandlePath, SliceQuery),
    responses(
        (
            status = 200,
            description = "The bytes: JSON when they are the whole result, else a slice of that text.",
            content((Object = "application/json"), (Vec<u8> = "application/octet-stream")),
            headers(("x-result-bytes" = u64, description = "The size of the whole result in bytes."))
        ),
        Guarded,
        BadRequest,
        UnknownResult,
        StoreFailed,
    )
)]
pub(crate) async fn result(
    Ready(board): Ready,
    FromPath(ResultHandlePath { handle }): FromPath<ResultHandlePath>,
    FromQuery(query): FromQuery<SliceQuery>,
) -> Result<Response, ProblemResponse> {
    if query.offset > MAX_OFFSET || query.length.is_some_and(|length| length > MAX_OFFSET) {
        return Err(bad_query(format!("`offset` and `length` are at most {MAX_OFFSET}")));
    }
    let length = query.length.unwrap_or(MAX_SLICE).min(MAX_SLICE);
    let slice = board.store().read_result(&handle, query.offset, length).await?;
    let Some(slice) = slice else {
        let detail = format!("there is no result '{handle}'; large results are kept for a day");
        return Err(ProblemResponse::new("unknown_result", StatusCode::NOT_FOUND, detail));
    };
    // A part of a JSON text is not valid JSON.
    let is_whole = u64::try_from(slice.bytes.len()).is_ok_and(|length| length == slice.total);
    let kind = if is_whole { "application/json" } else { "application/octet-stream" };
    let headers = [
        (header::CONTENT_TYPE.as_str(), kind.to_owned()),
        ("x-result-bytes", slice.total.to_string()),
    ];
    Ok((headers, slice.bytes).into_response())
}
