//! Toolsets for clients of 2026-07-28, where no state belongs to a connection.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::board::{META, META_NAMES, QUOTES, market};
use crate::hearing::CHANGED;
use crate::peer::{BOTH, Era, Peer, new_session};

#[tokio::test]
async fn without_a_session_the_list_is_constant_and_tools_are_called_by_name() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let client = Peer::open(Era::Modern, &serve, "/mcp").await;
    let hearing = client.hear().await;
    let before = client.ask("tools/list", json!({})).await["result"].clone();
    assert_eq!((&before["ttlMs"], &before["cacheScope"]), (&json!(0), &json!("private")));
    let enabled = client.enable("quotes").await;
    assert_eq!(
        enabled["message"],
        "Toolsets cannot be enabled or disabled without a session: run these tools with call_tool."
    );
    let definitions = enabled["tools"].as_array().unwrap();
    assert_eq!(definitions.len(), QUOTES);
    assert_eq!(definitions[0]["name"], "getQuote");
    assert_eq!(definitions[0]["inputSchema"]["required"], json!(["symbol"]));
    let call = json!({"name": "getQuote", "arguments": {"symbol": "AAPL"}});
    assert_eq!(client.done("call_tool", call).await, r#"{"symbol":"AAPL"}"#);
    let refused = client.refused("getQuote", json!({"symbol": "AAPL"})).await;
    assert!(refused.ends_with("run it with call_tool"), "{refused}");
    assert_eq!(client.ask("tools/list", json!({})).await["result"], before);
    hearing.settles(0).await;
}

#[tokio::test]
async fn a_session_endpoint_keeps_what_is_enabled() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let (one, other) = (new_session(&serve, "one").await, new_session(&serve, "other").await);
    assert_eq!(one, "/mcp/sessions/one");
    let client = Peer::open(Era::Modern, &serve, &one).await;
    let companion = Peer::open(Era::Modern, &serve, &one).await;
    let stranger = Peer::open(Era::Modern, &serve, &other).await;
    let nobody = Peer::open(Era::Modern, &serve, "/mcp").await;
    let hears = client.hear().await;
    let companion_hears = companion.hear().await;
    let (stranger_hears, nobody_hears) = (stranger.hear().await, nobody.hear().await);
    let enabled = client.enable("quotes").await;
    let message = enabled["message"].as_str().unwrap();
    assert!(message.starts_with("Toolset 'quotes' is enabled; it has 16 tools. "), "{message}");
    assert!(message.contains("call_tool runs them at once"), "{message}");
    assert_eq!(enabled["tools"][0]["name"], "getQuote", "with definitions: {enabled}");
    hears.settles(1).await;
    let told = hears.message(|message| message["method"] == CHANGED).await;
    assert!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].is_number());
    assert_eq!(companion_hears.changes(), 1);
    assert_eq!((stranger_hears.changes(), nobody_hears.changes()), (0, 0));
    for client in [&client, &companion] {
        assert_eq!(client.list().await.len(), META + QUOTES);
        client.done("getQuote", json!({"symbol": "A"})).await;
    }
    assert_eq!(
        (stranger.list().await, nobody.list().await),
        (META_NAMES.map(String::from).to_vec(), META_NAMES.map(String::from).to_vec())
    );
    client.disable("quotes").await;
    hears.settles(2).await;
    assert_eq!(client.list().await, META_NAMES);
    let refused = client.refused("getQuote", json!({"symbol": "A"})).await;
    assert!(refused.contains("{\"toolsetName\":\"quotes\"}"), "{refused}");
    client.enable("quotes").await;
    assert_eq!(companion.list().await.len(), META + QUOTES);
}

#[tokio::test]
async fn both_eras_share_a_session_endpoint() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let path = new_session(&serve, "shared").await;
    let modern = Peer::open(Era::Modern, &serve, &path).await;
    let legacy = Peer::open(Era::Legacy, &serve, &path).await;
    let (modern_hears, legacy_hears) = (modern.hear().await, legacy.hear().await);
    modern.enable("quotes").await;
    legacy.enable("esg").await;
    modern_hears.settles(2).await;
    assert_eq!(legacy_hears.changes(), 2);
    assert_eq!(modern.list().await, legacy.list().await);
    assert_eq!(legacy.list().await.len(), META + QUOTES + 3);
    // The endpoint outlives its clients, and an end is an end.
    assert_eq!(legacy.delete().await, 204);
    assert_eq!(modern.list().await.len(), META + QUOTES + 3);
    let ended = serve.http.delete(serve.at("/api/v1/sessions/shared")).send().await.unwrap();
    assert_eq!(ended.status(), 204);
    assert_eq!(modern.status().await, 404);
    for era in BOTH {
        assert_eq!(Peer::try_open(era, &serve, &path, &[]).await.unwrap_err().0, 404);
    }
}

#[tokio::test]
async fn a_credential_can_have_the_state_where_that_is_configured() {
    let board = market("exposure: dynamic, stateless_state: principal").await;
    let mut serve = board.home.serve().await;
    let mut client = Peer::open(Era::Modern, &serve, "/mcp").await;
    let companion = Peer::open(Era::Modern, &serve, "/mcp").await;
    let legacy = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let (hears, legacy_hears) = (companion.hear().await, legacy.hear().await);
    client.enable("quotes").await;
    hears.settles(1).await;
    assert_eq!(companion.list().await.len(), META + QUOTES);
    companion.done("getQuote", json!({"symbol": "A"})).await;
    // Legacy clients have sessions, and keep to them.
    assert_eq!((legacy_hears.changes(), legacy.list().await.len()), (0, META));
    drop((hears, legacy_hears));
    serve.signal("TERM");
    serve.ended().await;
    let serve = board.home.serve().await;
    client.moved_to(&serve);
    assert_eq!(client.list().await.len(), META + QUOTES);
    client.disable("quotes").await;
    assert_eq!(client.list().await, META_NAMES);
}

#[tokio::test]
async fn what_a_session_endpoint_shows_is_told_over_the_api() {
    let board = market("exposure: dynamic").await;
    let serve = board.home.serve().await;
    let path = new_session(&serve, "told").await;
    Peer::open(Era::Modern, &serve, &path).await.enable("esg").await;
    let sessions: Value = serve.get("/api/v1/sessions").await;
    assert_eq!(sessions["sessions"][0]["enabled_toolsets"], json!(["esg"]), "{sessions}");
    let sets = serve.get("/api/v1/toolsets").await;
    assert_eq!(sets["exposure"], "dynamic");
    assert_eq!(sets["toolsets"].as_array().unwrap().len(), 25);
}
