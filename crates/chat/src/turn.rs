//! One turn: from a user message to the final answer, over any number of model requests and tool calls.
//!
//! [`Turn`] is a pure state machine. It takes inputs ([`TurnInput`]) and returns actions ([`Action`]) in order; its
//! driver owns the network, the clock and the store. In every state, the stored messages are a valid conversation.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::retry::wait_before_next;
use crate::{
    Block, FaultKind, Message, ModelEvent, ModelFault, Part, ReactStep, Reply, Stop, ToolCall,
    ToolReturn, TurnEvent, TurnProblem, TurnStatus, Usage,
};

/// Limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Maximum number of rounds of tool results.
    pub rounds: u32,
    /// Maximum number of tool calls over all rounds.
    pub calls: usize,
    /// Maximum number of equal results in a row of the same call; further ones are not run.
    pub same_results: u32,
    /// Maximum number of attempts for one request.
    pub attempts: u32,
    /// Maximum number of tokens over all requests.
    pub tokens: Option<u64>,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { rounds: 25, calls: 500, same_results: 8, attempts: 4, tokens: None }
    }
}

/// An input of the state machine.
#[derive(Debug)]
pub enum TurnInput {
    /// An event of the response to the last [`Action::Ask`].
    Model(ModelEvent),
    /// A tool call ended.
    Returned(ToolReturn),
    /// A tool call was blocked, or its result: the turn must not go on. The result says so to the model.
    Blocked(ToolReturn),
    /// The delay of [`Action::Wait`] is over.
    Waited,
    /// The declared tools changed; the request in progress is restarted with the new tools.
    ToolsChanged { tools_revision: u64 },
    /// The user cancelled the turn.
    Cancel,
}

/// An action for the driver. Actions must be performed in order.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Send a model request with the current messages, and the correction if there is one.
    Ask,
    /// Abort the model request in progress.
    Drop,
    /// Send [`TurnInput::Waited`] after this delay.
    Wait(Duration),
    /// Run this call concurrently with others and send its result as [`TurnInput::Returned`].
    Call(ToolCall),
    /// Abort the running calls; they have results already.
    StopCalls,
    /// Store the new messages before the next action.
    Keep,
    /// Store the result of a call before the next action, while other calls of the same reply still run. It becomes a
    /// message together with theirs, at the next [`Action::Keep`].
    KeepResult(Box<ToolReturn>),
    /// Send the event to the clients that follow the turn.
    Emit(TurnEvent),
    /// The turn is over.
    End,
}

#[derive(Debug)]
enum Phase {
    Asking,
    Waiting,
    /// The tools changed, and more changes may follow: the number of times that the delay was restarted.
    Settling(u32),
    /// The calls of the last reply with their results, in the order of the calls.
    Calling(Vec<(ToolCall, Option<ToolReturn>)>),
    Ended,
}

/// The state machine of one turn, from a user message to the final answer. Does no I/O.
#[derive(Debug)]
pub struct Turn {
    id: String,
    messages: Vec<Message>,
    limits: TurnLimits,
    phase: Phase,
    rounds: u32,
    attempt: u32,
    calls: usize,
    /// The number in the id of the next call.
    named: usize,
    /// The ids of all calls of the conversation.
    ids: HashSet<String>,
    /// The last result for each tool name and arguments, and how often it came in a row.
    given: HashMap<(String, String), (ToolReturn, u32)>,
    /// The text of the response in progress.
    partial: String,
    correction: Option<&'static str>,
    usage: Usage,
    /// The usage of the response in progress.
    latest: Option<Usage>,
    actions: VecDeque<Action>,
}

/// Changes of the tools within this time are treated as one: each restart costs a request.
const SETTLE: Duration = Duration::from_millis(40);
/// Maximum number of times that the delay is restarted, so that constant changes do not block the turn.
const MAX_SETTLE_RESTARTS: u32 = 12;

const MALFORMED: &str = "Your last tool call was not well-formed and was not run. Call the tool again with valid JSON arguments, or answer without it.";
const UNEXPECTED: &str = "Your last answer called a tool that is not declared. Use only the declared tools, by their exact names, or answer without them.";

fn key(call: &ToolCall) -> (String, String) {
    (call.name.clone(), call.arguments.to_string())
}

impl Turn {
    /// Starts a turn. `messages` must end with the user's message.
    pub fn new(id: impl Into<String>, messages: Vec<Message>, limits: TurnLimits) -> Self {
        let replies = messages.iter().filter_map(|message| match message {
            Message::Assistant(reply) => Some(reply),
            Message::System(_) | Message::User(_) | Message::Tool(_) => None,
        });
        let ids = replies.flat_map(Reply::calls).map(|call| call.id.clone()).collect();
        let mut turn = Self {
            id: id.into(),
            messages,
            limits,
            phase: Phase::Asking,
            rounds: 0,
            attempt: 0,
            calls: 0,
            named: 0,
            ids,
            given: HashMap::new(),
            partial: String::new(),
            correction: None,
            usage: Usage::default(),
            latest: None,
            actions: VecDeque::new(),
        };
        turn.actions.push_back(Action::Keep);
        turn.actions.push_back(Action::Ask);
        turn
    }

    /// The conversation including the messages of this turn.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// A message that is added to the next request only and is never stored.
    pub fn correction(&self) -> Option<Message> {
        self.correction.map(Message::user)
    }

    /// The token usage of the turn so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The next action, if there is one.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Processes an input. Inputs that no longer apply, such as events of an aborted request, change nothing.
    pub fn on(&mut self, input: TurnInput) {
        match (input, &mut self.phase) {
            (_, Phase::Ended) => {}
            (TurnInput::Model(event), Phase::Asking) => self.model(event),
            (TurnInput::Returned(result), Phase::Calling(_)) => self.returned(result),
            (TurnInput::Blocked(result), Phase::Calling(_)) => self.blocked(result),
            (TurnInput::Waited, Phase::Waiting | Phase::Settling(_)) => self.ask(),
            (TurnInput::ToolsChanged { tools_revision }, Phase::Asking) => {
                self.act([Action::Drop]);
                self.count_given_up();
                self.emit(TurnEvent::Restarted { tools_revision });
                self.attempt = 0;
                self.phase = Phase::Settling(1);
                self.act([Action::Wait(SETTLE)]);
            }
            (TurnInput::ToolsChanged { .. }, Phase::Settling(times))
                if *times < MAX_SETTLE_RESTARTS =>
            {
                *times += 1;
                self.act([Action::Wait(SETTLE)]);
            }
            (TurnInput::Cancel, _) => self.cancel(),
            // The next request declares the new tools anyway; other late inputs belong to an aborted request.
            (
                TurnInput::ToolsChanged { .. }
                | TurnInput::Model(_)
                | TurnInput::Returned(_)
                | TurnInput::Blocked(_)
                | TurnInput::Waited,
                _,
            ) => {}
        }
    }

    fn act(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.actions.extend(actions);
    }

    fn emit(&mut self, event: TurnEvent) {
        self.actions.push_back(Action::Emit(event));
    }

    fn ask(&mut self) {
        self.phase = Phase::Asking;
        self.partial.clear();
        self.latest = None;
        self.act([Action::Ask]);
    }

    fn model(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text(delta) => {
                self.partial.push_str(&delta);
                self.emit(TurnEvent::Content { delta });
            }
            ModelEvent::Thinking(delta) => self.emit(TurnEvent::Thinking { delta }),
            ModelEvent::CallBegun { index, name } => {
                self.emit(TurnEvent::ToolCallBegun { index, name });
            }
            ModelEvent::CallArguments { index, delta } => {
                self.emit(TurnEvent::ToolCallDelta { index, delta });
            }
            ModelEvent::Step(step) => self.emit(match step {
                ReactStep::Thought(text) => TurnEvent::Thought { text },
                ReactStep::Answer(text) => TurnEvent::Answer { text },
                ReactStep::Problem(text) => {
                    TurnEvent::Observation { id: None, is_error: true, text }
                }
            }),
            ModelEvent::Usage(usage) => self.latest = Some(usage),
            ModelEvent::Finished(reply) => self.finished(*reply),
            ModelEvent::Failed(fault) => self.failed(&fault),
        }
    }

    fn finished(&mut self, mut reply: Reply) {
        reply.usage = reply.usage.or(self.latest.take());
        if let Some(usage) = reply.usage {
            self.usage = self.usage.and(usage);
            let turn = self.usage;
            self.emit(TurnEvent::Usage { usage, turn });
        }
        let has_said = |block: &Block| match block {
            Block::Text { text, .. } => !text.is_empty(),
            Block::Reasoning { .. } => false,
            Block::ToolCall(_) => true,
        };
        if reply.stop == Stop::End && !reply.content.iter().any(has_said) {
            let nothing = ModelFault::new(FaultKind::Interrupted, "the model gave an empty answer");
            return self.failed(&nothing);
        }
        if reply.stop == Stop::Refused {
            // Calls in an answer that a content filter stopped are not run.
            reply.content.retain(|block| !matches!(block, Block::ToolCall(_)));
        }
        reply.turn = Some(self.id.clone());
        self.name_calls(&mut reply);
        (self.attempt, self.correction) = (0, None);
        let calls: Vec<_> = reply.calls().cloned().collect();
        let stop = reply.stop;
        if !reply.content.is_empty() {
            self.messages.push(Message::Assistant(reply));
        }
        self.act([Action::Keep]);
        match (calls.is_empty(), stop) {
            (false, _) => self.run(calls),
            (true, Stop::Paused) => {
                self.rounds += 1;
                self.next_round();
            }
            (true, Stop::Refused) => {
                let fault = ModelFault::new(
                    FaultKind::Refused,
                    "the model, or its provider, refused to answer",
                );
                self.emit(TurnEvent::Error { error: (&fault).into() });
                self.end(TurnStatus::Failed, Some(stop));
            }
            (true, _) => self.end(TurnStatus::Completed, Some(stop)),
        }
    }

    /// Assigns an id to every call. A call that the stream contained twice is kept once.
    fn name_calls(&mut self, reply: &mut Reply) {
        let mut seen: HashMap<String, ToolCall> = HashMap::new();
        reply.content.retain(|block| {
            let Block::ToolCall(call) = block else { return true };
            let id = call.origin.as_ref().and_then(|origin| origin.id.clone());
            let known = id.and_then(|id| seen.insert(id, (**call).clone()));
            known.is_none_or(|known| known != **call)
        });
        for block in &mut reply.content {
            if let Block::ToolCall(call) = block {
                // An imported conversation may already contain ids with this turn's id.
                loop {
                    call.id = format!("call_{}_{}", self.id, self.named);
                    self.named += 1;
                    if self.ids.insert(call.id.clone()) {
                        break;
                    }
                }
                self.calls += 1;
            }
        }
    }

    fn run(&mut self, calls: Vec<ToolCall>) {
        self.rounds += 1;
        let slots: Vec<_> = calls
            .into_iter()
            .map(|call| {
                let refused = self.refusal(&call).map(|text| ToolReturn::failed(&call, text));
                (call, refused)
            })
            .collect();
        let some_run = slots.iter().any(|(_, refused)| refused.is_none());
        for (call, refused) in &slots {
            self.emit(TurnEvent::called(call));
            match refused {
                Some(result) => {
                    if some_run {
                        self.act([Action::KeepResult(Box::new(result.clone()))]);
                    }
                    self.emit(TurnEvent::returned(result));
                }
                None => self.act([Action::Call(call.clone())]),
            }
        }
        self.phase = Phase::Calling(slots);
        if !some_run {
            self.keep_results();
            self.next_round();
        }
    }

    /// The error result for a call that must not be run; `None` if it can run.
    fn refusal(&self, call: &ToolCall) -> Option<String> {
        if let Some(text) = &call.unreadable {
            let start: String = text.chars().take(200).collect();
            return Some(format!(
                "The call was not run: its arguments are not a JSON object. Write one object, such as {{\"name\": \"value\"}}. They begin with: {start}"
            ));
        }
        if self.rounds > self.limits.rounds {
            let most = self.limits.rounds;
            return Some(format!(
                "The call was not run: a turn has at most {most} rounds of calls, and they are used up."
            ));
        }
        if self.calls > self.limits.calls {
            let most = self.limits.calls;
            return Some(format!(
                "The call was not run: a turn has at most {most} calls, and they are used up."
            ));
        }
        let most = self.limits.same_results;
        let given = self.given.get(&key(call));
        given.is_some_and(|(_, times)| *times >= most).then(|| {
            format!(
                "The call was not run: with the same arguments it gave the same result {most} times in a row. Use that result, or do something else."
            )
        })
    }

    fn returned(&mut self, result: ToolReturn) {
        let Phase::Calling(slots) = &mut self.phase else { return };
        let open = slots.iter_mut().find(|(call, slot)| call.id == result.call && slot.is_none());
        let Some((call, slot)) = open else { return };
        let given = self.given.entry(key(call)).or_insert_with(|| (result.clone(), 0));
        if (&given.0.content, &given.0.structured) != (&result.content, &result.structured) {
            *given = (result.clone(), 0);
        }
        given.1 += 1;
        let event = TurnEvent::returned(&result);
        *slot = Some(result.clone());
        // Each result is stored before it is announced, so it survives a restart while other calls still run.
        if slots.iter().any(|(_, slot)| slot.is_none()) {
            self.act([Action::KeepResult(Box::new(result))]);
            self.emit(event);
        } else {
            self.keep_results();
            self.emit(event);
            self.next_round();
        }
    }

    /// Ends the turn with the result of a blocked call. Calls that still run are stopped.
    fn blocked(&mut self, result: ToolReturn) {
        let Phase::Calling(slots) = &mut self.phase else { return };
        let open = slots.iter_mut().find(|(call, slot)| call.id == result.call && slot.is_none());
        let Some((_, slot)) = open else { return };
        let event = TurnEvent::returned(&result);
        let message = result.content.iter().find_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            Part::Image(_) | Part::File { .. } => None,
        });
        let fault = ModelFault::new(FaultKind::Blocked, message.unwrap_or_default());
        *slot = Some(result);
        let slots = std::mem::take(slots);
        self.emit(event);
        let text =
            "The call was stopped because another call was blocked. It may have taken effect.";
        self.close_calls(slots, text);
        self.act([Action::Keep]);
        self.emit(TurnEvent::Error { error: (&fault).into() });
        self.end(TurnStatus::Failed, None);
    }

    /// Stops the running calls and gives them this error as their result.
    fn close_calls(&mut self, slots: Vec<(ToolCall, Option<ToolReturn>)>, text: &str) {
        self.act([Action::StopCalls]);
        for (call, result) in slots {
            let result = result.unwrap_or_else(|| {
                let result = ToolReturn::failed(&call, text);
                self.actions.push_back(Action::Emit(TurnEvent::returned(&result)));
                result
            });
            self.messages.push(Message::Tool(result));
        }
    }

    /// Turns the results of a reply into messages once all of them are there.
    fn keep_results(&mut self) {
        let Phase::Calling(slots) = &mut self.phase else { return };
        let results = std::mem::take(slots).into_iter().filter_map(|(_, result)| result);
        self.messages.extend(results.map(Message::Tool));
        self.act([Action::Keep]);
    }

    fn next_round(&mut self) {
        if self.rounds > self.limits.rounds {
            let most = self.limits.rounds;
            let text = format!("the model still calls tools after {most} rounds of results");
            return self.limited(text, "say more exactly what is wanted, or raise `max_rounds`");
        }
        if self.calls > self.limits.calls {
            let most = self.limits.calls;
            let text = format!("the model made more than {most} tool calls in this turn");
            return self.limited(text, "say more exactly what is wanted");
        }
        if let Some(most) = self.limits.tokens
            && self.usage.total() >= most
        {
            let text = format!("the turn used {} tokens of {most}", self.usage.total());
            return self.limited(text, "raise `max_tokens_total`, or ask for less at once");
        }
        self.ask();
    }

    fn limited(&mut self, text: String, advice: &'static str) {
        self.emit(TurnEvent::Error { error: TurnProblem::limit(text, advice) });
        self.end(TurnStatus::Limited, None);
    }

    /// Counts the usage of an aborted response.
    fn count_given_up(&mut self) {
        if let Some(usage) = self.latest.take() {
            self.usage = self.usage.and(usage);
        }
    }

    fn failed(&mut self, fault: &ModelFault) {
        self.count_given_up();
        self.correction = match fault.kind {
            FaultKind::MalformedCall => Some(MALFORMED),
            FaultKind::UnexpectedCall => Some(UNEXPECTED),
            _ => self.correction,
        };
        let wait = wait_before_next(fault, self.attempt);
        match wait {
            Some(wait) if self.attempt + 1 < self.limits.attempts => {
                self.attempt += 1;
                self.emit(TurnEvent::Retrying {
                    attempt: self.attempt,
                    after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    error: fault.into(),
                });
                self.phase = Phase::Waiting;
                self.act([Action::Wait(wait)]);
            }
            _ => {
                self.emit(TurnEvent::Error { error: fault.into() });
                self.end(TurnStatus::Failed, None);
            }
        }
    }

    fn cancel(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Asking => {
                self.act([Action::Drop]);
                self.count_given_up();
                let text = std::mem::take(&mut self.partial);
                if !text.is_empty() {
                    // The text is kept. Incomplete thinking and incomplete calls are dropped.
                    let content = vec![Block::text(text)];
                    let (stop, turn) = (Stop::Cancelled, Some(self.id.clone()));
                    let reply = Reply { content, stop, turn, ..Reply::default() };
                    self.messages.push(Message::Assistant(reply));
                }
            }
            Phase::Calling(slots) => {
                let text = "The call was cancelled by the user. It may have taken effect.";
                self.close_calls(slots, text);
            }
            Phase::Waiting | Phase::Settling(_) | Phase::Ended => {}
        }
        self.act([Action::Keep]);
        self.end(TurnStatus::Cancelled, Some(Stop::Cancelled));
    }

    fn end(&mut self, status: TurnStatus, stop: Option<Stop>) {
        self.phase = Phase::Ended;
        let messages = self.messages.len();
        self.emit(TurnEvent::Done { status, stop, usage: self.usage, messages });
        self.act([Action::End]);
    }
}
