//! The files of `deploy/monitoring`: every metric that they name is one that a board has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_program::chat::Api;
use switchboard_test_support::Tool;

use crate::support::{Home, call, dynamic, program, server, yaml};

/// Metrics that a board has only after something that this test does not do: a model, a source, a broken store, a certificate.
/// The reference describes them.
const LATER: [&str; 7] = [
    "switchboard_model_requests_total",
    "switchboard_model_tokens_total",
    "switchboard_store_write_failures_total",
    "switchboard_call_records_dropped_total",
    "switchboard_source_up",
    "switchboard_tls_certificate_expiry_timestamp_seconds",
    "switchboard_tls_reload_failures_total",
];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of a text that begin like a metric of the program.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("switchboard_")).collect()
}

#[tokio::test]
async fn the_dashboard_and_the_alerts_name_metrics_that_a_board_has() {
    let upstream = server([Tool::echo("echo")]).await;
    let home = Home::new(yaml(&[], &[dynamic("up", &upstream.url())]));
    let serve = home.serve().await;
    call(&serve.http, &serve.url, "up.echo", json!({"text": "x"})).await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let (path, body) = (chat.path("/turns"), json!({"provider": "demo", "message": "hello"}));
    chat.api.send(Method::POST, &path, Some(body)).await.good();
    let page = serve.text("/metrics").await;
    let has = |name: &str| {
        page.lines()
            .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
    };
    let reference = read("docs/reference/metrics.md");
    for file in ["deploy/monitoring/grafana-dashboard.json", "deploy/monitoring/alerts.yaml"] {
        let text = read(file);
        let named = metrics_in(&text);
        assert!(named.len() > 5, "{file}: {named:?}");
        for name in named {
            let is_documented = reference.contains(&format!("`{name}`"));
            assert!(
                has(name) || (LATER.contains(&name) && is_documented),
                "{file} names {name}, which a board does not have:\n{page}"
            );
        }
    }
    let dashboard: Value =
        serde_json::from_str(&read("deploy/monitoring/grafana-dashboard.json")).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
}

#[test]
fn prometheus_takes_the_alert_rules() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring/alerts.yaml");
    // Its own checker, where Prometheus is installed.
    if let Ok(done) = Command::new("promtool").args(["check", "rules"]).arg(rules).output() {
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn the_configurations_of_the_package_and_the_containers_start() {
    // As in the image, they find the program by its name.
    let directory = program().parent().unwrap().display().to_string();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
    for file in [
        "deploy/debian/switchboard.yaml",
        "deploy/docker/switchboard.yaml",
        "deploy/kubernetes/switchboard.yaml",
    ] {
        let home = Home::new(read(file)).with_variable("PATH", &path);
        home.run(&["check"]).expect(0);
        let listed = home.run(&["tool", "list"]).expect(0);
        assert!(listed.stdout.contains("local.current_time"), "{file}: {}", listed.stdout);
    }
}

#[test]
fn the_manifests_of_kubernetes_can_be_rendered() {
    for directory in ["deploy/kubernetes", "deploy/kubernetes-postgres"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
        // Where kubectl is installed.
        let Ok(done) = Command::new("kubectl").arg("kustomize").arg(path).output() else { return };
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{directory}: {said}");
        let rendered = String::from_utf8(done.stdout).unwrap();
        for part in ["kind: StatefulSet", "path: /readyz", "path: /healthz", "switchboard.yaml: |"]
        {
            assert!(rendered.contains(part), "{directory} has no {part}:\n{rendered}");
        }
        let is_shared = directory.ends_with("postgres");
        assert_eq!(rendered.contains("volumeClaimTemplates"), !is_shared, "{directory}");
        assert_eq!(rendered.contains("SWITCHBOARD__STORE__URL"), is_shared, "{directory}");
    }
}
