//! The egress check of an address that the API writes into the configuration file.
//!
//! Servers of the file may have any address, because whoever writes the file controls the board. An address that comes through
//! the API must pass the rules of `security.egress` before it is written.

use std::time::Duration;

use switchboard_model::EgressRefusal;
use url::{Host, Url};

use crate::board::Board;

/// How long the name of a host may take to resolve.
const RESOLVE_WITHIN: Duration = Duration::from_secs(10);

/// Why an address is refused. The message does not repeat the address, which may hold a key, but names its host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefused {
    #[error("is not an http or https address with a host")]
    NotHttp,
    #[error("the egress check refuses {host}: {refusal}; {}", .refusal.hint())]
    Refused { host: String, refusal: EgressRefusal },
    #[error("the egress check cannot resolve {host}")]
    Unresolved { host: String },
}

impl Board {
    /// Decides whether a URL may be written into the configuration file: every IP address that its host resolves to must
    /// be allowed.
    pub async fn check_address(&self, address: &str) -> Result<(), AddressRefused> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or(AddressRefused::NotHttp)?;
        let host = url.host().ok_or(AddressRefused::NotHttp)?;
        let plan = self.plan();
        let egress = &plan.security.egress;
        let refused = |refusal| AddressRefused::Refused { host: host.to_string(), refusal };
        egress.judge_host(&host).map_err(refused)?;
        let Host::Domain(name) = host else { return Ok(()) };
        let unresolved = || AddressRefused::Unresolved { host: name.to_owned() };
        let port = url.port_or_known_default().unwrap_or(443);
        let lookup = tokio::time::timeout(RESOLVE_WITHIN, tokio::net::lookup_host((name, port)));
        let addresses = lookup.await.ok().and_then(Result::ok).ok_or_else(unresolved)?;
        let mut is_resolved = false;
        for address in addresses {
            is_resolved = true;
            egress.judge(Some(name), address.ip()).map_err(refused)?;
        }
        if is_resolved { Ok(()) } else { Err(unresolved()) }
    }
}
