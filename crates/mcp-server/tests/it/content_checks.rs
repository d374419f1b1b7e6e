//! Content checks of the calls of MCP clients, in both eras.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{CheckMode, ContentCheckOverlay};
use switchboard_test_support::{
    Reply, ScriptedServer, ThreatAnswer, ThreatEndpoint, ThreatRequest, Tool,
};

use crate::support::{World, plan};

fn refuses_evil(request: &ThreatRequest) -> ThreatAnswer {
    let is_evil = request.content().contains("evil");
    if is_evil { ThreatAnswer::Refuse("it is evil") } else { ThreatAnswer::Allow }
}

#[track_caller]
fn check_blocked(result: &Value, expected: &str) {
    assert_eq!(result["isError"], true, "{result:#}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(expected), "{text}");
    assert!(!result.to_string().contains("evil news"), "{result:#}");
}

#[tokio::test]
async fn a_blocked_call_is_an_error_result_that_says_so() {
    let endpoint = ThreatEndpoint::judging(refuses_evil).await;
    let news = Tool::new("news").replies(Reply::Text("evil news".into()));
    let shop = ScriptedServer::builder().tools([Tool::new("buy"), news]).start().await;
    let mut plan = plan(&[("shop", &shop)]);
    plan.threat_protection.endpoint = Some(endpoint.url().parse().unwrap());
    plan.servers[0].content_check = ContentCheckOverlay {
        before_call: Some(CheckMode::Block),
        after_call: Some(CheckMode::Block),
    };
    let world = World::of_plan(plan).await;
    let session = world.open(json!({})).await;
    let rows = [
        (
            "shop__buy",
            json!({"what": "evil"}),
            "tool 'buy' of MCP server 'shop' was not called: the content check refused it: it is evil",
        ),
        (
            "shop__news",
            json!({}),
            "tool 'news' of MCP server 'shop' has run, but its result is withheld: the content check refused it: it is evil",
        ),
    ];
    for (calls, (name, arguments, expected)) in rows.into_iter().enumerate() {
        let call = json!({"name": name, "arguments": arguments});
        check_blocked(&session.ask("tools/call", call.clone()).await.result().await, expected);
        check_blocked(&world.modern("tools/call", call, json!({})).await.result().await, expected);
        assert_eq!(shop.stats().total_calls(), 2 * calls);
    }
    let fine = json!({"name": "shop__buy", "arguments": {"what": "bread"}});
    let bought = session.ask("tools/call", fine).await.result().await;
    assert_ne!(bought["isError"], true, "{bought:#}");
}
