//! The HTTP clients that all servers share.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder};
use switchboard_loopback::LONGEST_CONNECT;
use switchboard_model::{ConnectError, ConnectErrorKind, EgressPolicy, is_on_this_machine};
use url::Url;

use crate::egress::EgressGuard;
use crate::http_failure::error_chain;

/// The `User-Agent` of all requests.
pub const USER_AGENT: &str = concat!("switchboard/", env!("CARGO_PKG_VERSION"));

/// One HTTP client for many servers: loading the system's certificates for each of them would dominate the start time.
/// It keeps no cookies and separates connections by host.
#[derive(Debug, Clone, Default)]
pub struct HttpPool {
    remote: Arc<OnceLock<Result<Client, ConnectError>>>,
    /// The client without a proxy, for servers on this machine: a proxy could not reach them and would see the traffic.
    local: Arc<OnceLock<Result<Client, ConnectError>>>,
    guard: Option<EgressGuard>,
    /// The pool of the last policy that [`HttpPool::under`] was asked for.
    checked: Arc<Mutex<Option<(EgressPolicy, Self)>>>,
}

impl HttpPool {
    /// A pool for addresses that do not come from the configuration. It shares no connection with other pools, because
    /// existing connections have not passed the check.
    pub fn guarded(policy: EgressPolicy) -> Self {
        Self::guarded_by(EgressGuard::new(policy))
    }

    /// Like [`HttpPool::guarded`], with this guard.
    pub fn guarded_by(guard: EgressGuard) -> Self {
        Self { guard: Some(guard), ..Self::default() }
    }

    /// A pool for addresses that must pass this policy. Callers with the same policy share it; a pool that is guarded
    /// already stays as it is.
    #[must_use]
    pub fn under(&self, policy: &EgressPolicy) -> Self {
        if self.is_guarded() {
            return self.clone();
        }
        let mut checked = self.checked.lock();
        match &*checked {
            Some((known, pool)) if known == policy => pool.clone(),
            _ => {
                let pool = Self::guarded(policy.clone());
                *checked = Some((policy.clone(), pool.clone()));
                pool
            }
        }
    }

    /// Whether the addresses of this pool are checked.
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// The client for requests to this URL.
    pub fn client_for(&self, url: &Url) -> Result<Client, ConnectError> {
        if let Some(guard) = &self.guard {
            guard.check_literal(url)?;
            // Without a proxy: a proxy would resolve names by itself, outside of the check.
            let build = || build_http(Client::builder().no_proxy().dns_resolver(guard.clone()));
            return self.remote.get_or_init(build).clone();
        }
        if is_on_this_machine(url) {
            self.local.get_or_init(|| build_http(Client::builder().no_proxy())).clone()
        } else {
            self.remote.get_or_init(|| build_http(Client::builder())).clone()
        }
    }
}

/// Redirects never leave the origin, so credentials do not either, and connecting has a time limit.
fn build_http(builder: ClientBuilder) -> Result<Client, ConnectError> {
    builder
        .connect_timeout(LONGEST_CONNECT)
        .tcp_nodelay(true)
        .redirect(Policy::custom(same_origin_only))
        .user_agent(USER_AGENT)
        .build()
        .map_err(|error| ConnectError::new(ConnectErrorKind::Unreachable, error_chain(&error)))
}

/// The egress check relies on this too: a redirect stays on the checked host.
fn same_origin_only(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same =
        attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
}
