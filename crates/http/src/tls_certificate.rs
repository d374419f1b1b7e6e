//! The certificate that the server uses, and its replacement when the files change.
//!
//! A new pair is used for new connections; open ones go on with the pair of their handshake. A pair that cannot be used is
//! refused and the old one stays, so that a half-written renewal ends no service.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::ServerConfig;
use switchboard_api::CertificateView;
use switchboard_model::TlsPlan;
use switchboard_telemetry::{tls_certificate_ends, tls_reload_failed};

use crate::board_place::BoardPlace;
use crate::tls_files::{LoadedTls, TlsError, Validity, load_tls};

/// How often the files are looked at. A change is used when two looks in a row see the same files: certificate and key
/// are written one after the other.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a certificate that ends soon is warned of.
const WARN_EVERY: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// The certificate of the server.
#[derive(Debug)]
pub struct ServerCertificate {
    current: ArcSwap<LoadedTls>,
    state: Mutex<RotationState>,
}

#[derive(Debug)]
struct RotationState {
    /// The files of the last pair that was read, used or refused.
    plan: TlsPlan,
    stamps: FileStamps,
    /// The files at the last look.
    seen: FileStamps,
    /// Why the last pair was refused.
    refused: Option<String>,
    warned_at: Option<Timestamp>,
}

/// Identifies a state of the files.
type FileStamps = Vec<Option<(u64, u64, u64, i64, i64, i64, i64)>>;

impl ServerCertificate {
    /// Reads the files. A certificate that is not valid now is used all the same, with a warning: a board that does not start
    /// helps nobody whose client still trusts the certificate.
    pub fn load(plan: &TlsPlan) -> Result<Arc<Self>, TlsError> {
        let stamps = stamps(plan);
        let loaded = load_tls(plan)?;
        tls_certificate_ends(loaded.validity.ends.as_second());
        let state = RotationState {
            plan: plan.clone(),
            seen: stamps.clone(),
            stamps,
            refused: None,
            warned_at: None,
        };
        let certificate = Self { current: ArcSwap::from_pointee(loaded), state: Mutex::new(state) };
        certificate.warn_of_end();
        Ok(Arc::new(certificate))
    }

    /// What new connections use.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.current.load().config.clone()
    }

    /// The certificate in use, and why the last pair was refused if it was.
    pub fn view(&self) -> CertificateView {
        let Validity { begins, ends, .. } = self.current.load().validity;
        CertificateView {
            valid_from: begins.to_string(),
            valid_until: ends.to_string(),
            is_valid: self.validity_now().is_now(),
            refused: self.state.lock().refused.clone(),
        }
    }

    fn validity_now(&self) -> Validity {
        Validity { now: Timestamp::now(), ..self.current.load().validity }
    }

    /// Looks at the files at intervals. The `tls` section of the board's configuration says which files, once the board has
    /// started.
    pub(crate) async fn watch(&self, place: &BoardPlace) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let plan = place.board().and_then(|board| board.plan().tls.clone());
            self.look(plan);
        }
    }

    /// Looks at the files once: of this section, or of the one before if there is none any more.
    pub(crate) fn look(&self, plan: Option<TlsPlan>) {
        let mut state = self.state.lock();
        // Whether a server has TLS at all is decided when it begins to listen.
        let plan = plan.unwrap_or_else(|| state.plan.clone());
        let now = stamps(&plan);
        let is_steady = now == state.seen;
        let is_known = now == state.stamps && plan == state.plan;
        state.seen.clone_from(&now);
        if is_steady && !is_known {
            state.stamps = now;
            state.refused = self.replace(&plan).err();
            state.plan = plan;
            state.warned_at = None;
        }
        drop(state);
        self.warn_of_end();
    }

    fn replace(&self, plan: &TlsPlan) -> Result<(), String> {
        let cert = plan.cert.display().to_string();
        let loaded = load_tls(plan).and_then(|loaded| {
            let validity = loaded.validity;
            // Nobody replaces a valid certificate by one that is not, on purpose.
            if !validity.is_now() && self.validity_now().is_now() {
                return Err(TlsError::NotValidNow { path: plan.cert.clone(), validity });
            }
            Ok(loaded)
        });
        match loaded {
            Ok(loaded) => {
                tracing::info!(cert, until = %loaded.validity.ends, "new connections use the new certificate");
                tls_certificate_ends(loaded.validity.ends.as_second());
                self.current.store(Arc::new(loaded));
                Ok(())
            }
            Err(error) => {
                tls_reload_failed();
                let hint = error.hint();
                tracing::error!(%error, hint, "the new certificate is refused; the old one stays in use");
                Err(error.to_string())
            }
        }
    }

    /// Warns once a day of a certificate that is not valid, or not for long.
    fn warn_of_end(&self) {
        let validity = self.validity_now();
        let mut state = self.state.lock();
        let was_warned = state
            .warned_at
            .is_some_and(|warned_at| validity.now.duration_since(warned_at) < WARN_EVERY);
        if validity.is_well() || was_warned {
            return;
        }
        state.warned_at = Some(validity.now);
        let cert = state.plan.cert.display().to_string();
        if validity.is_now() {
            tracing::warn!(cert, "the certificate {validity}; renew it");
        } else {
            tracing::error!(cert, "the certificate {validity}; clients refuse it");
        }
    }
}

fn stamps(plan: &TlsPlan) -> FileStamps {
    let clients = plan.clients.as_ref().map(|clients| clients.ca.as_path());
    [Some(plan.cert.as_path()), Some(plan.key.as_path()), clients]
        .into_iter()
        .flatten()
        .map(stamp)
        .collect()
}

/// `None` for a file that cannot be looked at. Links are followed, because orchestrators swap them.
fn stamp(path: &Path) -> Option<(u64, u64, u64, i64, i64, i64, i64)> {
    let file = std::fs::metadata(path).ok()?;
    let (changed, status) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
    Some((file.dev(), file.ino(), file.len(), changed.0, changed.1, status.0, status.1))
}
