//! JSON-RPC batches, which two of the older protocol versions have.

use pretty_assertions::assert_eq;
use reqwest::Client;
use serde_json::{Value, json};
use switchboard_test_support::Tool;

use crate::support::{Home, Serve, dynamic, server};

/// A session of such a version. Its requests name no version: these had no such header.
async fn open(serve: &Serve, version: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"},
    }});
    let answer = Client::new().post(serve.at("/mcp")).json(&hello).send().await.unwrap();
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let said: Value = answer.json().await.unwrap();
    assert_eq!(said["result"]["protocolVersion"], version);
    session
}

/// The status, and what came with it.
async fn post(serve: &Serve, session: &str, messages: &Value) -> (u16, Value) {
    let request = Client::new().post(serve.at("/mcp")).header("mcp-session-id", session);
    let answer = request.json(messages).send().await.unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn call(id: &Value, n: u64) -> Value {
    let params = json!({"name": "one__echo", "arguments": {"n": n}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn a_batch_is_answered_as_one_where_the_version_has_batches() {
    let upstream = server([Tool::echo("echo")]).await;
    let yaml =
        format!("switchboard:\n  toolbox:\n    mcps: [{}]\n", dynamic("one", &upstream.url()));
    let serve = Home::new(yaml).serve().await;
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let strange = json!({"jsonrpc": "2.0", "id": 3, "method": "no/such"});
    let batch =
        json!([call(&json!(1), 1), notice, call(&json!("two"), 2), strange, {"no": "message"}]);
    for version in ["2024-11-05", "2025-03-26"] {
        let session = open(&serve, version).await;
        let (status, answers) = post(&serve, &session, &batch).await;
        let answers = answers.as_array().unwrap();
        assert_eq!((status, answers.len()), (200, 4), "{answers:?}");
        let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!(of(json!(1))["result"]["structuredContent"]["n"], 1);
        assert_eq!(of(json!("two"))["result"]["structuredContent"]["n"], 2);
        assert_eq!(of(json!(3))["error"]["code"], -32601);
        assert_eq!(of(Value::Null)["error"]["code"], -32600);

        assert_eq!(post(&serve, &session, &json!([notice, notice])).await, (202, Value::Null));
        for wrong in [json!([]), json!(vec![notice.clone(); 101])] {
            let (status, answer) = post(&serve, &session, &wrong).await;
            assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)));
        }
    }
    for version in ["2025-06-18", "2025-11-25"] {
        let session = open(&serve, version).await;
        let (status, answer) = post(&serve, &session, &batch).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)), "{version}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(message, "batches are not part of this protocol version");
    }
    assert_eq!(upstream.stats().total_calls(), 4, "each call ran once, and none that was refused");
}
