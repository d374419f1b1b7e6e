//! The fakes as tests use them: start, script, and read the records.

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread;

use serde_json::Value;
use tokio::sync::oneshot;

use super::backend::Backend;
use super::findings::Violation;
use super::script::Script;
use super::service::router;
use super::state::{Decider, ModelRequest, Onboarding, Shared};
use super::step::Step;
use crate::own_runtime::serve;

/// All model backends on one loopback port, on their own runtime. Dropping the value stops them.
#[derive(Debug)]
pub struct FakeBackends {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Dropped with the fakes, which stops the serving thread.
    _stop: oneshot::Sender<()>,
}

impl FakeBackends {
    pub async fn start() -> Self {
        let listener = StdTcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        let served = Arc::clone(&shared);
        thread::Builder::new()
            .name("fake-backends".to_owned())
            .spawn(move || serve(listener, |socket| socket, router(served), ready, stopped))
            .expect("a thread starts");
        is_ready.await.expect("the fakes start");
        Self { shared, address, _stop: stop }
    }

    /// The address without a path, as the official libraries of Anthropic and Google expect it.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL before `/responses`, `/chat/completions`, `/v1/messages`, `/models/...` or `:streamGenerateContent`.
    pub fn base_url(&self, backend: Backend) -> String {
        format!("http://{}{}", self.address, backend.base_path())
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds steps to the script of a backend. A request with a violation uses no step.
    pub fn script(&self, backend: Backend, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        self.shared.script(Script([(backend, steps)].into()));
    }

    pub fn run_script(&self, script: Script) {
        self.shared.script(script);
    }

    /// Sets the response of a backend for when its script is empty.
    pub fn always(&self, backend: Backend, step: Step) {
        self.shared.set_default(backend, Some(step));
    }

    /// Lets a function decide the responses of a backend without a script from the body of each request.
    pub fn decide(
        &self,
        backend: Backend,
        decide: impl Fn(&Value) -> Step + Send + Sync + 'static,
    ) {
        self.shared.set_decider(backend, Decider(Arc::new(decide)));
    }

    /// Makes a backend without a script answer from the conversation.
    pub fn improvise(&self, backend: Backend) {
        self.shared.set_default(backend, None);
    }

    /// Number of remaining steps.
    pub fn steps_left(&self, backend: Backend) -> usize {
        self.shared.steps_left(backend)
    }

    /// Answers 401 to this key or token from now on.
    pub fn refuse_credential(&self, credential: &str) {
        self.shared.refuse_credential(credential);
    }

    /// Code Assist does not know the user yet: `onboardUser` has to be called.
    pub fn require_onboarding(&self) {
        self.shared.set_onboarding(Onboarding::Needed);
    }

    /// Forgets scripts, requests, violations and counts.
    pub fn clear(&self) {
        self.shared.clear();
    }

    /// The last requests, oldest first, including refused ones.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.requests()
    }

    /// The last request to a backend.
    pub fn last_request(&self, backend: Backend) -> Option<ModelRequest> {
        self.requests().into_iter().rev().find(|request| request.backend == backend)
    }

    pub fn request_count(&self, backend: Backend) -> usize {
        self.shared.request_count(backend)
    }

    /// All recorded violations.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.violations()
    }

    /// Number of responses that are being sent.
    pub fn open_streams(&self) -> usize {
        self.shared.stream_counts().0
    }

    /// The largest number of responses at the same time.
    pub fn peak_streams(&self) -> usize {
        self.shared.stream_counts().1
    }

    /// Number of responses that the client closed early.
    pub fn closed_by_client(&self) -> usize {
        self.shared.stream_counts().2
    }
}
