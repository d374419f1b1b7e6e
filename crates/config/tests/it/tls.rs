//! The section `tls`.

use std::path::PathBuf;

use pretty_assertions::assert_eq;
use switchboard_model::{ClientCertificates, TlsPlan};

use crate::support::{load_text, problems};

fn plan(section: &str) -> Option<TlsPlan> {
    let loaded = load_text(&format!("switchboard:\n  tls: {section}\n"));
    loaded.unwrap_or_else(|problems| panic!("{problems}")).plan.tls
}

#[test]
fn files_are_read_and_shown_as_they_are_written() {
    let tls = plan("{cert: /tls/cert.pem, key: /tls/key.pem}").unwrap();
    assert_eq!(tls.cert, PathBuf::from("/tls/cert.pem"));
    assert_eq!(tls.clients, None);
    let loaded = load_text("switchboard:\n  tls: {cert: /c, key: /k, client_ca: /ca}\n").unwrap();
    let shown = loaded.to_yaml();
    for line in ["cert: /c", "key: /k", "client_ca: /ca", "client_certificate: required"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn relative_files_are_beside_the_configuration() {
    let tls = plan("{cert: tls/cert.pem, key: tls/key.pem}").unwrap();
    assert!(tls.cert.ends_with("tls/cert.pem"));
    assert_ne!(tls.cert, PathBuf::from("tls/cert.pem"));
}

#[test]
fn clients_must_have_certificates_unless_they_are_optional() {
    let clients = |are_required| Some(ClientCertificates { ca: "/ca".into(), are_required });
    let with = |word: &str| plan(&format!("{{cert: /c, key: /k, client_ca: /ca{word}}}")).unwrap();
    assert_eq!(with("").clients, clients(true));
    assert_eq!(with(", client_certificate: required").clients, clients(true));
    assert_eq!(with(", client_certificate: optional").clients, clients(false));
}

#[test]
fn half_a_pair_and_a_rule_without_authorities_are_refused() {
    for (section, expected) in [
        ("{cert: /c}", "`key`"),
        ("{key: /k}", "`cert`"),
        ("{cert: '', key: /k}", "cert"),
        ("{cert: /c, key: /k, client_certificate: optional}", "add `client_ca: FILE`"),
        ("{cert: /c, key: /k, client_ca: /ca, client_certificate: no}", "client_certificate"),
        ("{cert: /c, key: /k, client_cert: /x}", "client_cert"),
    ] {
        let said = problems(&format!("switchboard:\n  tls: {section}\n"), &[]);
        assert!(said.contains(expected), "{section}: {said}");
    }
}
