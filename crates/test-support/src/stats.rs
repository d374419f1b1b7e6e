//! Records of the scripted server. Counts continue over a restart.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::http::request::Parts;
use serde_json::Value;

/// Maximum number of recorded requests; the oldest are removed first.
const KEPT_REQUESTS: usize = 256;

/// A snapshot of all counts.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub initialize_count: usize,
    pub discover_count: usize,
    /// Number of `tools/list` requests without a cursor.
    pub list_count: usize,
    /// Number of returned pages, including first ones.
    pub page_count: usize,
    pub delete_count: usize,
    /// Number of opened notification streams: by GET, by `subscriptions/listen`, or at `/sse`.
    pub stream_count: usize,
    /// Calls in the order in which they started.
    pub calls: Vec<StartedCall>,
    pub finished_calls: usize,
    pub running_calls: usize,
    pub peak_calls: usize,
    pub peak_by_tool: BTreeMap<String, usize>,
    /// Number of server-initiated requests of tools.
    pub questions: usize,
    /// Request ids in `notifications/cancelled`.
    pub cancelled: Vec<Value>,
    /// Ids of calls that ended early because their caller closed the response (stateless era), or because the server
    /// was stopped.
    pub dropped_calls: Vec<Value>,
    /// Ids of calls in a session whose response stream was closed before the response. The call itself continues.
    pub closed_responses: Vec<Value>,
    /// The last requests with their headers, oldest first.
    pub requests: VecDeque<SeenRequest>,
    /// The last version that a client sent, in `initialize` or in `_meta`.
    pub client_protocol_version: Option<String>,
    pub client_info: Option<Value>,
}

#[derive(Debug, Clone)]
pub struct StartedCall {
    pub tool: String,
    /// The argument `n`, with which tests number their calls.
    pub n: Option<i64>,
    pub id: Value,
    /// All of `params`, `arguments` and `_meta` included.
    pub params: Value,
}

#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub http_method: String,
    pub path: String,
    /// The method of the JSON-RPC message, if the body was one.
    pub method: Option<String>,
    /// Header names are in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl Stats {
    pub fn total_calls(&self) -> usize {
        self.calls.len()
    }

    pub fn peak_of(&self, tool: &str) -> usize {
        self.peak_by_tool.get(tool).copied().unwrap_or(0)
    }

    /// The last request with this JSON-RPC method.
    pub fn last_request(&self, method: &str) -> Option<&SeenRequest> {
        self.requests.iter().rev().find(|request| request.method.as_deref() == Some(method))
    }

    /// A header of the last request with this JSON-RPC method.
    pub fn last_header(&self, method: &str, header: &str) -> Option<&str> {
        let headers = &self.last_request(method)?.headers;
        headers.get(&header.to_ascii_lowercase()).map(String::as_str)
    }
}

/// The counts of a running server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    inner: Arc<Mutex<Recorded>>,
}

#[derive(Debug, Default)]
struct Recorded {
    stats: Stats,
    running_by_tool: BTreeMap<String, usize>,
}

impl Recorder {
    pub(crate) fn snapshot(&self) -> Stats {
        self.lock().stats.clone()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.lock().stats);
    }

    pub(crate) fn request(&self, parts: &Parts, body: &Value) {
        let headers = parts.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let request = SeenRequest {
            http_method: parts.method.to_string(),
            path: parts.uri.to_string(),
            method: body["method"].as_str().map(str::to_owned),
            headers: headers.collect(),
            body: body.clone(),
        };
        let requests = &mut self.lock().stats.requests;
        if requests.len() == KEPT_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    pub(crate) fn call_started(&self, tool: &str, id: &Value, params: &Value) -> RunningCall {
        let mut guard = self.lock();
        let recorded = &mut *guard;
        let running = recorded.running_by_tool.entry(tool.to_owned()).or_default();
        *running += 1;
        let stats = &mut recorded.stats;
        let peak = stats.peak_by_tool.entry(tool.to_owned()).or_default();
        *peak = (*peak).max(*running);
        stats.running_calls += 1;
        stats.peak_calls = stats.peak_calls.max(stats.running_calls);
        stats.calls.push(StartedCall {
            tool: tool.to_owned(),
            n: params["arguments"]["n"].as_i64(),
            id: id.clone(),
            params: params.clone(),
        });
        let recorder = self.clone();
        RunningCall { recorder, tool: tool.to_owned(), id: id.clone(), end: CallEnd::Dropped }
    }

    /// How many calls of this tool have run at the same time, at most.
    pub(crate) fn peak_of(&self, tool: &str) -> usize {
        self.lock().stats.peak_of(tool)
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.inner.lock().expect("nothing panics while it counts")
    }
}

/// A running call. Dropping it without an explicit end counts as a dropped call.
#[derive(Debug)]
pub(crate) struct RunningCall {
    recorder: Recorder,
    tool: String,
    id: Value,
    end: CallEnd,
}

#[derive(Debug)]
enum CallEnd {
    Dropped,
    Cancelled,
    Finished,
}

impl RunningCall {
    pub(crate) fn finish(mut self) {
        self.end = CallEnd::Finished;
    }

    /// Ends the call after `notifications/cancelled`, which is counted on arrival.
    pub(crate) fn cancel(mut self) {
        self.end = CallEnd::Cancelled;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut recorded = self.recorder.lock();
        if let Some(running) = recorded.running_by_tool.get_mut(&self.tool) {
            *running -= 1;
        }
        recorded.stats.running_calls -= 1;
        match self.end {
            CallEnd::Dropped => recorded.stats.dropped_calls.push(self.id.clone()),
            CallEnd::Cancelled => {}
            CallEnd::Finished => recorded.stats.finished_calls += 1,
        }
    }
}
