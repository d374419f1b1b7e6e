//! Requests of servers to clients (elicitation, sampling, roots), translated between the eras in both directions.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;
use switchboard_model::JsonText;
use switchboard_protocol::{
    Members, Need, code, notification, params_text, push_string, quoted, request, with_members,
    without_member,
};
use switchboard_runtime::RpcError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::foreign_page::foreign_page;
use super::{ExchangeStep, UpstreamExchange};
use crate::client::{Client, ClientReply};
use crate::outcome::{self, Outcome};
use crate::pending_input::PATIENCE;
use crate::request_context::ForwardedParams;

/// How often a server may ask for input in one exchange.
const MAX_ROUNDS: u32 = 16;
/// How long to collect requests of a session-era server, which sends them one by one: a stateless-era client is asked once.
const MORE_QUESTIONS: Duration = Duration::from_millis(25);

/// The end of one request to the client.
pub(crate) enum Answered {
    /// The client answered the request of a session-era server, which waits for it.
    Question { id: String, reply: oneshot::Sender<ClientReply>, answer: ClientReply },
    /// The server withdrew its request. `id` is the one that the client knows.
    Withdrawn { id: String },
    /// The client did not answer in time.
    Late { id: String, reply: oneshot::Sender<ClientReply> },
    /// The client answered one input of a stateless-era server; `None` when it did not answer in time.
    Input { id: String, key: String, method: String, answer: Option<ClientReply> },
    /// The client answered whether the person opens the sign-in page; `None` when it did not answer in time.
    SignIn { id: String, answer: Option<ClientReply> },
}

/// A request of a session-era server that waits for a stateless-era client.
pub(super) struct PendingQuestion {
    pub(super) method: String,
    pub(super) params: Option<JsonText>,
    pub(super) whither: Whither,
}

/// What happens with the client's answer.
pub(super) enum Whither {
    /// It is sent to the server, which waits for it.
    Server(oneshot::Sender<ClientReply>),
    /// The operation is repeated: the server had refused it until a URL is opened.
    Retry,
    /// The operation is repeated once the person has signed in.
    SignIn,
}

/// The inputs of a stateless-era server that are being collected from a session-era client.
pub(super) struct Collecting {
    missing: usize,
    responses: BTreeMap<String, JsonText>,
    state: Option<String>,
}

impl UpstreamExchange {
    /// Handles a request of a session-era server.
    pub(super) fn take_question(
        &mut self,
        method: String,
        params: Option<JsonText>,
        reply: oneshot::Sender<ClientReply>,
    ) -> Option<Outcome> {
        let Some(need) = Need::of(&method, params.as_ref().map(JsonText::as_str)) else {
            refuse(reply, code::METHOD_NOT_FOUND, "this request method is not supported");
            return None;
        };
        let params = match params.map(without_progress_token).map(|params| self.foreign(params)) {
            Some(Err(why)) => {
                refuse(reply, code::INVALID_PARAMS, why);
                return None;
            }
            Some(Ok(params)) => Some(params),
            None => None,
        };
        let can_answer = self.context.capabilities.meet(need);
        match self.context.client.clone() {
            Some(client) if can_answer && self.context.can_stream => {
                if let Some((id, answer)) = self.ask_client(&client, &method, params.as_ref()) {
                    let answered = answered_or_withdrawn(id, answer, reply);
                    self.asked.get_or_insert_default().push(Box::pin(answered));
                } else {
                    let message = "the client has too many unanswered requests, or is leaving";
                    refuse(reply, code::METHOD_NOT_FOUND, message);
                }
                None
            }
            None if can_answer && self.operation.can_be_asked_again() => {
                let key = self.new_key(&method);
                let whither = Whither::Server(reply);
                self.waiting.insert(key, PendingQuestion { method, params, whither });
                self.park_at.get_or_insert_with(|| Instant::now() + MORE_QUESTIONS);
                None
            }
            // Roots are optional: the server gets an error and the call goes on.
            None if need != Need::Roots && !can_answer => Some(outcome::missing_capability(need)),
            Some(_) | None => {
                // A client that supports elicitation without the URL mode lacks a parameter, not the method.
                let knows_method = need == Need::Url && self.context.capabilities.meet(Need::Form);
                let code = if knows_method { code::INVALID_PARAMS } else { code::METHOD_NOT_FOUND };
                refuse(reply, code, &self.why_not_asked(need));
                None
            }
        }
    }

    /// The parameters of a server's request, as the client may get them.
    fn foreign(&self, params: JsonText) -> Result<JsonText, &'static str> {
        let pages = self.gateway.board.accounts().pages();
        foreign_page(params, self.operation.server(), pages.as_ref().map(|pages| &pages.base))
    }

    /// Whether the error of a server names a page of the board.
    pub(super) fn imitates(&self, error: &RpcError) -> bool {
        urls_of(error).into_iter().any(|page| self.foreign(page).is_err())
    }

    /// The reason why the client cannot be asked.
    fn why_not_asked(&self, need: Need) -> String {
        let name = need.name();
        if !self.context.capabilities.meet(need) {
            format!("the client does not declare the capability `{name}`")
        } else if self.context.client.is_some() {
            format!(
                "the server needs `{name}` from the client, and this request has no event stream to ask on: the client must accept `text/event-stream` and must not send the request in a batch"
            )
        } else {
            format!("a request of this method cannot ask the client for `{name}`")
        }
    }

    /// A new key of `inputRequests`.
    pub(super) fn new_key(&mut self, method: &str) -> String {
        self.questions += 1;
        let word = method.split('/').next().unwrap_or("input");
        format!("{word}_{}", self.questions)
    }

    pub(super) fn ask_client(
        &mut self,
        client: &Client,
        method: &str,
        params: Option<&JsonText>,
    ) -> Option<(String, oneshot::Receiver<ClientReply>)> {
        let (id, answer) = client.ask()?;
        self.open.push(id.clone());
        self.say(request(&id, method, params.map(JsonText::as_str)));
        Some((id, answer))
    }

    /// Asks a stateless-era client for the inputs that a waiting session-era server requested.
    pub(crate) fn park(&self) -> ExchangeStep {
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
        ExchangeStep::Park { state, outcome: Outcome::text(text) }
    }

    /// Resumes with the inputs of the client, and asks again for those that are missing.
    pub(crate) fn resume(
        &mut self,
        wishes: ForwardedParams,
        responses: &Members<'_>,
    ) -> Option<ExchangeStep> {
        self.wishes = wishes;
        let extra = std::mem::take(&mut self.wishes.extra);
        let given: Vec<String> =
            self.waiting.keys().filter(|key| is_usable(responses.get(key))).cloned().collect();
        let mut is_refused = false;
        for key in given {
            let answer = responses.get(&key).and_then(|text| JsonText::from_text(text).ok());
            match (self.waiting.remove(&key).map(|waiting| waiting.whither), answer) {
                (Some(Whither::Server(reply)), Some(answer)) => {
                    // The server may have stopped waiting; its response then says so.
                    let _gone = reply.send(Ok(answer));
                }
                (Some(Whither::Retry | Whither::SignIn), answer) => {
                    is_refused |= answer.as_ref().is_none_or(|answer| !is_accepted(answer));
                }
                // An unreadable answer counts as none: the server gets an error.
                (Some(Whither::Server(_)), None) | (None, _) => {}
            }
        }
        if is_refused {
            let message = "the server needs a URL to be opened first, and it was not opened";
            self.waiting.clear();
            let refusal = self.sign_in.take().map(|wait| wait.refusal);
            self.last = Some(refusal.unwrap_or_else(|| self.failed(message)));
        } else if self.waiting.is_empty() && self.await_sign_in(&extra) {
            return None;
        } else if !self.waiting.is_empty() {
            return Some(self.park());
        } else if self.work.is_none() {
            self.begin(extra);
        }
        None
    }

    /// Handles `input_required`: it is passed to a stateless-era client, or becomes requests to a session-era client.
    pub(super) fn want_input(&mut self, result: &str) -> Option<Outcome> {
        // A result that cannot be parsed cannot be checked, and is not passed on.
        let read = Members::read(result).ok().and_then(|members| {
            let requests = Members::read(members.get("inputRequests").unwrap_or("{}")).ok()?;
            let needs: Result<Vec<_>, _> =
                requests.iter().map(|(_, wanted)| need_of(wanted)).collect();
            Some((members, requests, needs.ok()?))
        });
        let Some((members, requests, needs)) = read else {
            return Some(self.failed("the server's `input_required` result is invalid"));
        };
        let changed = match self.foreign_requests(&requests, &needs) {
            Ok(changed) => changed,
            Err(why) => return Some(self.failed(why)),
        };
        if let Some(changed) = changed {
            let rest = without_member(result, "inputRequests");
            return self.want_input(&with_members(&rest, &[("inputRequests", &changed)]));
        }
        let Some(client) = self.context.client.clone() else {
            let mut needs = needs.into_iter().flatten();
            let missing = needs.find(|need| !self.context.capabilities.meet(*need));
            return Some(match missing {
                Some(need) => outcome::missing_capability(need),
                None => Outcome::text(self.sealed(result)),
            });
        };
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Some(self.failed("the server keeps asking for more input"));
        }
        let state = members.get("requestState").map(str::to_owned);
        let mut questions = Vec::new();
        for (key, wanted) in requests.iter() {
            let wanted = Members::read(wanted).unwrap_or_default();
            let method = wanted.string("method").unwrap_or_default().into_owned();
            let Some(need) = Need::of(&method, wanted.get("params")) else {
                let message =
                    format!("the server asks for {method}, which Switchboard does not support");
                return Some(self.failed(message));
            };
            if !self.context.capabilities.meet(need) || !self.context.can_stream {
                let message = format!("the server asks for more: {}", self.why_not_asked(need));
                return Some(self.failed(message));
            }
            let params = wanted.get("params").and_then(|text| JsonText::from_text(text).ok());
            questions.push((key.to_owned(), method, params));
        }
        let missing = questions.len();
        for (key, method, params) in questions {
            let Some((id, answer)) = self.ask_client(&client, &method, params.as_ref()) else {
                return Some(
                    self.failed("the client has too many unanswered requests, or is leaving"),
                );
            };
            self.asked.get_or_insert_default().push(Box::pin(async move {
                let answer = tokio::time::timeout(PATIENCE, answer).await.ok();
                let answer = answer.map(|answer| answer.unwrap_or_else(|_| Err(gave_up())));
                Answered::Input { id, key, method, answer }
            }));
        }
        self.collecting = Some(Collecting { missing, responses: BTreeMap::new(), state });
        self.go_on();
        None
    }

    /// The requests of a stateless-era server, if a page in them must be marked.
    fn foreign_requests(
        &self,
        requests: &Members<'_>,
        needs: &[Option<Need>],
    ) -> Result<Option<String>, &'static str> {
        if !needs.contains(&Some(Need::Url)) {
            return Ok(None);
        }
        let mut all = serde_json::Map::new();
        let mut is_changed = false;
        for (key, wanted) in requests.iter() {
            let mut wanted: serde_json::Value = serde_json::from_str(wanted).unwrap_or_default();
            let before = JsonText::from(&wanted["params"]);
            let after = self.foreign(before.clone())?;
            if after.as_str() != before.as_str() {
                wanted["params"] = after.parse();
                is_changed = true;
            }
            all.insert(key.to_owned(), wanted);
        }
        Ok(is_changed.then(|| serde_json::Value::Object(all).to_string()))
    }

    /// Handles the error of a session-era server that requires URLs to be opened first. The stateless era has no such error:
    /// the client is asked to open them, and the operation is repeated when it returns.
    pub(super) fn want_urls(&mut self, error: &RpcError) -> Option<Outcome> {
        if !self.context.capabilities.meet(Need::Url) {
            return Some(outcome::missing_capability(Need::Url));
        }
        let pages: Result<Vec<_>, _> =
            urls_of(error).into_iter().map(|page| self.foreign(page)).collect();
        let pages = match pages {
            Ok(pages) => pages,
            Err(why) => return Some(self.failed(why)),
        };
        self.rounds += 1;
        if pages.is_empty() || self.rounds > MAX_ROUNDS || !self.operation.can_be_asked_again() {
            let message = format!("the server needs URLs to be opened first: {}", error.message);
            return Some(self.failed(message));
        }
        // Earlier requests of the failed operation need no answer.
        self.waiting.clear();
        for params in pages {
            let method = "elicitation/create".to_owned();
            let (key, params) = (self.new_key(&method), Some(params));
            self.waiting.insert(key, PendingQuestion { method, params, whither: Whither::Retry });
        }
        self.park_at = Some(Instant::now());
        None
    }

    pub(super) fn take_answer(&mut self, answered: Answered) -> Option<Outcome> {
        match answered {
            Answered::Question { id, reply, answer } => {
                self.open.retain(|open| *open != id);
                let _gone = reply.send(answer);
            }
            Answered::Late { id, reply } => {
                self.open.retain(|open| *open != id);
                let _gone = reply.send(Err(late()));
                self.say(withdrawal(&id));
            }
            Answered::SignIn { id, answer } => {
                self.open.retain(|open| *open != id);
                if answer.is_none() {
                    self.say(withdrawal(&id));
                }
                let is_accepted = matches!(answer, Some(Ok(answer)) if is_accepted(&answer));
                return self.answered_sign_in(is_accepted);
            }
            Answered::Withdrawn { id } => {
                self.open.retain(|open| *open != id);
                self.say(withdrawal(&id));
            }
            Answered::Input { id, key, method, answer } => {
                self.open.retain(|open| *open != id);
                if answer.is_none() {
                    self.say(withdrawal(&id));
                }
                let response = match answer.unwrap_or_else(|| Err(late())) {
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

    /// Repeats the operation once all inputs of the server are collected.
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

/// Waits for the client's answer to a request of a session-era server, until the server withdraws it.
pub(crate) async fn answered_or_withdrawn(
    id: String,
    answer: oneshot::Receiver<ClientReply>,
    mut reply: oneshot::Sender<ClientReply>,
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

/// The notification that cancels a request to the client.
pub(crate) fn withdrawal(id: &str) -> String {
    let params = format!(r#"{{"requestId":{id},"reason":"the server withdrew it"}}"#);
    notification("notifications/cancelled", Some(&params))
}

/// The next answer of the client; `None` when none is awaited.
pub(super) async fn next_answer(
    asked: &mut Option<FuturesUnordered<BoxFuture<'static, Answered>>>,
) -> Option<Answered> {
    match asked {
        Some(asked) => asked.next().await,
        None => None,
    }
}

/// The client capability that a request needs; `None` for an unknown method.
fn need_of(wanted: &str) -> Result<Option<Need>, serde_json::Error> {
    let wanted = Members::read(wanted)?;
    let params = wanted.get("params");
    // Duplicate keys are an error: two readers could choose different values.
    Members::read(params.unwrap_or("{}"))?;
    Ok(Need::of(&wanted.string("method").unwrap_or_default(), params))
}

/// Removes the server's progress token: progress of the client is not forwarded to the server.
fn without_progress_token(params: JsonText) -> JsonText {
    let token = "progressToken";
    let read = Members::read(params.as_str()).unwrap_or_default();
    let Some(meta) = read.get("_meta") else { return params };
    if Members::read(meta).is_ok_and(|meta| meta.get(token).is_none()) {
        return params;
    }
    let meta = without_member(meta, token);
    let rest = without_member(params.as_str(), "_meta");
    let text = if meta == "{}" { rest } else { with_members(&rest, &[("_meta", &meta)]) };
    JsonText::from_text(&text).unwrap_or(params)
}

/// Whether the response is an object. Any other is treated as missing and is requested again.
fn is_usable(response: Option<&str>) -> bool {
    response.is_some_and(|text| text.starts_with('{'))
}

fn is_accepted(answer: &JsonText) -> bool {
    let answer = Members::read(answer.as_str()).unwrap_or_default();
    answer.string("action").as_deref() == Some("accept")
}

/// The URL elicitations that a session-era server names in its error, as request parameters.
fn urls_of(error: &RpcError) -> Vec<JsonText> {
    let data = error.data.as_ref().map_or("{}", JsonText::as_str);
    let data = Members::read(data).unwrap_or_default();
    let pages = data.get("elicitations").unwrap_or("[]");
    let pages: Vec<&RawValue> = serde_json::from_str(pages).unwrap_or_default();
    let is_page =
        |page: &&RawValue| Need::of("elicitation/create", Some(page.get())) == Some(Need::Url);
    // One invalid entry makes the whole list unusable, because it may be the required one.
    if pages.iter().all(is_page) {
        pages.into_iter().map(JsonText::from).collect()
    } else {
        Vec::new()
    }
}

fn refuse(reply: oneshot::Sender<ClientReply>, code: i64, message: &str) {
    let error = RpcError { code, message: message.into(), data: None };
    let _gone = reply.send(Err(error));
}

fn gave_up() -> RpcError {
    RpcError { code: code::INTERNAL_ERROR, message: "the client is gone".into(), data: None }
}

pub(crate) fn late() -> RpcError {
    let message = "the client did not answer in time".into();
    RpcError { code: code::INTERNAL_ERROR, message, data: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_says_two_things_is_none() {
        let url = r#"{"mode":"url"}"#;
        for (wanted, need) in [
            (format!(r#"{{"method":"elicitation/create","params":{url}}}"#), Some(Some(Need::Url))),
            (r#"{"method":"roots/list"}"#.to_owned(), Some(Some(Need::Roots))),
            (r#"{"method":"later/ask","params":{}}"#.to_owned(), Some(None)),
            (r#"{"method":"roots/list","method":"elicitation/create"}"#.to_owned(), None),
            (
                r#"{"method":"elicitation/create","params":{"mode":"form","mode":"url"}}"#.into(),
                None,
            ),
            ("[]".to_owned(), None),
        ] {
            assert_eq!(need_of(&wanted).ok(), need, "{wanted}");
        }
    }

    #[test]
    fn the_token_of_a_server_stays_with_us() {
        for (asked, passed) in [
            (r#"{"a":1.0}"#, r#"{"a":1.0}"#),
            (r#"{"_meta":{"x":1}, "a":1}"#, r#"{"_meta":{"x":1}, "a":1}"#),
            (r#"{"a":1,"_meta":{"progressToken":4}}"#, r#"{"a":1}"#),
            (r#"{"a":1,"_meta":{"x":1,"progressToken":4}}"#, r#"{"_meta":{"x":1},"a":1}"#),
        ] {
            let params = without_progress_token(JsonText::from_text(asked).unwrap());
            assert_eq!(params.as_str(), passed);
        }
    }
}
