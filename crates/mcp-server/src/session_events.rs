//! Events of a session's own server processes outside of any call: requests to the client, log messages.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use switchboard_model::JsonText;
use switchboard_protocol::{Members, Need, code, notification, request};
use switchboard_runtime::{EventReceiver, EventSender, RpcError, UpstreamEvent, event_channel};
use tokio::sync::oneshot;

use crate::client::{Client, ClientReply};
use crate::gateway::Gateway;
use crate::log_level::LogLevel;
use crate::upstream_exchange::{Answered, answered_or_withdrawn, late, withdrawal};

/// Events that may wait for the client.
const WAITING_EVENTS: usize = 64;

/// How long to wait for a client's event stream before a request to it fails: its first call may arrive before the stream.
const STREAM_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

type ClientQuestions = FuturesUnordered<BoxFuture<'static, Option<Answered>>>;

impl Gateway {
    /// The sender for events of the session's own server processes that belong to no call.
    pub(crate) fn events_of(&self, client: &Arc<Client>) -> EventSender {
        let open = || {
            let (events, heard) = event_channel(WAITING_EVENTS);
            let (ended, client) = (client.ended.clone(), Arc::downgrade(client));
            self.tasks().spawn(async move {
                ended.run_until_cancelled(deliver(client, heard)).await;
            });
            events
        };
        client.events.get_or_init(open).clone()
    }

    /// Handles a notification of a session-era client.
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

/// Forwards events to the client until it ends or all senders are dropped.
async fn deliver(client: Weak<Client>, mut heard: EventReceiver) {
    let mut asked = ClientQuestions::new();
    loop {
        tokio::select! {
            event = heard.next() => {
                let Some(event) = event else { return };
                match event {
                    UpstreamEvent::Question { method, params, reply } => {
                        asked.push(Box::pin(ask(client.clone(), method, params, reply)));
                    }
                    UpstreamEvent::Log(params) => {
                        if let Some(client) = client.upgrade() {
                            tell_log(&client, &params);
                        }
                    }
                    // Both belong to calls and are handled there.
                    UpstreamEvent::Progress(_) | UpstreamEvent::ElicitationComplete(_) => {}
                }
            }
            Some(answered) = asked.next() => {
                if let (Some(client), Some(answered)) = (client.upgrade(), answered) {
                    finish(&client, answered);
                }
            }
        }
    }
}

/// Forwards a server's request to the client and waits for the response; `None` when the client cannot be asked, in
/// which case the server has received an error, or an empty list of roots.
async fn ask(
    client: Weak<Client>,
    method: String,
    params: Option<JsonText>,
    reply: oneshot::Sender<ClientReply>,
) -> Option<Answered> {
    let params = params.as_ref().map(JsonText::as_str);
    let need = Need::of(&method, params);
    let asked = reachable(&client, need).await.and_then(|client| {
        let (id, answer) = client.ask()?;
        client.send(request(&id, &method, params));
        Some((id, answer))
    });
    if let Some((id, answer)) = asked {
        return Some(answered_or_withdrawn(id, answer, reply).await);
    }
    let message = "the client of this session has no open stream, or lacks the capability";
    // The server may have stopped waiting.
    let _gone = reply.send(match need {
        // Roots are optional: an empty list is a valid response.
        Some(Need::Roots) => Ok(JsonText::from(&serde_json::json!({"roots": []}))),
        _ => Err(RpcError { code: code::METHOD_NOT_FOUND, message: message.into(), data: None }),
    });
    None
}

/// The client, once it has a stream and if it declares the needed capability.
async fn reachable(client: &Weak<Client>, need: Option<Need>) -> Option<Arc<Client>> {
    let need = need?;
    let opened = async {
        loop {
            let client = client.upgrade().filter(|it| it.capabilities.meet(need))?;
            if client.has_stream() {
                return Some(client);
            }
            drop(client);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(STREAM_PATIENCE, opened).await.ok().flatten()
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
        // `input_required` is a result of calls only.
        Answered::SignIn { .. } | Answered::Input { .. } => {}
    }
}

fn tell_log(client: &Client, params: &JsonText) {
    let level = Members::read(params.as_str()).ok();
    let level = level.and_then(|log| LogLevel::read(&log.string("level")?));
    let is_wanted = match (client.log_level(), level) {
        (Some(least), Some(level)) => level >= least,
        (None, _) | (_, None) => true,
    };
    if is_wanted && client.has_stream() {
        client.send(notification("notifications/message", Some(params.as_str())));
    }
}
