//! Calling tools, and what is left of calls.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Extension, Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use switchboard_api::{CallBody, CallView, RecordList};
use switchboard_auth::Principal;
use switchboard_model::{CallId, Face};
use switchboard_runtime::CallRequest;
use switchboard_store::CallFilter;

use crate::inspect::{may_reach, unknown_tool};
use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadyGateway};

/// The most of a kept result that one request reads.
const MAX_SLICE: u64 = 8 * 1024 * 1024;

/// Calls a tool. A client that goes away cancels the call.
pub(crate) async fn call(
    Ready(board): Ready,
    ReadyGateway(gateway): ReadyGateway,
    Extension(principal): Extension<Principal>,
    tool: Result<Path<String>, PathRejection>,
    body: Result<Json<CallBody>, JsonRejection>,
) -> Result<Json<CallView>, ProblemResponse> {
    let Path(tool) = tool?;
    if !may_reach(&gateway, &principal, &tool) {
        return Err(unknown_tool(&tool));
    }
    let Json(body) = body?;
    let request = CallRequest { tool, arguments: body.arguments, face: Face::Http, progress: None };
    let report = board.call(request).await;
    present::call(&report).map(Json).map_err(|error| ProblemResponse::of_call(error, &report.id))
}

/// Which records to show.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecentQuery {
    #[serde(default = "twenty")]
    limit: u32,
    tool: Option<String>,
    outcome: Option<String>,
    before: Option<String>,
}

fn twenty() -> u32 {
    20
}

pub(crate) async fn recent(
    Ready(board): Ready,
    query: Result<Query<RecentQuery>, QueryRejection>,
) -> Result<Json<RecordList>, ProblemResponse> {
    let Query(query) = query?;
    let filter = CallFilter {
        limit: query.limit.min(1000),
        tool: query.tool,
        outcome: query.outcome,
        before: query.before.map(CallId),
    };
    board.flush_records().await;
    let calls = board.store().recent_calls(&filter).await?;
    Ok(Json(RecordList { calls: calls.iter().map(present::record).collect() }))
}

/// Which part of a kept result to read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SliceQuery {
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
}

pub(crate) async fn result(
    Ready(board): Ready,
    handle: Result<Path<String>, PathRejection>,
    query: Result<Query<SliceQuery>, QueryRejection>,
) -> Result<Response, ProblemResponse> {
    let Path(handle) = handle?;
    let Query(query) = query?;
    let length = query.length.unwrap_or(MAX_SLICE).min(MAX_SLICE);
    let slice = board.store().read_result(&handle, query.offset, length).await?;
    let Some(slice) = slice else {
        let detail = format!("there is no result '{handle}'; large results are kept for a day");
        return Err(ProblemResponse::new("unknown_result", StatusCode::NOT_FOUND, detail));
    };
    let headers = [
        (header::CONTENT_TYPE.as_str(), "application/json".to_owned()),
        ("x-result-bytes", slice.total.to_string()),
    ];
    Ok((headers, slice.bytes).into_response())
}
