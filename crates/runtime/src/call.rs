//! One call from its name to its record: resolve, check, wait, run, cap, account (spec section 3).

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value};
use switchboard_mcp::{CallFailure, Progress};
use switchboard_model::{
    CallError, CallErrorKind, CallId, CallOutcome, CallRecord, CanonicalName, Face, ToolResult,
    json_length, render_duration,
};
use switchboard_registry::{CatalogTool, Unresolved};
use switchboard_telemetry::{CallFinished, call_span, end_call_span};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument, Span};

use crate::board::Board;
use crate::results::offload;
use crate::slots::Slot;
use crate::supervisor::Server;
use crate::tools::Published;

/// Characters of a failure that a record keeps.
const MAX_RECORDED_MESSAGE: usize = 2000;

/// What a caller wants.
#[derive(Debug)]
pub struct CallRequest {
    /// `tool` or `server.tool`.
    pub tool: String,
    /// A JSON object; `null` counts as an empty one.
    pub arguments: Value,
    pub face: Face,
    /// Where signs of life go. A listener that does not keep up misses some.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// Names a result that is kept in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultHandle(pub String);

impl fmt::Display for ResultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a call went.
#[derive(Debug)]
pub struct CallReport {
    pub id: CallId,
    /// The tool that the name was resolved to.
    pub tool: Option<CanonicalName>,
    pub revision: u64,
    pub result: Result<ToolResult, CallError>,
    pub wait: Duration,
    pub run: Duration,
    /// Where the whole result is, when `result` only holds its beginning.
    pub whole_result: Option<ResultHandle>,
}

impl Board {
    /// Runs one call. Dropping the future cancels it: its slots are free at once, the server is told, and a
    /// record says so.
    pub async fn call(&self, request: CallRequest) -> CallReport {
        let _until_the_end = (self.calls.token(), switchboard_telemetry::call_started());
        let published = self.published.load_full();
        let mut ledger = Ledger::open(self, &request, published.catalog.revision());
        let result = if self.calls.is_closed() {
            Err(CallError::new(CallErrorKind::Unavailable, "the board is shutting down"))
        } else {
            let running = self.run(&published, request, &mut ledger);
            self.cut.run_until_cancelled(running).await.unwrap_or_else(|| {
                let message = "the call was cancelled because the board is shutting down";
                Err(CallError::new(CallErrorKind::Cancelled, message))
            })
        };
        ledger.close(result).await
    }

    async fn run(
        &self,
        published: &Published,
        request: CallRequest,
        ledger: &mut Ledger<'_>,
    ) -> Result<ToolResult, CallError> {
        let tool = published
            .catalog
            .resolve(&request.tool)
            .map_err(|unresolved| unknown_tool(&request.tool, &unresolved))?;
        ledger.tool = Some(tool.name.clone());
        let arguments = check_arguments(published, tool, request.arguments)?;
        // Held from here on: a reload while we wait for a slot must not close what we are about to use.
        let server = self.hold_server(published, tool);

        ledger.wait_started = Some(Instant::now());
        let _slots = self.take_slots(tool).await?;
        ledger.run_started = Some(Instant::now());
        let span = call_span(tool.name.server().as_str(), tool.name.tool());
        ledger.span = span.clone();
        let result = if tool.name.server().is_local() {
            self.run_local(tool, arguments).instrument(span).await
        } else {
            let Some((server, _held)) = &server else {
                return Err(unavailable(tool, "it is no longer configured"));
            };
            run_upstream(server, tool, arguments, request.progress).instrument(span).await
        }?;
        ledger.run_ended = Some(Instant::now());
        self.cap(tool, result, ledger).await
    }

    /// The server of a tool, which is not let go of before the token is dropped; `None` for a local tool.
    fn hold_server(
        &self,
        published: &Published,
        tool: &CatalogTool,
    ) -> Option<(Arc<Server>, TaskTrackerToken)> {
        let held = |published: &Published| {
            let server = published.servers.get(tool.name.server())?;
            Some((server.clone(), server.hold()?))
        };
        // One that was let go of a moment ago has a successor, unless it was removed.
        held(published).or_else(|| held(&self.published.load()))
    }

    /// First the tool's own slot, then one of all: who waits for a busy tool does not hold up the others.
    async fn take_slots(&self, tool: &CatalogTool) -> Result<(Slot, Slot), CallError> {
        let own = self.slots.of(&tool.name, tool.limits.max_instances);
        let global = self.slots.global();
        let mut has_own = false;
        let both = async {
            let own = own.take().await?;
            has_own = true;
            Some((own, global.take().await?))
        };
        let limit = tool.limits.queue_timeout;
        match tokio::time::timeout(limit, both).await {
            Ok(Some(slots)) => Ok(slots),
            Ok(None) => Err(CallError::new(CallErrorKind::Internal, "the slots are closed")),
            Err(_elapsed) => {
                let busy = if has_own {
                    format!("all {} slots of max_concurrent are in use", global.limit())
                } else {
                    format!("all {} of its max_instances are in use", own.limit())
                };
                let limit = render_duration(limit);
                let message = format!(
                    "{} waited longer than its queue_timeout of {limit} and was not run: {busy}",
                    described(tool)
                );
                Err(CallError::new(CallErrorKind::QueueTimeout, message)
                    .with_hint("try again later, or raise the limit in the configuration"))
            }
        }
    }

    async fn run_local(
        &self,
        tool: &CatalogTool,
        arguments: Map<String, Value>,
    ) -> Result<ToolResult, CallError> {
        let Some(local) = self.local_tools.get(tool.name.tool()) else {
            return Err(unavailable(tool, "this program does not have it"));
        };
        // Within the future, so that a tool that panics before it gives one is caught too.
        let running = AssertUnwindSafe(async { local.run(arguments).await }).catch_unwind();
        match tokio::time::timeout(tool.limits.timeout, running).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_panic)) => {
                let message = format!("{} failed with a fault of its own", described(tool));
                Err(CallError::new(CallErrorKind::Internal, message))
            }
            Err(_elapsed) => Err(timed_out(tool)),
        }
    }

    async fn cap(
        &self,
        tool: &CatalogTool,
        result: ToolResult,
        ledger: &mut Ledger<'_>,
    ) -> Result<ToolResult, CallError> {
        let limit = tool.limits.max_result_bytes;
        ledger.result_bytes = json_length(&(&result.content, &result.structured, &result.extra));
        if ledger.result_bytes <= limit {
            return Ok(result);
        }
        let body = result.to_value().to_string();
        let (capped, handle) = offload(&self.store, &ledger.id, &result, body.as_bytes(), limit)
            .await
            .map_err(|error| {
                let message = format!(
                    "the result of {} is too large and could not be kept: {error}",
                    described(tool)
                );
                CallError::new(CallErrorKind::Internal, message)
            })?;
        ledger.whole_result = Some(handle);
        Ok(capped)
    }
}

fn check_arguments(
    published: &Published,
    tool: &CatalogTool,
    arguments: Value,
) -> Result<Map<String, Value>, CallError> {
    let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    if arguments.is_object() {
        check_object(published, tool, &arguments)?;
    }
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        other => {
            let message = format!(
                "the arguments of {} must be a JSON object, not {}",
                described(tool),
                kind_of(&other)
            );
            Err(CallError::new(CallErrorKind::InvalidArguments, message))
        }
    }
}

fn check_object(
    published: &Published,
    tool: &CatalogTool,
    arguments: &Value,
) -> Result<(), CallError> {
    let checker = match published.checker(tool) {
        Ok(checker) => checker,
        // The server has the last word anyway; what cannot be checked here is checked there.
        Err(fault) => {
            tracing::debug!(tool = %tool.name, %fault, "arguments go unchecked");
            return Ok(());
        }
    };
    checker.check(arguments).map_err(|complaints| {
        let complaints: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        let message =
            format!("the arguments of {} do not fit: {}", described(tool), complaints.join("; "));
        CallError::new(CallErrorKind::InvalidArguments, message)
            .with_hint(format!("`switchboard tool show {}` shows its schema", tool.name))
    })
}

async fn run_upstream(
    server: &Arc<Server>,
    tool: &CatalogTool,
    arguments: Map<String, Value>,
    listener: Option<mpsc::Sender<Progress>>,
) -> Result<ToolResult, CallError> {
    let Some((connection, _keeps_it_open)) = server.connection() else {
        let reason = server.status().error.map(|error| error.message);
        return Err(unavailable(tool, reason.as_deref().unwrap_or("it is not connected")));
    };
    let (signs, mut progress) = mpsc::channel(16);
    let call = connection.call(tool.name.tool(), arguments, signs);
    tokio::pin!(call);
    let total = tokio::time::sleep(tool.limits.timeout);
    tokio::pin!(total);
    let silence = tool.limits.inactivity_timeout.unwrap_or(tool.limits.timeout);
    let silent = tokio::time::sleep(silence);
    tokio::pin!(silent);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut call => break answer,
            // Before the signs of life: however many there are, they do not extend the whole time.
            () = &mut total => {
                // It may be the tool alone, or the whole server: a look at its list tells.
                server.suspect();
                return Err(timed_out(tool));
            }
            Some(sign) = progress.recv() => {
                silent.as_mut().reset(Instant::now() + silence);
                if let Some(listener) = &listener {
                    // Signs of life may be missed; results never are.
                    let _full = listener.try_send(sign);
                }
            }
            () = &mut silent, if tool.limits.inactivity_timeout.is_some() => {
                server.suspect();
                return Err(fell_silent(tool, silence));
            }
        }
    };
    answer.map_err(|failure| match failure {
        CallFailure::Unavailable(reason) => {
            server.suspect();
            unavailable(tool, &reason)
        }
        CallFailure::Rpc { .. } | CallFailure::BadAnswer(_) => {
            let message = format!("{} gave no result: {failure}", described(tool));
            CallError::new(CallErrorKind::Upstream, message)
        }
    })
}

fn described(tool: &CatalogTool) -> String {
    if tool.name.server().is_local() {
        format!("tool '{}' (local tool)", tool.name.tool())
    } else {
        format!("tool '{}' of MCP server '{}'", tool.name.tool(), tool.name.server())
    }
}

fn unknown_tool(name: &str, unresolved: &Unresolved) -> CallError {
    let error = CallError::new(CallErrorKind::UnknownTool, format!("there is no tool '{name}'"));
    let nearest: Vec<_> = unresolved.nearest.iter().map(|name| format!("'{name}'")).collect();
    if nearest.is_empty() {
        error.with_hint("`switchboard tool list` shows all tools")
    } else {
        error.with_hint(format!("did you mean {}?", nearest.join(" or ")))
    }
}

fn unavailable(tool: &CatalogTool, reason: &str) -> CallError {
    let message = format!("{} is unavailable: {reason}", described(tool));
    CallError::new(CallErrorKind::Unavailable, message).with_hint(
        "the server is being reconnected; `switchboard server list` shows how it is doing",
    )
}

fn timed_out(tool: &CatalogTool) -> CallError {
    let limit = render_duration(tool.limits.timeout);
    let message = format!(
        "{} was running longer than its timeout of {limit} and was cancelled",
        described(tool)
    );
    CallError::new(CallErrorKind::Timeout, message)
        .with_hint("a tool that needs longer wants a larger `timeout`")
}

fn fell_silent(tool: &CatalogTool, silence: Duration) -> CallError {
    let limit = render_duration(silence);
    let message = format!(
        "{} was running but gave no sign of life for its inactivity_timeout of {limit} and was cancelled",
        described(tool)
    );
    CallError::new(CallErrorKind::InactivityTimeout, message)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What is kept of a failure. Arguments are not: a complaint may quote them.
fn recorded_message(error: &CallError) -> String {
    match error.kind {
        CallErrorKind::InvalidArguments => "the arguments do not fit the schema of the tool".into(),
        _ => error.message.chars().take(MAX_RECORDED_MESSAGE).collect(),
    }
}

/// What a call owes to the records, paid even when its future is dropped.
struct Ledger<'a> {
    board: &'a Board,
    id: CallId,
    started_at_ms: i64,
    face: Face,
    requested: String,
    revision: u64,
    argument_digest: String,
    tool: Option<CanonicalName>,
    span: Span,
    wait_started: Option<Instant>,
    run_started: Option<Instant>,
    run_ended: Option<Instant>,
    result_bytes: u64,
    whole_result: Option<ResultHandle>,
    is_closed: bool,
}

impl<'a> Ledger<'a> {
    fn open(board: &'a Board, request: &CallRequest, revision: u64) -> Self {
        let digest = blake3::hash(request.arguments.to_string().as_bytes());
        Self {
            board,
            id: CallId(uuid::Uuid::now_v7().to_string()),
            started_at_ms: jiff::Timestamp::now().as_millisecond(),
            face: request.face,
            requested: request.tool.chars().take(256).collect(),
            revision,
            argument_digest: digest.to_hex().to_string(),
            tool: None,
            span: Span::none(),
            wait_started: None,
            run_started: None,
            run_ended: None,
            result_bytes: 0,
            whole_result: None,
            is_closed: false,
        }
    }

    async fn close(mut self, result: Result<ToolResult, CallError>) -> CallReport {
        let (outcome, message) = match &result {
            Ok(result) if result.is_error => (CallOutcome::ToolError, None),
            Ok(_) => (CallOutcome::Ok, None),
            Err(error) => (CallOutcome::Failed(error.kind), Some(recorded_message(error))),
        };
        let record = self.record(outcome, message);
        self.is_closed = true;
        let (wait, run) = (record.wait, record.run);
        self.board.recorder.record(record).await;
        CallReport {
            id: self.id.clone(),
            tool: self.tool.clone(),
            revision: self.revision,
            result,
            wait,
            run,
            whole_result: self.whole_result.clone(),
        }
    }

    /// Makes the record and counts the call.
    fn record(&self, outcome: CallOutcome, message: Option<String>) -> CallRecord {
        let now = Instant::now();
        let between = |start: Option<Instant>, end: Option<Instant>| {
            start.map_or(Duration::ZERO, |start| end.unwrap_or(now) - start)
        };
        let wait = between(self.wait_started, self.run_started);
        let run = between(self.run_started, self.run_ended);
        end_call_span(&self.span, outcome.as_str(), outcome == CallOutcome::Ok);
        if let Some(tool) = &self.tool {
            let (server, tool) = (tool.server().as_str(), tool.tool());
            let wait = self.wait_started.map(|_| wait);
            let run = self.run_started.map(|_| run);
            CallFinished { server, tool, outcome: outcome.as_str(), wait, run }.emit();
        }
        CallRecord {
            id: self.id.clone(),
            started_at_ms: self.started_at_ms,
            face: self.face,
            tool: self.tool.clone(),
            requested: self.requested.clone(),
            revision: self.revision,
            argument_digest: self.argument_digest.clone(),
            outcome,
            message,
            wait,
            run,
            result_bytes: self.result_bytes,
            result_handle: self.whole_result.as_ref().map(|handle| handle.0.clone()),
        }
    }
}

impl Drop for Ledger<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let cancelled = CallOutcome::Failed(CallErrorKind::Cancelled);
            let record = self.record(cancelled, Some("the caller no longer waited".into()));
            self.board.recorder.record_now(record);
        }
    }
}
