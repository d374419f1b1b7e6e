//! Toolsets: shown with their entries, configured and removed through the API.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::api_server::{Answer, Api, ApiServer, scripted};

struct Configured {
    _one: ScriptedServer,
    server: ApiServer,
    api: Api,
}

const PATH: &str = "/api/v1/toolsets/quotes";

async fn start(more: &str) -> Configured {
    let one = scripted([Tool::echo("a"), Tool::echo("b")]).await;
    let yaml = format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 3}}}}\n  \
         toolsets:\n    # the first\n    - name: letters  # short ones\n      description: Letters\n      tools: [a]\n{more}",
        one.url()
    );
    let server = ApiServer::start(&yaml).await;
    let api = server.api();
    Configured { _one: one, server, api }
}

impl Configured {
    fn text(&self) -> String {
        std::fs::read_to_string(self.server.file()).unwrap()
    }

    async fn send_if(&self, method: Method, path: &str, tag: &str, body: Value) -> Answer {
        Answer::of(self.api.request(method, path).header("if-match", tag).json(&body)).await
    }
}

#[tokio::test]
async fn a_toolset_is_added_changed_and_removed_and_the_rest_of_the_file_stays() {
    let it = start("").await;
    let before = it.text();
    it.api.get(PATH).await.problem(404, "unknown_toolset");
    let body = json!({"description": "Quotes", "when_to_use": "For prices", "tools": ["one.b"]});
    let added = it.api.put(PATH, body.clone()).await;
    let etag = added.headers["etag"].to_str().unwrap().to_owned();
    let added = added.good();
    assert_eq!(added["members"], json!(["one.b"]));
    assert_eq!(added["declared"], body);
    assert_eq!(format!("\"{}\"", added["etag"].as_str().unwrap()), etag);
    assert!(added["origins"]["/tools/0"].as_str().unwrap().contains("test.yaml:"), "{added:#}");
    assert!(it.text().starts_with(before.trim_end()), "{}", it.text());
    let shown = it.api.get(PATH).await;
    assert_eq!(shown.headers["etag"].to_str().unwrap(), etag);
    assert_eq!(shown.good(), added);
    let sets = it.api.get("/api/v1/toolsets").await.good();
    let names: Vec<_> =
        sets["toolsets"].as_array().unwrap().iter().map(|set| &set["name"]).collect();
    assert_eq!(names, ["letters", "quotes", "one"]);

    let stale = it.send_if(Method::PUT, PATH, "\"older\"", body.clone()).await;
    stale.problem(412, "stale_entry");
    let changed = json!({"description": "Quotes", "servers": ["one"]});
    let changed = it.send_if(Method::PUT, PATH, &etag, changed).await.good();
    assert_eq!(changed["members"], json!(["one.a", "one.b"]));
    assert_eq!(it.send_if(Method::DELETE, PATH, &etag, json!({})).await.status, 412);
    assert_eq!(it.api.send(Method::DELETE, PATH, None).await.status, 204);
    assert_eq!(it.text(), before);
    it.api.send(Method::DELETE, PATH, None).await.problem(404, "unknown_toolset");
    // That of a server has no entry.
    let own = it.api.get("/api/v1/toolsets/one").await;
    assert!(!own.headers.contains_key("etag"));
    assert_eq!(own.good()["declared"], Value::Null);
}

#[tokio::test]
async fn a_toolset_that_would_not_load_is_refused_with_the_place_of_each_fault() {
    let it = start("  gateway: {tool_sets: [letters]}\n").await;
    let before = it.text();
    for (body, paths) in [
        (json!({"tools": ["a"]}), vec!["/description"]),
        (json!({"description": "x", "tools": "a"}), vec!["/tools"]),
        (json!({"description": "x", "tools": ["a"], "sort": 1}), vec!["/sort"]),
        (json!({"description": "x", "tools": [" "]}), vec!["/tools/0"]),
        (json!({"description": "x", "servers": ["two"]}), vec!["/servers/0"]),
        (json!({"description": "x"}), vec![""]),
        (json!({"description": "${HOME}", "tools": ["a"]}), vec!["/description"]),
        (json!({"description": "x", "tools": ["file:/etc/passwd"]}), vec!["/tools/0"]),
        (json!({"name": "y", "description": "x", "tools": ["a"]}), vec!["/name"]),
    ] {
        let answer = it.api.put(PATH, body.clone()).await;
        let errors = answer.body["errors"].as_array().cloned().unwrap_or_default();
        answer.problem(422, "invalid_configuration");
        let found: Vec<_> = errors.iter().map(|error| error["path"].as_str().unwrap()).collect();
        assert_eq!(found, paths, "{body}: {errors:?}");
    }
    it.api
        .put("/api/v1/toolsets/a%20b", json!({"description": "x", "tools": ["a"]}))
        .await
        .problem(422, "invalid_configuration");
    // The gateway shows it.
    let named = it.api.send(Method::DELETE, "/api/v1/toolsets/letters", None).await;
    assert!(
        named.body["errors"][0]["message"].as_str().unwrap().contains("letters"),
        "{:#}",
        named.body
    );
    named.problem(422, "invalid_configuration");
    assert_eq!(it.text(), before);
}

#[tokio::test]
async fn clients_see_neither_rules_nor_entries_and_only_administrators_change_them() {
    let it = start("  gateway: {deny_toolsets: [letters]}\n").await;
    let path = "/api/v1/toolsets/letters";
    let open = it.api.get(path).await.good();
    assert_eq!(open["members"], json!(["one.a"]), "an administrator sees what policy hides");
    let client = it.server.api_of("client", Role::Client).await;
    let operator = it.server.api_of("operator", Role::Operator).await;
    let admin = it.server.api_of("admin", Role::Admin).await;
    let body = json!({"description": "L", "tools": ["b"]});
    client.get(path).await.problem(404, "unknown_toolset");
    let own = client.get("/api/v1/toolsets/one").await.good();
    assert_eq!((&own["rules"], &own["declared"]), (&Value::Null, &Value::Null));
    for api in [&client, &operator] {
        api.put(path, body.clone()).await.problem(403, "forbidden");
        api.send(Method::DELETE, path, None).await.problem(403, "forbidden");
    }
    assert_eq!(operator.get(path).await.good()["declared"]["tools"], json!(["a"]));
    assert_eq!(admin.put(path, body).await.good()["members"], json!(["one.b"]));
}
