//! Requests of servers that the client does not answer.

use std::time::Duration;

use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, Tool};

use crate::support::{Reading, World, later, until};

const INVALID_PARAMS: i64 = -32602;
const A_MOMENT: Duration = Duration::from_secs(2);
const NEARLY_TEN_MINUTES: Duration = Duration::from_secs(598);

/// A stateless-era server that requires this input before it responds.
async fn wanting(method: &str, params: Value) -> ScriptedServer {
    let wanted = json!({"a": {"method": method, "params": params}});
    let wanted = json!({"resultType": "input_required", "inputRequests": wanted});
    let asks = Tool::new("asks").replies(Reply::Result(wanted));
    ScriptedServer::builder().modern().tools([asks]).start().await
}

/// A session-era server that sends a request and waits.
async fn waiting() -> ScriptedServer {
    let asks = Tool::new("asks").asks().sleeps(60_000);
    ScriptedServer::builder().legacy().tools([asks]).start().await
}

fn form() -> Value {
    json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// Leaves a request to the client unanswered for ten minutes: it is withdrawn then, and no earlier.
async fn leave_unanswered(reading: &mut Reading, method: &str) {
    let asked = reading.next().await.unwrap();
    assert_eq!(asked["method"], method, "{asked}");
    later(NEARLY_TEN_MINUTES).await;
    assert_eq!(reading.next().now_or_never(), None);
    later(A_MOMENT).await;
    let withdrawn = reading.next().await.unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"], "{withdrawn}");
}

#[tokio::test]
async fn an_elicitation_of_a_modern_server_that_a_legacy_client_leaves_open_is_withdrawn_and_cancelled()
 {
    let server = wanting("elicitation/create", form()).await;
    let world = World::of(&[("new", &server)]).await;
    let session = world.open(json!({"elicitation": {}})).await;
    let mut reading = session.call("new__asks").await;
    leave_unanswered(&mut reading, "elicitation/create").await;
    until(|| server.stats().calls.len() == 2).await;
    let again = &server.stats().calls[1].params;
    assert_eq!(again["inputResponses"], json!({"a": {"action": "cancel"}}), "{again}");
}

#[tokio::test]
async fn sampling_of_a_modern_server_that_a_legacy_client_leaves_open_is_withdrawn_and_fails_the_call()
 {
    let prompt = json!({"messages": [], "maxTokens": 1});
    let server = wanting("sampling/createMessage", prompt).await;
    let world = World::of(&[("new", &server)]).await;
    let session = world.open(json!({"sampling": {}})).await;
    let mut reading = session.call("new__asks").await;
    leave_unanswered(&mut reading, "sampling/createMessage").await;
    let result = reading.result().await;
    assert_eq!(result["isError"], true, "{result}");
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("did not answer in time"), "{said}");
    assert_eq!(server.stats().calls.len(), 1);
}

#[tokio::test]
async fn a_question_of_a_legacy_server_that_a_legacy_client_leaves_open_is_withdrawn_and_refused() {
    let server = waiting().await;
    let world = World::of(&[("old", &server)]).await;
    let session = world.open(json!({"elicitation": {}})).await;
    let mut reading = session.call("old__asks").await;
    leave_unanswered(&mut reading, "elicitation/create").await;
    until(|| {
        let stats = server.stats();
        let mut heard = stats.requests.iter().map(|seen| &seen.body);
        heard.any(|body| body["id"] == "question-1" && body["error"]["code"] == -32603)
    })
    .await;
}

#[tokio::test]
async fn a_call_of_a_modern_client_that_does_not_come_back_with_answers_is_cancelled() {
    let server = waiting().await;
    let world = World::of(&[("old", &server)]).await;
    let call = json!({"name": "old__asks", "arguments": {}});
    let asked = world.modern("tools/call", call.clone(), json!({})).await.result().await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    later(NEARLY_TEN_MINUTES).await;
    assert_eq!(server.stats().running_calls, 1);
    // The next sweep is a little later.
    later(A_MOMENT + Duration::from_secs(15)).await;
    until(|| server.stats().cancelled.len() == 1 && server.stats().running_calls == 0).await;
    let mut late = call;
    late["requestState"] = asked["requestState"].clone();
    late["inputResponses"] = json!({"elicitation_1": {"action": "decline"}});
    assert_eq!(world.modern("tools/call", late, json!({})).await.code().await, INVALID_PARAMS);
}
