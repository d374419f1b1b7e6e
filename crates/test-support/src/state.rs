//! State that the requests of one server share: script, sessions and open streams.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::fault::Fault;
use crate::frame::{Frame, QUEUE};
use crate::shelf::{Interests, Shelf};
use crate::stats::Recorder;
use crate::tool::Tool;

pub(crate) const MODERN_VERSION: &str = "2026-07-28";
pub(crate) const LEGACY_VERSIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
    Dual,
}

/// The protocol rules for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Legacy,
    Modern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    StreamableHttp,
    HttpSse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sessions {
    Required,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subscriptions {
    Served,
    /// Announced, but the method is unknown.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// JSON, and an event stream only for progress or a second response.
    Json,
    Events,
}

/// The settings of the server that do not change after the start.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) era: Era,
    pub(crate) transport: Transport,
    pub(crate) sessions: Sessions,
    pub(crate) answers: Answers,
    pub(crate) server_name: String,
    pub(crate) instructions: Option<String>,
    /// Shared, so that it can be replaced while the server runs.
    pub(crate) bearer: Arc<Mutex<Option<String>>>,
    pub(crate) ttl_ms: u64,
    pub(crate) cache_scope: String,
    pub(crate) tools_per_page: Option<usize>,
    pub(crate) generated_pages: usize,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) has_prompts: bool,
    pub(crate) has_resources: bool,
    pub(crate) has_logging: bool,
    /// Fixed results of these methods.
    pub(crate) exact: BTreeMap<&'static str, String>,
}

impl Script {
    /// The response to a method with a fixed result.
    pub(crate) fn exact_answer(&self, message: &Value) -> Option<Frame> {
        let result = self.exact.get(message["method"].as_str()?)?;
        Some(Frame::Message(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
            message["id"]
        )))
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
    pub(crate) tracker: TaskTracker,
    tools: Mutex<Vec<Tool>>,
    shelf: Mutex<Shelf>,
    fault: Mutex<Option<ActiveFault>>,
    live: Mutex<Live>,
    next_session: AtomicU64,
}

#[derive(Debug)]
struct ActiveFault {
    fault: Fault,
    /// How many times it still applies; `None` means until it is cleared.
    remaining: Option<usize>,
}

#[derive(Debug, Default)]
struct Live {
    sessions: HashSet<String>,
    streams: Vec<NotificationStream>,
    calls: HashMap<CallKey, CancellationToken>,
    /// The resource subscriptions of sessions.
    watched: HashMap<String, BTreeSet<String>>,
}

#[derive(Debug, Clone)]
struct NotificationStream {
    session: Option<String>,
    /// Id of the `subscriptions/listen` request that opened it.
    subscription: Option<Value>,
    interests: Interests,
    queue: mpsc::Sender<Frame>,
}

/// A call is identified by its session and the text of its id.
pub(crate) type CallKey = (String, String);

impl Shared {
    pub(crate) fn new(
        script: Script,
        tools: Vec<Tool>,
        shelf: Shelf,
        fault: Option<Fault>,
    ) -> Self {
        Self {
            script,
            recorder: Recorder::default(),
            tracker: TaskTracker::new(),
            tools: Mutex::new(tools),
            shelf: Mutex::new(shelf),
            fault: Mutex::new(fault.map(|fault| ActiveFault { fault, remaining: None })),
            live: Mutex::default(),
            next_session: AtomicU64::new(1),
        }
    }

    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.tools.lock().unwrap().clone()
    }

    pub(crate) fn set_tools(&self, tools: Vec<Tool>) {
        *self.tools.lock().unwrap() = tools;
    }

    pub(crate) fn shelf(&self) -> Shelf {
        self.shelf.lock().unwrap().clone()
    }

    pub(crate) fn change_shelf(&self, change: impl FnOnce(&mut Shelf)) {
        change(&mut self.shelf.lock().unwrap());
    }

    /// Adds or removes a resource subscription of a session.
    pub(crate) fn watch(&self, session: &str, uri: &str, is_wanted: bool) {
        let mut live = self.live.lock().unwrap();
        let watched = live.watched.entry(session.to_owned()).or_default();
        if is_wanted {
            watched.insert(uri.to_owned());
        } else {
            watched.remove(uri);
        }
    }

    /// All resources with a subscription, in either era.
    pub(crate) fn watched(&self) -> BTreeSet<String> {
        let streams = self.open_streams().into_iter().flat_map(|stream| stream.interests.uris);
        let live = self.live.lock().unwrap();
        let of_sessions = live.watched.values().flatten().cloned();
        of_sessions.chain(streams).collect()
    }

    pub(crate) fn current_fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap().as_ref().map(|active| active.fault.clone())
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>, remaining: Option<usize>) {
        *self.fault.lock().unwrap() = fault.map(|fault| ActiveFault { fault, remaining });
    }

    /// The fault, if `applies` returns true; this counts towards a limited number.
    pub(crate) fn strike(&self, applies: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let mut slot = self.fault.lock().unwrap();
        let active = slot.as_mut().filter(|active| applies(&active.fault))?;
        let fault = active.fault.clone();
        if let Some(remaining) = &mut active.remaining {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                *slot = None;
            }
        }
        Some(fault)
    }

    pub(crate) fn open_session(&self) -> String {
        let number = self.next_session.fetch_add(1, Ordering::Relaxed);
        let session = format!("session-{number}");
        self.live.lock().unwrap().sessions.insert(session.clone());
        session
    }

    pub(crate) fn has_session(&self, session: &str) -> bool {
        self.live.lock().unwrap().sessions.contains(session)
    }

    pub(crate) fn close_session(&self, session: &str) -> bool {
        let mut live = self.live.lock().unwrap();
        live.streams.retain(|stream| stream.session.as_deref() != Some(session));
        live.watched.remove(session);
        live.sessions.remove(session)
    }

    pub(crate) fn forget_connections(&self) {
        *self.live.lock().unwrap() = Live::default();
    }

    pub(crate) fn session_count(&self) -> usize {
        self.live.lock().unwrap().sessions.len()
    }

    pub(crate) fn call_token(&self, key: CallKey) -> CancellationToken {
        self.live.lock().unwrap().calls.entry(key).or_default().clone()
    }

    pub(crate) fn forget_call(&self, key: &CallKey) {
        self.live.lock().unwrap().calls.remove(key);
    }

    pub(crate) fn cancel_call(&self, key: &CallKey) {
        if let Some(token) = self.live.lock().unwrap().calls.get(key) {
            token.cancel();
        }
    }

    /// Registers a notification stream and returns its receiving end. `first` is sent before anything else.
    pub(crate) fn open_stream(
        &self,
        session: Option<String>,
        subscription: Option<Value>,
        interests: Interests,
        first: Option<Frame>,
    ) -> mpsc::Receiver<Frame> {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let stream = NotificationStream { session, subscription, interests, queue };
        let early = self.strike(|fault| *fault == Fault::ListChangedBeforeList);
        for frame in first.into_iter().chain(early.map(|_| list_changed(&stream))) {
            stream.queue.try_send(frame).expect("a new queue has room");
        }
        self.recorder.count(|stats| stats.stream_count += 1);
        self.live.lock().unwrap().streams.push(stream);
        receiver
    }

    /// The queue of the stream that belongs to a session.
    pub(crate) fn stream_of(&self, session: &str) -> Option<mpsc::Sender<Frame>> {
        let live = self.live.lock().unwrap();
        let mut streams = live.streams.iter();
        let stream = streams.find(|stream| stream.session.as_deref() == Some(session))?;
        Some(stream.queue.clone())
    }

    pub(crate) fn open_stream_count(&self) -> usize {
        self.open_streams().len()
    }

    /// Sends one `list_changed` to each stream that wants it, and returns how many got it.
    pub(crate) async fn notify_list_changed(&self) -> usize {
        let method = "notifications/tools/list_changed";
        self.notify(method, &json!({}), |_, interests| interests.tools).await
    }

    /// Sends `resources/updated` to the subscribers.
    pub(crate) async fn notify_updated(&self, uri: &str) -> usize {
        let watched = self.live.lock().unwrap().watched.clone();
        let has_subscribed = |session: Option<&str>| {
            let own = session.and_then(|session| watched.get(session));
            own.is_some_and(|uris| uris.contains(uri))
        };
        let is_told = |session: Option<&str>, interests: &Interests| {
            interests.uris.contains(uri) || has_subscribed(session)
        };
        self.notify("notifications/resources/updated", &json!({ "uri": uri }), is_told).await
    }

    /// Sends a notification to the matching streams, and returns how many got it.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: &Value,
        is_told: impl Fn(Option<&str>, &Interests) -> bool,
    ) -> usize {
        let mut delivered = 0;
        for stream in self.open_streams() {
            if is_told(stream.session.as_deref(), &stream.interests) {
                let message = notification(&stream, method, params);
                delivered += usize::from(stream.queue.send(message).await.is_ok());
            }
        }
        delivered
    }

    /// Sends a server-initiated request on all streams, and returns how many got it.
    pub(crate) async fn ask_on_streams(&self, method: &str) -> usize {
        let mut delivered = 0;
        for stream in self.open_streams() {
            let message =
                json!({"jsonrpc": "2.0", "id": format!("asks {method}"), "method": method});
            delivered += usize::from(stream.queue.send(message.into()).await.is_ok());
        }
        delivered
    }

    /// Closes all streams as in an orderly shutdown.
    pub(crate) async fn end_streams(&self) {
        for stream in self.open_streams() {
            if let Some(id) = &stream.subscription {
                let result = json!({"resultType": "complete", "_meta": subscription_meta(id)});
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                stream.queue.send(answer.into()).await.ok();
            }
        }
        self.live.lock().unwrap().streams.clear();
    }

    fn open_streams(&self) -> Vec<NotificationStream> {
        let mut live = self.live.lock().unwrap();
        live.streams.retain(|stream| !stream.queue.is_closed());
        live.streams.clone()
    }
}

pub(crate) fn subscription_meta(id: &Value) -> Value {
    json!({"io.modelcontextprotocol/subscriptionId": id})
}

fn list_changed(stream: &NotificationStream) -> Frame {
    notification(stream, "notifications/tools/list_changed", &json!({}))
}

fn notification(stream: &NotificationStream, method: &str, params: &Value) -> Frame {
    let mut params = params.clone();
    if let Some(id) = &stream.subscription {
        params["_meta"] = subscription_meta(id);
    }
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if params != json!({}) {
        message["params"] = params;
    }
    message.into()
}
