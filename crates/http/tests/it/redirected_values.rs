//! Values that the file gives to arguments do not go to another tool or another host by a request.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::api_server::{Answer, Api, ApiServer, scripted};

const LOOKUP: &str = "/api/v1/tools/lookup/declaration";

struct Bank {
    crm: ScriptedServer,
    other: ScriptedServer,
    server: ApiServer,
    api: Api,
}

/// A board whose file gives a key to `crm.search`, and to `sign` of every server.
async fn start() -> Bank {
    let tools = || [Tool::echo("search"), Tool::echo("find"), Tool::echo("sign")];
    let (crm, other) = (scripted(tools()).await, scripted(tools()).await);
    let key = "arguments: [{name: key, value: s3cret}, {name: dry, value: true}]";
    let yaml = format!(
        "switchboard:\n  gateway: {{trustgraph: true}}\n  security: {{egress: {{allow: [127.0.0.1]}}}}\n  toolbox:\n    \
         tools:\n      - {{name: lookup, type: mcp-tool, mcp-tool: crm.search, {key}}}\n      - {{name: sign, {key}}}\n    \
         mcps:\n      - {{name: crm, url: \"{}\", mode: dynamic, default_tool_config: {{}}}}\n      - name: other\n        \
         url: {}\n        mode: dynamic\n        default_tool_config: {{}}\n        tool_denylist: [sign]\n",
        crm.url(),
        other.url()
    );
    let server = ApiServer::start(&yaml).await;
    let api = server.api();
    Bank { crm, other, server, api }
}

impl Bank {
    fn text(&self) -> String {
        std::fs::read_to_string(self.server.file()).unwrap()
    }

    /// A TrustGraph client sets a value; returns the error.
    async fn trustgraph(&self, kind: &str, key: &str, value: Value) -> Option<String> {
        let values = json!([{"type": kind, "key": key, "value": value.to_string()}]);
        let body = json!({"operation": "put", "workspace": "default", "values": values});
        let answer = self.api.post("/trustgraph/api/v1/config", body).await.good();
        answer["error"]["message"].as_str().map(str::to_owned)
    }
}

fn lookup(target: &str, key: &str) -> Value {
    let arguments = json!([{"name": "key", "value": key}, {"name": "dry", "value": true}]);
    json!({"type": "mcp-tool", "mcp-tool": target, "arguments": arguments})
}

fn at(url: &str, denied: &[&str]) -> Value {
    json!({"url": url, "mode": "dynamic", "default_tool_config": {}, "tool_denylist": denied})
}

/// Asserts that the answer refuses to send the key elsewhere, and returns the error.
#[track_caller]
fn refused(answer: Answer) -> (String, String) {
    let body = answer.body.clone();
    answer.problem(422, "invalid_configuration");
    let hint = body["hint"].as_str().unwrap();
    assert!(hint.contains("or make the change in the configuration file"), "{hint}");
    assert!(!body.to_string().contains("s3cret"), "{body:#}");
    let text = |key: &str| body["errors"][0][key].as_str().unwrap().to_owned();
    (text("path"), text("message"))
}

#[tokio::test]
async fn an_entry_is_pointed_at_another_tool_only_with_a_value_of_its_own() {
    let it = start().await;
    let before = it.text();
    let origin = it.other.url().replace("/mcp", "");
    for (target, place) in
        [("other.search", origin), ("crm.find", it.crm.url().replace("/mcp", ""))]
    {
        let answer = it.api.put(LOOKUP, lookup(target, "***")).await;
        let expected = format!(
            "the value that the file gives to argument `key` of 'lookup' would go to '{target}' at {place}"
        );
        assert_eq!(refused(answer), ("/arguments/0".to_owned(), expected.clone()));
        let path = format!("{LOOKUP}/preview");
        let preview = it.api.post(&path, lookup(target, "***")).await.good();
        assert!(preview["warnings"].as_array().unwrap().contains(&json!(expected)), "{preview:#}");
    }
    let value = json!({"name": "lookup", "type": "mcp-tool", "mcp-tool": "other.search"});
    let said = it.trustgraph("tool", "lookup", value).await.unwrap();
    assert!(said.contains("would go to 'other.search'"), "{said}");
    let renamed = json!({"name": "mine", "type": "mcp-tool", "mcp-tool": "other.search"});
    let said = it.trustgraph("tool", "lookup", renamed).await.unwrap();
    assert!(said.contains("would go to 'other.search'"), "{said}");
    assert_eq!(it.text(), before);
    it.api.put(LOOKUP, lookup("other.search", "mine")).await.good();
    // By the name that the entry exposes.
    for path in ["check", "call"] {
        let path = format!("/api/v1/tools/lookup/{path}");
        it.api.post(&path, json!({"arguments": {}})).await.good();
    }
    assert_eq!(it.other.stats().calls[0].params["arguments"], json!({"key": "mine", "dry": true}));
    assert!(it.crm.stats().calls.is_empty());
}

#[tokio::test]
async fn a_server_is_moved_to_another_host_only_without_the_values_of_its_tools() {
    let it = start().await;
    let before = it.text();
    let path = "/api/v1/servers/crm";
    let answer = it.api.put(path, at(&it.other.url(), &[])).await;
    let (pointer, message) = refused(answer);
    assert_eq!(pointer, "");
    assert!(message.contains("of 'lookup' would go to 'crm.search' at"), "{message}");
    let said = it.api.send(Method::DELETE, path, None).await;
    assert!(refused(said).1.contains("'other.crm.search'"), "a tool of that name would get it");
    assert_eq!(it.text(), before);
    for name in ["lookup", "sign"] {
        let path = format!("/api/v1/tools/{name}/declaration");
        // What the declaration fixes is given up only by somebody who has read it.
        let etag = it.api.get(&path).await.headers["etag"].clone();
        let delete = it.api.request(Method::DELETE, &path).header("if-match", etag);
        assert_eq!(Answer::of(delete).await.status, 204);
    }
    it.api.put(path, at(&it.other.url(), &[])).await.good();
}

#[tokio::test]
async fn a_new_server_gets_no_value_that_is_meant_for_every_server() {
    let it = start().await;
    let (before, path) = (it.text(), "/api/v1/servers/new");
    let (_, message) = refused(it.api.put(path, at(&it.other.url(), &[])).await);
    assert!(message.contains("of 'sign' would go to 'new.sign'"), "{message}");
    let (_, message) = refused(it.api.put("/api/v1/servers/other", at(&it.other.url(), &[])).await);
    assert!(message.contains("of 'sign' would go to 'other.sign'"), "{message}");
    let value = json!({"remote-name": "sign", "url": it.other.url()});
    let said = it.trustgraph("mcp", "signer", value).await.unwrap();
    assert!(said.contains("of 'sign' would go to 'signer.sign'"), "{said}");
    assert_eq!(it.text(), before);
    it.api.put(path, at(&it.other.url(), &["sign"])).await.good();
    let value = json!({"remote-name": "find", "url": it.other.url()});
    assert_eq!(it.trustgraph("mcp", "finder", value).await, None);
}
