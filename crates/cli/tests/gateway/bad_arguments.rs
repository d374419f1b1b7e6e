//! Invalid arguments of a meta-tool cause a clear error for the model, and the server keeps working.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::board::{META_NAMES, market};
use crate::peer::{BOTH, Peer};

#[tokio::test]
async fn bad_arguments_are_answered_and_change_nothing() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    for era in BOTH {
        let client = Peer::open(era, &serve, "/mcp").await;
        for tool in ["enable_toolset", "disable_toolset", "describe_toolset"] {
            for (arguments, told) in [
                (json!({}), "say which toolset in `toolsetName`; there are: search, company, "),
                (Value::Null, "say which toolset in `toolsetName`; there are: "),
                (json!({"toolsetName": ""}), "say which toolset in `toolsetName`; there are: "),
                (json!({"toolsetName": "  "}), "say which toolset in `toolsetName`; there are: "),
                (json!({"toolsetName": null}), "say which toolset in `toolsetName`; there are: "),
                (json!({"toolsetName": 7}), "say which toolset in `toolsetName`; there are: "),
                (json!({"toolsetName": ["quotes"]}), "say which toolset in `toolsetName`; "),
                (json!({"set": "quotes"}), "say which toolset in `toolsetName`; there are: "),
                (json!({"name": "nope"}), "there is no toolset 'nope' here; there are: search, "),
                (json!({"toolset": "QUOTES"}), "there is no toolset 'QUOTES' here; there are: "),
                (json!({"toolsetName": "quotes\u{0}"}), "there is no toolset 'quotes\u{0}' here; "),
                (json!(["quotes"]), "must be a JSON object"),
                (json!("quotes"), "must be a JSON object"),
            ] {
                let said = client.refused(tool, arguments.clone()).await;
                assert!(said.contains(told), "{era:?} {tool} {arguments}: {said}");
            }
        }
        for (tool, arguments, told) in [
            ("search_tools", json!({}), "say in `query` what the tool should do"),
            ("search_tools", json!({"query": "x", "limit": 0}), "`limit` must be a whole number"),
            ("describe_tool", json!({}), "say which tool in `name`"),
            ("describe_tool", json!({"name": "getQuot"}), "did you mean getQuote"),
            ("call_tool", json!({}), "say which tool in `name`"),
            ("call_tool", json!({"name": 1}), "say which tool in `name`"),
            ("call_tool", json!({"name": "nothing"}), "there is no tool 'nothing' here"),
            ("call_tool", json!({"name": "call_tool"}), "there is no tool 'call_tool' here"),
        ] {
            let said = client.refused(tool, arguments.clone()).await;
            assert!(said.contains(told), "{era:?} {tool} {arguments}: {said}");
        }
        assert_eq!(client.list().await, META_NAMES);
    }
    assert_eq!(board.server.stats().total_calls(), 0);
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_tool_do_not_reach_it() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    for era in BOTH {
        let client = Peer::open(era, &serve, "/mcp").await;
        for arguments in
            [json!({}), json!({"symbol": 1}), json!({"symbol": "A", "more": 1}), json!([])]
        {
            let call = json!({"name": "getQuote", "arguments": arguments});
            let said = client.refused("call_tool", call).await;
            assert!(!said.is_empty(), "{era:?} {arguments}");
        }
    }
    assert_eq!(board.server.stats().total_calls(), 0);
}

#[tokio::test]
async fn each_name_of_the_argument_is_taken_and_more_is_ignored() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    for era in BOTH {
        for key in ["toolsetName", "name", "toolset"] {
            let client = Peer::open(era, &serve, "/mcp").await;
            let arguments = json!({ key: " quotes ", "reason": "because" });
            let told = client.done("enable_toolset", arguments).await;
            assert!(told.contains("getQuote"), "{era:?} {key}: {told}");
        }
    }
}
