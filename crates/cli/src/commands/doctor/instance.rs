//! `doctor --url`: checks a running instance through its API.

use switchboard_api::{CertificateView, ServerView, SourceList, ToolList};

use super::sources::about_sources;
use super::{Finding, RENEW};
use crate::failure::Failure;
use crate::output::harmless;
use crate::remote::Remote;

/// Checks the instance at this address. If it requires credentials, the role `operator` is needed.
pub(super) async fn look_at_instance(url: &str) -> Result<Vec<Finding>, Failure> {
    let remote = Remote::new(url)?;
    let readiness = remote.readiness().await?;
    let subject = format!("instance {}", remote.address());
    let says = format!("{}, {} tools", readiness.status, readiness.tools);
    let mut findings = vec![match readiness.status.as_str() {
        "ready" => Finding::well(subject, says),
        _ => Finding::warning(subject, says),
    }];
    if let Some(trouble) = readiness.store {
        let says = format!("takes no writes for {} s: {}", trouble.seconds, trouble.reason);
        findings.push(Finding::ill("store", says, None));
    }
    findings.extend(readiness.certificate.iter().map(about_certificate));
    let sources: SourceList = remote.get(&["sources"], &[]).await?;
    findings.extend(about_sources(&sources));
    findings.extend(remote.servers().await?.servers.iter().map(about_server));
    findings.extend(about_definitions(&remote.tools().await?));
    Ok(findings)
}

fn about_certificate(certificate: &CertificateView) -> Finding {
    let CertificateView { valid_from, valid_until, is_valid, refused } = certificate;
    let times = format!("valid from {valid_from} until {valid_until}");
    match (refused, is_valid) {
        (_, false) => {
            Finding::ill("certificate", format!("not valid now; {times}"), Some(RENEW.into()))
        }
        (Some(reason), true) => {
            let says =
                format!("{times}; the files as they are now were refused: {}", harmless(reason));
            Finding::ill("certificate", says, None)
        }
        (None, true) => Finding::well("certificate", times),
    }
}

fn about_server(server: &ServerView) -> Finding {
    let from = server.source.as_ref().map(|source| format!(", from source {source}"));
    let from = from.unwrap_or_default();
    let subject = format!("server {} at {}{from}", server.name, server.place);
    if server.state == "ready" {
        let era = server.era.as_deref().map(|era| format!(", {era} era")).unwrap_or_default();
        return Finding::well(subject, format!("{} tools{era}", server.tools));
    }
    let why = server.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    let says = harmless(&format!("{}{why}", server.state));
    if server.required {
        Finding::ill(subject, says, None)
    } else {
        Finding::warning(subject, says)
    }
}

/// Findings about quarantined tools and about tools that lists show repaired.
fn about_definitions(list: &ToolList) -> Vec<Finding> {
    let quarantined = list.quarantined.iter().map(|it| {
        let subject = format!("tool {}.{}", it.server, it.tool.as_deref().unwrap_or("(no name)"));
        Finding::warning(harmless(&subject), harmless(&format!("quarantined: {}", it.reason)))
    });
    let repaired = list.tools.iter().filter(|tool| !tool.repairs.is_empty()).map(|tool| {
        let says = format!("listed in a repaired form: {}", tool.repairs.join("; "));
        Finding::warning(format!("tool {}", tool.name), harmless(&says))
    });
    quarantined.chain(repaired).collect()
}
