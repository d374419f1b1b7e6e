//! The types of `tls`. As in [`crate::raw`], their doc comments become the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

/// The certificate of the HTTP server. With this section the server accepts HTTPS only. The files are read again when they
/// change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub(crate) struct RawTls {
    /// A PEM file with the certificate of the server, followed by the intermediate certificates. Relative to this file.
    #[schemars(required, length(min = 1), extend("examples" = ["/etc/switchboard/tls/fullchain.pem"]))]
    pub(crate) cert: Option<String>,
    /// A PEM file with the private key of the certificate, without a passphrase. Relative to this file.
    #[schemars(required, length(min = 1), extend("examples" = ["/etc/switchboard/tls/privkey.pem"]))]
    pub(crate) key: Option<String>,
    /// A PEM file with the certificates of the authorities that issue certificates of clients. Relative to this file.
    /// Default: clients are not asked for certificates.
    #[schemars(length(min = 1), extend("examples" = ["/etc/switchboard/tls/clients-ca.pem"]))]
    pub(crate) client_ca: Option<String>,
    /// With `client_ca`: whether each client must have a certificate. `optional`: one that a client sends is checked.
    /// Certificates do not replace API keys and tokens.
    #[schemars(extend("default" = "required"))]
    pub(crate) client_certificate: Option<RawClientCertificate>,
}

/// Whether clients must have certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawClientCertificate {
    Required,
    Optional,
}
