//! Where the certificate of the HTTP server is, and what is asked of clients.

use std::path::PathBuf;

/// The `tls` section: files, which the HTTP server reads at the start and when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPlan {
    /// The certificate and its intermediate certificates.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// `None`: clients are not asked for certificates.
    pub clients: Option<ClientCertificates>,
}

/// Which certificates of clients are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The certificates of the authorities.
    pub ca: PathBuf,
    /// Whether a client without a certificate is refused.
    pub are_required: bool,
}
