//! A store that refuses writes: nothing is acknowledged or changed, and reads keep working.

use std::path::Path;

use pretty_assertions::assert_eq;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Executor};

use crate::board::two_servers;
use crate::chat::{Answer, Api, Chat};
use crate::peer::{Era, Peer};
use crate::restarts::everything;
use crate::support::Serve;

/// What keeps the store from writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Every write to a file of the program fails.
    Disk,
    /// Another process holds the lock of the database.
    Lock,
}

impl Fault {
    async fn begin(self, serve: &Serve, database: &Path) -> Option<SqliteConnection> {
        match self {
            Self::Disk => {
                serve.limit_files(Some(1));
                None
            }
            Self::Lock => {
                let options = SqliteConnectOptions::new().filename(database);
                let mut other = options.connect().await.unwrap();
                other.execute("BEGIN IMMEDIATE").await.unwrap();
                Some(other)
            }
        }
    }

    async fn end(self, serve: &Serve, lock: Option<SqliteConnection>) {
        serve.limit_files(None);
        if let Some(mut other) = lock {
            other.execute("ROLLBACK").await.unwrap();
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Disk => "the disk of its data directory reports errors",
            Self::Lock => "its database was locked for too long",
        }
    }
}

#[tokio::test]
async fn nothing_is_acknowledged_that_is_not_stored() {
    for fault in [Fault::Disk, Fault::Lock] {
        let board = two_servers("exposure: dynamic").await;
        let database = board.home.path().join("data/switchboard.db");
        let mut serve = board.home.serve_on_a_small_disk().await;
        let api = Api::of(&serve);
        let mut kept = api.new_chat(json!({"id": "kept", "provider": "demo"})).await;
        let doomed = api.new_chat(json!({"id": "doomed"})).await;
        let mut client = Peer::open(Era::Legacy, &serve, "/mcp").await;
        let leaving = Peer::open(Era::Legacy, &serve, "/mcp").await;
        client.enable("look").await;
        let before = (everything(&kept).await, client.list().await, api.sessions().await);

        let lock = fault.begin(&serve, &database).await;
        api_refuses(fault, &api, &kept, &doomed).await;
        let mut new = clients_are_refused(fault, &serve, &client, &leaving).await;
        // What reads goes on, and nothing has changed.
        let after = (everything(&kept).await, client.list().await, api.sessions().await);
        assert_eq!(after, before, "{fault:?}");
        client.done("shop__find", json!({"n": 1})).await;
        client.done("call_tool", json!({"name": "shop__order", "arguments": {"n": 1}})).await;
        assert_eq!(leaving.list().await.len(), 7, "{fault:?}: it has not left");
        let ready = serve.get("/readyz").await;
        assert_eq!(ready["status"], "degraded", "{fault:?}: {ready}");
        assert_eq!(ready["store"]["reason"], fault.reason(), "{ready}");
        assert!(serve.text("/metrics").await.contains("switchboard_store_up 0"));

        fault.end(&serve, lock).await;
        serve.until_status("ready").await;
        assert!(serve.text("/metrics").await.contains("switchboard_store_up 1"));
        assert_eq!(serve.stderr().matches("the store does not take writes").count(), 1);
        assert_eq!(serve.stderr().matches("the store takes writes again").count(), 1);
        api.new_chat(json!({"id": "new"})).await;
        kept.patch(json!({"title": "found"})).await;
        assert_eq!(doomed.delete("").await.status, 204);
        client.enable("buy").await;
        assert_eq!(leaving.delete().await, StatusCode::NO_CONTENT);

        // What was acknowledged is there after a crash, and nothing else.
        let listed = client.list().await;
        serve.signal("KILL");
        serve.ended().await;
        serve = board.home.serve().await;
        kept.moved_to(&serve);
        client.moved_to(&serve);
        new.moved_to(&serve);
        new.done("call_tool", json!({"name": "shop__find", "arguments": {"n": 1}})).await;
        assert_eq!(kept.view().await["title"], "found");
        let history = kept.get("/history").await;
        assert_eq!(history["messages"], json!([]), "{fault:?}");
        let ids: Vec<_> = Api::of(&serve).sessions().await;
        let mut ids: Vec<_> = ids.iter().filter_map(named).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["kept", "new"], "{fault:?}");
        assert_eq!(client.list().await, listed);
        client.done("shop__order", json!({"n": 2})).await;
    }
}

/// Every path of the API that writes says why it cannot.
async fn api_refuses(fault: Fault, api: &Api, kept: &Chat, doomed: &Chat) {
    let hello = json!({"role": "user", "content": [{"type": "text", "text": "hello"}]});
    let said = json!({"version": 1, "messages": [hello]});
    let turn = kept.path("/turns");
    let answers: [Answer; 6] = tokio::join!(
        api.send(Method::POST, "/sessions", Some(json!({"id": "new"}))),
        kept.try_patch(json!({"title": "lost", "toolsets": {"buy": true}})),
        kept.try_put("/toolsets/look", json!({"enabled": true})),
        doomed.delete(""),
        kept.try_put("/history", said),
        api.send(Method::POST, &turn, Some(json!({"message": "hello"}))),
    )
    .into();
    let words = ["create", "patch", "switch", "delete", "history", "turn"];
    for (what, answer) in words.into_iter().zip(answers) {
        // Of the two that write a conversation, one may find the other at work.
        if answer.status == StatusCode::CONFLICT {
            answer.refused(409, "turn_running");
            continue;
        }
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{what}: {:#}", answer.body);
        let told = answer.refused(503, "store_unavailable");
        // A change that waits for another one of its session says so; all the rest name the fault.
        let is_told = told.contains(fault.reason()) || told.contains("still being stored");
        assert!(is_told, "{fault:?}, {what}: {told}");
    }
}

/// Every method of MCP that writes says why it cannot; gives the client that came meanwhile.
async fn clients_are_refused(fault: Fault, serve: &Serve, client: &Peer, leaving: &Peer) -> Peer {
    let (new, enabled, left) = tokio::join!(
        Peer::try_open(Era::Legacy, serve, "/mcp", &[]),
        client.refused("enable_toolset", json!({"toolsetName": "buy"})),
        leaving.delete(),
    );
    // A client that comes now is served, but what it wants to be kept is refused.
    let new = new.unwrap();
    new.done("call_tool", json!({"name": "shop__order", "arguments": {"n": 1}})).await;
    let refused = new.refused("enable_toolset", json!({"toolsetName": "buy"})).await;
    assert!(refused.contains(fault.reason()), "{fault:?}: {refused}");
    assert!(enabled.contains(fault.reason()), "{fault:?}: {enabled}");
    assert_eq!(left, StatusCode::SERVICE_UNAVAILABLE, "{fault:?}");
    new
}

/// The id of a session that was created explicitly, not by an MCP client.
fn named(session: &Value) -> Option<&str> {
    session["id"].as_str().filter(|id| !id.starts_with("mcp-"))
}
