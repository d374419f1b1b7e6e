//! Asks the person behind a client to sign in at a server, and goes on with the request afterwards.
//!
//! The request has ended by then: it holds no slot and no time runs. Once the person has signed in, it is made again.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Future, FutureExt};
use serde_json::json;
use switchboard_model::JsonText;
use switchboard_protocol::{Need, notification};
use switchboard_runtime::{ConnectFlow, FlowEnd, SignInPrompt};
use tokio::time::Instant;

use super::UpstreamExchange;
use super::elicitation::{Answered, PendingQuestion, Whither};
use crate::outcome::{self, Outcome};
use crate::pending_input::PATIENCE;

/// How long a client that says that the page was opened waits for the person.
const SIGNING_IN: Duration = Duration::from_mins(1);

/// A sign-in that an exchange waits for.
pub(super) struct SignInWait {
    flow: Arc<ConnectFlow>,
    /// The response if the person does not sign in.
    pub(super) refusal: Outcome,
    /// The parameters of the request that is made again.
    extra: String,
    /// Ends when the person has signed in; `None` until the client has answered.
    ending: Option<BoxFuture<'static, FlowEnd>>,
}

impl UpstreamExchange {
    /// Asks the person to sign in, in the way that the client knows. A client that knows none gets the refusal, which
    /// names the page.
    pub(super) fn want_sign_in(
        &mut self,
        prompt: &SignInPrompt,
        refusal: Outcome,
    ) -> Option<Outcome> {
        let can_ask = self.context.client.is_some() || self.operation.can_be_asked_again();
        let can_ask = can_ask && self.context.capabilities.meet(Need::Url);
        if !can_ask || !self.gateway.board.accounts().begin_asking(&prompt.flow) {
            return Some(refusal);
        }
        let message = prompt.message();
        let mut params = json!({ "mode": "url", "message": message, "url": prompt.page.url });
        let wait =
            SignInWait { flow: prompt.flow.clone(), refusal, extra: String::new(), ending: None };
        let method = "elicitation/create".to_owned();
        match self.context.client.clone() {
            None => {
                let key = self.new_key(&method);
                let params = Some(JsonText::from(&params));
                let whither = Whither::SignIn;
                self.waiting.clear();
                self.waiting.insert(key, PendingQuestion { method, params, whither });
                self.sign_in = Some(wait);
                self.park_at = Some(Instant::now());
                None
            }
            Some(client) if self.context.can_stream => {
                params["elicitationId"] = json!(prompt.flow.id());
                let params = JsonText::from(&params);
                let Some((id, answer)) = self.ask_client(&client, &method, Some(&params)) else {
                    return Some(wait.refusal);
                };
                self.sign_in = Some(wait);
                self.asked.get_or_insert_default().push(Box::pin(async move {
                    let answer = tokio::time::timeout(PATIENCE, answer).await.ok();
                    Answered::SignIn { id, answer: answer.and_then(Result::ok) }
                }));
                None
            }
            Some(_) => Some(outcome::url_required(&prompt.page, prompt.flow.id(), &message)),
        }
    }

    /// A session-era client says whether the person opens the page. The person may take the whole time of the page.
    pub(super) fn answered_sign_in(&mut self, is_accepted: bool) -> Option<Outcome> {
        let mut wait = self.sign_in.take()?;
        if !is_accepted {
            return Some(wait.refusal);
        }
        let flow = wait.flow.clone();
        wait.ending = Some(async move { flow.ended().await }.boxed());
        self.sign_in = Some(wait);
        None
    }

    /// A stateless-era client has come back. Returns whether the exchange waits for the person now.
    pub(super) fn await_sign_in(&mut self, extra: &str) -> bool {
        let Some(wait) = &mut self.sign_in else { return false };
        let flow = wait.flow.clone();
        wait.extra = without_input(extra);
        wait.ending = Some(
            async move {
                let ended = tokio::time::timeout(SIGNING_IN, flow.ended()).await;
                ended.unwrap_or(FlowEnd::Open)
            }
            .boxed(),
        );
        true
    }

    /// The person has signed in: the request is made again. Otherwise the client gets the refusal.
    pub(super) fn take_sign_in(&mut self, end: FlowEnd) -> Option<Outcome> {
        let wait = self.sign_in.take()?;
        if end != FlowEnd::SignedIn {
            return Some(wait.refusal);
        }
        if self.context.client.is_some() && self.context.can_stream {
            let params = json!({ "elicitationId": wait.flow.id() }).to_string();
            self.say(notification("notifications/elicitation/complete", Some(&params)));
        }
        self.begin(wait.extra);
        None
    }
}

/// The parameters of a request without the answer to our own question, which no server knows.
fn without_input(extra: &str) -> String {
    let whole = format!("{{{extra}}}");
    let rest = switchboard_protocol::without_member(&whole, "inputResponses");
    let rest = switchboard_protocol::without_member(&rest, "requestState");
    rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default().to_owned()
}

/// The end of the sign-in; never without one that is awaited.
pub(super) fn next_sign_in(
    wait: &mut Option<SignInWait>,
) -> impl Future<Output = FlowEnd> + Send + '_ {
    match wait.as_mut().and_then(|wait| wait.ending.as_mut()) {
        Some(ending) => ending.left_future(),
        None => futures::future::pending().right_future(),
    }
}
