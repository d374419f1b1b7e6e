//! How `--url https://...` trusts an instance, and how it proves who asks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use reqwest::{Certificate, ClientBuilder, Identity};

use crate::args::Globals;
use crate::failure::Failure;

/// The files that the command line names. They hold for every connection of this process to an instance, and some of these
/// are made far from the command line.
static FILES: OnceLock<TrustFiles> = OnceLock::new();

#[derive(Debug, Default)]
struct TrustFiles {
    ca: Option<PathBuf>,
    client: Option<PathBuf>,
}

/// Remembers the files of the command line. Called once, before the command runs.
pub(crate) fn remember(globals: &Globals) {
    let files =
        TrustFiles { ca: globals.ca_file.clone(), client: globals.client_certificate.clone() };
    let _only_once = FILES.set(files);
}

/// Adds the authorities and the certificate of this client.
pub(crate) fn apply(mut builder: ClientBuilder) -> Result<ClientBuilder, Failure> {
    let files = FILES.get_or_init(TrustFiles::default);
    if let Some(path) = &files.ca {
        let certificates = Certificate::from_pem_bundle(&read(path)?).ok();
        let certificates = certificates.filter(|all| !all.is_empty()).ok_or_else(|| {
            Failure::start(format!("{} holds no certificate", path.display()))
                .with_hint(Some("--ca-file is a PEM file with certificates of authorities".into()))
        })?;
        builder = builder.tls_certs_merge(certificates);
    }
    if let Some(path) = &files.client {
        let identity = Identity::from_pem(&read(path)?).map_err(|_| {
            let message = format!("{} holds no certificate with its private key", path.display());
            Failure::start(message).with_hint(Some(
                "--client-certificate is a PEM file with both, one after the other".into(),
            ))
        })?;
        builder = builder.identity(identity);
    }
    Ok(builder)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| Failure::start(format!("cannot read {}: {error}", path.display())))
}

/// The hint for a connection that failed for this reason, if TLS is the reason.
pub(crate) fn hint(cause: &str) -> Option<&'static str> {
    let is = |text: &str| cause.contains(text);
    if is("UnknownIssuer") {
        Some(
            "--ca-file names a file with the certificate of the authority that issued its certificate",
        )
    } else if is("CertificateRequired") || is("certificate required") {
        Some(
            "it accepts only clients with a certificate; --client-certificate names the file of yours",
        )
    } else if is("Expired") || is("expired") {
        Some("its certificate has expired; its administrator must renew it")
    } else if is("NotValidForName") || is("not valid for name") {
        Some("its certificate is for another name; use the name that the certificate has")
    } else if is("InvalidContentType") || is("corrupt message") {
        Some("it does not speak TLS; try http:// instead of https://")
    } else {
        None
    }
}
