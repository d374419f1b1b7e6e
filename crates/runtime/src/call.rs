//! One call from its name to its record: resolve, check, wait, run, cap, account (spec section 3).

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Map, Value};
use switchboard_mcp_client::{
    EventSender, RequestFailure, RpcError, UpstreamEvent, UpstreamRequest, event_channel,
};
use switchboard_model::{
    CallError, CallErrorKind, CallId, Caller, CanonicalName, ToolResult, render_duration,
};
use switchboard_protocol::{ResultContent, ResultHead, ResultKind, push_string, read_result_head};
use switchboard_registry::CatalogTool;
use switchboard_telemetry::call_span;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use crate::arguments::check_arguments;
use crate::board::Board;
use crate::call_accounting::CallAccounting;
use crate::call_errors::{
    described, fell_silent, ran_longest, reconnecting, stalled, timed_out, unavailable,
    unknown_tool, withdrawn,
};
use crate::connection_pool::{ClientProfile, NoConnection};
use crate::max_instances::{ConcurrencyLimits, Slot};
use crate::running::{Overdue, Running};
use crate::snapshot::{CompiledTool, Snapshot};
use crate::supervisor::Server;

/// Signs of life that wait for a listener.
const WAITING_EVENTS: usize = 16;

/// What a caller wants.
#[derive(Debug)]
pub struct CallRequest {
    pub tool: ToolChoice,
    /// A JSON object; `null` counts as an empty one.
    pub arguments: Value,
    pub caller: Arc<Caller>,
    /// The name that the caller used, where that is not the one of `tool`. For the record.
    pub requested: Option<Arc<str>>,
    /// Where signs of life go. A listener that does not keep up misses some.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// What is checked again when the call has its slot, besides that the tool is still there.
    pub check: Option<CallCheck>,
}

/// Decides again, when a call has its slot, whether the caller may still make it.
#[derive(Clone)]
pub struct CallCheck(Arc<CheckFn>);

type CheckFn = dyn Fn(&CatalogTool) -> Result<(), String> + Send + Sync;

impl CallCheck {
    /// `check` gives the reason why the call may not be made any more.
    pub fn new(check: impl Fn(&CatalogTool) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for CallCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallCheck")
    }
}

/// A sign of life of a running call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// A call whose arguments and result stay text.
#[derive(Debug)]
pub struct RawCall {
    pub tool: ToolChoice,
    /// The text of a JSON object; `None` counts as an empty one.
    pub arguments: Option<String>,
    pub caller: Arc<Caller>,
    /// The name that the caller used, where that is not the one of `tool`. For the record.
    pub requested: Option<Arc<str>>,
    pub passing: ForwardedContext,
    /// Where progress, log messages and questions of the server go.
    pub events: Option<EventSender>,
    /// What is checked again when the call has its slot, besides that the tool is still there.
    pub check: Option<CallCheck>,
}

/// Which tool is meant.
#[derive(Debug)]
pub enum ToolChoice {
    /// `tool` or `server.tool`, as somebody wrote it.
    Named(String),
    /// Exactly this one of everybody's.
    Exact(CanonicalName),
    /// Exactly this one of those that belong to an owner. Whoever makes this has seen to it that the owner asks.
    Owned { owner: Arc<str>, name: CanonicalName },
}

impl ToolChoice {
    fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Exact(name) | Self::Owned { name, .. } => name.as_str(),
        }
    }

    /// As a message may say it: the server's half of an owned tool's name means nothing to anybody.
    fn shown(&self) -> &str {
        match self {
            Self::Named(_) | Self::Exact(_) => self.name(),
            Self::Owned { name, .. } => name.tool(),
        }
    }
}

impl From<String> for ToolChoice {
    fn from(name: String) -> Self {
        Self::Named(name)
    }
}

/// A tool that a view has shown to whoever asks.
impl From<&CatalogTool> for ToolChoice {
    fn from(tool: &CatalogTool) -> Self {
        let name = tool.name.clone();
        match &tool.owner {
            None => Self::Exact(name),
            Some(owner) => Self::Owned { owner: owner.clone(), name },
        }
    }
}

/// What a caller of the gateway sends along.
#[derive(Debug, Clone, Default)]
pub struct ForwardedContext {
    /// More members of `params`, as text without braces.
    pub params: String,
    /// Members of `_meta` that are passed on, as text without braces.
    pub meta: String,
    /// The caller's capabilities, as JSON.
    pub capabilities: Option<Arc<str>>,
    pub log_level: Option<Arc<str>>,
    pub wants_progress: bool,
    /// Who asks, for servers that cannot say whom their questions are for.
    pub origin: Option<Arc<str>>,
    /// What decides over which connection of the server it goes.
    pub client: ClientProfile,
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

/// How a raw call went.
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

/// A result as the server wrote it.
#[derive(Debug, Clone)]
pub struct RawCallResult {
    /// JSON text.
    pub json: Bytes,
    pub head: ResultHead,
}

impl RawCallResult {
    /// The text.
    pub fn as_str(&self) -> &str {
        // It was read as UTF-8 before it came here.
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

/// A call without a result.
#[derive(Debug, Clone)]
pub struct CallFailed {
    pub error: CallError,
    /// What the server itself answered, where it answered with an error.
    pub rpc: Option<RpcError>,
}

impl From<CallError> for CallFailed {
    fn from(error: CallError) -> Self {
        Self { error, rpc: None }
    }
}

impl Board {
    /// Runs one call. Dropping the future cancels it: its slots are free at once, the server is told, and a
    /// record says so.
    pub async fn call(&self, request: CallRequest) -> CallReport {
        let arguments =
            if request.arguments.is_null() { Value::Object(Map::new()) } else { request.arguments };
        let (events, listening) = listen_for_progress(request.progress);
        let call = RawCall {
            tool: request.tool,
            arguments: Some(arguments.to_string()),
            caller: request.caller,
            requested: request.requested,
            passing: ForwardedContext { wants_progress: true, ..ForwardedContext::default() },
            events,
            check: request.check,
        };
        let mut calling = std::pin::pin!(self.call_raw(call));
        let mut listening = std::pin::pin!(listening.fuse());
        let report = loop {
            tokio::select! {
                report = &mut calling => break report,
                () = &mut listening => {}
            }
        };
        let result = report.result.map_err(|failed| failed.error).and_then(|answer| typed(&answer));
        CallReport {
            id: report.id,
            tool: report.tool,
            revision: report.revision,
            result,
            wait: report.wait,
            run: report.run,
            whole_result: report.whole_result,
        }
    }

    /// Runs one call and leaves its result as it came. Dropping the future cancels it, as with [`Board::call`].
    pub async fn call_raw(&self, call: RawCall) -> RawReport {
        let _until_the_end = (self.calls.token(), switchboard_telemetry::call_started());
        let published = self.published.load_full();
        let arguments = call.arguments.as_deref().unwrap_or("{}");
        let revision = published.catalog().revision();
        let requested = call.requested.as_deref().unwrap_or_else(|| call.tool.name());
        let mut accounting =
            CallAccounting::open(self, requested, arguments, call.caller.clone(), revision);
        let result = if self.calls.is_closed() {
            let message = "the board is shutting down";
            Err(CallError::new(CallErrorKind::Unavailable, message).into())
        } else {
            // Pinned where it is: a future that is handed on is copied, and this one holds the whole call.
            let running = std::pin::pin!(self.run(&published, call, &mut accounting));
            tokio::select! {
                biased;
                result = running => result,
                () = self.cut.cancelled() => {
                    let message = "the call was cancelled because the board is shutting down";
                    Err(CallError::new(CallErrorKind::Cancelled, message).into())
                }
            }
        };
        accounting.close(result).await
    }

    async fn run(
        &self,
        published: &Snapshot,
        call: RawCall,
        accounting: &mut CallAccounting<'_>,
    ) -> Result<RawCallResult, CallFailed> {
        let tool = match &call.tool {
            ToolChoice::Named(name) => {
                self.warn_of_rival(published.catalog(), name);
                published.catalog().resolve(name)
            }
            ToolChoice::Exact(name) => published.catalog().exactly(name),
            ToolChoice::Owned { owner, name } => published.catalog().exactly_for(Some(owner), name),
        };
        let tool = tool.map_err(|unresolved| unknown_tool(call.tool.shown(), &unresolved))?;
        accounting.tool = Some(tool.name.clone());
        let Some(compiled) = published.compiled(tool) else {
            return Err(unavailable(tool, "it is no longer configured").into());
        };
        accounting.meter = Some(compiled.meter.clone());
        let text = call.arguments.unwrap_or_else(|| "{}".into());
        let arguments = check_arguments(compiled, tool, &text).map_err(|refused| {
            accounting.refused_arguments = Some(refused.recorded);
            refused.error
        })?;
        // Held from here on: a reload while we wait for a slot must not close what we are about to use.
        let server = self.hold_server(published, tool);

        accounting.wait_started = Some(Instant::now());
        let _slots = self.take_slots(tool).await?;
        self.check_again(published, tool, call.check.as_ref())?;
        accounting.run_started = Some(Instant::now());
        let span = call_span(tool.name.server().as_str(), tool.name.tool());
        accounting.span = span.clone();
        let answer = if tool.name.server().is_local() {
            // Boxed: what is in a future counts for every call, and local tools are few.
            Box::pin(self.run_local(tool, arguments).instrument(span)).await?
        } else {
            let Some((server, _held)) = &server else {
                return Err(unavailable(tool, "it is no longer configured").into());
            };
            let mut passing = call.passing;
            let mut client = std::mem::take(&mut passing.client);
            client.session.clone_from(&call.caller.session);
            client.capabilities.clone_from(&passing.capabilities);
            let ask = ask_for(compiled, tool, &text, &arguments, passing);
            run_upstream(server, tool, &client, ask, call.events).instrument(span).await?
        };
        accounting.run_ended = Some(Instant::now());
        Ok(self.cap(tool, answer, accounting).await?)
    }

    /// The server of a tool, which is not let go of before the token is dropped; `None` for a local tool.
    fn hold_server(
        &self,
        published: &Snapshot,
        tool: &CatalogTool,
    ) -> Option<(Arc<Server>, TaskTrackerToken)> {
        let held = |published: &Snapshot| {
            let server = published.servers.get(tool.name.server())?;
            Some((server.clone(), server.hold()?))
        };
        // One that was let go of a moment ago has a successor, unless it was removed.
        held(published).or_else(|| held(&self.published.load()))
    }

    /// Refuses a call whose tool was removed, or taken from its caller, before the call could run.
    fn check_again(
        &self,
        seen: &Snapshot,
        tool: &CatalogTool,
        check: Option<&CallCheck>,
    ) -> Result<(), CallError> {
        let now = self.published.load();
        let is_there = now.version() == seen.version()
            || now.catalog().exactly_for(tool.owner.as_deref(), &tool.name).is_ok();
        let still = if is_there {
            check.map_or(Ok(()), |check| (check.0)(tool))
        } else {
            Err("the tool was removed".into())
        };
        still.map_err(|reason| withdrawn(tool, &reason))
    }

    /// First the tool's own slot, then one of all: who waits for a busy tool does not hold up the others.
    async fn take_slots(&self, tool: &CatalogTool) -> Result<(Slot, Slot), CallError> {
        let own = self.slots.of(&tool.name, tool.limits.max_instances);
        let global = self.slots.global();
        // Most find both free, and then there is nothing to time.
        if let Some(slot) = own.take_now()
            && let Some(global) = global.take_now()
        {
            return Ok((slot, global));
        }
        Box::pin(self.wait_for_slots(tool, own)).await
    }

    async fn wait_for_slots(
        &self,
        tool: &CatalogTool,
        own: Arc<ConcurrencyLimits>,
    ) -> Result<(Slot, Slot), CallError> {
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
    ) -> Result<RawCallResult, CallError> {
        let Some(local) = self.local_tools.get(tool.name.tool()) else {
            return Err(unavailable(tool, "this program does not have it"));
        };
        // Within the future, so that a tool that panics before it gives one is caught too.
        let running = AssertUnwindSafe(async { local.run(arguments).await }).catch_unwind();
        match tokio::time::timeout(tool.limits.timeout, running).await {
            Ok(Ok(result)) => Ok(RawCallResult::of(&result)),
            Ok(Err(_panic)) => {
                let message = format!("{} failed with a fault of its own", described(tool));
                Err(CallError::new(CallErrorKind::Internal, message))
            }
            Err(_elapsed) => Err(timed_out(tool)),
        }
    }
}

/// Signs of life as the typed face wants them.
fn listen_for_progress(
    listener: Option<mpsc::Sender<Progress>>,
) -> (Option<EventSender>, impl Future<Output = ()>) {
    let (event_channel, mut heard) = event_channel(WAITING_EVENTS);
    let event_channel = listener.is_some().then_some(event_channel);
    let listening = async move {
        while let Some(event) = heard.next().await {
            if let (Some(listener), UpstreamEvent::Progress(params)) = (&listener, event)
                && let Some(progress) = read_progress(&params.parse())
            {
                // Signs of life may be missed; results never are.
                let _full = listener.try_send(progress);
            }
        }
    };
    (event_channel, listening)
}

fn read_progress(params: &Value) -> Option<Progress> {
    Some(Progress {
        progress: params.get("progress")?.as_f64()?,
        total: params.get("total").and_then(Value::as_f64),
        message: params.get("message").and_then(Value::as_str).map(str::to_owned),
    })
}

pub(crate) fn typed(answer: &RawCallResult) -> Result<ToolResult, CallError> {
    let unfit = match answer.head.kind {
        ResultKind::InputRequired => "the tool asks for more input, which this face cannot give",
        ResultKind::Task => "the tool answers with a task, which this face cannot follow",
        ResultKind::Complete | ResultKind::Other(_) => "",
    };
    if !unfit.is_empty() {
        return Err(CallError::new(CallErrorKind::Upstream, unfit));
    }
    ToolResult::from_text(answer.as_str())
        .map_err(|reason| CallError::new(CallErrorKind::Upstream, reason))
}

fn ask_for(
    compiled: &CompiledTool,
    tool: &CatalogTool,
    text: &str,
    arguments: &Map<String, Value>,
    passing: ForwardedContext,
) -> UpstreamRequest {
    let name = tool.name.tool();
    let mut params = String::with_capacity(text.len() + name.len() + passing.params.len() + 32);
    params.push_str("\"name\":");
    push_string(&mut params, name);
    params.push_str(",\"arguments\":");
    params.push_str(text);
    if !passing.params.is_empty() {
        params.push(',');
        params.push_str(&passing.params);
    }
    UpstreamRequest {
        method: "tools/call",
        name: Some(name.to_owned()),
        params,
        meta: passing.meta,
        capabilities: passing.capabilities,
        log_level: passing.log_level,
        wants_progress: passing.wants_progress || tool.limits.depend_on_progress(),
        mirrored: compiled.mirrored(arguments),
        origin: passing.origin,
    }
}

async fn run_upstream(
    server: &Arc<Server>,
    tool: &CatalogTool,
    client: &ClientProfile,
    ask: UpstreamRequest,
    events: Option<EventSender>,
) -> Result<RawCallResult, CallFailed> {
    let connected = server.connection_for(client).await;
    let (connection, _keeps_it_open) = connected.map_err(|reason| match reason {
        NoConnection::Reconnecting(reason) => reconnecting(tool, &reason),
        NoConnection::OfSession(reason) => unavailable(tool, &reason),
    })?;
    let event_channel = events.unwrap_or_else(EventSender::deaf);
    let call = std::pin::pin!(server.ask_over(&connection, client, &ask, &event_channel));
    let limits = &tool.limits;
    let running = Running {
        total: limits.timeout,
        longest: limits.max_timeout,
        silence: limits.inactivity_timeout,
    };
    let answer = running.watch(call, &event_channel).await.map_err(|overdue| {
        // It may be the tool alone, or the whole server: a look at its list tells.
        server.suspect();
        match overdue {
            Overdue::Total => timed_out(tool),
            Overdue::Stalled => stalled(tool),
            Overdue::Longest => ran_longest(tool),
            Overdue::Silent(limit) => fell_silent(tool, limit),
        }
    })?;
    match answer {
        Ok(result) => read_answer(tool, result.0),
        Err(RequestFailure::Unavailable(reason)) => {
            server.suspect();
            Err(reconnecting(tool, &reason).into())
        }
        Err(failure) => {
            let message = format!("{} gave no result: {failure}", described(tool));
            let rpc = match failure {
                RequestFailure::Rpc(error) => Some(error),
                RequestFailure::Unavailable(_) | RequestFailure::BadAnswer(_) => None,
            };
            Err(CallFailed { error: CallError::new(CallErrorKind::Upstream, message), rpc })
        }
    }
}

/// What a tool answered, if it is an answer.
fn read_answer(tool: &CatalogTool, json: Bytes) -> Result<RawCallResult, CallFailed> {
    let refuse = |reason: &str| {
        let message = format!("{} gave no result: {reason}", described(tool));
        Err(CallError::new(CallErrorKind::Upstream, message).into())
    };
    let text = std::str::from_utf8(&json).unwrap_or_default();
    let head = match read_result_head(text) {
        Ok(head) => head,
        Err(error) if text.starts_with('{') => {
            return refuse(&format!("the result cannot be read: {error}"));
        }
        Err(_) => return refuse("the result is not an object"),
    };
    match (&head.kind, head.content) {
        (ResultKind::Other(kind), _) => refuse(&format!("a result of the unknown type {kind:?}")),
        (ResultKind::Complete, ResultContent::Missing) => refuse("the result has no content"),
        (ResultKind::Complete | ResultKind::InputRequired | ResultKind::Task, _) => {
            Ok(RawCallResult { json, head })
        }
    }
}
