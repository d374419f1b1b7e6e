//! What the requests of one server share: its script, its sessions and its open streams.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::fault::Fault;
use crate::frame::{Frame, QUEUE};
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

/// Which rules one request follows.
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
    /// JSON, and events only where progress or a second answer needs them.
    Json,
    Events,
}

/// What is said about the server before it starts, and stays.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) era: Era,
    pub(crate) transport: Transport,
    pub(crate) sessions: Sessions,
    pub(crate) answers: Answers,
    pub(crate) server_name: String,
    pub(crate) instructions: Option<String>,
    pub(crate) bearer: Option<String>,
    pub(crate) ttl_ms: u64,
    pub(crate) cache_scope: String,
    pub(crate) tools_per_page: Option<usize>,
    pub(crate) generated_pages: usize,
    pub(crate) subscriptions: Subscriptions,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
    pub(crate) tracker: TaskTracker,
    tools: Mutex<Vec<Tool>>,
    fault: Mutex<Option<ActiveFault>>,
    live: Mutex<Live>,
    next_session: AtomicU64,
}

#[derive(Debug)]
struct ActiveFault {
    fault: Fault,
    /// How often it still strikes; `None` means until it is cleared.
    remaining: Option<usize>,
}

#[derive(Debug, Default)]
struct Live {
    sessions: HashSet<String>,
    streams: Vec<NotificationStream>,
    calls: HashMap<CallKey, CancellationToken>,
}

#[derive(Debug, Clone)]
struct NotificationStream {
    session: Option<String>,
    /// Id of the `subscriptions/listen` request that opened it.
    subscription: Option<Value>,
    queue: mpsc::Sender<Frame>,
}

/// A call is named by its session and the text of its id.
pub(crate) type CallKey = (String, String);

impl Shared {
    pub(crate) fn new(script: Script, tools: Vec<Tool>, fault: Option<Fault>) -> Self {
        Self {
            script,
            recorder: Recorder::default(),
            tracker: TaskTracker::new(),
            tools: Mutex::new(tools),
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

    pub(crate) fn current_fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap().as_ref().map(|active| active.fault.clone())
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>, remaining: Option<usize>) {
        *self.fault.lock().unwrap() = fault.map(|fault| ActiveFault { fault, remaining });
    }

    /// The fault, if `applies` says so; one strike of a counted fault is used up then.
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

    /// Registers a stream of notifications and gives its receiving end. `first` is sent
    /// before anything else.
    pub(crate) fn open_stream(
        &self,
        session: Option<String>,
        subscription: Option<Value>,
        first: Option<Frame>,
    ) -> mpsc::Receiver<Frame> {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let stream = NotificationStream { session, subscription, queue };
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

    /// Sends one `list_changed` to each open stream and says how many took it.
    pub(crate) async fn notify_list_changed(&self) -> usize {
        let mut delivered = 0;
        for stream in self.open_streams() {
            delivered += usize::from(stream.queue.send(list_changed(&stream)).await.is_ok());
        }
        delivered
    }

    /// Ends all streams as a server does that shuts down in good order.
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
    let mut message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    if let Some(id) = &stream.subscription {
        message["params"] = json!({"_meta": subscription_meta(id)});
    }
    message.into()
}
