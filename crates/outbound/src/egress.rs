//! Checks the destination of connections whose address did not come from the configuration.
//!
//! The check is part of name resolution, and exactly the addresses that it permits are dialled: no second lookup can
//! return others. IP addresses in URLs are never looked up, so these are checked when a client is requested. Redirects
//! stay on the same origin, so on the same host. Nothing is cached here: every new connection looks up and checks its
//! name again.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use switchboard_model::{ConnectError, ConnectErrorKind, EgressPolicy, EgressRefusal};
use url::Url;

/// Finds the addresses of a name.
pub type AddressLookup =
    dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// A resolver that returns only permitted addresses. Clones share everything.
#[derive(Clone)]
pub struct EgressGuard {
    policy: Arc<EgressPolicy>,
    lookup: Arc<AddressLookup>,
}

impl fmt::Debug for EgressGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressGuard").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A refused destination. The message names the host that the caller wrote, but not the addresses of a name, so that
/// callers cannot explore the network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressRefused {
    #[error("the egress check refuses {host}: {refusal}")]
    Host { host: String, refusal: EgressRefusal },
    #[error(
        "the egress check refuses '{name}': it resolves to no address that a session may connect to"
    )]
    Name { name: String },
}

impl From<&EgressRefused> for ConnectError {
    fn from(refused: &EgressRefused) -> Self {
        let hint = match refused {
            EgressRefused::Host { refusal, .. } => refusal.hint(),
            EgressRefused::Name { .. } => EgressRefusal::Special("").hint(),
        };
        Self::new(ConnectErrorKind::Forbidden, refused.to_string()).with_operator_hint(hint)
    }
}

impl EgressGuard {
    /// Looks names up with the operating system.
    pub fn new(policy: EgressPolicy) -> Self {
        Self::with_lookup(policy, Arc::new(|name| Box::pin(system_lookup(name))))
    }

    /// Looks names up with `lookup`.
    pub fn with_lookup(policy: EgressPolicy, lookup: Arc<AddressLookup>) -> Self {
        Self { policy: Arc::new(policy), lookup }
    }

    /// Refuses a forbidden IP address in a URL, and a denied host name.
    pub fn check_literal(&self, url: &Url) -> Result<(), ConnectError> {
        let host = url.host().ok_or_else(|| {
            ConnectError::new(ConnectErrorKind::Protocol, "the address names no host")
        })?;
        self.policy
            .judge_host(&host)
            .map_err(|refusal| (&EgressRefused::Host { host: host.to_string(), refusal }).into())
    }

    /// The permitted ones of a name's addresses.
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
    // The HTTP client sets the port of the URL.
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_addresses_only_the_permitted_ones_are_left() {
        let policy = EgressPolicy { allow: vec!["127.0.0.1".parse().unwrap()], deny: Vec::new() };
        let found = ["127.0.0.2:0", "10.0.0.1:0", "127.0.0.1:0"].map(|it| it.parse().unwrap());
        let fine = EgressGuard::new(policy).let_through("mcp.example", found.into()).unwrap();
        assert_eq!(fine, ["127.0.0.1:0".parse().unwrap()]);
    }
}
