//! No token reaches a server that it is not for: two servers record what they get when a program connects to everything
//! that the client lists, with the headers that it lists.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_agent365::{Environment, FoundServers, ToolOptions, ToolingClient};
use switchboard_outbound::HttpPool;

use crate::recorder::{Recorder, Reply};

/// The platform, and a server of somebody else.
struct Servers {
    platform: Recorder,
    foreign: Recorder,
}

impl Servers {
    async fn start(gateway: impl Fn(&str) -> Value) -> Self {
        let foreign = Recorder::always(Reply::new(200, "{}")).await;
        let answer = gateway(foreign.url()).to_string();
        let platform = Recorder::start(move |seen| {
            let is_list = seen.path.ends_with("/mcpServers");
            Reply::new(200, if is_list { answer.clone() } else { "{}".to_owned() })
        })
        .await;
        Self { platform, foreign }
    }

    fn environment(&self, variables: &[(&str, &str)]) -> Environment {
        let mut all: BTreeMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        all.insert("MCP_PLATFORM_ENDPOINT".to_owned(), self.platform.url().to_owned());
        Environment::from_lookup(move |name| all.get(name).cloned())
    }

    /// Connects to each server as it is listed, and returns what the two got: path and `Authorization`.
    async fn connect(&self, found: &FoundServers) -> [Vec<(String, String)>; 2] {
        self.platform.take();
        let pool = HttpPool::default();
        for server in &found.servers {
            let client = pool.client_for(&server.url).unwrap();
            let mut request = client.post(server.url.clone());
            for (name, value) in &server.headers {
                request = request.header(name, value.expose());
            }
            request.send().await.unwrap();
        }
        [&self.platform, &self.foreign].map(|recorder| {
            let seen = recorder.take().into_iter();
            seen.map(|mut seen| {
                (seen.path, seen.headers.remove("authorization").unwrap_or_default())
            })
            .collect()
        })
    }
}

fn got(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, token)| ((*path).to_owned(), (*token).to_owned())).collect()
}

fn entries(foreign: &str) -> Value {
    json!({"mcpServers": [
        {"mcpServerName": "mail"},
        {"mcpServerName": "files"},
        {"mcpServerName": "own", "url": format!("{foreign}/own")},
        {"mcpServerName": "foreign", "url": format!("{foreign}/foreign")},
        {"mcpServerName": "hidden", "mcpServerUniqueName": format!("{foreign}/hidden")},
        {"mcpServerName": "crm", "url": format!("{foreign}/crm"), "audience": "api://crm"},
    ]})
}

#[tokio::test]
async fn tokens_of_the_environment_reach_only_the_servers_that_they_are_for() {
    let servers = Servers::start(|_| json!([])).await;
    let directory = tempfile::tempdir().unwrap();
    let manifest = entries(servers.foreign.url()).to_string();
    std::fs::write(directory.path().join("ToolingManifest.json"), manifest).unwrap();
    // The first server's own token comes first: the original sends it to every later server.
    let environment = servers.environment(&[
        ("ENVIRONMENT", "Development"),
        ("BEARER_TOKEN_MAIL", "Bearer mail-token"),
        ("BEARER_TOKEN_OWN", "own-token"),
        ("BEARER_TOKEN", "shared-token"),
    ]);
    let client = ToolingClient::new(HttpPool::default(), environment)
        .with_working_directory(directory.path());
    let found = client.list_tool_servers("", "", &ToolOptions::default()).await.unwrap();
    let [platform, foreign] = servers.connect(&found).await;
    let expected = [
        ("/agents/servers/mail", "Bearer mail-token"),
        ("/agents/servers/files", "Bearer shared-token"),
    ];
    assert_eq!(platform, got(&expected));
    let expected = [("/own", "Bearer own-token"), ("/foreign", ""), ("/hidden", ""), ("/crm", "")];
    assert_eq!(foreign, got(&expected));
}

#[tokio::test]
async fn the_gateways_token_reaches_only_the_platform() {
    let servers = Servers::start(entries).await;
    // Tokens of development are not used here.
    let environment = servers.environment(&[("BEARER_TOKEN_MAIL", "x"), ("BEARER_TOKEN", "y")]);
    let client = ToolingClient::new(HttpPool::default(), environment);
    let options = ToolOptions::default();
    let found = client.list_tool_servers("app", "gateway-token", &options).await.unwrap();
    let [platform, foreign] = servers.connect(&found).await;
    let token = "Bearer gateway-token";
    assert_eq!(platform, got(&[("/agents/servers/mail", token), ("/agents/servers/files", token)]));
    assert_eq!(foreign, got(&[("/own", ""), ("/foreign", ""), ("/hidden", "")]));
    let left_out: Vec<_> = found.problems.iter().map(|it| (it.index, it.name.as_deref())).collect();
    assert_eq!(left_out, [(5, Some("crm"))]);
}
