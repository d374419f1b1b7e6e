//! Validates the `tls` section. The files are read by the HTTP server, not here.

use serde_json::Value as Json;
use switchboard_model::{ClientCertificates, TlsPlan};

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw_tls::{RawClientCertificate, RawTls};

impl Planner<'_> {
    pub(super) fn tls(&mut self, config: &At<'_>, sound: &Json) -> Option<TlsPlan> {
        let at = config.get("tls")?;
        let raw: RawTls = serde_json::from_value(sound["tls"].clone()).unwrap_or_default();
        if let (Some(_), None) = (raw.client_certificate, &raw.client_ca) {
            let problem = ConfigProblem::error(
                "no `client_ca` says which certificates of clients are accepted",
            )
            .about(&at.path.key("client_certificate"))
            .help("add `client_ca: FILE`, or remove `client_certificate`");
            self.push(at.value_origin("client_certificate"), problem);
        }
        let file = |path: String| self.directory.join(path);
        let clients = raw.client_ca.map(|ca| ClientCertificates {
            ca: file(ca),
            are_required: raw.client_certificate != Some(RawClientCertificate::Optional),
        });
        Some(TlsPlan { cert: file(raw.cert?), key: file(raw.key?), clients })
    }
}
