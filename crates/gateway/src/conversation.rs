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
use serde_json::value::RawValue;
use switchboard_model::{CanonicalName, Face, JsonText};
use switchboard_protocol::{
    Members, Need, ResultKind, code, notification, params_text, push_string, quoted,
    read_result_head, request, with_members, without_member,
};
use switchboard_runtime::{
    Ask, AskEvent, AskFailure, CallFailed, Heard, PassFailure, Passing, RawAnswer, RawCall,
    RawResult, RpcError, ToolChoice, ear,
};
use switchboard_view::ListEra;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::asker::{Asker, Job, Wishes};
use crate::client::{Client, Reply};
use crate::gateway::Gateway;
use crate::level::Level;
use crate::outcome::{self, COMPLETE, Outcome};
use crate::parked::PATIENCE;

/// How often a server may ask for more before it is taken to go in circles.
const MAX_ROUNDS: u32 = 16;
/// A legacy server that asks several things asks them one by one; a modern client is asked for all of them at once.
const MORE_QUESTIONS: Duration = Duration::from_millis(25);
/// What a server may say before the client has read it; more signs of life are dropped.
const WAITING_EVENTS: usize = 32;

/// That no cache may give it to anybody else.
const PRIVATE: (&str, &str) = ("cacheScope", "\"private\"");

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
    Question { id: String, reply: oneshot::Sender<Reply>, answer: Reply },
    /// None: the server no longer wants to know. This is the id by which the client knows the question.
    Withdrawn { id: String },
    /// None, for longer than anybody thinks.
    Late { id: String, reply: oneshot::Sender<Reply> },
    /// A part of what a modern server wants.
    Input { id: String, key: String, method: String, answer: Reply },
}

/// A question of a legacy server for a modern client.
struct Waiting {
    method: String,
    params: Option<JsonText>,
    whither: Whither,
}

/// What the answer to a question is for.
enum Whither {
    /// The server waits for it.
    Server(oneshot::Sender<Reply>),
    /// The server has given up until a page was opened: it is asked anew.
    Retry,
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
    /// By which ids the client knows what it has not answered yet.
    open: Vec<String>,
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
            open: Vec::new(),
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
                    let last = self.hear(event);
                    self.end(last);
                }
                done = next_done(&mut self.work) => {
                    self.work = None;
                    self.hear_the_rest();
                    let last = self.finish(done);
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
        while let Some(event) = self.events.as_mut().and_then(Heard::next_now) {
            // Nobody waits for the answer to a question any more.
            if !matches!(event, AskEvent::Question { .. }) {
                self.hear(event);
            }
        }
    }

    fn hear(&mut self, event: AskEvent) -> Option<Outcome> {
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
    ) -> Option<Outcome> {
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
                let key = self.new_key(&method);
                let whither = Whither::Server(reply);
                self.waiting.insert(key, Waiting { method, params, whither });
                self.park_at.get_or_insert_with(|| Instant::now() + MORE_QUESTIONS);
                None
            }
            None if need != Need::Roots => Some(outcome::missing_capability(need)),
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

    /// By which name a modern client answers a question.
    fn new_key(&mut self, method: &str) -> String {
        self.questions += 1;
        let word = method.split('/').next().unwrap_or("input");
        format!("{word}_{}", self.questions)
    }

    fn ask_client(
        &mut self,
        client: &Client,
        method: &str,
        params: Option<&JsonText>,
    ) -> Option<(String, oneshot::Receiver<Reply>)> {
        let (id, answer) = client.ask()?;
        self.open.push(id.clone());
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
        self.wishes = wishes;
        let extra = std::mem::take(&mut self.wishes.extra);
        let given: Vec<String> =
            self.waiting.keys().filter(|key| is_usable(responses.get(key))).cloned().collect();
        let mut is_refused = false;
        for key in given {
            let answer = responses.get(&key).and_then(|text| JsonText::from_text(text).ok());
            match (self.waiting.remove(&key).map(|waiting| waiting.whither), answer) {
                (Some(Whither::Server(reply)), Some(answer)) => {
                    // The server may have stopped waiting; then its answer says so.
                    let _gone = reply.send(Ok(answer));
                }
                (Some(Whither::Retry), answer) => {
                    is_refused |= answer.as_ref().is_none_or(|answer| !is_accepted(answer));
                }
                // What cannot be read is no answer: the server hears that there is none.
                (Some(Whither::Server(_)), None) | (None, _) => {}
            }
        }
        if is_refused {
            let message = "the page that the server wants to be opened first was not opened";
            self.waiting.clear();
            self.last = Some(self.failed(message));
        } else if !self.waiting.is_empty() {
            return Some(self.park());
        } else if self.work.is_none() {
            self.begin(extra);
        }
        None
    }

    fn finish(&mut self, done: Done) -> Option<Outcome> {
        let era = self.asker.era();
        match done {
            Done::Call(Ok(answer)) if answer.head.kind == ResultKind::InputRequired => {
                self.want_input(answer.as_str())
            }
            Done::Call(Ok(answer)) => Some(outcome::of_answer(era, answer)),
            Done::Call(Err(CallFailed { rpc: Some(rpc), .. }))
            | Done::Pass(Err(PassFailure::Server(AskFailure::Rpc(rpc))))
                if era == ListEra::Modern && rpc.code == code::LEGACY_URL_ELICITATION_REQUIRED =>
            {
                self.want_pages(&rpc)
            }
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
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Some(self.failed("the server keeps asking for more input"));
        }
        let members = Members::read(result).unwrap_or_default();
        let requests = members.object("inputRequests").unwrap_or_default();
        let state = members.get("requestState").map(str::to_owned);
        let mut questions = Vec::new();
        for (key, wanted) in requests.iter() {
            let wanted = Members::read(wanted).unwrap_or_default();
            let method = wanted.string("method").unwrap_or_default().into_owned();
            let need = Need::of(&method, wanted.get("params"));
            let can_answer = need.is_some_and(|need| self.asker.capabilities.meet(need));
            if !can_answer || !self.asker.can_stream {
                let message =
                    format!("the server asks the client for {method}, which it does not offer");
                return Some(self.failed(message));
            }
            let params = wanted.get("params").and_then(|text| JsonText::from_text(text).ok());
            questions.push((key.to_owned(), method, params));
        }
        let missing = questions.len();
        for (key, method, params) in questions {
            let Some((id, answer)) = self.ask_client(&client, &method, params.as_ref()) else {
                return Some(self.failed("the client has too many open questions"));
            };
            self.asked.get_or_insert_default().push(Box::pin(async move {
                let answer = answer.await.unwrap_or_else(|_| Err(gave_up()));
                Answered::Input { id, key, method, answer }
            }));
        }
        self.collecting = Some(Collecting { missing, responses: BTreeMap::new(), state });
        self.go_on();
        None
    }

    /// A legacy server works only after pages were opened. The modern era knows no such error: its client is asked to
    /// open them, and the server is asked anew when it comes back.
    fn want_pages(&mut self, error: &RpcError) -> Option<Outcome> {
        if !self.asker.capabilities.meet(Need::Url) {
            return Some(outcome::missing_capability(Need::Url));
        }
        let pages = pages_of(error);
        self.rounds += 1;
        if pages.is_empty() || self.rounds > MAX_ROUNDS {
            let message = format!("the server wants pages to be opened first: {}", error.message);
            return Some(self.failed(message));
        }
        // What it asked before it gave up needs no answer any more.
        self.waiting.clear();
        for params in pages {
            let method = "elicitation/create".to_owned();
            let (key, params) = (self.new_key(&method), Some(params));
            self.waiting.insert(key, Waiting { method, params, whither: Whither::Retry });
        }
        self.park_at = Some(Instant::now());
        None
    }

    /// That nothing came of it.
    fn failed(&self, message: impl Into<String>) -> Outcome {
        match self.job {
            Job::Call { .. } => Outcome::tool_error(self.asker.era(), message),
            Job::Pass { .. } => Outcome::error(code::INTERNAL_ERROR, message),
        }
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
            Answered::Question { id, reply, answer } => {
                self.open.retain(|open| *open != id);
                let _gone = reply.send(answer);
            }
            Answered::Late { id, reply } => {
                self.open.retain(|open| *open != id);
                refuse(reply, code::INTERNAL_ERROR, "the client did not answer in time");
                self.say(withdrawal(&id));
            }
            Answered::Withdrawn { id } => {
                self.open.retain(|open| *open != id);
                self.say(withdrawal(&id));
            }
            Answered::Input { id, key, method, answer } => {
                self.open.retain(|open| *open != id);
                let response = match answer {
                    Ok(response) => response,
                    Err(_) if method == "elicitation/create" => {
                        JsonText::from(&serde_json::json!({"action": "cancel"}))
                    }
                    Err(error) => {
                        let message = format!("the client refused {method}: {}", error.message);
                        return Some(self.failed(message));
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
            Answered::Question { id, reply, answer: answer.unwrap_or_else(|_| Err(gave_up())) }
        }
        () = reply.closed() => Answered::Withdrawn { id },
        () = tokio::time::sleep(PATIENCE) => Answered::Late { id, reply },
    }
}

/// That a client need not answer any more.
fn withdrawal(id: &str) -> String {
    let params = format!(r#"{{"requestId":{id},"reason":"the server withdrew it"}}"#);
    notification("notifications/cancelled", Some(&params))
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

fn is_accepted(answer: &JsonText) -> bool {
    let answer = Members::read(answer.as_str()).unwrap_or_default();
    answer.string("action").as_deref() == Some("accept")
}

/// The pages that a legacy server names in its error, as parameters of questions.
fn pages_of(error: &RpcError) -> Vec<JsonText> {
    let data = error.data.as_ref().map_or("{}", JsonText::as_str);
    let data = Members::read(data).unwrap_or_default();
    let pages = data.get("elicitations").unwrap_or("[]");
    let pages: Vec<&RawValue> = serde_json::from_str(pages).unwrap_or_default();
    let is_page =
        |page: &&RawValue| Need::of("elicitation/create", Some(page.get())) == Some(Need::Url);
    // One that is no page may be what matters: then none is asked for.
    if pages.iter().all(is_page) {
        pages.into_iter().map(JsonText::from).collect()
    } else {
        Vec::new()
    }
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
