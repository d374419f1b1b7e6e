//! Where a connection may lead whose address did not come from the configuration (spec section 11).
//!
//! The check sits where names become addresses, and what it lets through is what is dialled: there is no second lookup
//! in between that could say something else. Addresses that are written out are never looked up, so those are checked
//! when a client is asked for; redirects stay on the same origin, so on the same host. Nothing is cached here: every new
//! connection looks its name up, and is checked, anew.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use switchboard_model::{EgressPolicy, EgressRefusal};
use url::Url;

use crate::error::{ConnectError, ConnectErrorKind};

/// Finds the addresses of a name.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Looks names up, and lets through what may be dialled. Clones share everything.
#[derive(Clone)]
pub(crate) struct EgressGuard {
    policy: Arc<EgressPolicy>,
    lookup: Arc<Lookup>,
}

impl fmt::Debug for EgressGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressGuard").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// What was not let through. It says the host that the caller wrote, and of a name not what it leads to: whoever asks
/// must not learn our network by asking.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressRefused {
    #[error("the egress check refuses {host}: {refusal}")]
    Host { host: String, refusal: EgressRefusal },
    #[error(
        "the egress check refuses '{name}': it leads to no address that a session may have us connect to"
    )]
    Name { name: String },
}

impl From<&EgressRefused> for ConnectError {
    fn from(refused: &EgressRefused) -> Self {
        let hint = match refused {
            EgressRefused::Host { refusal, .. } => refusal.hint(),
            EgressRefused::Name { .. } => EgressRefusal::Special("").hint(),
        };
        Self::new(ConnectErrorKind::Forbidden, refused.to_string()).with_hint(hint)
    }
}

impl EgressGuard {
    pub(crate) fn new(policy: EgressPolicy) -> Self {
        Self::with_lookup(policy, Arc::new(|name| Box::pin(system_lookup(name))))
    }

    fn with_lookup(policy: EgressPolicy, lookup: Arc<Lookup>) -> Self {
        Self { policy: Arc::new(policy), lookup }
    }

    /// Refuses an address that is written out, and a name that is denied.
    pub(crate) fn check_literal(&self, url: &Url) -> Result<(), ConnectError> {
        let host = url.host().ok_or_else(|| {
            ConnectError::new(ConnectErrorKind::Protocol, "the address names no host")
        })?;
        self.policy
            .judge_host(&host)
            .map_err(|refusal| (&EgressRefused::Host { host: host.to_string(), refusal }).into())
    }

    /// Those of a name's addresses that may be dialled.
    fn let_through(
        &self,
        name: &str,
        found: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, EgressRefused> {
        let is_fine = |address: &SocketAddr| match self.policy.judge(Some(name), address.ip()) {
            Ok(()) => true,
            Err(refusal) => {
                tracing::debug!(name, address = %address.ip(), %refusal, "refused by the egress check");
                false
            }
        };
        let fine: Vec<_> = found.into_iter().filter(is_fine).collect();
        if fine.is_empty() { Err(EgressRefused::Name { name: name.to_owned() }) } else { Ok(fine) }
    }
}

impl Resolve for EgressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = (guard.lookup)(name.as_str().to_owned()).await?;
            let fine = guard.let_through(name.as_str(), found)?;
            Ok(Box::new(fine.into_iter()) as Addrs)
        })
    }
}

async fn system_lookup(name: String) -> io::Result<Vec<SocketAddr>> {
    // The port is the URL's; the HTTP client puts it in.
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
