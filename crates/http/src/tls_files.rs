//! Reads the files of the `tls` section into what a handshake needs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use switchboard_model::{ClientCertificates, TlsPlan};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Offered to clients, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// A certificate that ends sooner is warned of.
pub(crate) const ENDS_SOON: jiff::SignedDuration = jiff::SignedDuration::from_hours(7 * 24);

/// Longer than every label of a section.
const LONGEST_LABEL: usize = 40;

/// Why the files cannot be used. The message names the file and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read the {what} {}: {error}", path.display())]
    Unreadable { what: TlsFile, path: PathBuf, error: io::Error },
    #[error("{} holds no certificate{}", path.display(), but(found.as_deref()))]
    NoCertificate { path: PathBuf, found: Option<String> },
    #[error("{} holds no private key{}", path.display(), but(found.as_deref()))]
    NoKey { path: PathBuf, found: Option<String> },
    #[error("{} is not valid PEM: {}", path.display(), pem_fault(error))]
    BadPem { path: PathBuf, error: pem::Error },
    #[error("{} holds a certificate that cannot be read: {error}", path.display())]
    BadCertificate { path: PathBuf, error: String },
    #[error("the private key in {} cannot be used: {error}", path.display())]
    BadKey { path: PathBuf, error: rustls::Error },
    #[error("the private key in {} belongs to another certificate than the first one in {}", key.display(), cert.display())]
    KeyOfAnother { cert: PathBuf, key: PathBuf },
    #[error("the certificate in {} {validity}", path.display())]
    NotValidNow { path: PathBuf, validity: Validity },
}

fn but(found: Option<&str>) -> String {
    found.map(|found| format!("; it holds: {found}")).unwrap_or_default()
}

/// The library writes lines of the file as lists of bytes. They are not shown: without its line breaks, the file of a key
/// has the key in each of its lines.
fn pem_fault(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            let marker = String::from_utf8_lossy(end_marker);
            let of = label(&marker).map(|label| format!(" `END {label}`")).unwrap_or_default();
            format!("the line{of} at the end of a section is missing")
        }
        pem::Error::IllegalSectionStart { .. } => {
            "a line that begins with `-----BEGIN` does not end with `-----`".into()
        }
        error => error.to_string(),
    }
}

/// The label of a section, if the text is one and nothing else.
fn label(text: &str) -> Option<&str> {
    let is_label = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    (text.len() <= LONGEST_LABEL && text.bytes().all(is_label)).then_some(text)
}

impl TlsError {
    /// What the administrator can do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unreadable { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "the user that runs the board must be able to read the file"
            }
            Self::Unreadable { .. } => return None,
            Self::NoCertificate { .. } => {
                "`tls.cert` is a PEM file that begins with the certificate of the server; \
                 `openssl x509 -inform der -in FILE -out cert.pem` converts a binary one"
            }
            Self::NoKey { found: Some(found), .. } if found.contains("ENCRYPTED") => {
                "remove the passphrase with `openssl pkey -in FILE -out key.pem`"
            }
            Self::NoKey { .. } => "`tls.key` is a PEM file with the private key",
            Self::BadPem { .. } | Self::BadCertificate { .. } => {
                "was the file copied whole? `openssl x509 -in FILE -noout -text` shows a good one"
            }
            Self::BadKey { .. } => {
                "use an RSA key of at least 2048 bits, or an ECDSA or Ed25519 key"
            }
            Self::KeyOfAnother { .. } => {
                "the certificate of the server must be the first one in its file, and the key must be its key: \
                 `openssl x509 -in CERT -noout -pubkey` and `openssl pkey -in KEY -pubout` print the same then"
            }
            Self::NotValidNow { .. } => {
                "renew the certificate, or correct the clock of this machine"
            }
        })
    }
}

/// One of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    Certificate,
    Key,
    ClientAuthorities,
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "certificate",
            Self::Key => "private key",
            Self::ClientAuthorities => "certificates of client authorities",
        })
    }
}

/// From when until when a certificate is valid, and whether that is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub begins: Timestamp,
    pub ends: Timestamp,
    pub now: Timestamp,
}

impl Validity {
    pub fn is_now(&self) -> bool {
        (self.begins..=self.ends).contains(&self.now)
    }

    /// Whether somebody must do something about it.
    pub fn is_well(&self) -> bool {
        self.is_now() && self.ends.duration_since(self.now) > ENDS_SOON
    }
}

/// Reads on after "the certificate in FILE".
impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.now > self.ends {
            return write!(f, "has expired at {}", self.ends);
        }
        if self.now < self.begins {
            return write!(f, "is not valid before {}", self.begins);
        }
        write!(f, "is valid until {}", self.ends)
    }
}

/// The files as they are used for handshakes.
#[derive(Debug, Clone)]
pub struct LoadedTls {
    pub(crate) config: Arc<ServerConfig>,
    /// From when until when the certificate of the server is valid, seen when it was read.
    pub validity: Validity,
}

/// Reads and checks the files. A certificate that is not valid now is no error here: [`LoadedTls::validity`] tells.
pub fn load_tls(plan: &TlsPlan) -> Result<LoadedTls, TlsError> {
    let chain = certificates(&plan.cert, TlsFile::Certificate)?;
    let key = private_key(&plan.key)?;
    let validity = validity(&plan.cert, chain.first())?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::BadKey { path: plan.key.clone(), error })?;
    let builder = match &plan.clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(client_verifier(clients)?),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::KeyOfAnother { cert: plan.cert.clone(), key: plan.key.clone() }
        }
        rustls::Error::InvalidCertificate(_) => {
            TlsError::BadCertificate { path: plan.cert.clone(), error: error.to_string() }
        }
        error => TlsError::BadKey { path: plan.key.clone(), error },
    })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(LoadedTls { config: Arc::new(config), validity })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn client_verifier(clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let bad = |error: String| TlsError::BadCertificate { path: clients.ca.clone(), error };
    let mut roots = RootCertStore::empty();
    for authority in certificates(&clients.ca, TlsFile::ClientAuthorities)? {
        roots.add(authority).map_err(|error| bad(error.to_string()))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let verifier = if clients.are_required { verifier } else { verifier.allow_unauthenticated() };
    verifier.build().map_err(|error| bad(error.to_string()))
}

fn read(path: &Path, what: TlsFile) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Unreadable { what, path: path.to_owned(), error })
}

fn certificates(path: &Path, what: TlsFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, what)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| TlsError::BadPem { path: path.to_owned(), error })?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned(), found: labels(&bytes) });
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path, TlsFile::Key)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            TlsError::NoKey { path: path.to_owned(), found: labels(&bytes) }
        }
        error => TlsError::BadPem { path: path.to_owned(), error },
    })
}

/// What the PEM file holds, by the words of its first lines.
fn labels(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let labels = text.lines().filter_map(|line| line.trim().strip_prefix("-----BEGIN "));
    let labels = labels.filter_map(|label| label.strip_suffix("-----"));
    let labels: Vec<_> = labels.filter_map(label).take(3).collect();
    (!labels.is_empty()).then(|| labels.join(", "))
}

fn validity(path: &Path, first: Option<&CertificateDer<'_>>) -> Result<Validity, TlsError> {
    let bad = |error: String| TlsError::BadCertificate { path: path.to_owned(), error };
    let der = first.map(AsRef::as_ref).unwrap_or_default();
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| bad(error.to_string()))?;
    let times = certificate.validity();
    let time = |seconds| Timestamp::from_second(seconds).map_err(|error| bad(error.to_string()));
    Ok(Validity {
        begins: time(times.not_before.timestamp())?,
        ends: time(times.not_after.timestamp())?,
        now: Timestamp::now(),
    })
}
