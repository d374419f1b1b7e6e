//! The state of the fakes: scripts, recorded requests, and open streams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

use super::backend::Backend;
use super::findings::{Findings, Violation};
use super::heard::{EventReceiver, improvise};
use super::script::Script;
use super::step::Step;

/// Maximum number of recorded requests and violations; the oldest are removed first.
const KEPT: usize = 512;

/// A request as a backend received it.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub backend: Backend,
    pub method: String,
    /// With the query.
    pub path: String,
    /// Header names are in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// The body as it was sent.
    pub text: String,
    /// The names of the tools that are offered at the end of this conversation.
    pub tools: Vec<String>,
    /// The error message of the response, if it was refused.
    pub refusal: Option<String>,
}

/// A counter for ids, unique within one set of fakes.
#[derive(Debug, Default)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn next(&self, prefix: &str) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let joint = if prefix == "chatcmpl" { '-' } else { '_' };
        format!("{prefix}{joint}{number:06}abcdefghijklmnop")
    }
}

/// Decides the response to a request from its body.
#[derive(Clone)]
pub(crate) struct Decider(pub(crate) Arc<dyn Fn(&Value) -> Step + Send + Sync>);

impl std::fmt::Debug for Decider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decider")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) ids: Ids,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    steps: BTreeMap<Backend, VecDeque<Step>>,
    defaults: BTreeMap<Backend, Step>,
    deciders: BTreeMap<Backend, Decider>,
    refused_credentials: BTreeSet<String>,
    onboarding: Onboarding,
    requests: VecDeque<ModelRequest>,
    violations: VecDeque<Violation>,
    counts: BTreeMap<Backend, usize>,
    open_streams: usize,
    peak_streams: usize,
    closed_by_client: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onboarding {
    #[default]
    Done,
    Needed,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing panics while it holds the state")
    }

    pub(crate) fn script(&self, script: Script) {
        let mut inner = self.lock();
        for (backend, steps) in script.0 {
            inner.steps.entry(backend).or_default().extend(steps);
        }
    }

    pub(crate) fn set_default(&self, backend: Backend, step: Option<Step>) {
        let mut inner = self.lock();
        match step {
            Some(step) => inner.defaults.insert(backend, step),
            None => inner.defaults.remove(&backend),
        };
    }

    pub(crate) fn set_decider(&self, backend: Backend, decider: Decider) {
        self.lock().deciders.insert(backend, decider);
    }

    pub(crate) fn steps_left(&self, backend: Backend) -> usize {
        self.lock().steps.get(&backend).map_or(0, VecDeque::len)
    }

    /// Clears scripts and records.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        let (open_streams, peak_streams) = (inner.open_streams, inner.open_streams);
        *inner = Inner { open_streams, peak_streams, ..Inner::default() };
    }

    /// The next step of the script, or the default response.
    pub(crate) fn next_step(&self, backend: Backend, body: &Value, heard: &EventReceiver) -> Step {
        let (scripted, decider) = {
            let mut inner = self.lock();
            let next = inner.steps.get_mut(&backend).and_then(VecDeque::pop_front);
            let scripted = next.or_else(|| inner.defaults.get(&backend).cloned());
            (scripted, inner.deciders.get(&backend).cloned())
        };
        let decided = || decider.map(|decider| (decider.0)(body));
        scripted.or_else(decided).unwrap_or_else(|| improvise(heard))
    }

    pub(crate) fn record(&self, request: ModelRequest, findings: &Findings) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        *inner.counts.entry(request.backend).or_default() += 1;
        inner.violations.extend(findings.violations(request.backend));
        let surplus = inner.violations.len().saturating_sub(KEPT);
        inner.violations.drain(..surplus);
        if inner.requests.len() == KEPT {
            inner.requests.pop_front();
        }
        inner.requests.push_back(request);
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.lock().violations.iter().cloned().collect()
    }

    pub(crate) fn request_count(&self, backend: Backend) -> usize {
        self.lock().counts.get(&backend).copied().unwrap_or(0)
    }

    /// Streams that are open now, the maximum at one time, and those that the client closed early.
    pub(crate) fn stream_counts(&self) -> (usize, usize, usize) {
        let inner = self.lock();
        (inner.open_streams, inner.peak_streams, inner.closed_by_client)
    }

    pub(crate) fn refuse_credential(&self, credential: &str) {
        self.lock().refused_credentials.insert(credential.to_owned());
    }

    pub(crate) fn is_refused(&self, credential: &str) -> bool {
        self.lock().refused_credentials.contains(credential)
    }

    pub(crate) fn set_onboarding(&self, onboarding: Onboarding) {
        self.lock().onboarding = onboarding;
    }

    pub(crate) fn onboarding(&self) -> Onboarding {
        self.lock().onboarding
    }

    pub(crate) fn open_stream(self: &Arc<Self>) -> OpenStream {
        let mut inner = self.lock();
        inner.open_streams += 1;
        inner.peak_streams = inner.peak_streams.max(inner.open_streams);
        OpenStream { shared: Arc::clone(self), is_finished: false }
    }
}

/// A response that is being sent. Dropping it before its end means that the client disconnected.
#[derive(Debug)]
pub(crate) struct OpenStream {
    shared: Arc<Shared>,
    is_finished: bool,
}

impl OpenStream {
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        inner.open_streams -= 1;
        inner.closed_by_client += usize::from(!self.is_finished);
    }
}
