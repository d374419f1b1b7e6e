//! Declarations of tools: shown, previewed, written to the file and in force.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_api::ToolDeclaration;
use switchboard_auth::Role;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::api_server::{Answer, Api, ApiServer, scripted};

const PATH: &str = "/api/v1/tools/one.echo/declaration";

struct Declared {
    one: ScriptedServer,
    server: ApiServer,
    api: Api,
}

async fn start() -> Declared {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let one = scripted([Tool::echo("echo").schema(schema).description("Says it again")]).await;
    let yaml = format!(
        "# The lab.\nswitchboard:\n  toolbox:\n    tools:\n      - name: one.echo  # loud\n        timeout: 5s # short\n        \
         arguments:\n          - {{name: n, type: integer, description: 'How many'}}\n          - {{name: key, value: s3cret}}\n    mcps:\n      \
         - {{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 10}}}}\n",
        one.url()
    );
    let server = ApiServer::start(&yaml).await;
    let api = server.api();
    Declared { one, server, api }
}

impl Declared {
    fn text(&self) -> String {
        std::fs::read_to_string(self.server.file()).unwrap()
    }

    /// Replaces the declaration by one of a client that has read it.
    async fn put_read(&self, body: Value) -> Answer {
        let etag = self.api.get(PATH).await.headers["etag"].to_str().unwrap().to_owned();
        self.send_if(Method::PUT, "if-match", &etag, body).await
    }

    async fn delete_read(&self) -> Answer {
        let etag = self.api.get(PATH).await.headers["etag"].to_str().unwrap().to_owned();
        self.send_if(Method::DELETE, "if-match", &etag, json!({})).await
    }

    async fn send_if(&self, method: Method, header: &str, tag: &str, body: Value) -> Answer {
        Answer::of(self.api.request(method, PATH).header(header, tag).json(&body)).await
    }
}

#[tokio::test]
async fn a_declaration_is_shown_beside_the_servers_definition_with_its_places_and_no_secret() {
    let it = start().await;
    let answer = it.api.get(PATH).await;
    let etag = answer.headers["etag"].to_str().unwrap().to_owned();
    let body = answer.good();
    assert_eq!(format!("\"{}\"", body["etag"].as_str().unwrap()), etag);
    assert_eq!(
        body["declared"],
        json!({
            "limits": {"timeout": "5s"},
            "arguments": [
                {"name": "n", "type": "integer", "description": "How many"},
                {"name": "key", "value": "***"},
            ],
        })
    );
    assert_eq!(body["server"]["description"], "Says it again");
    assert_eq!(body["server"]["input_schema"]["properties"]["n"], json!({"type": "integer"}));
    let merged = &body["merged"]["input_schema"]["properties"];
    assert_eq!(merged["n"]["description"], "How many");
    assert_eq!(merged.get("key"), None, "a fixed argument is hidden");
    let place = body["origins"]["/limits/timeout"].as_str().unwrap();
    assert!(place.ends_with("test.yaml:6:18"), "{place}");
    assert!(!body.to_string().contains("s3cret"));
    let said = it.api.get("/api/v1/tools/one.nothing/declaration").await;
    assert_eq!(said.problem(404, "unknown_tool"), "there is no tool 'one.nothing'");
}

#[tokio::test]
async fn a_put_changes_the_lines_of_what_differs_and_is_in_force() {
    let it = start().await;
    let before = it.text();
    let body = json!({
        "limits": {"timeout": "9s"},
        "arguments": [
            {"name": "n", "type": "integer", "description": "How many"},
            {"name": "key", "value": "***"},
        ],
    });
    let old = it.api.get("/api/v1/tools").await.good()["revision"].as_u64().unwrap();
    let put = it.api.put(PATH, body.clone()).await;
    assert!(put.headers.contains_key("etag"));
    let put = put.good();
    assert_eq!((put["revision"].as_u64().unwrap(), &put["declared"]), (old + 1, &body));
    assert_eq!(it.text(), before.replace("timeout: 5s", "timeout: 9s"));
    let tool = it.api.get("/api/v1/tools/one.echo").await.good();
    assert_eq!(tool["limits"]["timeout"], "9s");
    assert_eq!(it.one.stats().initialize_count, 1, "the server stays connected");
    // The same again changes nothing.
    let again = it.api.put(PATH, body).await.good();
    assert_eq!(again["revision"].as_u64().unwrap(), old + 1);
    let deleted = it.delete_read().await;
    assert_eq!((deleted.status, deleted.body), (204, json!("")));
    assert!(it.text().contains("tools: []\n"), "{}", it.text());
    let gone = it.api.send(Method::DELETE, PATH, None).await;
    gone.problem(404, "unknown_declaration");
    assert_eq!(it.api.get(PATH).await.good()["declared"], Value::Null);
}

#[tokio::test]
async fn of_two_changes_of_one_version_the_second_is_refused() {
    let it = start().await;
    let etag = it.api.get(PATH).await.headers["etag"].to_str().unwrap().to_owned();
    let body = json!({"description": "One"});
    it.send_if(Method::PUT, "if-match", &etag, body.clone()).await.good();
    let text = it.text();
    let stale = it.send_if(Method::PUT, "if-match", &etag, json!({"description": "Two"})).await;
    let said = stale.problem(412, "stale_entry");
    assert_eq!(said, "the entry for the tool 'one.echo' has changed since it was read");
    let stale = it.send_if(Method::DELETE, "if-match", &etag, json!({})).await;
    stale.problem(412, "stale_entry");
    let exists = it.send_if(Method::PUT, "if-none-match", "*", body).await;
    exists.problem(412, "stale_entry");
    assert_eq!(it.text(), text);
    it.send_if(Method::PUT, "if-match", "*", json!({"description": "Two"})).await.good();
    assert!(it.text().contains("description: Two"));
}

#[tokio::test]
async fn what_is_fixed_is_released_only_by_a_client_that_has_read_it() {
    let it = start().await;
    let before = it.text();
    for body in [
        json!({"description": "Says it"}),
        json!({"arguments": [{"name": "n", "type": "integer"}]}),
        json!({"arguments": [{"name": "key", "type": "string"}]}),
    ] {
        let preview = it.api.post(&format!("{PATH}/preview"), body.clone()).await.good();
        let warning = "the argument 'key' is fixed or hidden now, and callers could give it then";
        assert_eq!(preview["warnings"], json!([warning]));
        for answer in [
            it.api.put(PATH, body.clone()).await,
            it.send_if(Method::PUT, "if-match", "*", body.clone()).await,
        ] {
            let said = answer.problem(428, "unread_entry");
            assert_eq!(said, "this declaration leaves out what is fixed or hidden: key");
        }
        assert_eq!(it.text(), before);
    }
    for answer in [
        it.api.send(Method::DELETE, PATH, None).await,
        it.send_if(Method::DELETE, "if-match", "*", json!({})).await,
    ] {
        let said = answer.problem(428, "unread_entry");
        assert_eq!(said, "removing this declaration gives up what is fixed or hidden: key");
    }
    assert_eq!(it.text(), before);
    let deleted = it.delete_read().await;
    assert_eq!((deleted.status, it.text().contains("key")), (204, false));
    it.api.put(PATH, json!({"arguments": [{"name": "key", "value": "again"}]})).await.good();
    // Fixed to another value, it is fixed.
    let other = json!({"arguments": [{"name": "key", "value": "other"}]});
    it.api.put(PATH, other).await.good();
    it.put_read(json!({"description": "Says it"})).await.good();
    assert!(!it.text().contains("key"), "{}", it.text());
}

#[tokio::test]
async fn a_value_that_the_server_would_refuse_is_refused_and_nothing_is_written() {
    let it = start().await;
    let before = it.text();
    let revision = it.api.get("/api/v1/tools").await.good()["revision"].clone();
    for (argument, path) in [
        (json!({"name": "n", "value": "many"}), "/arguments/0/value"),
        (json!({"name": "n", "hidden": true, "default": "many"}), "/arguments/0/default"),
        (json!({"name": "n", "default": "many"}), "/arguments/0/default"),
    ] {
        let body = json!({"arguments": [argument]});
        let preview = it.api.post(&format!("{PATH}/preview"), body.clone()).await.good();
        assert!(
            preview["warnings"][0].as_str().unwrap().contains("argument `n` has a"),
            "{preview}"
        );
        let answer = it.put_read(body).await;
        let errors = answer.body["errors"].as_array().unwrap();
        assert_eq!((errors.len(), &errors[0]["path"]), (1, &json!(path)), "{:#}", answer.body);
        let message = errors[0]["message"].as_str().unwrap();
        assert!(message.contains("not of type \"integer\""), "{message}");
        answer.problem(422, "invalid_configuration");
    }
    assert_eq!(it.text(), before);
    let after = it.api.get("/api/v1/tools").await.good();
    assert_eq!(after["revision"], revision);
    assert_eq!(after["quarantined"], json!([]));
    it.api.get("/api/v1/tools/one.echo").await.good();
}

#[tokio::test]
async fn every_problem_of_a_declaration_has_its_place_and_nothing_is_written() {
    let it = start().await;
    let before = it.text();
    for (body, paths) in [
        (
            json!({"limits": {"timeout": "never", "max_instances": 0}, "mode": "maybe"}),
            vec!["/limits/max_instances", "/limits/timeout", "/mode"],
        ),
        (json!({"arguments": [{"name": "a", "type": "text"}]}), vec!["/arguments/0/type"]),
        (json!({"arguments": [{"name": "", "type": "string"}]}), vec!["/arguments/0/name"]),
        (json!({"unknown": 1}), vec!["/unknown"]),
        (json!({"timeout": "5s"}), vec!["/timeout"]),
        (json!({"description": "${HOME}"}), vec!["/description"]),
        (json!({"arguments": [{"name": "k", "value": "${HOME}"}]}), vec!["/arguments/0/value"]),
    ] {
        let answer = it.put_read(body.clone()).await;
        let mut found: Vec<_> = answer.body["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|error| error["path"].as_str().unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, paths, "{body} {:#}", answer.body);
        answer.problem(422, "invalid_configuration");
    }
    let twice =
        json!({"arguments": [{"name": "a", "type": "string"}, {"name": "a", "type": "number"}]});
    it.put_read(twice).await.problem(422, "invalid_configuration");
    it.api.put(PATH, json!([])).await.problem(422, "bad_request");
    assert_eq!(it.text(), before);
}

#[tokio::test]
async fn a_preview_shows_schema_tokens_and_warnings_and_writes_nothing() {
    let it = start().await;
    let before = it.text();
    let body = json!({"arguments": [{"name": "n", "description": "Count", "default": "many"}]});
    let seen = it.api.post(&format!("{PATH}/preview"), body).await.good();
    assert_eq!(seen["input_schema"]["properties"]["n"]["description"], "Count");
    assert!(
        seen["warnings"][0].as_str().unwrap().contains("default that does not fit"),
        "{seen:#}"
    );
    assert!(seen["tokens"]["openai"].as_u64().unwrap() > 10, "{seen:#}");
    assert_eq!(it.text(), before);
}

#[tokio::test]
async fn every_field_of_a_declaration_is_documented_and_comes_back_as_it_was_sent() {
    let it = start().await;
    let limits = json!({
        "max_instances": 2, "timeout": "5s", "max_timeout": "1m", "queue_timeout": "2s",
        "inactivity_timeout": "3s", "max_result_bytes": 2048,
    });
    let arguments = json!([
        {"name": "what", "type": "string", "description": "What", "required": true, "enum": ["a", "b"]},
        {"name": "more", "type": "array", "items": {"type": "string"}, "default": ["x"]},
        {"name": "at", "type": "object", "properties": {"zip": {"type": "string"}}},
        {"name": "n", "type": "integer", "hidden": true, "default": 3},
    ]);
    let prompt = json!({
        "type": "prompt", "id": "ask-tool", "description": "Asks", "template": "Say {{ what }} {{ more }} {{ at }} {{ n }}",
        "provider": "demo", "model": "demo", "instructions": "Be brief", "tools": ["one.*"], "max_depth": 2,
        "arguments": arguments, "limits": limits, "enabled": true, "expose_as": "ask_it", "group": ["x"], "state": "s",
        "applicable_states": ["t"], "validate_arguments": true,
    });
    let mcp_tool = json!({"type": "mcp-tool", "mcp-tool": "one.echo", "description": "Says", "mode": "dynamic"});
    it.delete_read().await;
    for (name, body) in [("ask", prompt), ("say", mcp_tool)] {
        let path = format!("/api/v1/tools/{name}/declaration");
        let put = it.api.put(&path, body.clone()).await.good();
        assert_eq!(put["declared"], body);
        assert_eq!(it.api.get(&path).await.good()["declared"], body);
        let typed: ToolDeclaration = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), body, "the API document has every field");
        let preview = it.api.post(&format!("{path}/preview"), body).await.good();
        assert_eq!(preview["warnings"], json!([]), "{preview:#}");
    }
    let ask = it.api.get("/api/v1/tools/ask/declaration").await.good();
    assert_eq!(ask["absent"], Value::Null);
    assert_eq!(ask["merged"]["input_schema"]["required"], json!(["what"]), "{ask:#}");
    let say = it.api.get("/api/v1/tools/say").await.good();
    assert_eq!((&say["name"], &say["description"]), (&json!("one.echo"), &json!("Says")));
}

#[tokio::test]
async fn a_tool_that_is_not_there_has_a_reason_for_operators() {
    let it = start().await;
    let client = it.server.api_of("client", Role::Client).await;
    let admin = it.server.api_of("admin", Role::Admin).await;
    let body = json!({"enabled": false, "arguments": [{"name": "key", "value": "***"}]});
    let put = admin.put(PATH, body).await.good();
    let absent = &put["absent"];
    assert_eq!(absent["reason"], "disabled", "{absent:#}");
    let gone = admin.get("/api/v1/tools/one.echo").await;
    let detail = gone.problem(404, "unknown_tool");
    assert_eq!(
        detail,
        "there is no tool 'one.echo': the entry 'one.echo' in toolbox.tools says `enabled: false`"
    );
    let hidden = client.get("/api/v1/tools/one.echo").await;
    assert_eq!(hidden.problem(404, "unknown_tool"), "there is no tool 'one.echo'");
}

#[tokio::test]
async fn only_operators_are_told_which_arguments_callers_do_not_see() {
    let it = start().await;
    let client = it.server.api_of("client", Role::Client).await;
    let operator = it.server.api_of("operator", Role::Operator).await;
    let path = "/api/v1/tools/one.echo";
    let told = operator.get(path).await.good();
    assert_eq!(told["hidden_arguments"], json!([{"name": "key", "source": "fixed"}]), "{told:#}");
    assert!(!told.to_string().contains("s3cret"), "{told:#}");
    let shown = client.get(path).await.good();
    assert_eq!(shown.get("hidden_arguments"), None, "{shown:#}");
    for api in [&client, &operator] {
        let list = api.get("/api/v1/tools").await.good();
        assert!(!list.to_string().contains("hidden_arguments"), "{list:#}");
    }
}

#[tokio::test]
async fn arguments_are_checked_without_a_call() {
    let it = start().await;
    let check = async |arguments: Value| {
        it.api.post("/api/v1/tools/one.echo/check", json!({"arguments": arguments})).await.good()
    };
    assert_eq!(check(json!({"n": 1})).await, json!({"ok": true, "errors": []}));
    let wrong = check(json!({"n": "x", "key": "y"})).await;
    assert_eq!(wrong["ok"], false);
    let paths: Vec<_> = wrong["errors"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert!(paths.contains(&&json!("/key")) && paths.contains(&&json!("/n")), "{wrong:#}");
    assert_eq!(check(json!([])).await["errors"][0]["path"], "");
    let empty = it.api.post("/api/v1/tools/one.echo/check", json!({})).await.good();
    assert_eq!(
        empty,
        json!({"ok": true, "errors": []}),
        "absent arguments are an empty object, as in a call"
    );
    for (arguments, path) in
        [(json!({"n": "x"}), "/n"), (json!({"key": "y"}), "/key"), (json!([]), "")]
    {
        let answer =
            it.api.post("/api/v1/tools/one.echo/call", json!({"arguments": arguments})).await;
        let errors = answer.body["errors"].as_array().cloned().unwrap_or_default();
        assert_eq!((errors.len(), &errors[0]["path"]), (1, &json!(path)), "{:#}", answer.body);
        assert!(!errors[0]["message"].as_str().unwrap().is_empty());
        answer.problem(422, "invalid_arguments");
    }
    assert_eq!(it.one.stats().total_calls(), 0);
    let unknown = it.api.post("/api/v1/tools/one.no/check", json!({"arguments": {}})).await;
    unknown.problem(404, "unknown_tool");
}
