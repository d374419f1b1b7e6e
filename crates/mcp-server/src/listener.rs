//! `subscriptions/listen`: event streams of the stateless era.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use switchboard_model::LiveAccess;
use switchboard_protocol::{notification, quoted};
use switchboard_sessions::Session;
use switchboard_view::Scope;
use tokio::sync::mpsc;

use crate::list_changed::{ListChanges, SeenLists};
use crate::relist::RelistHistory;

/// Notifications that may wait for a slow reader before its stream is closed.
const QUEUE: usize = 64;
/// The maximum number of open streams of one principal.
const MAX_PER_PRINCIPAL: usize = 256;

/// One open `subscriptions/listen` stream.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The id of the request as JSON text; every notification repeats it.
    id: String,
    principal: Arc<str>,
    pub(crate) scope: Arc<Scope>,
    /// What the credential of the stream grants.
    pub(crate) access: LiveAccess,
    pub(crate) session: Option<Arc<Session>>,
    wanted: ListChanges,
    pub(crate) uris: BTreeSet<String>,
    seen: Mutex<SeenLists>,
    sender: mpsc::Sender<String>,
    relists: Arc<RelistHistory>,
    /// Whether the queue was full once, so that a notification is lost.
    is_slow: AtomicBool,
}

/// The notifications that a client requests, reduced to those it may get.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListenRequest {
    pub(crate) changes: ListChanges,
    pub(crate) uris: BTreeSet<String>,
}

impl ListenRequest {
    /// The JSON text of the acknowledgement.
    pub(crate) fn text(&self) -> String {
        let mut members = Vec::new();
        for (is_set, name) in [
            (self.changes.tools, "toolsListChanged"),
            (self.changes.prompts, "promptsListChanged"),
            (self.changes.resources, "resourcesListChanged"),
        ] {
            if is_set {
                members.push(format!("\"{name}\":true"));
            }
        }
        if !self.uris.is_empty() {
            let uris: Vec<_> = self.uris.iter().map(|uri| quoted(uri)).collect();
            members.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}

impl Listener {
    /// Compares the current lists with those the client saw last, and sends the requested notifications.
    pub(crate) fn tell_changes(&self, now: impl FnOnce() -> SeenLists) {
        let mut seen = self.seen.lock();
        let now = now();
        let changes = now.since(&seen);
        *seen = now;
        let told = ListChanges {
            tools: changes.tools && self.wanted.tools,
            prompts: changes.prompts && self.wanted.prompts,
            resources: changes.resources && self.wanted.resources,
        };
        for method in told.methods() {
            self.tell(method, None);
        }
        if told.tools {
            self.relists.note_told();
        }
    }

    fn is_of(&self, principal: &str, session: &Arc<Session>) -> bool {
        *self.principal == *principal
            && self.session.as_ref().is_some_and(|own| Arc::ptr_eq(own, session))
    }

    fn tell(&self, method: &str, uri: Option<&str>) {
        let meta = subscription_meta(&self.id);
        let uri = uri.map(|uri| format!("\"uri\":{},", quoted(uri))).unwrap_or_default();
        let message = notification(method, Some(&format!("{{{uri}{meta}}}")));
        if self.sender.try_send(message).is_err() {
            // The stream is closed; the client then listens again and reads the lists.
            self.is_slow.store(true, Ordering::Relaxed);
        }
    }
}

/// The `_meta` member that every notification of a subscription carries.
pub(crate) fn subscription_meta(id: &str) -> String {
    format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}")
}

/// All open `subscriptions/listen` streams.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    open: Mutex<HashMap<u64, Arc<Listener>>>,
    next: AtomicU64,
}

/// Removes the stream from [`Listeners`] when it is dropped.
#[derive(Debug)]
pub(crate) struct ListenerGuard {
    number: u64,
    gateway: Arc<crate::gateway::Gateway>,
    has_uris: bool,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.gateway.listeners.close(self.number);
        if self.has_uris {
            self.gateway.update_servers_soon();
        }
    }
}

impl Listeners {
    fn open(&self) -> parking_lot::MutexGuard<'_, HashMap<u64, Arc<Listener>>> {
        self.open.lock()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Listener>> {
        self.open().values().cloned().collect()
    }

    fn close(&self, number: u64) {
        self.open().remove(&number);
    }

    /// Notifies the streams that subscribe to a resource and that `sees` accepts.
    pub(crate) fn resource_updated(&self, uri: &str, sees: impl Fn(&Listener) -> bool) {
        for listener in self.all().iter().filter(|listener| listener.uris.contains(uri)) {
            if sees(listener) {
                listener.tell("notifications/resources/updated", Some(uri));
            }
        }
        self.drop_slow();
    }

    /// The relist history of the principal's stream that gets tool changes of this session; the newest if there are several.
    pub(crate) fn relists_of(
        &self,
        principal: &str,
        session: &Arc<Session>,
    ) -> Option<Arc<RelistHistory>> {
        let open = self.open();
        let hears =
            |listener: &Listener| listener.wanted.tools && listener.is_of(principal, session);
        let newest = open.iter().filter(|(_, listener)| hears(listener)).max_by_key(|(at, _)| **at);
        newest.map(|(_, listener)| listener.relists.clone())
    }

    /// Notes that a client of this principal has received the tools of this session.
    pub(crate) fn note_listed(&self, principal: &str, session: &Arc<Session>) {
        for listener in self.open().values().filter(|it| it.is_of(principal, session)) {
            listener.relists.note_listed();
        }
    }

    /// Closes the streams that have lost a notification.
    pub(crate) fn drop_slow(&self) {
        self.open().retain(|_, listener| !listener.is_slow.load(Ordering::Relaxed));
    }

    /// Closes the streams of a session that has ended.
    pub(crate) fn end_of(&self, session: &Arc<Session>) {
        let is_elsewhere = |listener: &Listener| {
            listener.session.as_ref().is_none_or(|other| !Arc::ptr_eq(other, session))
        };
        self.open().retain(|_, listener| is_elsewhere(listener));
    }

    /// Opens a stream; `None` when the principal has [`MAX_PER_PRINCIPAL`].
    pub(crate) fn add(
        &self,
        gateway: &Arc<crate::gateway::Gateway>,
        id: &str,
        context: &crate::request_context::RequestContext,
        wanted: &ListenRequest,
    ) -> Option<(mpsc::Receiver<String>, ListenerGuard)> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let listener = Arc::new(Listener {
            id: id.to_owned(),
            principal: context.caller.principal.clone(),
            scope: context.scope.clone(),
            access: context.caller.access.clone(),
            session: context.session.clone(),
            wanted: wanted.changes,
            uris: wanted.uris.clone(),
            seen: Mutex::new(gateway.seen_lists(&context.scope, context.session.as_ref())),
            sender,
            relists: Arc::default(),
            is_slow: AtomicBool::new(false),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = self.open();
            let own =
                open.values().filter(|other| other.principal == context.caller.principal).count();
            if own >= MAX_PER_PRINCIPAL {
                return None;
            }
            open.insert(number, listener.clone());
        }
        // Sends changes that happened before the stream was registered.
        gateway.tell_listener(&listener);
        let has_uris = !wanted.uris.is_empty();
        Some((receiver, ListenerGuard { number, gateway: gateway.clone(), has_uris }))
    }
}
