//! The subscription to a server of the stateless era: changed lists, and updates of resources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ErrorCode, ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{Peer, ServiceError, Subscription};
use serde_json::Value;
use switchboard_model::{ConnectError, ConnectErrorKind, JsonText};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http_faults::describe_service_error;
use crate::pending_requests::{PendingRequests, SUBSCRIBED};
use crate::request::UpstreamNews;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Maximum time for changing the subscribed resources.
const LONGEST_CHANGE: Duration = Duration::from_secs(10);
/// Time limit for cancelling a subscription.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The wanted resources; each change increments `round`.
#[derive(Debug, Clone, Default)]
struct WantedSubscriptions {
    round: u64,
    uris: BTreeSet<String>,
}

/// The server's response to a round.
#[derive(Debug, Clone, Default)]
struct SubscriptionState {
    round: u64,
    refusal: Option<ConnectError>,
}

/// The lists whose changes a server announces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Announced {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

/// Sets the resources to subscribe to.
#[derive(Debug)]
pub(crate) struct Watch {
    wanted: watch::Sender<WantedSubscriptions>,
    heard: watch::Receiver<SubscriptionState>,
}

impl Watch {
    /// Returns when the server reports updates of exactly these resources.
    pub(crate) async fn replace(&self, uris: &BTreeSet<String>) -> Result<(), ConnectError> {
        let is_new = self.wanted.send_if_modified(|wanted| {
            let is_new = wanted.uris != *uris;
            if is_new {
                *wanted = WantedSubscriptions { round: wanted.round + 1, uris: uris.clone() };
            }
            is_new
        });
        if !is_new {
            return Ok(());
        }
        let round = self.wanted.borrow().round;
        let mut heard = self.heard.clone();
        let done = heard.wait_for(|heard| heard.round >= round || heard.refusal.is_some());
        match tokio::time::timeout(LONGEST_CHANGE, done).await {
            Ok(Ok(heard)) => heard.refusal.clone().map_or(Ok(()), Err),
            Ok(Err(_ended)) => Err(ConnectError::new(
                ConnectErrorKind::Unreachable,
                "the subscription to the server has ended",
            )),
            Err(_elapsed) => Err(ConnectError::new(
                ConnectErrorKind::Timeout,
                "the server did not begin to report updates of resources in time",
            )),
        }
    }
}

/// The task that keeps one subscription open. Servers and proxies may close it at any time; it is reopened with a
/// growing pause, and each time all lists count as changed.
#[derive(Debug)]
pub(crate) struct SubscriptionTask {
    peer: Peer<RoleClient>,
    pending: Arc<PendingRequests>,
    announced: Announced,
    wanted: watch::Receiver<WantedSubscriptions>,
    heard: watch::Sender<SubscriptionState>,
    stop: CancellationToken,
}

/// How a subscription ended.
enum End {
    Lost,
    Stopped,
}

impl SubscriptionTask {
    pub(crate) fn new(
        peer: Peer<RoleClient>,
        pending: Arc<PendingRequests>,
        announced: Announced,
        stop: CancellationToken,
    ) -> (Self, Watch) {
        let (wanted, receiver) = watch::channel(WantedSubscriptions::default());
        let (sender, heard) = watch::channel(SubscriptionState::default());
        let listener = Self { peer, pending, announced, wanted: receiver, heard: sender, stop };
        (listener, Watch { wanted, heard })
    }

    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (filter, round) = self.filter();
            let Some(filter) = filter else {
                self.heard.send_modify(|heard| heard.round = round);
                match self.stop.run_until_cancelled(self.wanted.changed()).await {
                    Some(Ok(())) => continue,
                    Some(Err(_)) | None => return,
                }
            };
            let stop = self.stop.clone();
            match stop.run_until_cancelled(self.peer.listen(filter)).await {
                Some(Ok(subscription)) => {
                    self.heard.send_modify(|heard| heard.round = round);
                    let opened = Instant::now();
                    match self.follow(subscription).await {
                        End::Stopped => return,
                        End::Lost => self.suspect(),
                    }
                    // The pause grows while subscriptions are closed right after they are opened.
                    if opened.elapsed() >= LONGEST_PAUSE {
                        pause = FIRST_PAUSE;
                    }
                }
                // Some servers announce changes but support no subscription; their lists are polled anyway.
                Some(Err(ServiceError::McpError(error)))
                    if error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    let error = describe_service_error(&ServiceError::McpError(error));
                    self.heard.send_modify(|heard| heard.refusal = Some(error));
                    return self.stop.cancelled().await;
                }
                Some(Err(_)) => {}
                None => return,
            }
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The filter for the current subscription, if there is anything to subscribe to.
    fn filter(&mut self) -> (Option<SubscriptionFilter>, u64) {
        let wanted = self.wanted.borrow_and_update().clone();
        let Announced { tools, prompts, resources } = self.announced;
        if !(tools || prompts || resources) && wanted.uris.is_empty() {
            return (None, wanted.round);
        }
        let mut filter = SubscriptionFilter::builder();
        if tools {
            filter = filter.tools_list_changed();
        }
        if prompts {
            filter = filter.prompts_list_changed();
        }
        if resources {
            filter = filter.resources_list_changed();
        }
        if !wanted.uris.is_empty() {
            filter = filter.resource_subscriptions(wanted.uris);
        }
        (Some(filter.build()), wanted.round)
    }

    /// Forwards notifications until the subscription ends or must be cancelled. If other resources are wanted, the new
    /// subscription is opened before the old one is closed, so that no update is lost.
    async fn follow(&mut self, mut subscription: Subscription) -> End {
        let stop = self.stop.clone();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                changed = self.wanted.changed() => match changed {
                    Ok(()) => None,
                    Err(_) => break,
                },
                next = subscription.next() => Some(next),
            };
            match next {
                Some(Ok(Some(notification))) => self.pass_on(notification),
                Some(Ok(None) | Err(_)) => return End::Lost,
                None => {
                    let (filter, round) = self.filter();
                    let mut old = match filter {
                        None => {
                            cancel(subscription).await;
                            return End::Lost;
                        }
                        Some(filter) => {
                            match stop.run_until_cancelled(self.peer.listen(filter)).await {
                                Some(Ok(new)) => std::mem::replace(&mut subscription, new),
                                Some(Err(_)) => return End::Lost,
                                None => break,
                            }
                        }
                    };
                    let _unheard = tokio::time::timeout(LAST_WORDS, old.cancel()).await;
                    self.heard.send_modify(|heard| heard.round = round);
                }
            }
        }
        cancel(subscription).await;
        End::Stopped
    }

    fn pass_on(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => {
                self.pending.changed().notify_one();
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.pending.tell(UpstreamNews::PromptsChanged);
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.pending.tell(UpstreamNews::ResourcesChanged);
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                let params = updated_params(&updated.params);
                self.pending
                    .tell(UpstreamNews::ResourceUpdated { uri: updated.params.uri, params });
            }
            _ => {}
        }
    }

    /// Reports all lists as changed, because notifications may have been lost.
    fn suspect(&self) {
        if self.announced.tools {
            self.pending.changed().notify_one();
        }
        if self.announced.prompts {
            self.pending.tell(UpstreamNews::PromptsChanged);
        }
        if self.announced.resources {
            self.pending.tell(UpstreamNews::ResourcesChanged);
        }
    }
}

async fn cancel(mut subscription: Subscription) {
    // If the server does not accept the cancellation, the connection is about to end anyway.
    let _unheard = tokio::time::timeout(LAST_WORDS, subscription.cancel()).await;
}

/// The params without the subscription id, which means nothing to callers.
fn updated_params(params: &ResourceUpdatedNotificationParam) -> JsonText {
    let mut value = serde_json::to_value(params).unwrap_or_default();
    if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.shift_remove(SUBSCRIBED);
        if meta.is_empty()
            && let Some(params) = value.as_object_mut()
        {
            params.shift_remove("_meta");
        }
    }
    JsonText::from(&value)
}
