//! Outgoing HTTP, without any protocol on top of it: the clients that all destinations share (`http_pool`), the check
//! of addresses that do not come from the configuration (`egress`), failures described for people (`http_failure`), and
//! the removal of credentials from error messages (`redaction`).

mod egress;
mod http_failure;
mod http_pool;
mod redaction;
mod secret_forms;

pub use egress::{AddressLookup, EgressGuard};
pub use http_failure::{describe_failure, describe_loopback_failure, error_chain};
pub use http_pool::{HttpPool, USER_AGENT};
pub use redaction::{CurrentSecret, Redactor, configured_secrets};
