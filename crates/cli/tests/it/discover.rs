//! Discovered servers, with the program: `discover`, `server list|show|test`, `tool call`, `doctor`, `serve` and `stdio`.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Tool, wait_until};

use crate::support::{Home, PATIENCE, assert_says, call, server};

const MANIFEST: &str = "ToolingManifest.json";

fn manifest(servers: &[(&str, &str)]) -> String {
    let entries: Vec<Value> =
        servers.iter().map(|(name, url)| json!({"mcpServerName": name, "url": url})).collect();
    json!({"mcpServers": entries}).to_string()
}

const TEAM: &str = "switchboard:\n  discovery:\n    auto: false\n    sources:\n      \
                    - {name: team, type: manifest, refresh: 100ms}\n";

#[tokio::test]
async fn every_command_knows_the_servers_of_a_manifest_and_their_source() {
    let good = server([Tool::echo("echo")]).await;
    let home = Home::new(TEAM);
    home.file(MANIFEST, manifest(&[("good", &good.url()), ("bad", "ftp://x")]));
    let found = home.line("discover --json").expect(0).json();
    let source = &found["sources"][0];
    assert_eq!((&source["name"], &source["state"]), (&json!("team"), &json!("ok")));
    assert_eq!(source["servers"][0]["name"], "good");
    assert_eq!(source["left_out"][0]["name"], "bad");
    assert!(source["place"].as_str().unwrap().ends_with(MANIFEST), "{source}");

    let listed = home.line("server list").expect(0).stdout;
    assert!(listed.lines().next().unwrap().ends_with("SOURCE"), "{listed}");
    assert!(listed.lines().nth(1).unwrap().ends_with("team"), "{listed}");
    let shown = home.line("server show good").expect(0).stdout;
    assert!(shown.contains("source         team\n"), "{shown}");
    home.line("server test good").expect(0);
    assert_eq!(home.line("tool call good.echo {}").expect(0).stdout, "{}\n");
    let doctor = home.line("doctor").expect(0).stdout;
    assert!(doctor.contains("ok   source team (manifest "), "{doctor}");
    assert!(doctor.contains("warn source team: 'bad' is left out: "), "{doctor}");
    assert!(doctor.contains("/mcp, from source team: 1 tools"), "{doctor}");
    assert!(doctor.contains("ok   admission: 1 tools would be registered"), "{doctor}");

    home.file(MANIFEST, "{");
    let failing = home.line("discover").expect(4);
    let text = "team: Failed to read MCP servers from ToolingManifest.json: ";
    assert!(failing.stderr.contains(text), "{}", failing.all());
    let warned = home.line("tool list").expect(0).stderr;
    assert!(warned.contains("source team: Failed to read MCP servers"), "{warned}");
}

#[tokio::test]
async fn serve_follows_a_manifest_and_starts_without_it() {
    let good = server([Tool::echo("echo")]).await;
    let home = Home::new(TEAM);
    let serve = home.serve().await;
    let sources = || home.run(&["discover", "--json", "--url", &serve.url]);
    let not_there = sources().expect(4).json();
    let error = &not_there["sources"][0]["error"];
    assert_eq!(error, "ToolingManifest.json not found. Checked 2 locations");
    home.file(MANIFEST, manifest(&[("good", &good.url())]));
    wait_until(PATIENCE, async || {
        let (status, _) = call(&serve.http, &serve.url, "good.echo", json!({})).await;
        (status == 200).then_some(())
    })
    .await;
    home.file(MANIFEST, "<html>");
    wait_until(PATIENCE, async || (sources().code == Some(4)).then_some(())).await;
    let kept = sources().json();
    assert_eq!(kept["sources"][0]["servers"][0]["name"], "good");
    let (status, _) = call(&serve.http, &serve.url, "good.echo", json!({})).await;
    assert_eq!(status, 200, "the last known servers stay");
    let doctor = home.run(&["doctor", "--url", &serve.url]).expect(0).stdout;
    assert!(doctor.contains("warn source team (manifest "), "{doctor}");
}

#[test]
fn the_environment_chooses_and_says_why() {
    let home = Home::new("switchboard: {toolbox: {mcps: []}}\n");
    home.file(MANIFEST, manifest(&[("good", "http://127.0.0.1:1/mcp")]));
    assert_says!(home.line("discover").expect(0).all(), @"
    there is no source of servers: ENVIRONMENT is not Development, and the tooling gateway lacks an address (`discovery.endpoint` or MCP_PLATFORM_ENDPOINT), an agent id (`discovery.agent_id` or SWITCHBOARD_AGENT_ID), a token (`discovery.token` or SWITCHBOARD_AGENT_TOKEN)
    ");
    let home = home.with_variable("ENVIRONMENT", "Development");
    let found = home.line("discover --json").expect(0).json();
    assert_eq!(found["sources"][0]["name"], "auto");
    assert_eq!(found["sources"][0]["servers"][0]["name"], "good");
    let because = found["sources"][0]["chosen_because"].as_str().unwrap();
    assert!(because.starts_with("ENVIRONMENT is Development, and "), "{because}");
}

#[test]
fn a_development_machine_without_a_manifest_is_left_in_peace() {
    let home = Home::new("switchboard: {toolbox: {mcps: []}}\n");
    let home = home.with_variable("ENVIRONMENT", "Development");
    let found = home.line("discover").expect(0);
    assert!(found.stdout.contains("waiting") && !found.stderr.contains("WARN"), "{}", found.all());
    let said = home.line("tool list").expect(0).all();
    assert!(!said.contains("ToolingManifest"), "{said}");
    let doctor = home.line("doctor").expect(0).stdout;
    assert!(doctor.contains("ok   source auto (manifest "), "{doctor}");
}
