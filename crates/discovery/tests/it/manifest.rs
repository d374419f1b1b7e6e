//! Manifests on the disk.

use std::path::Path;

use pretty_assertions::assert_eq;
use switchboard_discovery::{Discovery, SourceStatus};
use switchboard_model::{Secret, SourceKind};

use crate::support::{context, error, names, plan_of};

const FILE: &str = "ToolingManifest.json";

fn manifest(name: &str) -> String {
    format!(
        r#"{{"mcpServers": [{{"mcpServerName": "{name}", "url": "http://{name}.example/mcp"}}]}}"#
    )
}

async fn look(
    path: Option<&Path>,
    working: &Path,
    configuration: Option<&Path>,
    variables: &[(&str, &str)],
) -> SourceStatus {
    let plan = plan_of(SourceKind::Manifest { path: path.map(Path::to_owned) });
    let (mut all, _) = Discovery::look(&plan, &context(variables, working, configuration)).await;
    all.remove(0)
}

#[tokio::test]
async fn it_is_looked_for_in_the_working_directory_its_parent_and_beside_the_configuration() {
    let root = tempfile::tempdir().unwrap();
    let (working, beside) = (root.path().join("work"), root.path().join("etc"));
    std::fs::create_dir_all(&working).unwrap();
    std::fs::create_dir_all(&beside).unwrap();
    let status = look(None, &working, Some(&beside), &[]).await;
    assert_eq!(error(&status), "ToolingManifest.json not found. Checked 3 locations");
    let hint = status.failure.unwrap().hint.unwrap();
    assert!(hint.contains(&working.join(FILE).display().to_string()), "{hint}");
    for (directory, name) in [(&beside, "c"), (&root.path().to_owned(), "p"), (&working, "w")] {
        std::fs::write(directory.join(FILE), manifest(name)).unwrap();
        let status = look(None, &working, Some(&beside), &[]).await;
        assert_eq!(names(&status), [name]);
        assert_eq!(status.place, directory.join(FILE).display().to_string());
        assert!(status.is_file);
    }
    let own = root.path().join("own.json");
    std::fs::write(&own, manifest("own")).unwrap();
    assert_eq!(names(&look(Some(&own), &working, Some(&beside), &[]).await), ["own"]);
}

#[tokio::test]
async fn what_is_wrong_with_it_is_named_and_one_bad_entry_costs_no_other() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join(FILE);
    for (text, expected) in [
        ("{", "Failed to read MCP servers from ToolingManifest.json: "),
        ("{}", "No 'mcpServers' section found in ToolingManifest.json"),
        (
            r#"{"mcpServers": {"a": 1}}"#,
            "'mcpServers' in ToolingManifest.json is not a list — skipping",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let status = look(None, root.path(), None, &[]).await;
        assert!(error(&status).starts_with(expected), "{}", error(&status));
    }
    let mixed = r#"{"mcpServers": [
        {"mcpServerName": "good", "url": "http://good.example/mcp"},
        "x",
        {"mcpServerName": ""},
        {"mcpServerName": "Mail / 邮件", "url": "http://odd.example/mcp"}
    ]}"#;
    std::fs::write(&file, mixed).unwrap();
    let status = look(None, root.path(), None, &[]).await;
    assert_eq!(names(&status), ["good", "Mail / 邮件"]);
    let named: Vec<_> = status.unusable.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(named, ["entry 1", "entry 2"], "an entry without a name is named by its place");
    assert!(
        status.unusable[0].reason.starts_with("Failed to parse server config from element 'x'"),
        "{:?}",
        status.unusable
    );
}

#[tokio::test]
async fn ten_thousand_entries_are_read() {
    let root = tempfile::tempdir().unwrap();
    let entries: Vec<_> = (0..10_000)
        .map(|n| serde_json::json!({"mcpServerName": format!("s{n}"), "url": "http://a.example/"}))
        .collect();
    let text = serde_json::json!({"mcpServers": entries}).to_string();
    std::fs::write(root.path().join(FILE), text).unwrap();
    assert_eq!(look(None, root.path(), None, &[]).await.servers.len(), 10_000);
}

#[tokio::test]
async fn a_servers_own_token_goes_to_that_server_alone() {
    let root = tempfile::tempdir().unwrap();
    let text = r#"{"mcpServers": [
        {"mcpServerName": "mail", "url": "http://mail.example/mcp"},
        {"mcpServerName": "other", "url": "http://other.example/mcp"}
    ]}"#;
    std::fs::write(root.path().join(FILE), text).unwrap();
    let variables = [("BEARER_TOKEN_MAIL", "Bearer mine"), ("BEARER_TOKEN", "shared")];
    let status = look(None, root.path(), None, &variables).await;
    let tokens: Vec<_> = status
        .servers
        .iter()
        .map(|it| it.headers.get("Authorization").map(Secret::expose))
        .collect();
    assert_eq!(tokens, [Some("Bearer mine"), None]);
}
