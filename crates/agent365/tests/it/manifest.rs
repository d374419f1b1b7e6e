//! The list of an agent's servers in development: from files, with the tokens of the environment.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_agent365::{Environment, FoundServers, ToolOptions, ToolingClient, ToolingError};
use switchboard_outbound::HttpPool;

async fn list(working: &Path, configuration: &Path) -> Result<FoundServers, ToolingError> {
    let environment =
        Environment::from_lookup(|name| (name == "ENVIRONMENT").then(|| "Development".to_owned()));
    let client = ToolingClient::new(HttpPool::default(), environment)
        .with_working_directory(working)
        .with_configuration_directory(configuration);
    // Development needs neither.
    client.list_tool_servers("", "", &ToolOptions::default()).await
}

fn write(directory: &Path, name: &str) {
    let manifest = json!({"mcpServers": [{"mcpServerName": name}]}).to_string();
    std::fs::write(directory.join("ToolingManifest.json"), manifest).unwrap();
}

#[tokio::test]
async fn the_search_order_is_working_directory_parent_configuration() {
    let root = tempfile::tempdir().unwrap();
    let (working, configuration) = (root.path().join("work"), root.path().join("conf"));
    std::fs::create_dir_all(&working).unwrap();
    std::fs::create_dir_all(&configuration).unwrap();
    let found = list(&working, &configuration).await.unwrap();
    assert_eq!(found.warnings, ["ToolingManifest.json not found. Checked 3 locations"]);
    assert!(!found.is_list);
    for (directory, name) in
        [(configuration.as_path(), "third"), (root.path(), "second"), (working.as_path(), "first")]
    {
        write(directory, name);
        let found = list(&working, &configuration).await.unwrap();
        assert_eq!(found.servers[0].mcp_server_name, name);
    }
}

#[tokio::test]
async fn a_manifest_that_is_broken_is_told_and_not_replaced_by_the_next() {
    let root = tempfile::tempdir().unwrap();
    let (working, configuration) = (root.path().join("work"), root.path().join("conf"));
    std::fs::create_dir_all(&working).unwrap();
    std::fs::create_dir_all(&configuration).unwrap();
    write(&configuration, "other");
    std::fs::write(working.join("ToolingManifest.json"), "{broken").unwrap();
    let text = list(&working, &configuration).await.unwrap_err().to_string();
    let begin = "Failed to read MCP servers from ToolingManifest.json: ";
    assert!(text.starts_with(begin) && text.contains("line 1 column 2"), "{text}");
}
