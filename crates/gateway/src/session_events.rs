//! What a session's own server process sends while no call of the session runs: requests to its client, log messages.

use std::sync::{Arc, Weak};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use switchboard_model::JsonText;
use switchboard_protocol::{Members, Need, code, notification, request};
use switchboard_runtime::{AskEvent, Ear, Heard, RpcError, ear};
use tokio::sync::oneshot;

use crate::client::{Client, Reply};
use crate::conversation::{Answered, answered_or_withdrawn, late, withdrawal};
use crate::gateway::Gateway;
use crate::level::Level;

/// Events that wait for the client.
const WAITING_EVENTS: usize = 64;

type Asked = FuturesUnordered<BoxFuture<'static, Answered>>;

impl Gateway {
    /// Where the processes of a client's session send what belongs to no call.
    pub(crate) fn events_of(&self, client: &Arc<Client>) -> Ear {
        let open = || {
            let (events, heard) = ear(WAITING_EVENTS);
            let (ended, client) = (client.ended.clone(), Arc::downgrade(client));
            self.tasks().spawn(async move {
                ended.run_until_cancelled(deliver(client, heard)).await;
            });
            events
        };
        client.events.get_or_init(open).clone()
    }

    /// Takes what a client of the session era tells without wanting an answer.
    pub(crate) fn take_notification(&self, client: &Client, method: &str, params: Option<&str>) {
        match method {
            "notifications/cancelled" => {
                let params = Members::read(params.unwrap_or("{}")).unwrap_or_default();
                if let Some(id) = params.get("requestId") {
                    client.cancel(id);
                }
            }
            "notifications/roots/list_changed" => {
                self.tasks().spawn(self.board.roots_changed(&client.session.id));
            }
            _ => {}
        }
    }
}

/// Tells the client, for as long as there is one and somebody may say something.
async fn deliver(client: Weak<Client>, mut heard: Heard) {
    let mut asked = Asked::new();
    loop {
        tokio::select! {
            event = heard.next() => {
                let Some(event) = event else { return };
                // A client that has left the memory is not there to be asked; what is dropped is refused.
                let Some(client) = client.upgrade() else { continue };
                match event {
                    AskEvent::Question { method, params, reply } => {
                        ask(&client, &method, params.as_ref(), reply, &mut asked);
                    }
                    AskEvent::Log(params) => tell_log(&client, &params),
                    // Both belong to calls.
                    AskEvent::Progress(_) | AskEvent::ElicitationComplete(_) => {}
                }
            }
            Some(answered) = asked.next() => {
                if let Some(client) = client.upgrade() {
                    finish(&client, answered);
                }
            }
        }
    }
}

fn ask(
    client: &Client,
    method: &str,
    params: Option<&JsonText>,
    reply: oneshot::Sender<Reply>,
    asked: &mut Asked,
) {
    let need = Need::of(method, params.map(JsonText::as_str));
    let can_answer = need.is_some_and(|need| client.capabilities.meet(need)) && client.has_stream();
    let Some((id, answer)) = can_answer.then(|| client.ask()).flatten() else {
        let message = "the client of this session cannot be asked just now";
        let refusal = match need {
            // A server can do without roots.
            Some(Need::Roots) => Ok(JsonText::from(&serde_json::json!({"roots": []}))),
            _ => {
                Err(RpcError { code: code::METHOD_NOT_FOUND, message: message.into(), data: None })
            }
        };
        // The server may have stopped waiting.
        let _gone = reply.send(refusal);
        return;
    };
    client.send(request(&id, method, params.map(JsonText::as_str)));
    asked.push(Box::pin(answered_or_withdrawn(id, answer, reply)));
}

fn finish(client: &Client, answered: Answered) {
    match answered {
        Answered::Question { reply, answer, .. } => {
            let _gone = reply.send(answer);
        }
        Answered::Late { id, reply } => {
            let _gone = reply.send(Err(late()));
            client.send(withdrawal(&id));
        }
        Answered::Withdrawn { id } => client.send(withdrawal(&id)),
        // Only a call can be answered with a wish for input.
        Answered::Input { .. } => {}
    }
}

fn tell_log(client: &Client, params: &JsonText) {
    let level = Members::read(params.as_str()).ok();
    let level = level.and_then(|log| Level::read(&log.string("level")?));
    let is_wanted = match (client.log_level(), level) {
        (Some(least), Some(level)) => level >= least,
        (None, _) | (_, None) => true,
    };
    if is_wanted && client.has_stream() {
        client.send(notification("notifications/message", Some(params.as_str())));
    }
}
