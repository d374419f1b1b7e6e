//! A turn of an app: rounds of the model with calls of session tools between them, joined into one answer.

use bytes::Bytes;
use serde_json::Value;
use switchboard_chat::{ToolReturn, read_arguments};

use crate::put_back::keys_after;
use crate::raw_json::Raw;
use crate::request_format::RoundBody;
use crate::splicer::{FinishReason, PendingCall, SplicedRound, Splicer};
use crate::{
    Api, AppRequest, ConversationText, RecordKey, Refusal, SessionTools, TurnRecord,
    conversation_text, dispatch,
};

/// A turn of an app. The caller sends [`InjectedTurn::body`] to the provider, passes the answer on, runs the calls of
/// [`NextStep::Run`], and so on until [`NextStep::Finish`].
#[derive(Debug)]
pub struct InjectedTurn {
    request: AppRequest,
    splicer: Box<dyn Splicer>,
    tools: SessionTools,
    /// Elements of the conversation from the rounds before this one.
    appended: Vec<Raw>,
    rounds: u32,
    max_rounds: u32,
    calls_made: u32,
    output_tokens: u64,
    /// The last answer of the model.
    last: SplicedRound,
    /// Results of its session calls so far.
    results: Vec<(PendingCall, ToolReturn)>,
    /// Whether the app saw less than what happened.
    hides: bool,
    ends: FinishReason,
}

/// What the caller of a turn decides.
#[derive(Debug, Clone)]
pub struct TurnOptions {
    /// Whether the app is shown the calls that ran here, where its API has words for them. `None`: the API's default.
    pub shows_calls: Option<bool>,
    /// Unique for this turn. All ids of the answer are made from it.
    pub seed: String,
    pub max_rounds: u32,
    /// Seconds since 1970, for answers that have a time.
    pub now: u64,
    /// The name under which the board is shown where calls name a server.
    pub server_label: String,
}

/// A call of a session tool that has to run.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionCall {
    /// The id by which [`InjectedTurn::call_ended`] finds it.
    pub id: String,
    /// The exposed name of the tool.
    pub tool: String,
    pub arguments: Value,
    /// Arguments that are no JSON object. Such a call must be answered with an error.
    pub unreadable: Option<String>,
    /// The app's maximum of calls is reached. Such a call must be answered with an error.
    pub is_over_limit: bool,
}

/// What comes after a round.
#[derive(Debug, PartialEq)]
pub enum NextStep {
    /// Run these calls, in parallel, and give each result to [`InjectedTurn::call_ended`]. Then ask
    /// [`InjectedTurn::after_calls`].
    Run(Vec<SessionCall>),
    /// Send the next request.
    Ask,
    /// Store [`InjectedTurn::record`], then end the answer with [`InjectedTurn::finish`].
    Finish,
}

impl InjectedTurn {
    pub fn new(
        request: AppRequest,
        tools: SessionTools,
        options: &TurnOptions,
    ) -> Result<Self, Refusal> {
        let splicer = dispatch::splicer(request.api(), request.facts(), options);
        Ok(Self {
            request,
            splicer,
            tools,
            appended: Vec::new(),
            rounds: 0,
            max_rounds: options.max_rounds,
            calls_made: 0,
            output_tokens: 0,
            last: SplicedRound::default(),
            results: Vec::new(),
            hides: false,
            ends: FinishReason::Model,
        })
    }

    pub fn api(&self) -> Api {
        self.request.api()
    }

    pub fn request(&self) -> &AppRequest {
        &self.request
    }

    /// The conversation so far as texts, for content checks.
    pub fn conversation_texts(&self) -> Vec<ConversationText> {
        let mut texts = conversation_text::texts(self.request.format.conversation());
        texts.extend(conversation_text::texts(&self.appended));
        texts
    }

    /// The session's tools that are declared.
    pub fn tools(&self) -> &SessionTools {
        &self.tools
    }

    /// Declares other tools from the next request on, because a call changed the tools of the session.
    pub fn set_tools(&mut self, tools: SessionTools) {
        self.tools = tools;
    }

    /// The number of rounds that have ended.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The id of the answer that the app sees, where the API has one.
    pub fn answer_id(&self) -> Option<&str> {
        self.splicer.answer_id()
    }

    /// The body of the next request to the provider.
    pub fn body(&self) -> Bytes {
        let most = self.request.facts().max_output_tokens;
        self.request.format.body(&RoundBody {
            tools: self.tools.declarations(),
            appended: &self.appended,
            is_first: self.rounds == 0,
            output_left: most.map(|most| most.saturating_sub(self.output_tokens)),
            container: self.splicer.container(),
        })
    }

    /// An event of the provider's stream. What the app gets is appended to `out`.
    pub fn event(&mut self, name: &str, data: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let tools = &self.tools;
        self.splicer.event(name, data, &|name| tools.owner(name), out)
    }

    /// The provider's whole answer, if the app asked for no stream.
    pub fn whole_answer(&mut self, body: &str) -> Result<NextStep, Refusal> {
        let tools = &self.tools;
        self.splicer.whole(body, &|name| tools.owner(name))?;
        self.end_round(&mut Vec::new())
    }

    /// The provider's stream has ended.
    pub fn end_round(&mut self, out: &mut Vec<u8>) -> Result<NextStep, Refusal> {
        self.last = self.splicer.end_round(out)?;
        self.rounds += 1;
        self.results.clear();
        self.output_tokens =
            self.output_tokens.saturating_add(self.last.output_tokens.unwrap_or(0));
        if self.last.calls.is_empty() {
            return Ok(NextStep::Finish);
        }
        self.hides = true;
        let pending = self.last.calls.clone();
        Ok(NextStep::Run(pending.iter().map(|call| self.session_call(call)).collect()))
    }

    fn session_call(&mut self, call: &PendingCall) -> SessionCall {
        let (arguments, unreadable) = read_arguments(Value::String(call.arguments.clone()));
        let (tool, arguments) = self.tools.resolve(&call.name, arguments);
        let most = self.request.facts().max_tool_calls;
        let is_over_limit = most.is_some_and(|most| self.calls_made >= most);
        self.calls_made = self.calls_made.saturating_add(1);
        SessionCall { id: call.id.clone(), tool, arguments, unreadable, is_over_limit }
    }

    /// A call has ended. A result of an unknown call is ignored.
    pub fn call_ended(&mut self, id: &str, result: ToolReturn, out: &mut Vec<u8>) {
        let Some(call) = self.last.calls.iter().find(|call| call.id == id).cloned() else { return };
        if self.results.iter().any(|(known, _)| known.id == id) {
            return;
        }
        self.splicer.call_ended(&call, &result, out);
        self.results.push((call, result));
    }

    /// All calls of the round have ended.
    pub fn after_calls(&mut self) -> NextStep {
        if self.last.app_calls > 0 {
            return NextStep::Finish;
        }
        let most = self.request.facts().max_output_tokens;
        if self.rounds >= self.max_rounds {
            self.ends = FinishReason::RoundLimit;
            return NextStep::Finish;
        }
        if most.is_some_and(|most| self.output_tokens >= most) {
            self.ends = FinishReason::OutputLimit;
            return NextStep::Finish;
        }
        let results = self.ordered_results();
        let results = self.request.format.results_as_elements(results);
        self.appended.append(&mut self.last.replay);
        self.appended.extend(results);
        self.last.calls.clear();
        NextStep::Ask
    }

    /// The results in the order of their calls.
    fn ordered_results(&self) -> Vec<Raw> {
        let ordered =
            self.last.calls.iter().filter_map(|call| {
                self.results.iter().find(|(known, _)| known.id == call.id).cloned()
            });
        self.request.format.results(&ordered.collect::<Vec<_>>())
    }

    /// What has to be stored before the end of the answer is sent, and the keys to store it under: the app saw less than
    /// what happened, or may name the answer by its id.
    pub fn record(&self) -> Option<(Vec<RecordKey>, TurnRecord)> {
        let answer = self.answer_id().filter(|_| self.request.facts().is_stored);
        if !self.hides && answer.is_none() {
            return None;
        }
        let is_stored = answer.is_some();
        let mut keys: Vec<_> =
            answer.map(|id| RecordKey::of_answer(self.api(), id)).into_iter().collect();
        if self.hides {
            let units = &self.request.units;
            let (shown, handles) = (self.splicer.shown(), self.splicer.handles());
            keys.extend(keys_after(self.api(), units, &shown, &handles));
        }
        let mut real = self.appended.clone();
        real.extend(self.last.replay.iter().cloned());
        let upstream_id = self.last.upstream_id.clone();
        // What the provider stores need not be stored here.
        let conversation = match upstream_id {
            None if is_stored => self.request.format.conversation().to_vec(),
            _ => Vec::new(),
        };
        let answer = self.splicer.stored_answer(self.ends).filter(|_| is_stored);
        let kept = self.request.format.kept_members().filter(|_| is_stored);
        let pending = self.ordered_results();
        Some((keys, TurnRecord { real, pending, conversation, kept, answer, upstream_id }))
    }

    /// Whether the current round may be repeated: nothing of it was sent to the app.
    pub fn can_repeat_round(&self) -> bool {
        !self.splicer.has_shown_of_round()
    }

    /// Whether a refused request is worth another try, now without the sealed thinking of earlier turns. Some models bind it
    /// to everything before it, so that it is refused after a change of the session's tools.
    pub fn drop_thinking(&mut self, refusal: &Refusal) -> bool {
        self.can_repeat_round() && self.request.format.drop_thinking(refusal)
    }

    /// Forgets what was read of the current round, which is repeated.
    pub fn abandon_round(&mut self) {
        self.splicer.abandon_round();
    }

    /// Writes the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.splicer.finish(self.ends, out);
    }

    /// The whole answer, if the app asked for no stream.
    pub fn finish_whole(&mut self) -> String {
        self.splicer.finish_whole(self.ends)
    }

    /// Ends a stream that has begun with an error.
    pub fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        self.splicer.fail(refusal, out);
    }

    /// A frame that keeps the connection open while calls run.
    pub fn keep_alive(&self) -> &'static [u8] {
        self.splicer.keep_alive()
    }
}
