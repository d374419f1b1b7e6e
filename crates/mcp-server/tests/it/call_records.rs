//! Records of calls that reach no tool, and of their clients.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{CallRecord, Caller, CanonicalName, Face};
use switchboard_sessions::{Change, SessionCall, SessionReply};
use switchboard_store::CallFilter;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{PATIENCE, World};

const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The newest records first.
async fn records(world: &World) -> Vec<CallRecord> {
    world.board.flush_records().await;
    world.board.store().recent_calls(&CallFilter::newest(100)).await.unwrap()
}

/// The names in a record: the requested name, the tool it led to, and the outcome.
fn named(record: &CallRecord) -> (&str, Option<&str>, &str) {
    let tool = record.tool.as_ref().map(CanonicalName::as_str);
    (&record.requested, tool, record.outcome.as_str())
}

#[tokio::test]
async fn every_call_that_a_client_asks_for_leaves_a_record() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let vault = ScriptedServer::builder().tools([Tool::new("open")]).start().await;
    let config = "{exposure: dynamic, deny_toolsets: [vault]}";
    let world = World::with(&[("shop", &shop), ("vault", &vault)], config).await;
    let session = world.open(json!({})).await;
    let enabling = json!({"name": "enable_toolset", "arguments": {"toolsetName": "shop"}});
    session.ask("tools/call", enabling).await.result().await;
    let long = "x".repeat(1000);
    let rows = [
        ("shop__old", Some("shop.old"), "ok"),
        ("shop__nope", None, "unknown_tool"),
        // A hidden tool is recorded like one that does not exist.
        ("vault__open", None, "unknown_tool"),
        ("no\u{1b}[31m such", None, "unknown_tool"),
        (&long, None, "unknown_tool"),
    ];
    for (name, tool, outcome) in rows {
        let call = json!({"name": name, "arguments": {"key": "s3cret"}});
        session.ask("tools/call", call.clone()).await.result().await;
        let expected = name.replace('\u{1b}', "\\u{1b}").chars().take(256).collect::<String>();
        let record = records(&world).await.swap_remove(0);
        assert_eq!(named(&record), (expected.as_str(), tool, outcome));
        assert_eq!(record.session.as_deref().map(|id| id.starts_with("mcp-")), Some(true));

        let by_name = json!({"name": "call_tool", "arguments": call});
        session.ask("tools/call", by_name).await.result().await;
        let record = records(&world).await.swap_remove(0);
        assert_eq!(named(&record), (expected.as_str(), tool, outcome), "through call_tool");
        assert!(!format!("{record:?}").contains("s3cret"), "{record:?}");
    }
    let call = json!({"name": "shop__nope", "arguments": {}});
    let meta = json!({CLIENT_INFO: {"name": "stateless", "version": "1"}});
    world.modern("tools/call", call, meta).await.result().await;
    let records = records(&world).await;
    assert_eq!(records.len(), 2 * rows.len() + 1);
    assert_eq!(
        (records[0].face, records[0].caller.client.as_deref()),
        (Face::Mcp, Some("stateless"))
    );
    assert_eq!(records[0].message.as_deref(), Some("there is no tool 'shop__nope' here"));
}

#[tokio::test]
async fn a_call_in_a_session_that_is_refused_leaves_a_record() {
    let shop = ScriptedServer::builder().tools([Tool::new("old"), Tool::new("off")]).start().await;
    let world = World::of(&[("shop", &shop)]).await;
    let change = Change { tools: [("shop.off".into(), Some(false))].into(), ..Change::default() };
    let session =
        world.sessions.new_session(Some("work"), "local", change, PATIENCE).await.unwrap();
    let rows = [
        ("old", Some("shop.old"), "ok"),
        ("shop.nope", None, "unknown_tool"),
        ("shop.off", Some("shop.off"), "unknown_tool"),
    ];
    for (name, tool, outcome) in rows {
        let (arguments, caller) = (Value::Null, Caller::local(Face::Http));
        let tool_name = name.to_owned();
        let call = SessionCall {
            tool: tool_name,
            arguments,
            caller,
            progress: None,
            seen: None,
            scope: None,
            conversation: None,
        };
        let id = match world.sessions.call_in(&session, call).await {
            SessionReply::Called(_, report) => report.id,
            SessionReply::Refused(_, id) => id,
            SessionReply::Meta(..) => panic!("{name} is no meta-tool"),
        };
        let record = records(&world).await.swap_remove(0);
        assert_eq!(named(&record), (name, tool, outcome));
        assert_eq!((record.id, record.session.as_deref()), (id, Some("work")));
    }
}

#[tokio::test]
async fn a_session_shows_the_stateless_client_that_was_seen_last() {
    let shop = ScriptedServer::builder().tools([Tool::new("old")]).start().await;
    let world = World::of(&[("shop", &shop)]).await;
    let work = world.sessions.new_session(Some("work"), "local", Change::default(), PATIENCE);
    let work = work.await.unwrap();
    let endpoint = world.in_session("work");
    let shown = async |owner: Option<&str>| {
        let clients = world.sessions.session_clients(owner).await.unwrap();
        let clients = clients.get("work").into_iter().flatten();
        let words = clients.map(|client| {
            let name = client.info.name.as_deref().unwrap_or("-");
            let version = client.info.version.as_deref().unwrap_or("-");
            format!("{name} {version} {}", client.protocol_version)
        });
        words.collect::<Vec<_>>()
    };
    assert_eq!(shown(None).await, Vec::<String>::new());
    for (info, expected) in [
        (json!({"name": "one", "version": "1.0"}), "one 1.0 2026-07-28"),
        (json!({"name": "two", "version": "2.0"}), "two 2.0 2026-07-28"),
        (json!({"name": "two", "version": "2.0"}), "two 2.0 2026-07-28"),
    ] {
        endpoint.modern("tools/list", json!({}), json!({CLIENT_INFO: info})).await.result().await;
        assert_eq!(shown(None).await, [expected]);
        assert_eq!(shown(Some("local")).await, [expected]);
        assert_eq!(shown(Some("somebody else")).await, Vec::<String>::new());
    }
    world.sessions.end_session(&work).await.unwrap();
    assert_eq!(shown(None).await, Vec::<String>::new());
}
