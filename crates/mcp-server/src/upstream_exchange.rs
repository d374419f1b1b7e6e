//! One request at a server, with all notifications and requests of the server until its response.
//!
//! The eras ask a client for input differently: a session-era server sends a request and waits, a stateless-era server
//! responds `input_required` and the request is repeated with the input. An exchange translates between both.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use futures::Future;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use switchboard_model::{Caller, CanonicalName, Era, ServerName};
use switchboard_protocol::{
    Members, Need, ResultKind, code, notification, params_text, quoted, with_members,
    without_member,
};
use switchboard_runtime::{
    Board, CallFailed, ClientProfile, EventReceiver, EventSender, ForwardedContext, PassFailure,
    RawCall, RawCallResult, RawResult, RequestFailure, ToolChoice, UpstreamEvent, UpstreamRequest,
    event_channel,
};
use switchboard_view::ListEra;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::log_level::LogLevel;
use crate::outcome::{self, COMPLETE, Outcome};
use crate::request_context::{ForwardedParams, RequestContext, Task, UpstreamOperation};

mod elicitation;
mod foreign_page;
mod sign_in;

pub(crate) use elicitation::{Answered, answered_or_withdrawn, late, withdrawal};
use elicitation::{Collecting, PendingQuestion, next_answer};
use sign_in::{SignInWait, next_sign_in};

/// Events of a server that may wait; beyond it, the oldest progress is dropped.
const WAITING_EVENTS: usize = 256;

/// Forbids caches to share a result between principals.
const PRIVATE: (&str, &str) = ("cacheScope", "\"private\"");

const TASK_ID: &str = "taskId";

/// Chooses a tool: a tool of a session's own server is found through the session.
fn choice(name: CanonicalName, session: Option<&Arc<str>>) -> ToolChoice {
    match session {
        Some(owner) if name.server().is_attached() => {
            ToolChoice::Owned { owner: owner.clone(), name }
        }
        _ => ToolChoice::Exact(name),
    }
}

enum UpstreamResult {
    Call(Result<RawCallResult, CallFailed>),
    Pass(Result<RawResult, PassFailure>),
}

type Work = Pin<Box<dyn Future<Output = UpstreamResult> + Send>>;

/// A request that is forwarded and is no call.
struct PassedRequest {
    server: ServerName,
    method: &'static str,
    name: Option<String>,
    params: String,
}

/// Forwards a request of a caller to a server with the client's parameters.
fn pass(
    board: Arc<Board>,
    caller: Arc<Caller>,
    request: PassedRequest,
    passing: ForwardedContext,
    events: EventSender,
) -> Work {
    let PassedRequest { server, method, name, mut params } = request;
    if !passing.params.is_empty() {
        if !params.is_empty() {
            params.push(',');
        }
        params.push_str(&passing.params);
    }
    let ask = UpstreamRequest {
        method,
        name,
        params,
        meta: passing.meta,
        capabilities: passing.capabilities,
        log_level: passing.log_level,
        wants_progress: passing.wants_progress,
        mirrored: Vec::new(),
        origin: passing.origin,
        caller_headers: None,
    };
    let client = ClientProfile { capabilities: ask.capabilities.clone(), ..passing.client };
    Box::pin(async move {
        let passed = board.pass(&server, &caller, &client, ask, Some(events));
        UpstreamResult::Pass(passed.await)
    })
}

/// The next step of an exchange.
pub(crate) enum ExchangeStep {
    /// A notification or a request for the client.
    Message(String),
    Done(Outcome),
    /// The client must be asked with `input_required`; the exchange resumes when it returns with this state.
    Park {
        state: String,
        outcome: Outcome,
    },
}

/// A running exchange. Dropping it cancels the request at the server.
pub(crate) struct UpstreamExchange {
    gateway: Arc<Gateway>,
    pub(crate) context: RequestContext,
    pub(crate) operation: UpstreamOperation,
    wishes: ForwardedParams,
    work: Option<Work>,
    events: Option<EventReceiver>,
    messages: VecDeque<String>,
    /// The outcome, once it is known; it follows the messages that are left.
    last: Option<Outcome>,
    /// Requests to the client that wait for a response. `None` before the first one: most calls have none.
    asked: Option<FuturesUnordered<BoxFuture<'static, Answered>>>,
    /// The ids of those requests, as the client knows them.
    open: Vec<String>,
    collecting: Option<Collecting>,
    waiting: BTreeMap<String, PendingQuestion>,
    /// When the collected requests are sent to a stateless-era client.
    park_at: Option<Instant>,
    questions: u32,
    rounds: u32,
    /// The sign-in that the exchange waits for.
    sign_in: Option<SignInWait>,
}

impl UpstreamExchange {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        context: RequestContext,
        operation: UpstreamOperation,
        wishes: ForwardedParams,
    ) -> Self {
        let mut exchange = Self {
            gateway,
            context,
            operation,
            wishes,
            work: None,
            events: None,
            messages: VecDeque::new(),
            last: None,
            asked: None,
            open: Vec::new(),
            collecting: None,
            waiting: BTreeMap::new(),
            park_at: None,
            questions: 0,
            rounds: 0,
            sign_in: None,
        };
        let extra = std::mem::take(&mut exchange.wishes.extra);
        exchange.begin(extra);
        exchange
    }

    /// Queues a message for the client.
    pub(crate) fn say(&mut self, message: String) {
        self.messages.push_back(message);
    }

    fn begin(&mut self, extra: String) {
        let (events, heard) = event_channel(WAITING_EVENTS);
        self.events = Some(heard);
        let board = self.gateway.board.clone();
        let passing = ForwardedContext {
            client: ClientProfile {
                session: self.context.caller.session.clone(),
                identity: Some(self.context.caller.identity.clone()),
                program: self.context.caller.client.name.clone(),
                ..self.client_profile(&extra)
            },
            params: extra,
            meta: self.wishes.meta.clone(),
            capabilities: self.context.capabilities_text.clone(),
            log_level: self.context.log_level.map(|level| level.as_str().into()),
            wants_progress: self.wishes.progress_token.is_some(),
            // Stateless-era requests have no origin: no two of them share one.
            origin: self.context.client.as_ref().map(|client| client.id.clone()),
        };
        let caller = self.context.caller.clone();
        self.work = Some(match self.operation.clone() {
            UpstreamOperation::Call { tool, requested, arguments, reached } => {
                let (scope, session) = (&self.context.scope, self.context.session.as_ref());
                let access = &self.context.caller.access;
                let check = self.gateway.service.check_for(scope, session, reached, access);
                let call = RawCall {
                    tool: choice(tool, caller.session.as_ref()),
                    arguments,
                    caller,
                    requested: Some(requested),
                    passing,
                    events: Some(events),
                    check: Some(check),
                    conversation: None,
                };
                Box::pin(async move { UpstreamResult::Call(board.call_raw(call).await.result) })
            }
            UpstreamOperation::Pass { server, method, name, params } => {
                let request = PassedRequest { server, method, name, params };
                pass(board, caller, request, passing, events)
            }
            UpstreamOperation::Task { method, task } => {
                let (server, params) = (task.tool.server().clone(), task_member(&task.id));
                let (secret, session) = (self.secret_of(&task), caller.session.clone());
                let request = PassedRequest { server, method, name: Some(task.id), params };
                let said = pass(board.clone(), caller, request, passing, events);
                Box::pin(async move {
                    match said.await {
                        UpstreamResult::Pass(Ok(said)) => {
                            let capped =
                                board.cap_task(&task.tool, session.as_deref(), &secret, said);
                            UpstreamResult::Pass(
                                capped
                                    .await
                                    .map_err(|error| PassFailure::Unavailable(error.message)),
                            )
                        }
                        done => done,
                    }
                })
            }
        });
    }

    /// The client's properties that select the connection to the server.
    fn client_profile(&self, extra: &str) -> ClientProfile {
        let era = match self.context.era() {
            ListEra::Session => Era::Legacy,
            ListEra::Stateless => Era::Modern,
        };
        let brings_input = !extra.is_empty() && {
            let extra = format!("{{{extra}}}");
            let extra = Members::read(&extra).unwrap_or_default();
            extra.get("inputResponses").or(extra.get("requestState")).is_some()
        };
        let client = self.context.client.as_ref();
        let client = client.filter(|_| self.gateway.board.is_per_session(self.operation.server()));
        ClientProfile {
            era: Some(era),
            answers_requests: self.context.capabilities.answers_requests(),
            brings_input,
            events: client.map(|client| self.gateway.events_of(client)),
            ..ClientProfile::default()
        }
    }

    /// Waits for the next step. Dropping the exchange cancels the request.
    pub(crate) async fn next(&mut self) -> ExchangeStep {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return ExchangeStep::Message(message);
            }
            if let Some(outcome) = self.last.take() {
                return ExchangeStep::Done(outcome);
            }
            tokio::select! {
                biased;
                // Polled before the events, so that a server which never stops sending events cannot suspend the call's
                // limits. Events that arrived before the response are still sent before it.
                done = next_done(&mut self.work) => {
                    self.work = None;
                    self.take_remaining_events();
                    let last = self.finish(done);
                    self.end(last);
                }
                Some(event) = next_event(&mut self.events) => {
                    let last = self.hear(event);
                    self.end(last);
                }
                () = until(self.park_at), if self.park_at.is_some() => {
                    self.park_at = None;
                    return self.park();
                }
                Some(answered) = next_answer(&mut self.asked) => {
                    let last = self.take_answer(answered);
                    self.end(last);
                }
                end = next_sign_in(&mut self.sign_in) => {
                    let last = self.take_sign_in(end);
                    self.end(last);
                }
            }
        }
    }

    /// Ends the exchange if `last` is an outcome. Requests that the client has not answered are withdrawn.
    fn end(&mut self, last: Option<Outcome>) {
        if last.is_none() {
            return;
        }
        for id in std::mem::take(&mut self.open) {
            self.say(withdrawal(&id));
        }
        self.work = None;
        self.last = last;
    }

    /// Takes the events that arrived together with the response, to send them before it.
    fn take_remaining_events(&mut self) {
        while let Some(event) = self.events.as_mut().and_then(EventReceiver::next_now) {
            // The server no longer waits for a response.
            if !matches!(event, UpstreamEvent::Question { .. }) {
                self.hear(event);
            }
        }
    }

    fn hear(&mut self, event: UpstreamEvent) -> Option<Outcome> {
        match event {
            UpstreamEvent::Progress(params) => {
                if let Some(token) =
                    self.wishes.progress_token.as_ref().filter(|_| self.context.can_stream)
                {
                    let params = with_token(params.as_str(), token);
                    self.say(notification("notifications/progress", Some(&params)));
                }
            }
            UpstreamEvent::Log(params) => {
                let level = Members::read(params.as_str()).ok();
                let level = level.and_then(|log| LogLevel::read(&log.string("level")?));
                if self.context.can_stream && self.context.hears(level) {
                    self.say(notification("notifications/message", Some(params.as_str())));
                }
            }
            // The stateless era has no such notification.
            UpstreamEvent::ElicitationComplete(params) => {
                let is_known =
                    self.context.client.is_some() && self.context.capabilities.meet(Need::Url);
                if is_known && self.context.can_stream {
                    let method = "notifications/elicitation/complete";
                    self.say(notification(method, Some(params.as_str())));
                }
            }
            UpstreamEvent::Question { method, params, reply } => {
                return self.take_question(method, params, reply);
            }
        }
        None
    }

    fn finish(&mut self, done: UpstreamResult) -> Option<Outcome> {
        let era = self.context.era();
        match done {
            UpstreamResult::Call(Ok(answer)) if answer.head.kind == ResultKind::InputRequired => {
                self.want_input(answer.as_str())
            }
            UpstreamResult::Call(Ok(answer)) if answer.head.kind == ResultKind::Task => {
                Some(self.begun(answer.as_str()))
            }
            UpstreamResult::Call(Ok(answer)) => Some(outcome::of_answer(era, answer)),
            UpstreamResult::Call(Err(CallFailed { rpc: Some(rpc), .. }))
            | UpstreamResult::Pass(Err(PassFailure::Server(RequestFailure::Rpc(rpc))))
                if era == ListEra::Stateless
                    && rpc.code == code::LEGACY_URL_ELICITATION_REQUIRED =>
            {
                self.want_urls(&rpc)
            }
            UpstreamResult::Call(Err(CallFailed { rpc: Some(rpc), .. }))
            | UpstreamResult::Pass(Err(PassFailure::Server(RequestFailure::Rpc(rpc))))
                if rpc.code == code::LEGACY_URL_ELICITATION_REQUIRED && self.imitates(&rpc) =>
            {
                Some(self.failed(foreign_page::IMITATES))
            }
            UpstreamResult::Call(Err(CallFailed { error, sign_in: Some(prompt), .. })) => {
                let refusal = outcome::of_failed_call(era, error.into());
                self.want_sign_in(&prompt, refusal)
            }
            UpstreamResult::Pass(Err(PassFailure::SignIn(prompt))) => {
                let refusal =
                    outcome::of_failed_pass(era, PassFailure::SignIn(prompt.clone()), None);
                self.want_sign_in(&prompt, refusal)
            }
            UpstreamResult::Call(Err(failed)) => Some(outcome::of_failed_call(era, failed)),
            UpstreamResult::Pass(Ok(result)) => {
                let members = Members::read(result.as_str()).unwrap_or_default();
                match members.string("resultType").as_deref() {
                    Some("input_required") if self.operation.can_be_asked_again() => {
                        self.want_input(result.as_str())
                    }
                    Some(kind @ ("input_required" | "task")) => {
                        let message =
                            format!("the server's result has an unexpected resultType: {kind}");
                        Some(self.failed(message))
                    }
                    Some(_) | None => Some(self.passed(result)),
                }
            }
            UpstreamResult::Pass(Err(failed)) => {
                let uri = match &self.operation {
                    UpstreamOperation::Pass { name, method: "resources/read", .. } => {
                        name.as_deref()
                    }
                    UpstreamOperation::Pass { .. }
                    | UpstreamOperation::Call { .. }
                    | UpstreamOperation::Task { .. } => None,
                };
                Some(outcome::of_failed_pass(era, failed, uri))
            }
        }
    }

    fn passed(&self, result: RawResult) -> Outcome {
        let method = match &self.operation {
            UpstreamOperation::Pass { method, .. } | UpstreamOperation::Task { method, .. } => {
                *method
            }
            UpstreamOperation::Call { .. } => "",
        };
        let hints: &[_] = match (self.context.era(), method) {
            (ListEra::Session, _) => return Outcome::Result(result.0),
            (ListEra::Stateless, "resources/read") => &[COMPLETE, ("ttlMs", "0"), PRIVATE],
            (ListEra::Stateless, _) => &[COMPLETE],
        };
        let Ok(members) = Members::read(result.as_str()) else {
            let message = format!("the server's answer to {method} cannot be read");
            return Outcome::error(code::INTERNAL_ERROR, message);
        };
        let (scope, private) = PRIVATE;
        let result = match members.get(scope) {
            // The server knows only the gateway: it cannot decide which clients may share a result.
            Some(said) if said != private => {
                with_members(&without_member(result.as_str(), scope), &[PRIVATE]).into()
            }
            Some(_) | None => Cow::Borrowed(result.as_str()),
        };
        let result = with_members(&result, hints);
        Outcome::text(match &self.operation {
            UpstreamOperation::Task { task, .. } if members.get(TASK_ID).is_some() => {
                self.renamed(&result, task)
            }
            UpstreamOperation::Task { .. }
            | UpstreamOperation::Pass { .. }
            | UpstreamOperation::Call { .. } => result,
        })
    }

    /// The response to a call that the server continues as a task, with the signed task id.
    fn begun(&self, result: &str) -> Outcome {
        let members = Members::read(result).unwrap_or_default();
        match (&self.operation, members.string(TASK_ID)) {
            (UpstreamOperation::Call { tool, .. }, Some(id))
                if self.context.capabilities.meet(Need::Tasks) =>
            {
                let task = Task { tool: tool.clone(), id: id.into_owned() };
                Outcome::text(self.renamed(result, &task))
            }
            _ => self.failed("the server responded with a task that the client cannot query"),
        }
    }

    /// A server's result about a task, with the task id that the client knows.
    fn renamed(&self, result: &str, task: &Task) -> String {
        let shown = quoted(&self.shown_id(task));
        with_members(&without_member(result, TASK_ID), &[(TASK_ID, &shown)])
    }

    fn secret_of(&self, task: &Task) -> String {
        let seal = self.gateway.seal.get();
        seal.map(|seal| seal.secret_of(&self.context.caller.principal, task)).unwrap_or_default()
    }

    /// The task id that the client knows.
    fn shown_id(&self, task: &Task) -> String {
        // The signer exists, because only the stateless era has tasks.
        let seal = self.gateway.seal.get();
        seal.map(|seal| seal.close_task(&self.context.caller.principal, task)).unwrap_or_default()
    }

    /// The outcome of a failed exchange: a tool error for a call, else a JSON-RPC error.
    fn failed(&self, message: impl Into<String>) -> Outcome {
        match self.operation {
            UpstreamOperation::Call { .. } => Outcome::tool_error(self.context.era(), message),
            UpstreamOperation::Pass { .. } | UpstreamOperation::Task { .. } => {
                Outcome::error(code::INTERNAL_ERROR, message)
            }
        }
    }

    /// The `input_required` result of a stateless-era server, with its state signed for the principal and the request.
    fn sealed(&self, result: &str) -> String {
        let members = Members::read(result).unwrap_or_default();
        match (members.string("requestState"), self.gateway.seal.get()) {
            (Some(state), Some(seal)) => {
                let now = jiff::Timestamp::now();
                let sealed = quoted(&seal.close(
                    &self.context.caller.principal,
                    &self.operation,
                    &state,
                    now,
                ));
                let rest = without_member(result, "requestState");
                with_members(&rest, &[("requestState", &sealed)])
            }
            _ => without_member(result, "requestState"),
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn next_event(events: &mut Option<EventReceiver>) -> Option<UpstreamEvent> {
    match events {
        Some(events) => events.next().await,
        None => None,
    }
}

async fn next_done(work: &mut Option<Work>) -> UpstreamResult {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn task_member(id: &str) -> String {
    params_text(&[(TASK_ID, &quoted(id))])
}

/// The parameters of a progress notification, with the client's own token.
fn with_token(params: &str, token: &str) -> String {
    let members = Members::read(params).unwrap_or_default();
    let mut kept = vec![("progressToken", token)];
    kept.extend(members.iter().filter(|(key, _)| *key != "progressToken"));
    format!("{{{}}}", params_text(&kept))
}
