//! Session-era clients in dynamic mode: toolsets are enabled, disabled and enabled again, each change is notified once,
//! and sessions do not affect each other.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::board::{ALL, META, META_NAMES, QUOTES, market};
use crate::hearing::CHANGED;
use crate::peer::{Era, Peer};

const DYNAMIC: &str = "exposure: dynamic";

/// "Can you get the latest stock quote for AAPL?"
#[tokio::test]
async fn the_workflow_of_the_seed_step_by_step() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    // 1: the server says that its list changes, and lists only the meta-tools.
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = client.ask("initialize", hello).await;
    assert_eq!(hello["result"]["capabilities"]["tools"]["listChanged"], true);
    let hearing = client.hear().await;
    // 2: the model sees no tool for quotes, but one that enables them.
    let first = client.list().await;
    assert_eq!(first, META_NAMES);
    let listed = client.ask("tools/list", json!({})).await;
    let enable = &listed["result"]["tools"][0];
    let sets = enable["inputSchema"]["properties"]["toolsetName"]["enum"].as_array().unwrap();
    assert!(
        sets.contains(&json!("quotes")) && sets.len() == 25,
        "24 sets and the server: {sets:?}"
    );
    assert!(enable["description"].as_str().unwrap().contains("- quotes: "));
    // 3 and 4: it enables them.
    let enabled = client.enable("quotes").await;
    assert_eq!(enabled["success"], true);
    let message = enabled["message"].as_str().unwrap();
    assert!(message.starts_with("Toolset 'quotes' is enabled; it has 16 tools. "), "{message}");
    assert!(message.contains("call_tool runs them at once"), "{message}");
    assert_eq!(enabled["tools"].as_array().unwrap().len(), QUOTES);
    // 5: one notification, not one for each tool.
    hearing.settles(1).await;
    // 6: the list has the new tools after the old ones.
    let second = client.list().await;
    assert_eq!(second.len(), META + QUOTES);
    assert_eq!(second[..META], first);
    assert!(second.contains(&"getQuote".to_owned()));
    // 7: the quote.
    let quote = client.done("getQuote", json!({"symbol": "AAPL"})).await;
    assert_eq!(serde_json::from_str::<Value>(&quote).unwrap(), json!({"symbol": "AAPL"}));
    assert_eq!(board.server.stats().calls.last().unwrap().tool, "getQuote");
}

#[tokio::test]
async fn disabling_removes_and_enabling_again_works() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let hearing = client.hear().await;
    let mut told = 0;
    for _ in 0..3 {
        client.enable("quotes").await;
        assert_eq!(client.list().await.len(), META + QUOTES);
        client.done("getQuote", json!({"symbol": "A"})).await;
        let disabled = client.disable("quotes").await;
        assert_eq!(disabled["message"], "Toolset 'quotes' is disabled; 16 tools are gone.");
        assert_eq!(client.list().await, META_NAMES);
        let calls = board.server.stats().total_calls();
        let refused = client.refused("getQuote", json!({"symbol": "A"})).await;
        assert_eq!(
            refused,
            "tool 'getQuote' is in the toolsets quotes, market, none of which is enabled in this session: call \
             enable_toolset with {\"toolsetName\":\"quotes\"} first, or use call_tool"
        );
        assert_eq!(board.server.stats().total_calls(), calls, "it did not run");
        told += 2;
    }
    hearing.settles(told).await;
    // Refused switches are no changes.
    let told_of = client.refused("disable_toolset", json!({"toolsetName": "quotes"})).await;
    assert_eq!(told_of, "toolset 'quotes' is not enabled; enabled: none");
    client.enable("bulk").await;
    let told_of = client.refused("enable_toolset", json!({"toolsetName": "bulk"})).await;
    assert_eq!(told_of, "toolset 'bulk' is already enabled");
    hearing.settles(told + 1).await;
}

#[tokio::test]
async fn sets_that_share_tools_are_counted() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let hearing = client.hear().await;
    client.enable("calendar").await;
    assert_eq!(client.list().await.len(), META + 13);
    let twin = client.enable("earnings").await;
    assert_eq!(twin["tools"].as_array().unwrap().len(), 13);
    let kept = client.disable("calendar").await;
    assert_eq!(
        kept["message"],
        "Toolset 'calendar' is disabled; 0 tools are gone. 13 stay, because other enabled toolsets have them."
    );
    assert_eq!(client.list().await.len(), META + 13);
    client.done("getDividends", json!({"symbol": "A"})).await;
    client.disable("earnings").await;
    assert_eq!(client.list().await, META_NAMES);
    // Only the first and the last of the four changed what is listed.
    hearing.settles(2).await;
    client.enable("market").await;
    assert_eq!(client.list().await.len(), META + ALL);
}

#[tokio::test]
async fn every_set_can_be_enabled_at_once_up_to_the_limit() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    for (set, tools) in switchboard_test_support::market_sets() {
        assert_eq!(client.enable(set).await["tools"].as_array().unwrap().len(), tools.len());
    }
    assert_eq!(client.list().await.len(), META + ALL);
    let told = client.done("list_toolsets", json!({})).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    let active = told["toolsets"].as_array().unwrap().iter().filter(|set| set["active"] == true);
    assert_eq!(active.count(), 24);
    drop(serve);

    let board = market("exposure: dynamic, max_active_toolsets: 2, deny_toolsets: [dcf]").await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    client.enable("esg").await;
    client.enable("quotes").await;
    let told = client.refused("enable_toolset", json!({"toolsetName": "bulk"})).await;
    assert!(
        told.contains("at most 2 may be active (max_active_toolsets), and esg, quotes are"),
        "{told}"
    );
    client.disable("esg").await;
    client.enable("bulk").await;
    // What policy hides is reached in no way.
    for (tool, arguments) in [
        ("enable_toolset", json!({"name": "dcf"})),
        ("describe_toolset", json!({"name": "dcf"})),
        ("describe_tool", json!({"name": "getDCFValuation"})),
        ("call_tool", json!({"name": "getDCFValuation", "arguments": {"symbol": "A"}})),
        ("call_tool", json!({"name": "market.getDCFValuation", "arguments": {"symbol": "A"}})),
    ] {
        let told = client.refused(tool, arguments).await;
        assert!(told.starts_with("there is no tool"), "{told}");
    }
    let found = client.done("search_tools", json!({"query": "getDCFValuation", "limit": 50})).await;
    assert!(
        !found.contains("\"getDCFValuation\"") && found.contains("DCFValuationsBulk"),
        "{found}"
    );
    let direct = client.refused("getDCFValuation", json!({})).await;
    assert!(direct.starts_with("there is no tool 'getDCFValuation' here"), "{direct}");
    assert_eq!(board.server.stats().total_calls(), 0);
}

#[tokio::test]
async fn search_describe_and_call_reach_what_is_switched_off() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let found = client.done("search_tools", json!({"query": "batch quotes", "limit": 3})).await;
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["matches"][0]["name"], "getBatchQuotes", "{found}");
    assert_eq!(found["matches"][0]["toolsets"], json!(["quotes", "market"]));
    let told = client.done("describe_tool", json!({"name": "getBatchQuotes"})).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["inputSchema"]["required"], json!(["symbols"]));
    let arguments = json!({"name": "getBatchQuotes", "arguments": {"symbols": "A,B"}});
    assert_eq!(client.done("call_tool", arguments).await, r#"{"symbols":"A,B"}"#);
    assert_eq!(client.list().await, META_NAMES, "the list did not change");
    let told = client.done("describe_toolset", json!({"toolset": "esg"})).await;
    assert!(told.contains("\"getESGRatings\"") && told.contains("\"active\":false"), "{told}");
}

#[tokio::test]
async fn two_clients_of_one_name_never_meet() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let one = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let other = Peer::open(Era::Legacy, &serve, "/mcp").await;
    assert_ne!(one.session, other.session);
    let (hears_one, hears_other) = (one.hear().await, other.hear().await);
    one.enable("quotes").await;
    other.enable("esg").await;
    other.enable("dcf").await;
    hears_one.settles(1).await;
    assert_eq!(hears_other.changes(), 2);
    assert_eq!((one.list().await.len(), other.list().await.len()), (META + QUOTES, META + 3 + 4));
    one.done("getQuote", json!({"symbol": "A"})).await;
    other.refused("getQuote", json!({"symbol": "A"})).await;
    assert_eq!(one.delete().await, 204);
    assert_eq!(one.status().await, 404);
    assert_eq!(other.list().await.len(), META + 3 + 4);
}

#[tokio::test]
async fn many_clients_switch_at_once() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let sets = switchboard_test_support::market_sets();
    let switching = sets.iter().map(|(set, tools)| {
        let serve = &serve;
        async move {
            let client = Peer::open(Era::Legacy, serve, "/mcp").await;
            let hearing = client.hear().await;
            client.enable(set).await;
            assert_eq!(client.list().await.len(), META + tools.len(), "{set}");
            hearing.settles(1).await;
        }
    });
    futures::future::join_all(switching).await;
    // One client that asks for everything at the same time loses nothing either.
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    futures::future::join_all(sets.iter().map(|(set, _)| client.enable(set))).await;
    assert_eq!(client.list().await.len(), META + ALL);
}

#[tokio::test]
async fn without_a_stream_the_change_comes_with_the_answer() {
    let board = market(DYNAMIC).await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let enable = |set: &str| json!({"name": "enable_toolset", "arguments": {"toolsetName": set}});
    let came = client.exchange("tools/call", enable("quotes")).await;
    assert_eq!(came.len(), 2, "{came:#?}");
    assert_eq!(came[0], json!({"jsonrpc": "2.0", "method": CHANGED}));
    assert_ne!(came[1]["result"]["isError"], true);
    // It has been told: a stream that opens later has nothing new, and then takes over.
    let hearing = client.hear().await;
    hearing.settles(0).await;
    let came = client.exchange("tools/call", enable("esg")).await;
    assert_eq!(came.len(), 1, "{came:#?}");
    hearing.settles(1).await;
}
