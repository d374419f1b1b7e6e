//! One request that a server works on, and everything that is said meanwhile.
//!
//! The eras ask for input in different ways: a legacy server sends a question and waits, a modern one answers
//! `input_required` and is asked again. A conversation turns either into what its client speaks.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{Future, StreamExt};
use switchboard_model::{CanonicalName, Face, JsonText, ServerName};
use switchboard_protocol::{
    Capabilities, Members, Need, ResultKind, code, notification, params_text, push_string, quoted,
    read_result_head, request, with_members, without_member,
};
use switchboard_runtime::{
    Ask, AskEvent, CallFailed, Heard, PassFailure, Passing, RawAnswer, RawCall, RawResult,
    RpcError, ToolChoice, ear,
};
use switchboard_sessions::Session;
use switchboard_view::{ListEra, Scope};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::client::{Client, Reply};
use crate::gateway::Gateway;
use crate::level::Level;
use crate::outcome::{self, COMPLETE, Outcome};

/// How often a server may ask for more before it is taken to go in circles.
const MAX_ROUNDS: u32 = 16;
/// A legacy server that asks several things asks them one by one; a modern client is asked for all of them at once.
const MORE_QUESTIONS: Duration = Duration::from_millis(25);
/// What a server may say before the client has read it; more signs of life are dropped.
const WAITING_EVENTS: usize = 32;

/// That no cache may give it to anybody else.
const PRIVATE: (&str, &str) = ("cacheScope", "\"private\"");

/// Who asks, and what it can be asked.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) principal: Arc<str>,
    /// The legacy client; `None` in the modern era.
    pub(crate) client: Option<Arc<Client>>,
    /// Whose toolsets it sees, if anybody's.
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) capabilities: Capabilities,
    pub(crate) capabilities_text: Option<Arc<str>>,
    pub(crate) log_level: Option<Level>,
    /// Whether anything but the answer can be sent.
    pub(crate) can_stream: bool,
}

impl Asker {
    pub(crate) fn era(&self) -> ListEra {
        if self.client.is_some() { ListEra::Legacy } else { ListEra::Modern }
    }

    fn hears(&self, level: Option<Level>) -> bool {
        match (self.log_level, self.era()) {
            (Some(least), _) => level.is_none_or(|level| level >= least),
            // Older servers choose until they are told; modern clients say when they want to hear.
            (None, ListEra::Legacy) => true,
            (None, ListEra::Modern) => false,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    Call { tool: CanonicalName, arguments: Option<String> },
    Pass { server: ServerName, method: &'static str, name: Option<String>, params: String },
}

/// What a request says beside its job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// As text.
    pub(crate) progress_token: Option<String>,
    /// Foreign members of `_meta`, as text.
    pub(crate) meta: String,
    /// Further members of `params`: `inputResponses`, `requestState`, whatever is unknown to us.
    pub(crate) extra: String,
}

/// What a session brought is found with the session.
fn choice(name: CanonicalName, session: Option<&Arc<str>>) -> ToolChoice {
    match session {
        Some(owner) if name.server().is_attached() => {
            ToolChoice::Owned { owner: owner.clone(), name }
        }
        _ => ToolChoice::Exact(name),
    }
}

enum Done {
    Call(Result<RawAnswer, CallFailed>),
    Pass(Result<RawResult, PassFailure>),
}

/// The client's answer to something.
enum Answered {
    /// A question of a legacy server, which waits for it.
    Question { reply: oneshot::Sender<Reply>, answer: Reply },
    /// None: the server no longer wants to know. This is the id by which the client knows the question.
    Withdrawn { id: String },
    /// A part of what a modern server wants.
    Input { key: String, method: String, answer: Reply },
}

/// A question of a legacy server for a modern client.
struct Waiting {
    method: String,
    params: Option<JsonText>,
    reply: oneshot::Sender<Reply>,
}

/// What a modern server wants from a legacy client.
struct Collecting {
    missing: usize,
    responses: BTreeMap<String, JsonText>,
    state: Option<String>,
}

/// What comes next.
pub(crate) enum Step {
    /// A message for the client.
    Message(String),
    Done(Outcome),
    /// The client must be asked; the conversation goes on when it comes back with this state.
    Park {
        state: String,
        outcome: Outcome,
    },
}

/// A request on its way.
pub(crate) struct Conversation {
    gateway: Arc<Gateway>,
    pub(crate) asker: Asker,
    pub(crate) job: Job,
    wishes: Wishes,
    work: Option<Pin<Box<dyn Future<Output = Done> + Send>>>,
    events: Option<Heard>,
    messages: VecDeque<String>,
    /// What comes after the messages that are left.
    last: Option<Outcome>,
    /// What the client was asked. There is none before the first question: most calls have none.
    asked: Option<FuturesUnordered<BoxFuture<'static, Answered>>>,
    collecting: Option<Collecting>,
    waiting: BTreeMap<String, Waiting>,
    /// When the client is asked what has gathered.
    park_at: Option<Instant>,
    questions: u32,
    rounds: u32,
}

impl Conversation {
    pub(crate) fn new(gateway: Arc<Gateway>, asker: Asker, job: Job, wishes: Wishes) -> Self {
        let mut conversation = Self {
            gateway,
            asker,
            job,
            wishes,
            work: None,
            events: None,
            messages: VecDeque::new(),
            last: None,
            asked: None,
            collecting: None,
            waiting: BTreeMap::new(),
            park_at: None,
            questions: 0,
            rounds: 0,
        };
        let extra = std::mem::take(&mut conversation.wishes.extra);
        conversation.begin(extra);
        conversation
    }

    /// Something to tell the client before anything else.
    pub(crate) fn say(&mut self, message: String) {
        self.messages.push_back(message);
    }

    fn begin(&mut self, extra: String) {
        let (events, heard) = ear(WAITING_EVENTS);
        self.events = Some(heard);
        let board = self.gateway.board.clone();
        let passing = Passing {
            params: extra,
            meta: self.wishes.meta.clone(),
            capabilities: self.asker.capabilities_text.clone(),
            log_level: self.asker.log_level.map(|level| level.as_str().into()),
            wants_progress: self.wishes.progress_token.is_some(),
            // Modern requests stand alone: two without an origin are never of the same one.
            origin: self.asker.client.as_ref().map(|client| client.id.clone()),
            session: self.asker.session.as_ref().map(|session| session.id.clone()),
        };
        self.work = Some(match self.job.clone() {
            Job::Call { tool, arguments } => {
                let call = RawCall {
                    tool: choice(tool, passing.session.as_ref()),
                    arguments,
                    face: Face::Mcp,
                    passing,
                    events: Some(events),
                };
                Box::pin(async move { Done::Call(board.call_raw(call).await.result) })
            }
            Job::Pass { server, method, name, mut params } => {
                if !passing.params.is_empty() {
                    if !params.is_empty() {
                        params.push(',');
                    }
                    params.push_str(&passing.params);
                }
                let ask = Ask {
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
                Box::pin(async move { Done::Pass(board.pass(&server, ask, Some(events)).await) })
            }
        });
    }

    /// Waits for the next thing to tell the client. Dropping the conversation cancels the request.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Step::Message(message);
            }
            if let Some(outcome) = self.last.take() {
                return Step::Done(outcome);
            }
            tokio::select! {
                biased;
                Some(event) = next_event(&mut self.events) => {
                    if let Some(step) = self.hear(event) {
                        return step;
                    }
                }
                done = next_done(&mut self.work) => {
                    self.work = None;
                    self.hear_the_rest();
                    self.last = self.finish(done);
                }
                () = until(self.park_at), if self.park_at.is_some() => {
                    self.park_at = None;
                    return self.park();
                }
                Some(answered) = next_answer(&mut self.asked) => {
                    if let Some(outcome) = self.take_answer(answered) {
                        return Step::Done(outcome);
                    }
                }
            }
        }
    }

    /// Signs of life that came together with the answer are told before it.
    fn hear_the_rest(&mut self) {
        while let Some(event) = self.events.as_mut().and_then(Heard::next_now) {
            // Nobody waits for the answer to a question any more.
            if !matches!(event, AskEvent::Question { .. }) {
                self.hear(event);
            }
        }
    }

    fn hear(&mut self, event: AskEvent) -> Option<Step> {
        match event {
            AskEvent::Progress(params) => {
                if let Some(token) =
                    self.wishes.progress_token.as_ref().filter(|_| self.asker.can_stream)
                {
                    let params = with_token(params.as_str(), token);
                    self.say(notification("notifications/progress", Some(&params)));
                }
            }
            AskEvent::Log(params) => {
                let level = Members::read(params.as_str()).ok();
                let level = level.and_then(|log| Level::read(&log.string("level")?));
                if self.asker.can_stream && self.asker.hears(level) {
                    self.say(notification("notifications/message", Some(params.as_str())));
                }
            }
            // Modern clients know no such thing.
            AskEvent::ElicitationComplete(params) => {
                let is_known =
                    self.asker.client.is_some() && self.asker.capabilities.meet(Need::Url);
                if is_known && self.asker.can_stream {
                    let method = "notifications/elicitation/complete";
                    self.say(notification(method, Some(params.as_str())));
                }
            }
            AskEvent::Question { method, params, reply } => {
                return self.take_question(method, params, reply);
            }
        }
        None
    }

    /// A legacy server asks.
    fn take_question(
        &mut self,
        method: String,
        params: Option<JsonText>,
        reply: oneshot::Sender<Reply>,
    ) -> Option<Step> {
        let Some(need) = Need::of(&method, params.as_ref().map(JsonText::as_str)) else {
            refuse(reply, code::METHOD_NOT_FOUND, "nobody answers such questions");
            return None;
        };
        let can_answer = self.asker.capabilities.meet(need);
        match self.asker.client.clone() {
            Some(client) if can_answer && self.asker.can_stream => {
                if let Some((id, answer)) = self.ask_client(&client, &method, params.as_ref()) {
                    let answered = answered_or_withdrawn(id, answer, reply);
                    self.asked.get_or_insert_default().push(Box::pin(answered));
                } else {
                    let message = "the client has too many open questions";
                    refuse(reply, code::METHOD_NOT_FOUND, message);
                }
                None
            }
            None if can_answer => {
                self.questions += 1;
                let word = method.split('/').next().unwrap_or("input");
                let key = format!("{word}_{}", self.questions);
                self.waiting.insert(key, Waiting { method, params, reply });
                self.park_at.get_or_insert_with(|| Instant::now() + MORE_QUESTIONS);
                None
            }
            None if need != Need::Roots => Some(Step::Done(outcome::missing_capability(need))),
            // It knows the method, but not the mode.
            Some(_) if need == Need::Url && self.asker.capabilities.meet(Need::Form) => {
                let message = "the client does not take elicitation of mode `url`";
                refuse(reply, code::INVALID_PARAMS, message);
                None
            }
            _ => {
                refuse(reply, code::METHOD_NOT_FOUND, "the client does not answer such questions");
                None
            }
        }
    }

    fn ask_client(
        &mut self,
        client: &Client,
        method: &str,
        params: Option<&JsonText>,
    ) -> Option<(String, oneshot::Receiver<Reply>)> {
        let (id, answer) = client.ask()?;
        self.say(request(&id, method, params.map(JsonText::as_str)));
        Some((id, answer))
    }

    /// Tells a modern client what a waiting legacy server wants.
    pub(crate) fn park(&self) -> Step {
        let state = self.gateway.new_state();
        let mut requests = String::new();
        for (key, waiting) in &self.waiting {
            if !requests.is_empty() {
                requests.push(',');
            }
            push_string(&mut requests, key);
            let method = quoted(&waiting.method);
            let mut members = vec![("method", method.as_str())];
            members.extend(waiting.params.as_ref().map(|params| ("params", params.as_str())));
            requests.push_str(":{");
            requests.push_str(&params_text(&members));
            requests.push('}');
        }
        let text = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{{{requests}}},\"requestState\":{}}}",
            quoted(&state)
        );
        Step::Park { state, outcome: Outcome::text(text) }
    }

    /// Goes on with what the client came back with; asks again for what is still missing.
    pub(crate) fn resume(&mut self, wishes: Wishes, responses: &Members<'_>) -> Option<Step> {
        self.wishes.progress_token = wishes.progress_token;
        let given: Vec<String> =
            self.waiting.keys().filter(|key| is_usable(responses.get(key))).cloned().collect();
        for key in given {
            let answer = responses.get(&key).and_then(|text| JsonText::from_text(text).ok());
            if let (Some(waiting), Some(answer)) = (self.waiting.remove(&key), answer) {
                // The server may have stopped waiting; then its answer says so.
                let _gone = waiting.reply.send(Ok(answer));
            }
        }
        (!self.waiting.is_empty()).then(|| self.park())
    }

    fn finish(&mut self, done: Done) -> Option<Outcome> {
        let era = self.asker.era();
        match done {
            Done::Call(Ok(answer)) if answer.head.kind == ResultKind::InputRequired => {
                self.want_input(answer.as_str())
            }
            Done::Call(Ok(answer)) => Some(outcome::of_answer(era, answer)),
            Done::Call(Err(failed)) => Some(outcome::of_failed_call(era, failed)),
            Done::Pass(Ok(result)) => {
                let head = read_result_head(result.as_str()).ok();
                if head.as_ref().is_some_and(|head| head.kind == ResultKind::InputRequired) {
                    return self.want_input(result.as_str());
                }
                Some(self.passed(result))
            }
            Done::Pass(Err(failed)) => {
                let uri = match &self.job {
                    Job::Pass { name, method: "resources/read", .. } => name.as_deref(),
                    Job::Pass { .. } | Job::Call { .. } => None,
                };
                Some(outcome::of_failed_pass(era, failed, uri))
            }
        }
    }

    fn passed(&self, result: RawResult) -> Outcome {
        let method = match &self.job {
            Job::Pass { method, .. } => *method,
            Job::Call { .. } => "",
        };
        let hints: &[_] = match (self.asker.era(), method) {
            (ListEra::Legacy, _) => return Outcome::Result(result.0),
            (ListEra::Modern, "resources/read") => &[COMPLETE, ("ttlMs", "0"), PRIVATE],
            (ListEra::Modern, _) => &[COMPLETE],
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
        Outcome::text(with_members(&result, hints))
    }

    /// A modern server wants input: a modern client is told, a legacy one is asked.
    fn want_input(&mut self, result: &str) -> Option<Outcome> {
        let Some(client) = self.asker.client.clone() else {
            return Some(Outcome::text(self.sealed(result)));
        };
        let era = ListEra::Legacy;
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Some(Outcome::tool_error(era, "the server keeps asking for more input"));
        }
        let members = Members::read(result).unwrap_or_default();
        let requests = members.object("inputRequests").unwrap_or_default();
        let state = members.get("requestState").map(str::to_owned);
        let mut missing = 0;
        for (key, wanted) in requests.iter() {
            let wanted = Members::read(wanted).unwrap_or_default();
            let method = wanted.string("method").unwrap_or_default().into_owned();
            let need = Need::of(&method, wanted.get("params"));
            let can_answer = need.is_some_and(|need| self.asker.capabilities.meet(need));
            if !can_answer || !self.asker.can_stream {
                let message =
                    format!("the server asks the client for {method}, which it does not offer");
                return Some(Outcome::tool_error(era, message));
            }
            let params = wanted.get("params").and_then(|text| JsonText::from_text(text).ok());
            let Some((_, answer)) = self.ask_client(&client, &method, params.as_ref()) else {
                return Some(Outcome::tool_error(era, "the client has too many open questions"));
            };
            missing += 1;
            let key = key.to_owned();
            self.asked.get_or_insert_default().push(Box::pin(async move {
                let answer = answer.await.unwrap_or_else(|_| Err(gave_up()));
                Answered::Input { key, method, answer }
            }));
        }
        self.collecting = Some(Collecting { missing, responses: BTreeMap::new(), state });
        self.go_on();
        None
    }

    /// What a modern server wants, its state bound to who asked and what for.
    fn sealed(&self, result: &str) -> String {
        let members = Members::read(result).unwrap_or_default();
        match (members.string("requestState"), self.gateway.seal.get()) {
            (Some(state), Some(seal)) => {
                let now = jiff::Timestamp::now();
                let sealed = quoted(&seal.close(&self.asker.principal, &self.job, &state, now));
                let rest = without_member(result, "requestState");
                with_members(&rest, &[("requestState", &sealed)])
            }
            _ => without_member(result, "requestState"),
        }
    }

    fn take_answer(&mut self, answered: Answered) -> Option<Outcome> {
        match answered {
            Answered::Question { reply, answer } => {
                let _gone = reply.send(answer);
            }
            Answered::Withdrawn { id } => {
                let params = format!(r#"{{"requestId":{id},"reason":"the server withdrew it"}}"#);
                self.say(notification("notifications/cancelled", Some(&params)));
            }
            Answered::Input { key, method, answer } => {
                let response = match answer {
                    Ok(response) => response,
                    Err(_) if method == "elicitation/create" => {
                        JsonText::from(&serde_json::json!({"action": "cancel"}))
                    }
                    Err(error) => {
                        let message = format!("the client refused {method}: {}", error.message);
                        return Some(Outcome::tool_error(ListEra::Legacy, message));
                    }
                };
                if let Some(collecting) = &mut self.collecting {
                    collecting.missing -= 1;
                    collecting.responses.insert(key, response);
                }
                self.go_on();
            }
        }
        None
    }

    /// Asks the server again once everything that it wanted is there.
    fn go_on(&mut self) {
        if self.collecting.as_ref().is_some_and(|collecting| collecting.missing > 0) {
            return;
        }
        let Some(collecting) = self.collecting.take() else { return };
        let responses: Vec<(&str, &str)> = collecting
            .responses
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let responses = format!("{{{}}}", params_text(&responses));
        let mut members = vec![("inputResponses", responses.as_str())];
        members.extend(collecting.state.as_ref().map(|state| ("requestState", state.as_str())));
        self.begin(params_text(&members));
    }
}

/// Waits for the client's answer to a question of a legacy server, for as long as the server wants it.
async fn answered_or_withdrawn(
    id: String,
    answer: oneshot::Receiver<Reply>,
    mut reply: oneshot::Sender<Reply>,
) -> Answered {
    tokio::select! {
        biased;
        answer = answer => {
            Answered::Question { reply, answer: answer.unwrap_or_else(|_| Err(gave_up())) }
        }
        () = reply.closed() => Answered::Withdrawn { id },
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn next_event(events: &mut Option<Heard>) -> Option<AskEvent> {
    match events {
        Some(events) => events.next().await,
        None => None,
    }
}

/// The next answer of the client; `None` when none is awaited.
async fn next_answer(
    asked: &mut Option<FuturesUnordered<BoxFuture<'static, Answered>>>,
) -> Option<Answered> {
    match asked {
        Some(asked) => asked.next().await,
        None => None,
    }
}

async fn next_done(work: &mut Option<Pin<Box<dyn Future<Output = Done> + Send>>>) -> Done {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// A response of the wrong kind is as good as none: it is asked for again.
fn is_usable(response: Option<&str>) -> bool {
    response.is_some_and(|text| text.starts_with('{'))
}

fn refuse(reply: oneshot::Sender<Reply>, code: i64, message: &str) {
    let error = RpcError { code, message: message.into(), data: None };
    let _gone = reply.send(Err(error));
}

fn gave_up() -> RpcError {
    RpcError { code: code::INTERNAL_ERROR, message: "the client is gone".into(), data: None }
}

/// The parameters of a progress notification with the client's own token.
fn with_token(params: &str, token: &str) -> String {
    let members = Members::read(params).unwrap_or_default();
    let mut kept = vec![("progressToken", token)];
    kept.extend(members.iter().filter(|(key, _)| *key != "progressToken"));
    format!("{{{}}}", params_text(&kept))
}
