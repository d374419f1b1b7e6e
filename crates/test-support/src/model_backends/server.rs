//! The fakes as tests see them: start, script, ask what they saw.

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use super::backend::Backend;
use super::findings::Violation;
use super::script::Script;
use super::service::router;
use super::state::{ModelRequest, Onboarding, Shared};
use super::step::Step;
use crate::own_runtime::serve;

/// All model backends on one loopback port, on a runtime of their own. Dropping them kills them.
#[derive(Debug)]
pub struct FakeBackends {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Dropped with the fakes, which ends the thread that serves.
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

    /// The address without a path, as the official libraries of Anthropic and Google want it.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What comes before `/responses`, `/chat/completions`, `/v1/messages`, `/models/...` or
    /// `:streamGenerateContent`.
    pub fn base_url(&self, backend: Backend) -> String {
        format!("http://{}{}", self.address, backend.base_path())
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds to what a backend answers next. A request that breaks a rule takes no step.
    pub fn script(&self, backend: Backend, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        self.shared.script(Script([(backend, steps)].into()));
    }

    pub fn run_script(&self, script: Script) {
        self.shared.script(script);
    }

    /// What a backend answers whenever its script is at its end.
    pub fn always(&self, backend: Backend, step: Step) {
        self.shared.set_default(backend, Some(step));
    }

    /// Without a script, a backend answers what the conversation asks for.
    pub fn improvise(&self, backend: Backend) {
        self.shared.set_default(backend, None);
    }

    /// Steps that are not taken yet.
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

    /// The last requests, oldest first, those that were refused included.
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

    /// Every rule that a request broke.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.violations()
    }

    /// Answers that are under way now.
    pub fn open_streams(&self) -> usize {
        self.shared.stream_counts().0
    }

    /// The most answers that were under way at one time.
    pub fn peak_streams(&self) -> usize {
        self.shared.stream_counts().1
    }

    /// Answers that the client did not want to the end.
    pub fn closed_by_client(&self) -> usize {
        self.shared.stream_counts().2
    }
}
