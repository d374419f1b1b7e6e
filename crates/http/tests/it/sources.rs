//! The sources of servers as the API shows them, and the origin of servers.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_discovery::{Discovery, DiscoveryContext};
use switchboard_runtime::follow_discovery;
use switchboard_test_support::{ScriptedServer, Tool, wait_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api_server::{ApiServer, PATIENCE};

#[tokio::test]
async fn sources_show_their_state_their_servers_and_what_they_leave_out() {
    let scripted = ScriptedServer::builder().tools([Tool::echo("x")]).start().await;
    let server = ApiServer::without_board().await;
    let manifest = server.directory.path().join("m.json");
    let text = json!({"mcpServers": [
        {"mcpServerName": "Mail Tools", "url": format!("{}?key=s3cret", scripted.url())},
        {"mcpServerName": "beta", "url": "http://127.0.0.1:1/"},
        {"url": "http://127.0.0.1:1/"},
    ]});
    std::fs::write(&manifest, text.to_string()).unwrap();
    let yaml = format!(
        "switchboard:\n  discovery:\n    auto: false\n    token: s3cret-token\n    sources:\n      \
         - {{name: team, type: manifest, path: \"{}\", servers: {{deny: [beta]}}}}\n      \
         - {{name: gone, type: registry, path: gone.json}}\n",
        manifest.display()
    );
    server.start_board(&yaml).await;
    let api = server.api();
    assert_eq!(api.get("/api/v1/sources").await.good(), json!({"sources": []}));

    let config = server.config();
    let context = DiscoveryContext::new(|_| None, server.directory.path().to_owned(), None);
    let discovery = Discovery::start(&config.board().plan().discovery, context);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    tasks.spawn(follow_discovery(config.clone(), discovery, stop.clone()));
    let list = wait_until(PATIENCE, async || {
        let list = api.get("/api/v1/sources").await.good();
        let sources = list["sources"].as_array()?.clone();
        let is_settled = sources.len() == 2
            && sources[0]["servers"][0]["name"].is_string()
            && sources[1]["state"] == "failing";
        is_settled.then_some(sources)
    })
    .await;
    assert!(!json!(list).to_string().contains("s3cret"), "{list:#?}");
    let name = list[0]["servers"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(list[0]["servers"][0]["original_name"], "Mail Tools");
    assert_eq!((&list[0]["type"], &list[0]["state"]), (&json!("manifest"), &json!("ok")));
    assert_eq!((&list[0]["refresh"], &list[0]["error"]), (&json!("5s"), &json!(null)));
    assert_eq!(
        list[0]["left_out"],
        json!([
            {"name": "entry 2", "reason": "mcpServerName is missing"},
            {"name": "beta", "reason": "`servers.deny` of the source has `beta`"},
        ])
    );
    let error = list[1]["error"].as_str().unwrap();
    assert!(error.starts_with("cannot read ") && error.contains("gone.json"), "{error}");
    assert_eq!(list[1]["failures"], json!(1));

    let servers = api.get("/api/v1/servers").await.good();
    assert_eq!(servers["servers"][0]["source"], "team");
    assert_eq!(servers["servers"][0]["original_name"], "Mail Tools");
    let detail = api.get(&format!("/api/v1/servers/{name}")).await.good();
    assert_eq!((&detail["source"], &detail["declared"]), (&json!("team"), &json!(null)));
    stop.cancel();
    tasks.close();
    tokio::time::timeout(PATIENCE, tasks.wait()).await.unwrap();
}
