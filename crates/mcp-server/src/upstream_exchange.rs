//! One request that a server works on, and everything that is said meanwhile.
//!
//! The eras ask for input in different ways: a legacy server sends a question and waits, a modern one answers
//! `input_required` and is asked again. An exchange turns either into what its client speaks.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use futures::Future;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use switchboard_model::{CanonicalName, Era, ServerName};
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

pub(crate) use elicitation::{Answered, answered_or_withdrawn, late, withdrawal};
use elicitation::{Collecting, PendingQuestion, next_answer};

/// What a server may say in one breath; then older progress is dropped.
const WAITING_EVENTS: usize = 256;

/// That no cache may give it to anybody else.
const PRIVATE: (&str, &str) = ("cacheScope", "\"private\"");

const TASK_ID: &str = "taskId";

/// What a session brought is found with the session.
fn choice(name: CanonicalName, session: Option<&Arc<str>>) -> ToolChoice {
    match session {
        Some(owner) if name.server().is_attached() => {
            ToolChoice::Owned { owner: owner.clone(), name }
        }
        _ => ToolChoice::Exact(name),
    }
}

enum OperationResult {
    Call(Result<RawCallResult, CallFailed>),
    Pass(Result<RawResult, PassFailure>),
}

type Work = Pin<Box<dyn Future<Output = OperationResult> + Send>>;

/// Passes a request on to a server, with what its client sends along.
fn pass(
    board: Arc<Board>,
    server: ServerName,
    method: &'static str,
    name: Option<String>,
    mut params: String,
    passing: ForwardedContext,
    events: EventSender,
) -> Work {
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
    };
    let client = ClientProfile { capabilities: ask.capabilities.clone(), ..passing.client };
    Box::pin(
        async move { OperationResult::Pass(board.pass(&server, &client, ask, Some(events)).await) },
    )
}

/// What comes next.
pub(crate) enum ExchangeStep {
    /// A message for the client.
    Message(String),
    Done(Outcome),
    /// The client must be asked; the exchange goes on when it comes back with this state.
    Park {
        state: String,
        outcome: Outcome,
    },
}

/// A request on its way.
pub(crate) struct UpstreamExchange {
    gateway: Arc<Gateway>,
    pub(crate) context: RequestContext,
    pub(crate) operation: UpstreamOperation,
    wishes: ForwardedParams,
    work: Option<Work>,
    events: Option<EventReceiver>,
    messages: VecDeque<String>,
    /// What comes after the messages that are left.
    last: Option<Outcome>,
    /// What the client was asked. There is none before the first question: most calls have none.
    asked: Option<FuturesUnordered<BoxFuture<'static, Answered>>>,
    /// By which ids the client knows what it has not answered yet.
    open: Vec<String>,
    collecting: Option<Collecting>,
    waiting: BTreeMap<String, PendingQuestion>,
    /// When the client is asked what has gathered.
    park_at: Option<Instant>,
    questions: u32,
    rounds: u32,
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
        };
        let extra = std::mem::take(&mut exchange.wishes.extra);
        exchange.begin(extra);
        exchange
    }

    /// Something to tell the client before anything else.
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
                ..self.client_profile(&extra)
            },
            params: extra,
            meta: self.wishes.meta.clone(),
            capabilities: self.context.capabilities_text.clone(),
            log_level: self.context.log_level.map(|level| level.as_str().into()),
            wants_progress: self.wishes.progress_token.is_some(),
            // Modern requests stand alone: two without an origin are never of the same one.
            origin: self.context.client.as_ref().map(|client| client.id.clone()),
        };
        let caller = self.context.caller.clone();
        self.work = Some(match self.operation.clone() {
            UpstreamOperation::Call { tool, requested, arguments, reached } => {
                let (scope, session) = (&self.context.scope, self.context.session.as_ref());
                let check = self.gateway.service.check_for(scope, session, reached);
                let call = RawCall {
                    tool: choice(tool, caller.session.as_ref()),
                    arguments,
                    caller,
                    requested: Some(requested),
                    passing,
                    events: Some(events),
                    check: Some(check),
                };
                Box::pin(async move { OperationResult::Call(board.call_raw(call).await.result) })
            }
            UpstreamOperation::Pass { server, method, name, params } => {
                pass(board, server, method, name, params, passing, events)
            }
            UpstreamOperation::Task { method, task } => {
                let (server, params) = (task.tool.server().clone(), task_member(&task.id));
                let (secret, session) = (self.secret_of(&task), caller.session.clone());
                let said =
                    pass(board.clone(), server, method, Some(task.id), params, passing, events);
                Box::pin(async move {
                    match said.await {
                        OperationResult::Pass(Ok(said)) => {
                            let capped =
                                board.cap_task(&task.tool, session.as_deref(), &secret, said);
                            OperationResult::Pass(
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

    /// What decides over which connection of its server the request goes.
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

    /// Waits for the next thing to tell the client. Dropping the exchange cancels the request.
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
                // Before the events: a server that never stops talking must not keep the limits of the call from
                // being looked at. What it said before the answer is told before the answer all the same.
                done = next_done(&mut self.work) => {
                    self.work = None;
                    self.hear_the_rest();
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
            }
        }
    }

    /// Ends with this, if it is anything. What the client was asked and has not answered is withdrawn.
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

    /// Signs of life that came together with the answer are told before it.
    fn hear_the_rest(&mut self) {
        while let Some(event) = self.events.as_mut().and_then(EventReceiver::next_now) {
            // Nobody waits for the answer to a question any more.
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
            // Modern clients know no such thing.
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

    fn finish(&mut self, done: OperationResult) -> Option<Outcome> {
        let era = self.context.era();
        match done {
            OperationResult::Call(Ok(answer)) if answer.head.kind == ResultKind::InputRequired => {
                self.want_input(answer.as_str())
            }
            OperationResult::Call(Ok(answer)) if answer.head.kind == ResultKind::Task => {
                Some(self.begun(answer.as_str()))
            }
            OperationResult::Call(Ok(answer)) => Some(outcome::of_answer(era, answer)),
            OperationResult::Call(Err(CallFailed { rpc: Some(rpc), .. }))
            | OperationResult::Pass(Err(PassFailure::Server(RequestFailure::Rpc(rpc))))
                if era == ListEra::Stateless
                    && rpc.code == code::LEGACY_URL_ELICITATION_REQUIRED =>
            {
                self.want_pages(&rpc)
            }
            OperationResult::Call(Err(failed)) => Some(outcome::of_failed_call(era, failed)),
            OperationResult::Pass(Ok(result)) => {
                let members = Members::read(result.as_str()).unwrap_or_default();
                match members.string("resultType").as_deref() {
                    Some("input_required") if self.operation.can_be_asked_again() => {
                        self.want_input(result.as_str())
                    }
                    Some(kind @ ("input_required" | "task")) => {
                        let message =
                            format!("the server gave an answer of the wrong kind: {kind}");
                        Some(self.failed(message))
                    }
                    Some(_) | None => Some(self.passed(result)),
                }
            }
            OperationResult::Pass(Err(failed)) => {
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
            // The server knows only us. Who may see its answer here is not for it to say.
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

    /// A server goes on with a call in its own time. Who asked can ask it what has become of that.
    fn begun(&self, result: &str) -> Outcome {
        let members = Members::read(result).unwrap_or_default();
        match (&self.operation, members.string(TASK_ID)) {
            (UpstreamOperation::Call { tool, .. }, Some(id))
                if self.context.capabilities.meet(Need::Tasks) =>
            {
                let task = Task { tool: tool.clone(), id: id.into_owned() };
                Outcome::text(self.renamed(result, &task))
            }
            _ => self.failed("the server answered with a task that nobody can ask for"),
        }
    }

    /// What a server says of a task, with the id by which the client knows it.
    fn renamed(&self, result: &str, task: &Task) -> String {
        let shown = quoted(&self.shown_id(task));
        with_members(&without_member(result, TASK_ID), &[(TASK_ID, &shown)])
    }

    fn secret_of(&self, task: &Task) -> String {
        let seal = self.gateway.seal.get();
        seal.map(|seal| seal.secret_of(&self.context.caller.principal, task)).unwrap_or_default()
    }

    /// By which id the client knows a task.
    fn shown_id(&self, task: &Task) -> String {
        // There is a seal in the modern era, and no other has tasks.
        let seal = self.gateway.seal.get();
        seal.map(|seal| seal.close_task(&self.context.caller.principal, task)).unwrap_or_default()
    }

    /// That nothing came of it.
    fn failed(&self, message: impl Into<String>) -> Outcome {
        match self.operation {
            UpstreamOperation::Call { .. } => Outcome::tool_error(self.context.era(), message),
            UpstreamOperation::Pass { .. } | UpstreamOperation::Task { .. } => {
                Outcome::error(code::INTERNAL_ERROR, message)
            }
        }
    }

    /// What a modern server wants, its state bound to who asked and what for.
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

async fn next_done(work: &mut Option<Work>) -> OperationResult {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn task_member(id: &str) -> String {
    params_text(&[(TASK_ID, &quoted(id))])
}

/// The parameters of a progress notification with the client's own token.
fn with_token(params: &str, token: &str) -> String {
    let members = Members::read(params).unwrap_or_default();
    let mut kept = vec![("progressToken", token)];
    kept.extend(members.iter().filter(|(key, _)| *key != "progressToken"));
    format!("{{{}}}", params_text(&kept))
}
