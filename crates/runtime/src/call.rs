//! One tool call: resolve the name, check the arguments, wait for a slot, run, cap the result, write the record.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Map, Value};
use switchboard_mcp_client::{
    CallerHeaders, EventSender, RequestFailure, UpstreamEvent, UpstreamRequest, event_channel,
};
use switchboard_model::{
    AgentPlan, CallError, CallErrorKind, Caller, CanonicalName, ConnectErrorKind, Era, ToolResult,
    render_duration,
};
use switchboard_protocol::{ResultContent, ResultKind, push_string, read_result_head};
use switchboard_registry::CatalogTool;
use switchboard_telemetry::call_span;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use crate::arguments::check_arguments;
use crate::board::Board;
use crate::call_accounting::CallAccounting;
use crate::call_checks::{CallChecks, CheckedCall};
use crate::call_errors::{
    described, fell_silent, header_refused, needs_sign_in, no_lease, not_granted, ran_longest,
    rate_limited, reconnecting, stalled, timed_out, unavailable, unknown_tool, withdrawn,
};
use crate::call_result::{CallFailed, CallReport, RawCallResult, RawReport};
use crate::caller_headers::caller_headers;
use crate::connection_pool::{ClientProfile, NoConnection};
use crate::content_check::CheckedConversation;
use crate::max_instances::{ConcurrencyLimits, Slot};
use crate::rate_limits::NotCounted;
use crate::running::{Overdue, Running};
use crate::server::Server;
use crate::snapshot::{CompiledTool, Snapshot};

/// Capacity of the channel between a call's events and its progress listener.
const WAITING_EVENTS: usize = 16;

/// A call with parsed arguments.
#[derive(Debug)]
pub struct CallRequest {
    pub tool: ToolChoice,
    /// A JSON object; `null` counts as an empty one.
    pub arguments: Value,
    pub caller: Arc<Caller>,
    /// The name that the caller used, if it differs from that of `tool`. Only for the record.
    pub requested: Option<Arc<str>>,
    /// Receives progress. A listener that falls behind misses some of it.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// A check that is repeated once the call has its slot; that the tool still exists is checked anyway.
    pub check: Option<CallCheck>,
    /// The conversation in which a model makes the call, for content checks.
    pub conversation: Option<Arc<CheckedConversation>>,
}

/// Decides again, once a call has its slot, whether the caller may still make it.
#[derive(Clone)]
pub struct CallCheck(Arc<CheckFn>);

type CheckFn = dyn Fn(&CatalogTool) -> Result<(), String> + Send + Sync;

impl CallCheck {
    /// `check` returns the reason why the call is no longer allowed.
    pub fn new(check: impl Fn(&CatalogTool) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for CallCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallCheck")
    }
}

/// Progress of a running call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// A call whose arguments and result stay JSON text.
#[derive(Debug)]
pub struct RawCall {
    pub tool: ToolChoice,
    /// The text of a JSON object; `None` counts as an empty one.
    pub arguments: Option<String>,
    pub caller: Arc<Caller>,
    /// The name that the caller used, if it differs from that of `tool`. Only for the record.
    pub requested: Option<Arc<str>>,
    pub passing: ForwardedContext,
    /// Receives progress, log messages and requests of the server.
    pub events: Option<EventSender>,
    /// A check that is repeated once the call has its slot; that the tool still exists is checked anyway.
    pub check: Option<CallCheck>,
    /// The conversation in which a model makes the call, for content checks.
    pub conversation: Option<Arc<CheckedConversation>>,
}

/// How a call names its tool: as a person wrote it, or by a canonical name that a session resolved. This is not the
/// `tool_choice` of a provider.
#[derive(Debug)]
pub enum ToolChoice {
    /// `tool` or `server.tool`, as the caller wrote it; resolved against the catalog.
    Named(String),
    /// A tool of a configured server, by its canonical name.
    Exact(CanonicalName),
    /// A tool of a server that a session attached. The caller must have checked that the request belongs to this owner.
    Owned { owner: Arc<str>, name: CanonicalName },
}

impl ToolChoice {
    fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Exact(name) | Self::Owned { name, .. } => name.as_str(),
        }
    }

    /// The name for messages. For an owned tool the server part is left out: it is generated.
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

/// For a tool that comes from the caller's own view.
impl From<&CatalogTool> for ToolChoice {
    fn from(tool: &CatalogTool) -> Self {
        let name = tool.name.clone();
        match &tool.owner {
            None => Self::Exact(name),
            Some(owner) => Self::Owned { owner: owner.clone(), name },
        }
    }
}

/// Parts of an MCP client's request that are forwarded to the server.
#[derive(Debug, Clone, Default)]
pub struct ForwardedContext {
    /// Further members of `params`, as JSON text without braces.
    pub params: String,
    /// Members of `_meta` to forward, as JSON text without braces.
    pub meta: String,
    /// The client's capabilities, as JSON.
    pub capabilities: Option<Arc<str>>,
    pub log_level: Option<Arc<str>>,
    pub wants_progress: bool,
    /// Identifies the asking client, for servers whose requests do not say which call they belong to.
    pub origin: Option<Arc<str>>,
    /// Selects the connection to the server.
    pub client: ClientProfile,
}

/// The slots that a running call holds.
#[derive(Debug)]
struct CallSlots {
    _caller: Option<Slot>,
    _agent: Option<Slot>,
    own: Slot,
    _global: Option<Slot>,
}

/// The capabilities of a caller that fills in forms and answers no other request of a server.
const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

impl Board {
    /// Runs one call. Dropping the future cancels it: its slots are released at once, the server is notified, and the
    /// record says that it was cancelled.
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
            conversation: request.conversation,
        };
        let mut calling = std::pin::pin!(self.call_raw(call));
        let mut listening = std::pin::pin!(listening.fuse());
        let report = loop {
            tokio::select! {
                report = &mut calling => break report,
                () = &mut listening => {}
            }
        };
        typed_report(report)
    }

    /// Like [`Board::call`], with all events of the server for the caller instead of its progress alone. A caller that fills in
    /// forms gets them from every server that has the era with sessions, in which servers ask while they work.
    pub async fn call_with_events(
        &self,
        request: CallRequest,
        events: EventSender,
        fills_in_forms: bool,
    ) -> CallReport {
        let arguments =
            if request.arguments.is_null() { Value::Object(Map::new()) } else { request.arguments };
        let log_level = Some("debug".into());
        let mut passing =
            ForwardedContext { wants_progress: true, log_level, ..Default::default() };
        if fills_in_forms {
            passing.capabilities = Some(FORMS.into());
            passing.client.era = Some(Era::Legacy);
            passing.client.answers_requests = true;
        }
        let call = RawCall {
            tool: request.tool,
            arguments: Some(arguments.to_string()),
            caller: request.caller,
            requested: request.requested,
            passing,
            events: Some(events),
            check: request.check,
            conversation: request.conversation,
        };
        typed_report(self.call_raw(call).await)
    }

    /// Runs one call and returns its result unparsed. Dropping the future cancels it, as with [`Board::call`].
    pub async fn call_raw(&self, call: RawCall) -> RawReport {
        let _until_the_end = (self.calls.token(), switchboard_telemetry::call_started());
        let published = self.published.load_full();
        let arguments = call.arguments.as_deref().unwrap_or("{}");
        let requested = call.requested.as_deref().unwrap_or_else(|| call.tool.name());
        let mut accounting =
            CallAccounting::open(self, requested, arguments, call.caller.clone(), &published);
        let result = if self.calls.is_closed() {
            let message = "the board is shutting down";
            Err(CallError::new(CallErrorKind::Unavailable, message).into())
        } else {
            let cancelled = accounting.cancel.clone();
            let outcome = {
                // Pinned on the stack: passing the future on by value would copy the state of the whole call.
                let running = std::pin::pin!(self.run(&published, call, &mut accounting));
                tokio::select! {
                    biased;
                    result = running => Some(result),
                    () = cancelled.cancelled() => None,
                    () = self.cut.cancelled() => {
                        let message = "the call was cancelled because the board is shutting down";
                        Some(Err(CallError::new(CallErrorKind::Cancelled, message).into()))
                    }
                }
            };
            if let Some(result) = outcome {
                result
            } else {
                let reason = accounting.cut_reason();
                let reason = reason.unwrap_or("the call was cancelled by a request of the API");
                Err(CallError::new(CallErrorKind::Cancelled, reason).into())
            }
        };
        accounting.close(result).await
    }

    #[expect(clippy::too_many_lines, reason = "the steps of a call, in their order")]
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
        // Faces have decided by their view before. This holds for every path that leads here.
        if !is_granted(published, &call.caller, tool) {
            return Err(not_granted(call.tool.shown()).into());
        }
        accounting.resolved(tool, call.arguments.as_deref().unwrap_or("{}"));
        accounting.begin(&tool.name);
        let Some(compiled) = published.compiled(tool) else {
            return Err(unavailable(tool, "it is no longer configured").into());
        };
        accounting.meter = Some(compiled.meter.clone());
        let agent = call.caller.agent.as_deref();
        let agent = agent.and_then(|name| published.plan().agent(name));
        let narrowed = agent.and_then(|agent| agent.limits.narrow(&tool.limits));
        let narrowed =
            narrowed.map(|limits| Box::new(CatalogTool { limits, ..CatalogTool::clone(tool) }));
        let tool: &CatalogTool = narrowed.as_deref().unwrap_or(tool);
        let text = call.arguments.unwrap_or_else(|| "{}".into());
        // From here on `text` may have fixed values of the configuration, which only the server may see.
        let checks = CallChecks::of(CheckedCall {
            plan: published.plan(),
            tool,
            caller: &call.caller,
            conversation: call.conversation,
            id: &accounting.id.0,
            arguments: &text,
        });
        let (arguments, text) = check_arguments(compiled, tool, text).map_err(|refused| {
            accounting.refused_arguments = Some(refused.recorded);
            refused.error
        })?;
        if let Some(checks) = &checks {
            // Without a slot: a slow check must not keep other calls of the tool waiting.
            Box::pin(checks.before(self, tool)).await?;
        }
        // Held from here on: a reload during the wait for a slot must not close the server of this call.
        let server = self.hold_server(published, tool);

        let limits = call.caller.access.limits();
        let rates = (tool.limits.rate, limits.rate);
        let counted = self.rates.count(&tool.name, rates.0, &call.caller.principal, rates.1).await;
        counted.map_err(|why| match why {
            NotCounted::Exceeded(exceeded) => rate_limited(tool, exceeded),
            NotCounted::NoStore => no_lease(tool),
        })?;
        accounting.wait_started = Some(Instant::now());
        // A prompt tool holds the agent's slot for the calls of its model.
        let agent = agent.filter(|_| call.caller.prompt_tools_left.is_none());
        let own = limits.max_instances.filter(|_| call.caller.prompt_tools_left.is_none());
        let own = own.map(|most| self.slots.of_caller(&call.caller.principal, &tool.name, most));
        let slots = self.take_slots(tool, agent, own).await?;
        self.check_again(published, tool, &call.caller, call.check.as_ref())?;
        accounting.runs();
        if !slots.own.is_valid() {
            return Err(no_lease(tool).into());
        }
        let span = call_span(tool.name.server().as_str(), tool.name.tool());
        accounting.span = span.clone();
        let answer = if tool.name.server().is_local() {
            // Boxed, so that the future of every other call does not carry the state of the rare local ones.
            let caller = call.caller.clone();
            Box::pin(self.run_local(tool, arguments, caller).instrument(span)).await?
        } else {
            let Some((server, _held)) = &server else {
                return Err(unavailable(tool, "it is no longer configured").into());
            };
            let caller_headers = caller_headers(server.spec(), &call.caller)
                .map_err(|refused| header_refused(tool, &refused))?;
            let mut passing = call.passing;
            let mut client = std::mem::take(&mut passing.client);
            client.session.clone_from(&call.caller.session);
            client.identity = Some(call.caller.identity.clone());
            client.program.clone_from(&call.caller.client.name);
            client.capabilities.clone_from(&passing.capabilities);
            let ask = ask_for(compiled, tool, &text, &arguments, passing, caller_headers);
            let run = run_upstream(server, tool, &client, ask, call.events).instrument(span).await;
            match run {
                Ok(answer) => answer,
                Err(Unsent::Failed(failed)) => return Err(failed),
                Err(Unsent::SignIn) => {
                    // The slots are given back while the person is away: the caller repeats the call.
                    drop(slots);
                    accounting.run_ended = Some(Instant::now());
                    return Err(self.needs_sign_in(server, tool, &client).await);
                }
            }
        };
        accounting.run_ended = Some(Instant::now());
        drop(slots);
        if let Some(checks) = &checks {
            Box::pin(checks.after(self, tool, &answer)).await?;
        }
        Ok(self.cap(tool, answer, accounting).await?)
    }

    /// The failure of a call whose person must sign in first.
    async fn needs_sign_in(
        &self,
        server: &Server,
        tool: &CatalogTool,
        client: &ClientProfile,
    ) -> CallFailed {
        if let Some(prompt) = self.accounts.prompt(server, client).await {
            let error = needs_sign_in(tool).with_sign_in(prompt.page.clone());
            return CallFailed { error, rpc: None, sign_in: Some(Box::new(prompt)) };
        }
        let hint = format!("`switchboard auth login {}` signs in", server.spec().name);
        needs_sign_in(tool).with_operator_hint(hint).into()
    }

    /// The server of a tool, with a token that keeps it from being retired; `None` for a local tool.
    fn hold_server(
        &self,
        published: &Snapshot,
        tool: &CatalogTool,
    ) -> Option<(Arc<Server>, TaskTrackerToken)> {
        let held = |published: &Snapshot| {
            let server = published.servers.get(tool.name.server())?;
            Some((server.clone(), server.hold()?))
        };
        // A server that was retired a moment ago has a successor in the newest snapshot, unless it was removed.
        held(published).or_else(|| held(&self.published.load()))
    }

    /// Rejects a call whose tool was removed, or denied to its caller, while the call waited for its slot.
    fn check_again(
        &self,
        seen: &Snapshot,
        tool: &CatalogTool,
        caller: &Caller,
        check: Option<&CallCheck>,
    ) -> Result<(), CallError> {
        let now = self.published.load();
        let is_there = now.version() == seen.version()
            || now.catalog().exactly_for(tool.owner.as_deref(), &tool.name).is_ok();
        let still = if !is_granted(&now, caller, tool) {
            Err("the tool is no longer available to this caller".into())
        } else if is_there {
            check.map_or(Ok(()), |check| (check.0)(tool))
        } else {
            Err("the tool was removed".into())
        };
        still.map_err(|reason| withdrawn(tool, &reason))
    }

    /// Takes the slots of the caller and of the agent first, if they have a limit, so that one that waits holds up only
    /// itself. Then takes the tool's own slot, and one of the global slots last, so that calls waiting for a busy tool do not hold up other
    /// tools.
    ///
    /// A prompt tool whose model may call tools takes no slot of the agent and no global one: it would wait for calls
    /// that wait for its slot.
    async fn take_slots(
        &self,
        tool: &CatalogTool,
        agent: Option<&AgentPlan>,
        of_caller: Option<Arc<ConcurrencyLimits>>,
    ) -> Result<CallSlots, CallError> {
        let own = self.slots.of(&tool.name, (&tool.limits).into());
        let waits_for_calls = tool.prompt.as_ref().is_some_and(|prompt| !prompt.tools.is_empty());
        let of_agent = agent
            .filter(|_| !waits_for_calls)
            .and_then(|agent| Some(self.slots.of_agent(&agent.name, agent.limits.max_concurrent?)));
        let global = (!waits_for_calls).then(|| self.slots.global());
        // Usually all are free, and no timer is needed.
        let caller_slot = of_caller.as_ref().map(ConcurrencyLimits::take_now);
        let agent_slot = of_agent.as_ref().map(ConcurrencyLimits::take_now);
        if !matches!(caller_slot, Some(None))
            && !matches!(agent_slot, Some(None))
            && let Some(own) = own.take_now()
        {
            let global_slot = global.map(ConcurrencyLimits::take_now);
            if !matches!(global_slot, Some(None)) {
                return Ok(CallSlots {
                    _caller: caller_slot.flatten(),
                    _agent: agent_slot.flatten(),
                    own,
                    _global: global_slot.flatten(),
                });
            }
        }
        drop((caller_slot, agent_slot));
        Box::pin(self.wait_for_slots(tool, of_caller, of_agent, own, global)).await
    }

    async fn wait_for_slots(
        &self,
        tool: &CatalogTool,
        of_caller: Option<Arc<ConcurrencyLimits>>,
        of_agent: Option<Arc<ConcurrencyLimits>>,
        own: Arc<ConcurrencyLimits>,
        global: Option<&Arc<ConcurrencyLimits>>,
    ) -> Result<CallSlots, CallError> {
        let mut waits_for_caller = of_caller.is_some();
        let (mut waits_for_agent, mut has_own) = (of_agent.is_some(), false);
        let all = async {
            let caller = match &of_caller {
                Some(slots) => Some(slots.take().await?),
                None => None,
            };
            waits_for_caller = false;
            let agent = match &of_agent {
                Some(slots) => Some(slots.take().await?),
                None => None,
            };
            waits_for_agent = false;
            let own = own.take().await?;
            has_own = true;
            let global = match global {
                Some(slots) => Some(slots.take().await?),
                None => None,
            };
            Some(CallSlots { _caller: caller, _agent: agent, own, _global: global })
        };
        let limit = tool.limits.queue_timeout;
        match tokio::time::timeout(limit, all).await {
            Ok(Some(slots)) => Ok(slots),
            Ok(None) => Err(no_lease(tool)),
            Err(_elapsed) => {
                let busy = match (&of_caller, &of_agent) {
                    (Some(slots), _) if waits_for_caller => {
                        format!(
                            "all {} calls of it that this caller may make at the same time are running",
                            slots.limit()
                        )
                    }
                    (_, Some(slots)) if waits_for_agent => {
                        format!(
                            "all {} slots of the agent's max_concurrent are in use",
                            slots.limit()
                        )
                    }
                    _ if has_own => {
                        let limit = global.map_or(0, |slots| slots.limit());
                        format!("all {limit} slots of max_concurrent are in use")
                    }
                    _ => format!("all {} of its max_instances are in use", own.most()),
                };
                let limit = render_duration(limit);
                let message = format!(
                    "{} waited longer than its queue_timeout of {limit} and was not run: {busy}",
                    described(tool)
                );
                Err(CallError::new(CallErrorKind::QueueTimeout, message).with_hint(
                    "try again later; an operator can raise that limit in the configuration",
                ))
            }
        }
    }

    async fn run_local(
        &self,
        tool: &CatalogTool,
        arguments: Map<String, Value>,
        caller: Arc<Caller>,
    ) -> Result<RawCallResult, CallError> {
        // Called inside the future, so that a panic before the tool returns its own future is caught too.
        let running = async {
            if let Some(prompt) = &tool.prompt {
                return Ok(self.prepare_prompt(tool, prompt, arguments, caller)?.await);
            }
            match self.local_tools.get(tool.name.tool()) {
                Some(local) => Ok(local.run(arguments).await),
                None => Err(unavailable(tool, "this program does not have it")),
            }
        };
        let running = AssertUnwindSafe(running).catch_unwind();
        match tokio::time::timeout(tool.limits.timeout, running).await {
            Ok(Ok(result)) => result.map(|result| RawCallResult::of(&result)),
            Ok(Err(_panic)) => {
                let message = format!("{} failed with an internal error", described(tool));
                Err(CallError::new(CallErrorKind::Internal, message))
            }
            Err(_elapsed) => Err(timed_out(tool)),
        }
    }
}

/// Whether the access of the caller grants a tool at this moment.
fn is_granted(snapshot: &Snapshot, caller: &Caller, tool: &CatalogTool) -> bool {
    caller.access.tools().is_none_or(|rules| snapshot.index().grants(&rules, tool))
}

/// Converts the events of a call into [`Progress`] for the listener.
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
                // Progress may be dropped when the listener is full; results never are.
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

fn typed_report(report: RawReport) -> CallReport {
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
    caller_headers: Option<CallerHeaders>,
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
        caller_headers,
    }
}

/// Why a server has no result for a call.
#[derive(Debug)]
enum Unsent {
    Failed(CallFailed),
    /// The owner of the account must sign in first.
    SignIn,
}

impl From<CallError> for Unsent {
    fn from(error: CallError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<CallFailed> for Unsent {
    fn from(failed: CallFailed) -> Self {
        Self::Failed(failed)
    }
}

async fn run_upstream(
    server: &Arc<Server>,
    tool: &CatalogTool,
    client: &ClientProfile,
    ask: UpstreamRequest,
    events: Option<EventSender>,
) -> Result<RawCallResult, Unsent> {
    let connected = server.connection_for(client).await;
    let (connection, keeps_it_open) = connected.map_err(|reason| match reason {
        NoConnection::Reconnecting(reason) => Unsent::from(reconnecting(tool, &reason)),
        NoConnection::OfSession(error)
            if error.kind == ConnectErrorKind::SignIn && server.has_owners() =>
        {
            Unsent::SignIn
        }
        NoConnection::OfSession(error) => {
            let mut unavailable = unavailable(tool, &error.message);
            unavailable.hints.extend(error.hints);
            unavailable.into()
        }
    })?;
    let event_channel = events.unwrap_or_else(EventSender::deaf);
    let call = std::pin::pin!(server.ask_over(&connection, client, &ask, &event_channel));
    let limits = &tool.limits;
    let running = Running {
        total: limits.timeout,
        longest: limits.max_timeout,
        silence: limits.inactivity_timeout,
    };
    let watching = running.watch(call, &event_channel);
    let watched = tokio::select! {
        biased;
        watched = watching => watched,
        () = keeps_it_open.revoked() => {
            return Err(unavailable(tool, "the account that the call used was signed out").into());
        }
    };
    let answer = watched.map_err(|overdue| {
        // The tool alone or the whole server may be at fault: the supervisor lists the tools again to find out.
        server.suspect();
        match overdue {
            Overdue::Total => timed_out(tool),
            Overdue::Stalled => stalled(tool),
            Overdue::Longest => ran_longest(tool),
            Overdue::Silent(limit) => fell_silent(tool, limit),
        }
    })?;
    match answer {
        Ok(result) => Ok(read_answer(tool, result.0)?),
        Err(RequestFailure::SignIn(_)) if server.has_owners() => Err(Unsent::SignIn),
        Err(RequestFailure::Unavailable(reason) | RequestFailure::SignIn(reason)) => {
            server.suspect();
            Err(reconnecting(tool, &reason).into())
        }
        Err(failure) => {
            let message = format!("{} gave no result: {failure}", described(tool));
            let rpc = match failure {
                RequestFailure::Rpc(error) => Some(error),
                RequestFailure::Unavailable(_)
                | RequestFailure::SignIn(_)
                | RequestFailure::BadAnswer(_) => None,
            };
            let error = CallError::new(CallErrorKind::Upstream, message);
            Err(Unsent::Failed(CallFailed { error, rpc, sign_in: None }))
        }
    }
}

/// Reads a server's response as a tool result, or as a failure if it is not one.
#[expect(clippy::result_large_err, reason = "a failure is moved once, as a result is")]
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
        (ResultKind::Complete, ResultContent::Missing) => {
            refuse("the result has no `content` list")
        }
        (ResultKind::Complete | ResultKind::InputRequired | ResultKind::Task, _) => {
            Ok(RawCallResult { json, head })
        }
    }
}
