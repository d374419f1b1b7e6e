//! Servers: shown, configured and removed through the API.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, free_port};

use crate::api_server::{Api, ApiServer, scripted};

struct Configured {
    one: ScriptedServer,
    two: ScriptedServer,
    server: ApiServer,
    api: Api,
}

async fn start(security: &str) -> Configured {
    let (one, two) = (scripted([Tool::echo("a")]).await, scripted([Tool::echo("b")]).await);
    let yaml = format!(
        "switchboard:\n  toolbox:\n    mcps:\n      # the first\n      - name: one\n        url: {}\n        mode: dynamic\n        \
         default_tool_config: {{max_instances: 3}}\n        headers: {{X-Team: s3cret}}\n      - name: child\n        \
         command: /does/not/exist\n        args: [--key, x]\n        mode: dynamic\n        required: false\n        \
         default_tool_config: {{max_instances: 3}}\n  security: {{egress: {{allow: [{security}]}}}}\n",
        one.url()
    );
    let server = ApiServer::start(&yaml).await;
    let api = server.api();
    Configured { one, two, server, api }
}

impl Configured {
    fn text(&self) -> String {
        std::fs::read_to_string(self.server.file()).unwrap()
    }

    async fn paths_of_errors(&self, path: &str, body: Value) -> Vec<String> {
        let answer = self.api.put(path, body).await;
        let errors = answer.body["errors"].as_array().cloned().unwrap_or_default();
        answer.problem(422, "invalid_configuration");
        errors.iter().map(|error| error["path"].as_str().unwrap().to_owned()).collect()
    }
}

fn entry(url: &str) -> Value {
    json!({"url": url, "mode": "dynamic", "default_tool_config": {"max_instances": 2}})
}

#[tokio::test]
async fn a_server_is_added_changed_and_removed_while_the_board_serves() {
    let it = start("127.0.0.1").await;
    let before = it.text();
    let path = "/api/v1/servers/two";
    it.api.get(path).await.problem(404, "unknown_server");
    let added = it.api.put(path, entry(&it.two.url())).await;
    assert!(added.headers.contains_key("etag"));
    let added = added.good();
    assert_eq!((&added["state"], &added["tools"]), (&json!("ready"), &json!(1)));
    assert!(
        it.text().contains("# the first") && it.text().contains("- name: two\n"),
        "{}",
        it.text()
    );
    assert_eq!(it.api.get("/api/v1/tools/two.b").await.status, 200);
    let denied = json!({"url": it.two.url(), "mode": "dynamic", "default_tool_config": {"max_instances": 2}, "tool_denylist": ["b"]});
    it.api.put(path, denied).await.good();
    assert_eq!(it.api.get("/api/v1/tools/two.b").await.status, 404);
    assert_eq!(it.api.send(Method::DELETE, path, None).await.status, 204);
    it.api.get(path).await.problem(404, "unknown_server");
    assert_eq!(it.text(), before);
    assert_eq!(it.one.stats().initialize_count, 1, "the other server stays connected");
}

#[tokio::test]
async fn secrets_are_not_shown_and_stay_when_they_are_sent_back() {
    let it = start("127.0.0.1").await;
    let before = it.text();
    for name in ["one", "child"] {
        let path = format!("/api/v1/servers/{name}");
        let shown = it.api.get(&path).await.good();
        assert!(!shown.to_string().contains("s3cret"), "{shown:#}");
        it.api.put(&path, shown["declared"].clone()).await.good();
        assert_eq!(it.text(), before, "what was shown changes nothing");
    }
    let place = it.api.get("/api/v1/servers/one").await.good();
    assert!(place["origins"]["/url"].as_str().unwrap().contains("test.yaml:6:14"), "{place:#}");
}

#[tokio::test]
async fn no_request_names_a_program_or_reads_a_secret_of_this_machine() {
    let it = start("127.0.0.1").await;
    let (before, url) = (it.text(), it.two.url());
    let with = |more: Value| {
        let mut body = entry(&url);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let new = "/api/v1/servers/two";
    for (body, paths) in [
        (
            json!({"command": "/bin/sh", "args": ["-c", "id"], "mode": "strict"}),
            vec!["/command", "/args"],
        ),
        (with(json!({"env": {"A": "b"}})), vec!["/env"]),
        (with(json!({"cwd": "/"})), vec!["/cwd"]),
        (with(json!({"transport": "stdio"})), vec!["/transport"]),
        (with(json!({"headers": {"X": "${HOME}"}})), vec!["/headers/X"]),
        (with(json!({"auth": {"bearer": "file:/etc/passwd"}})), vec!["/auth/bearer"]),
        (with(json!({"auth": {"oauth": {"private_key": "x"}}})), vec!["/auth/oauth"]),
        (entry("http://${HOME}/mcp"), vec!["/url"]),
        (with(json!({"name": "other"})), vec!["/name"]),
    ] {
        assert_eq!(it.paths_of_errors(new, body.clone()).await, paths, "{body}");
    }
    // The program of the file stays what it is.
    let child = "/api/v1/servers/child";
    for (body, paths) in [
        (json!({"command": "/bin/sh", "mode": "strict"}), vec!["/command"]),
        (json!({"args": ["-c"], "mode": "strict"}), vec!["/args"]),
        (entry(&url), vec!["/url"]),
    ] {
        assert_eq!(it.paths_of_errors(child, body.clone()).await, paths, "{body}");
    }
    assert_eq!(it.text(), before);
    let body =
        json!({"mode": "dynamic", "required": false, "default_tool_config": {"max_instances": 9}});
    it.api.put(child, body).await.good();
    assert!(
        it.text().contains("command: /does/not/exist\n        args: [--key, x]"),
        "{}",
        it.text()
    );
}

#[tokio::test]
async fn an_address_passes_the_egress_check_before_it_is_written() {
    let it = start("mcp.example").await;
    let before = it.text();
    for (url, said) in [
        ("http://127.0.0.1:9/mcp", "address of the machine itself"),
        ("http://localhost:9/mcp", "address of the machine itself"),
        ("http://169.254.169.254/latest", "link-local"),
        ("http://10.0.0.1/mcp", "private"),
        ("ftp://example.com/", "is not an http or https address"),
        ("nonsense", "is not an http or https address"),
    ] {
        let answer = it.api.put("/api/v1/servers/two", entry(url)).await;
        let message = answer.body["errors"][0]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(said), "{url}: {message}");
        answer.problem(422, "invalid_configuration");
    }
    assert_eq!(it.text(), before);
}

#[tokio::test]
async fn credentials_of_the_file_do_not_move_to_another_host() {
    let it = start("127.0.0.1").await;
    let (before, path) = (it.text(), "/api/v1/servers/one");
    let mut body = entry(&it.two.url());
    body["headers"] = json!({"X-Team": "***"});
    assert_eq!(it.paths_of_errors(path, body.clone()).await, ["/url"]);
    assert_eq!(it.text(), before);
    body["headers"] = json!({"X-Team": "another"});
    it.api.put(path, body).await.good();
    assert!(!it.text().contains("X-Team: s3cret"), "{}", it.text());
}

#[tokio::test]
async fn a_required_server_that_cannot_be_reached_is_not_written() {
    let it = start("127.0.0.1").await;
    let before = it.text();
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let answer = it.api.put("/api/v1/servers/gone", entry(&url)).await;
    assert!(
        answer.body["errors"][0]["message"].as_str().unwrap().contains("gone"),
        "{:#}",
        answer.body
    );
    answer.problem(422, "not_applied");
    assert_eq!(it.text(), before);
}

#[tokio::test]
async fn a_server_is_connected_anew() {
    let it = start("127.0.0.1").await;
    assert_eq!(it.one.stats().initialize_count, 1);
    let path = "/api/v1/servers/one/reconnect";
    let server = it.api.post(path, json!({})).await.good();
    assert_eq!(server["state"], "ready");
    assert_eq!(it.one.stats().initialize_count, 2);
    it.api.post("/api/v1/servers/no/reconnect", json!({})).await.problem(404, "unknown_server");
}
