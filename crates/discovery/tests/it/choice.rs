//! The source that the environment chooses.

use pretty_assertions::assert_eq;
use switchboard_discovery::{AutoChoice, Discovery};
use switchboard_model::DiscoveryPlan;

use crate::support::{Answer, FakeGateway, context, list, names};

#[tokio::test]
async fn with_nothing_set_there_is_no_source() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("ToolingManifest.json"), "{}").unwrap();
    let context = context(&[], root.path(), None);
    let (sources, choice) = Discovery::look(&DiscoveryPlan::default(), &context).await;
    assert_eq!(sources.len(), 0);
    assert!(matches!(choice, Some(AutoChoice::Nothing { is_partly_set: false, .. })), "{choice:?}");
    let off = DiscoveryPlan { auto: false, ..DiscoveryPlan::default() };
    let (sources, choice) = Discovery::look(&off, &context).await;
    assert_eq!((sources.len(), choice), (0, None));
}

#[tokio::test]
async fn development_takes_the_manifest_and_anything_else_the_gateway() {
    let fake = FakeGateway::start(Answer::json(list(&[("g", "https://g.example/")]))).await;
    let root = tempfile::tempdir().unwrap();
    let manifest = list(&[("m", "http://m.example/")]);
    std::fs::write(root.path().join("ToolingManifest.json"), manifest).unwrap();
    let gateway = [
        ("MCP_PLATFORM_ENDPOINT", fake.url.as_str()),
        ("SWITCHBOARD_AGENT_ID", "a"),
        ("SWITCHBOARD_AGENT_TOKEN", "t"),
    ];
    let development = [("ENVIRONMENT", "Development")];
    for (variables, kind, server) in [
        (development.to_vec(), "manifest", "m"),
        ([development.as_slice(), &gateway].concat(), "manifest", "m"),
        (gateway.to_vec(), "gateway", "g"),
        ([gateway.as_slice(), &[("ENVIRONMENT", "Staging")]].concat(), "gateway", "g"),
    ] {
        let context = context(&variables, root.path(), None);
        let (sources, _) = Discovery::look(&DiscoveryPlan::default(), &context).await;
        assert_eq!((sources[0].name.as_str(), sources[0].kind), ("auto", kind));
        assert_eq!(names(&sources[0]), [server]);
        assert!(sources[0].chosen_because.is_some());
    }
}
