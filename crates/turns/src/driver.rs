//! The driver of a turn: performs the actions of the turn state machine. It sends model requests, calls tools, stores
//! messages and publishes events.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use switchboard_chat::{
    Action, FaultKind, Message, ModelEvent, ModelFault, Overlay, Source, ToolCall, ToolReturn,
    Turn, TurnEvent, TurnInput, TurnProblem, TurnStatus, Usage,
};
use switchboard_model::{CallErrorKind, Caller, ModelSettings, ToolStrategy};
use switchboard_providers::{ModelStream, ProviderEndpoint, Providers};
use switchboard_render::{Provider, Rendering};
use switchboard_runtime::{CachedView, CheckSubject, CheckedConversation};
use switchboard_sessions::{Session, SessionService};
use switchboard_telemetry::{end_model_span, model_answered, model_span, turn_ended};
use switchboard_view::ToolGroups;
use switchboard_wire::{
    ModelRequest, ReactReader, Tools, react_messages, refuses_json_schema, refuses_tools,
    restore_arguments,
};
use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::calling::{self, Called, ShownTools};
use crate::conversation::StoredConversation;
use crate::live::{LiveTurn, TurnEnd, TurnWishes};
use crate::model_check::ModelCheck;
use crate::new_turn::{ChosenStrategy, Wanted};
use crate::react_prompt::{ReactPrompts, after_instructions};
use crate::tool_epoch::{self, SystemText, ToolEpoch};
use crate::turn_problem::not_kept;
use crate::{TurnError, checked_history, observation, stop_sequence};

/// Capacity of the channel for events of running calls.
const NEWS: usize = 64;
/// Maximum size of all events of one turn.
const MOST_BYTES: usize = 128 << 20;
/// Waiting times of at least this are spread over time.
const SPREAD_FROM: Duration = Duration::from_millis(400);

/// A running turn.
pub(crate) struct Driver {
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) prompts: Arc<ReactPrompts>,
    pub(crate) session: Arc<Session>,
    /// The caller that began the turn.
    pub(crate) caller: Arc<Caller>,
    pub(crate) live: Arc<LiveTurn>,
    pub(crate) conversation: StoredConversation,
    pub(crate) turn: Turn,
    pub(crate) overlay: Overlay,
    pub(crate) wanted: Wanted,
    /// The groups of tools that the turn may use, and the state that it is in.
    pub(crate) groups: ToolGroups,
    /// The number of messages before the turn.
    pub(crate) before: usize,
    pub(crate) began: Instant,
    pub(crate) epoch: Option<ToolEpoch>,
    pub(crate) stop: CancellationToken,
    pub(crate) state: DriverState,
}

/// The state of the driver.
#[derive(Default)]
pub(crate) struct DriverState {
    /// The tools that the model sees, until the turn ends or new tools are requested to take effect at once.
    seen: Option<(Arc<CachedView>, u64)>,
    /// The tools that the model was shown when it gave its last reply.
    shown: Option<Arc<CachedView>>,
    /// The provider, model and strategy in use, for the same time.
    asked: Option<AskedModel>,
    request: Option<PreparedRequest>,
    stream: Option<ModelStream>,
    wait_until: Option<Instant>,
    /// The running calls.
    running: HashMap<task::Id, ToolCall>,
    /// Calls of a ReACT reply, which run one after the other.
    queue: VecDeque<ToolCall>,
    /// The tools in the prompt of a ReACT turn.
    listed: Option<Arc<Rendering>>,
    /// The conversation for checks of calls, and the number of its messages.
    checked: Option<(usize, Arc<CheckedConversation>)>,
    error: Option<TurnProblem>,
    end: Option<(TurnEnd, TurnEvent)>,
    has_ended: bool,
}

/// The model that is asked, and how it uses tools.
#[derive(Clone)]
struct AskedModel {
    endpoint: Arc<ProviderEndpoint>,
    source: Source,
    chosen: ChosenStrategy,
}

/// The outcome of a turn.
pub(crate) struct Over {
    /// The tool epoch for the next turn.
    pub(crate) epoch: Option<ToolEpoch>,
    /// The result and the last event, which is not published yet.
    pub(crate) end: Option<(TurnEnd, TurnEvent)>,
}

/// A model request, sent or not.
struct PreparedRequest {
    endpoint: Arc<ProviderEndpoint>,
    source: Source,
    settings: ModelSettings,
    /// The messages to send, if they differ from the stored conversation.
    messages: Option<Vec<Message>>,
    /// The tools that are declared; none in a ReACT turn.
    tools: Tools,
    /// Reads the reply of a ReACT turn.
    reader: Option<ReactReader>,
    /// Must be passed before the request is sent.
    check: Option<ModelCheck>,
    replay: Range<usize>,
    seen: Arc<CachedView>,
    revision: u64,
    asked_at: Instant,
    span: Span,
}

impl PreparedRequest {
    /// Sends the request. `stored` is the conversation, used unless the request has messages of its own.
    async fn ask(
        &self,
        stored: &[Message],
        session: &str,
        turn: &str,
    ) -> Result<ModelStream, ModelFault> {
        let ask = ModelRequest {
            source: &self.source,
            messages: self.messages.as_deref().unwrap_or(stored),
            replay: self.replay.clone(),
            tools: &self.tools,
            settings: &self.settings,
            stop: self
                .reader
                .as_ref()
                .and_then(|_| stop_sequence::stop_of(&self.endpoint, &self.source.model)),
            session,
            turn,
            project: None,
            is_bearer: false,
        };
        stop_sequence::ask(&self.endpoint, ask).instrument(self.span.clone()).await
    }

    /// Records the metrics of the request when it has ended.
    fn ended(&self, outcome: &'static str, usage: Option<Usage>) {
        let tokens = usage.map(|usage| (usage.input_tokens, usage.output_tokens));
        model_answered(&self.source.provider, outcome, self.asked_at.elapsed(), tokens);
        end_model_span(&self.span, outcome, tokens);
    }
}

impl Driver {
    /// Runs the turn to its end. The caller publishes the last event, because its receiver may begin the next turn.
    pub(crate) async fn run(mut self) -> Over {
        // Both futures are kept across iterations: creating them for each event of a model would cost more than the
        // event.
        let stop = self.stop.clone();
        let mut stopped = std::pin::pin!(stop.cancelled());
        let mut wished = std::pin::pin!(next_wish(self.live.wishes()));
        let mut granted = TurnWishes::default();
        let mut calls: JoinSet<Called> = JoinSet::new();
        let (tell, mut news) = mpsc::channel(NEWS);
        loop {
            self.perform(&mut calls, &tell).await;
            if self.state.has_ended {
                return Over { epoch: self.epoch, end: self.state.end };
            }
            let waits = self.state.wait_until;
            tokio::select! {
                biased;
                () = &mut stopped => self.turn.on(TurnInput::Cancel),
                mut wishes = &mut wished => {
                    granted = self.grant(&mut wishes, granted);
                    wished.set(next_wish(wishes));
                }
                Some(event) = news.recv(), if !calls.is_empty() => self.live.tell(&event),
                Some(called) = calls.join_next_with_id(), if !calls.is_empty() => {
                    while let Ok(event) = news.try_recv() {
                        self.live.tell(&event);
                    }
                    self.returned(called);
                    self.start_calls(&mut calls, &tell);
                }
                () = sleep_until(waits.unwrap_or_else(Instant::now)), if waits.is_some() => {
                    self.state.wait_until = None;
                    self.turn.on(TurnInput::Waited);
                }
                // No calls run while a model request is open: a call that ended would cancel the request.
                events = self.hear(), if self.state.request.is_some() && calls.is_empty() => {
                    for event in merged(events) {
                        self.heard(event);
                    }
                }
            }
        }
    }

    /// Performs all actions that are due.
    async fn perform(&mut self, calls: &mut JoinSet<Called>, tell: &mpsc::Sender<TurnEvent>) {
        while let Some(action) = self.turn.next_action() {
            match action {
                Action::Keep => {
                    if let Err(error) = self.conversation.keep(self.turn.messages()).await {
                        return self.give_up(&error, calls).await;
                    }
                }
                Action::KeepResult(result) => {
                    if let Err(error) = self.conversation.keep_result(&result).await {
                        return self.give_up(&error, calls).await;
                    }
                }
                Action::Ask => match self.prepare() {
                    Ok(()) => {}
                    Err(fault) => self.turn.on(TurnInput::Model(ModelEvent::Failed(fault))),
                },
                Action::Drop => {
                    self.state.stream = None;
                    if let Some(request) = self.state.request.take() {
                        request.ended("dropped", None);
                    }
                }
                Action::Wait(time) => {
                    self.state.wait_until = Some(Instant::now() + spread(time, &self.live.id));
                }
                Action::Call(call) => {
                    self.state.queue.push_back(call);
                    self.start_calls(calls, tell);
                }
                Action::StopCalls => {
                    self.state.queue.clear();
                    calls.shutdown().await;
                }
                Action::Emit(event) => self.emit(&event),
                Action::End => self.state.has_ended = true,
            }
        }
    }

    /// Starts the queued calls: all at once, or in a ReACT turn one after the other, because their order may matter.
    fn start_calls(&mut self, calls: &mut JoinSet<Called>, tell: &mpsc::Sender<TurnEvent>) {
        while !self.is_react() || calls.is_empty() {
            let Some(call) = self.state.queue.pop_front() else { return };
            let view = self.state.shown.clone().unwrap_or_else(|| self.look().0);
            let scope = self.sessions.turn_scope(&self.session, &self.groups, &self.caller.access);
            let shown = ShownTools { view, scope };
            let (sessions, session) = (self.sessions.clone(), self.session.clone());
            let conversation = self.checked_conversation();
            let (caller, asked) = (self.caller.clone(), call.clone());
            let task = calls.spawn(calling::call(
                sessions,
                session,
                caller,
                shown,
                asked,
                conversation,
                tell.clone(),
            ));
            self.state.running.insert(task.id(), call);
        }
    }

    /// The conversation for checks of the calls, if there is anything that checks them.
    fn checked_conversation(&mut self) -> Option<Arc<CheckedConversation>> {
        self.sessions.board().plan().threat_protection.endpoint.as_ref()?;
        let messages = self.turn.messages();
        let known = self.state.checked.take().filter(|(count, _)| *count == messages.len());
        let (count, checked) = known.unwrap_or_else(|| {
            (messages.len(), checked_history::conversation(&self.live.id, messages))
        });
        self.state.checked = Some((count, checked.clone()));
        Some(checked)
    }

    fn is_react(&self) -> bool {
        let asked = self.state.asked.as_ref();
        asked.is_some_and(|asked| asked.chosen.strategy == ToolStrategy::React)
    }

    fn emit(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Error { error } => self.state.error = Some(error.clone()),
            TurnEvent::Done { status, stop, usage, .. } => {
                turn_ended(status.as_str(), self.began.elapsed());
                let messages = self.turn.messages().get(self.before..).unwrap_or_default();
                let end = TurnEnd {
                    status: *status,
                    stop: *stop,
                    usage: *usage,
                    error: self.state.error.clone(),
                    messages: messages.to_vec(),
                };
                self.state.end = Some((end, event.clone()));
                return;
            }
            _ => {}
        }
        self.live.tell(event);
        if self.is_react()
            && let Some(step) = observation::step_of(event)
        {
            self.live.tell(&step);
        }
    }

    /// Ends the turn because the store does not accept the conversation.
    async fn give_up(&mut self, error: &TurnError, calls: &mut JoinSet<Called>) {
        if let TurnError::NotStored(failure) = error {
            let error = &failure.in_full;
            tracing::warn!(error, session = &*self.session.id, "a conversation cannot be kept");
        }
        if matches!(error, TurnError::Store(_) | TurnError::Damaged { .. }) {
            tracing::error!(%error, session = &*self.session.id, "a conversation cannot be kept");
        }
        self.state.queue.clear();
        calls.shutdown().await;
        (self.state.stream, self.state.request) = (None, None);
        self.emit(&TurnEvent::Error { error: not_kept(error) });
        let (usage, messages) = (self.turn.usage(), self.turn.messages().len());
        let status = TurnStatus::Failed;
        self.emit(&TurnEvent::Done { status, stop: None, usage, messages });
        self.state.has_ended = true;
    }

    /// The provider, the model and the strategy of the turn.
    fn asked(&mut self) -> Result<AskedModel, Box<ModelFault>> {
        if let Some(asked) = &self.state.asked {
            return Ok(asked.clone());
        }
        let (endpoint, source) = self.wanted.endpoint(&self.providers, &self.session)?;
        let chosen = self.wanted.strategy(&self.session, &endpoint, &source);
        Ok(self.state.asked.insert(AskedModel { endpoint, source, chosen }).clone())
    }

    /// Chooses the provider, the model, the messages and the tools of the next request.
    fn prepare(&mut self) -> Result<(), Box<ModelFault>> {
        let AskedModel { endpoint, source, chosen } = self.asked()?;
        let mut settings = self.wanted.settings(endpoint.plan());
        let (seen, revision) = self.look();
        let stored = self.turn.messages();
        let mut view = (!self.overlay.is_empty()).then(|| self.overlay.lay_over(stored));
        if let Some(correction) = self.turn.correction() {
            view.get_or_insert_with(|| stored.to_vec()).push(correction);
        }
        let check =
            self.check_of(settings.instructions.as_deref(), view.as_deref().unwrap_or(stored));
        let form = tool_epoch::form_of(&endpoint, source.kind);
        let (tools, replay, reader) = match chosen.strategy {
            ToolStrategy::Native => {
                let count = view.as_ref().map_or(stored.len(), Vec::len);
                let is_plain = view.is_none();
                let (instructions, blocks) =
                    (settings.instructions.clone(), settings.system_blocks.clone());
                let system = SystemText { instructions, blocks };
                let rendering = seen.rendering(form);
                let epoch = &mut self.epoch;
                let (tools, replay) =
                    tool_epoch::next(epoch, &source, system, rendering, count, is_plain);
                self.state.listed = None;
                (tools, replay, None)
            }
            ToolStrategy::React => {
                let listed = seen.rendering(Provider::React);
                let prompt = self.prompts.prompt(endpoint.plan(), &listed)?;
                settings.instructions = Some(after_instructions(settings.instructions, &prompt));
                view = Some(react_messages(view.as_deref().unwrap_or(stored), &listed));
                self.state.listed = Some(listed);
                // Reasoning that a native request of this session signs later has other tools before it.
                self.epoch = None;
                let none = Rendering::new(form, std::iter::empty());
                (Tools::only(Arc::new(none)), 0..0, Some(ReactReader::default()))
            }
        };
        self.live.tell(&TurnEvent::Started {
            turn: self.live.id.clone(),
            provider: source.provider.clone(),
            model: source.model.clone(),
            tools_revision: revision,
            strategy: (chosen.strategy != ToolStrategy::Native).then_some(chosen.strategy),
        });
        tracing::debug!(
            session = &*self.session.id,
            provider = source.provider,
            model = source.model,
            strategy = chosen.strategy.as_str(),
            tools = self.state.listed.as_ref().unwrap_or(&tools.newest).tools.len(),
            tools_revision = revision,
            "a model is asked"
        );
        let span = model_span(&source.provider, source.kind.as_str(), &source.model);
        self.state.request = Some(PreparedRequest {
            span,
            endpoint,
            source,
            settings,
            messages: view,
            tools,
            reader,
            check,
            replay,
            seen,
            revision,
            asked_at: Instant::now(),
        });
        Ok(())
    }

    /// The content check of a request with these instructions and messages, if one is configured.
    fn check_of(&self, instructions: Option<&str>, messages: &[Message]) -> Option<ModelCheck> {
        ModelCheck::of(self.sessions.board().plan(), || {
            let (session, turn) = (&*self.session.id, &*self.live.id);
            checked_history::model_request(session, turn, instructions, messages)
        })
    }

    /// The tools that this turn shows: those at its beginning, unless new tools were requested to take effect at once.
    fn look(&mut self) -> (Arc<CachedView>, u64) {
        let seen = self.state.seen.get_or_insert_with(|| {
            let scope = self.sessions.turn_scope(&self.session, &self.groups, &self.caller.access);
            let view = self.sessions.view_of(&scope, Some(&self.session));
            (view, self.session.now().revision)
        });
        seen.clone()
    }

    /// Reads the next events of the response; sends the request first if necessary.
    async fn hear(&mut self) -> Vec<ModelEvent> {
        if self.state.stream.is_none() {
            if let Err(fault) = self.pass_check().await {
                return vec![ModelEvent::Failed(Box::new(fault))];
            }
            let Some(request) = &self.state.request else { return Vec::new() };
            let (session, turn) = (self.session.id.clone(), self.live.id.clone());
            let mut asked = request.ask(self.turn.messages(), &session, &turn).await;
            if let Err(fault) = &asked
                && self.declare_in_older_form(fault)
                && let Some(request) = &self.state.request
            {
                asked = request.ask(self.turn.messages(), &session, &turn).await;
            }
            if let Err(fault) = &asked
                && self.may_go_on_with_react(fault)
            {
                if let Err(fault) = self.go_on_with_react(fault) {
                    return vec![ModelEvent::Failed(fault)];
                }
                let Some(request) = &self.state.request else { return Vec::new() };
                asked = request.ask(self.turn.messages(), &session, &turn).await;
            }
            match asked {
                Ok(stream) => self.state.stream = Some(stream),
                Err(fault) => {
                    let kind = if self.lacks_native_tools(&fault) {
                        FaultKind::NoNativeTools
                    } else {
                        fault.kind
                    };
                    return vec![ModelEvent::Failed(Box::new(ModelFault { kind, ..fault }))];
                }
            }
        }
        let heard = match &mut self.state.stream {
            Some(stream) => stream.next().await,
            None => None,
        };
        let events = heard.unwrap_or_else(|| {
            let text = "the provider's stream was truncated";
            vec![ModelEvent::Failed(Box::new(ModelFault::new(FaultKind::Interrupted, text)))]
        });
        let request = self.state.request.as_mut();
        let Some(reader) = request.and_then(|request| request.reader.as_mut()) else {
            return events;
        };
        let mut read = Vec::with_capacity(events.len());
        for event in events {
            reader.read(event, &mut read);
        }
        read
    }

    /// Waits for the content check of the request. Dropping the future keeps the check, so it is made again.
    async fn pass_check(&mut self) -> Result<(), ModelFault> {
        let Some(request) = &mut self.state.request else { return Ok(()) };
        let Some(check) = &request.check else { return Ok(()) };
        let (principal, session) = (self.session.owner.clone(), self.session.id.clone());
        let subject =
            CheckSubject { principal: Some(principal), session: Some(session), tool: None };
        check.pass(self.sessions.board(), subject).await?;
        request.check = None;
        Ok(())
    }

    /// Whether a refused request is repeated as a ReACT request: the model has no native tool calls, and nobody insists
    /// on them.
    fn may_go_on_with_react(&self, fault: &ModelFault) -> bool {
        let is_open = self.state.asked.as_ref().is_some_and(|asked| !asked.chosen.is_explicit);
        is_open && self.lacks_native_tools(fault)
    }

    /// Whether the request was refused because it declares tools.
    fn lacks_native_tools(&self, fault: &ModelFault) -> bool {
        let has_tools = self.state.request.as_ref().is_some_and(|request| {
            request.reader.is_none() && !request.tools.base.tools.is_empty()
        });
        has_tools && refuses_tools(fault)
    }

    /// Prepares the refused request again with the strategy react, for the rest of the turn.
    fn go_on_with_react(&mut self, fault: &ModelFault) -> Result<(), Box<ModelFault>> {
        if let Some(request) = self.state.request.take() {
            request.ended(fault.kind.as_str(), None);
        }
        if let Some(asked) = &mut self.state.asked {
            asked.endpoint.note_no_tools(&asked.source.model);
            asked.chosen.strategy = ToolStrategy::React;
        }
        self.live.tell(&TurnEvent::Strategy {
            strategy: ToolStrategy::React,
            reason: format!("the model has no native tool calls: {}", fault.message),
        });
        self.prepare()?;
        // The same conversation has passed its check.
        if let Some(request) = &mut self.state.request {
            request.check = None;
        }
        Ok(())
    }

    /// Declares the tools in the older form if a Gemini backend does not know the newer one, once. Returns whether it
    /// did. The rejected request had no effect.
    fn declare_in_older_form(&mut self, fault: &ModelFault) -> bool {
        let Some(request) = &mut self.state.request else { return false };
        let is_newer = request.tools.newest.provider == Provider::Gemini;
        if !is_newer
            || !refuses_json_schema(&request.source, fault)
            || !request.endpoint.try_parameters()
        {
            return false;
        }
        request.tools = Tools::only(request.seen.rendering(Provider::GeminiParameters));
        true
    }

    fn heard(&mut self, mut event: ModelEvent) {
        if self.live.bytes() > MOST_BYTES && self.state.request.is_some() {
            let text = "the events of this turn exceed the size limit";
            event = ModelEvent::Failed(Box::new(ModelFault::new(FaultKind::TooLarge, text)));
        }
        match &mut event {
            ModelEvent::Finished(reply) => {
                self.state.stream = None;
                let Some(request) = self.state.request.take() else { return };
                request.ended("ok", reply.usage);
                let shown = self.state.listed.as_ref().unwrap_or(&request.tools.newest);
                restore_arguments(reply, shown);
                let took = u64::try_from(request.asked_at.elapsed().as_millis());
                reply.latency_ms = took.ok();
                reply.source = Some(request.source);
                reply.tools_revision = Some(request.revision);
                self.state.shown = Some(request.seen.clone());
                self.state.seen = Some((request.seen, request.revision));
            }
            ModelEvent::Failed(fault) => {
                self.state.stream = None;
                if let Some(request) = self.state.request.take() {
                    request.ended(fault.kind.as_str(), None);
                }
            }
            _ => {}
        }
        self.turn.on(TurnInput::Model(event));
    }

    fn returned(&mut self, called: Result<(task::Id, Called), JoinError>) {
        let mut called = match called {
            Ok((id, called)) => {
                self.state.running.remove(&id);
                called
            }
            Err(error) => {
                let Some(call) = self.state.running.remove(&error.id()) else { return };
                tracing::error!(tool = call.name, "a call ended by an internal error");
                let result =
                    ToolReturn::failed(&call, "The call failed: an internal error of Switchboard.");
                Called { result, has_switched: false, state: None, refusal: None }
            }
        };
        if let Some(listed) = self.state.listed.as_ref() {
            observation::add_way_out(&mut called, listed);
        }
        if called.has_switched {
            // The model changed its tools itself and expects them in the next request.
            self.state.seen = None;
        }
        if let Some(state) = called.state.filter(|state| state != self.groups.state()) {
            self.groups = self.groups.in_state(state);
            self.state.seen = None;
            let state = self.groups.state().to_owned();
            self.live.tell(&TurnEvent::State { state });
        }
        self.turn.on(if called.refusal == Some(CallErrorKind::Blocked) {
            TurnInput::Blocked(called.result)
        } else {
            TurnInput::Returned(called.result)
        });
    }

    /// Applies a request from outside: cancellation, or new tools.
    fn grant(
        &mut self,
        wishes: &mut watch::Receiver<TurnWishes>,
        granted: TurnWishes,
    ) -> TurnWishes {
        let wanted = *wishes.borrow_and_update();
        if wanted.cancel {
            self.turn.on(TurnInput::Cancel);
        } else if wanted.apply_now != granted.apply_now {
            (self.state.seen, self.state.asked) = (None, None);
            let (_, tools_revision) = self.look();
            self.turn.on(TurnInput::ToolsChanged { tools_revision });
        }
        wanted
    }
}

/// Waits for a request from outside; forever if the sender is gone.
async fn next_wish(mut wishes: watch::Receiver<TurnWishes>) -> watch::Receiver<TurnWishes> {
    if wishes.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    wishes
}

/// Merges consecutive text events, so that text which arrived at once is published as one event.
fn merged(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut all: Vec<ModelEvent> = Vec::with_capacity(events.len());
    for event in events {
        match (all.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more))
            | (Some(ModelEvent::Thinking(text)), ModelEvent::Thinking(more)) => {
                text.push_str(&more);
            }
            (
                Some(ModelEvent::CallArguments { index, delta }),
                ModelEvent::CallArguments { index: same, delta: more },
            ) if *index == same => delta.push_str(&more),
            (_, event) => all.push(event),
        }
    }
    all
}

/// Adds up to a quarter to longer times, depending on the id, so that turns that failed together do not retry together.
fn spread(time: Duration, id: &str) -> Duration {
    if time < SPREAD_FROM {
        return time;
    }
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let share = u32::try_from(hasher.hash_one(id) % 256).unwrap_or_default();
    time + time / 1024 * share
}
