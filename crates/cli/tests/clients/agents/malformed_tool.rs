//! One definition that strict clients reject does not cost the client the other forty-nine tools.

use serde_json::json;
use switchboard_test_support::Tool;

use super::conversation::Conversation;
use super::program::Agent;
use super::{Transport, agents, home, tools, upstream};

/// Definitions for which strict clients refuse the whole list that they are in.
fn malformed() -> Vec<Tool> {
    let object = json!({"type": "object", "properties": {"anything": {"type": "string"}}});
    let with = |member: &str, value: serde_json::Value| {
        let mut schema = object.clone();
        schema[member] = value;
        schema
    };
    vec![
        Tool::echo("boolean_schema").schema(with("properties", json!({"anything": true}))),
        Tool::echo("empty_schema").schema(json!({})),
        Tool::echo("no_type").schema(json!({"properties": {}})),
        Tool::echo("null_required").schema(with("required", json!(null))),
        Tool::echo("listed_properties").schema(with("properties", json!([]))),
        Tool::echo("bad_icon").schema(object.clone()).member("icons", json!([{"src": 7}])),
        Tool::echo("listed_meta").schema(object.clone()).member("_meta", json!([])),
    ]
}

async fn malformed_tools_among_fifty_cost_no_other(agent: Agent, transport: Transport) {
    let good = 43;
    let numbered = (tools().len()..good).map(|number| Tool::echo(format!("tool_{number}")));
    let all = tools().into_iter().chain(numbered).chain(malformed()).collect::<Vec<_>>();
    assert_eq!(all.len(), 50);
    let names: Vec<_> = all.iter().map(|tool| format!("demo__{}", tool.name)).collect();
    let server = upstream(all).await;
    let home = home("", &server.url());
    let mut talk = Conversation::start(agent, transport, &home).await;
    let turn = talk.turn().await;
    let missing: Vec<_> = names[..good].iter().filter(|name| !talk.offers(&turn, name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {:?}", turn.tools);
    // A property of which anything is allowed keeps its meaning.
    let call = json!({"anything": [1, "two"]});
    let turn = talk.call(turn, "demo__boolean_schema", call).await;
    let answer = turn.result();
    assert!(answer.text.contains("two") && !answer.is_error, "{answer:?}");
    let turn = talk.call(turn, "demo__echo", json!({"text": "hello"})).await;
    assert!(turn.result().text.contains("hello"), "{:?}", turn.results);
    talk.finish(turn).await;
}

agents! { malformed_tools_among_fifty_cost_no_other }
