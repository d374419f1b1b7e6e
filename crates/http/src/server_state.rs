//! The parts that a server is made of, and the state that its handlers share.

use std::sync::Arc;
use std::time::Duration;

use switchboard_auth::{Gatekeeper, Principal};
use switchboard_telemetry::MetricsPage;
use tokio::sync::Semaphore;

use crate::board_place::BoardPlace;
use crate::connections::ConnectionLimits;
use crate::current_grants::CurrentGrants;
use crate::current_host_policy::CurrentHostPolicy;
use crate::event_feed::BoardEvents;
use crate::made_answers::MadeAnswers;
use crate::open_questions::OpenQuestions;
use crate::origin_check::HostPolicy;
use crate::stream_auth::Leases;
use crate::tls_certificate::ServerCertificate;

/// How many sockets of TrustGraph's clients may be open at the same time; further ones get 503.
pub(crate) const MAX_TRUSTGRAPH_SOCKETS: usize = 256;

/// How many servers that are not configured may be tried at the same time; further requests get 409.
pub(crate) const MAX_SERVER_TRIALS: usize = 4;

/// The parts that a server consists of.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Filled when the board has started. Until then `/healthz` and `/metrics` respond, and MCP clients wait.
    pub board: BoardPlace,
    pub metrics: MetricsPage,
    /// The accepted hosts and origins until the board has started; then its configuration applies.
    pub hosts: HostPolicy,
    /// Checks the credentials.
    pub gatekeeper: Arc<Gatekeeper>,
    /// The certificate of the server; `None`: it serves HTTP without TLS.
    pub tls: Option<Arc<ServerCertificate>>,
    /// How long running requests may take after the shutdown began.
    pub drain: Duration,
}

/// The state that all handlers share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) board: BoardPlace,
    pub(crate) metrics: MetricsPage,
    pub(crate) hosts: Arc<CurrentHostPolicy>,
    pub(crate) gatekeeper: Arc<Gatekeeper>,
    pub(crate) grants: Arc<CurrentGrants>,
    /// The principal of all requests while no credentials are required.
    pub(crate) local: Principal,
    /// How long the body of a request may take.
    pub(crate) body_within: Duration,
    pub(crate) leases: Arc<Leases>,
    pub(crate) tls: Option<Arc<ServerCertificate>>,
    pub(crate) events: Arc<BoardEvents>,
    pub(crate) answers: Arc<MadeAnswers>,
    /// Limits the open sockets of TrustGraph's clients.
    pub(crate) trustgraph_sockets: Arc<Semaphore>,
    /// Limits the servers that are being tried.
    pub(crate) server_trials: Arc<Semaphore>,
    /// What servers ask the callers of running calls.
    pub(crate) questions: Arc<OpenQuestions>,
}

impl Shared {
    pub(crate) fn new(options: &ServeOptions, limits: &ConnectionLimits) -> Self {
        Self {
            board: options.board.clone(),
            metrics: options.metrics.clone(),
            hosts: Arc::new(CurrentHostPolicy::new(options.board.clone(), options.hosts.clone())),
            gatekeeper: options.gatekeeper.clone(),
            grants: Arc::default(),
            local: Principal::local(),
            body_within: limits.body_within,
            leases: Arc::default(),
            tls: options.tls.clone(),
            events: Arc::default(),
            answers: Arc::default(),
            trustgraph_sockets: Arc::new(Semaphore::new(MAX_TRUSTGRAPH_SOCKETS)),
            server_trials: Arc::new(Semaphore::new(MAX_SERVER_TRIALS)),
            questions: Arc::default(),
        }
    }

    /// `http` or `https`, as clients that reach this process directly write it.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
