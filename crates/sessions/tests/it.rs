//! Sessions over an in-memory store: revisions, sharing, unloading and loading.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

#[path = "it/shared.rs"]
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pretty_assertions::assert_eq;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};
use switchboard_model::{
    CanonicalName, Exposure, ExposureMode, Plan, ServerName, ToolDescriptor, ToolsetPlan,
};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_render::Provider;
use switchboard_runtime::{PublishedSnapshot, Snapshot};
use switchboard_sessions::{Cause, Change, Session, SessionError, Sessions, recorded_session_ids};
use switchboard_store::{Store, StoredClient};

fn tool(name: &str) -> Arc<CatalogTool> {
    let (server, tool) = name.split_once('.').unwrap();
    let server = ServerName::new(server);
    let name = CanonicalName::new(&server, tool);
    Arc::new(CatalogTool::new(name, ToolDescriptor::named(tool)))
}

fn catalog(tools: &[&str]) -> Arc<Catalog> {
    Arc::new(Catalog::new(1, tools.iter().map(|name| tool(name)).collect()))
}

/// Publishes a snapshot with these tools.
fn show(sessions: &Sessions, tools: &[&str]) {
    sessions.published().replace_catalog(catalog(tools));
    sessions.refresh_all();
}

fn published_in(mode: ExposureMode, tools: &[&str]) -> PublishedSnapshot {
    let pair = ToolsetPlan {
        name: "pair".into(),
        description: "Two".into(),
        when_to_use: None,
        servers: Vec::new(),
        tools: vec!["crm.a".into(), "crm.b".into()],
    };
    let plan = Plan { toolsets: vec![pair], ..Plan::default() };
    let exposure = Exposure { mode, ..Exposure::default() };
    PublishedSnapshot::new(Snapshot::of_catalog(Arc::new(plan), exposure, catalog(tools)))
}

fn published(tools: &[&str]) -> PublishedSnapshot {
    published_in(ExposureMode::Legacy, tools)
}

async fn sessions(tools: &[&str]) -> Sessions {
    Sessions::new(Store::in_memory().await.unwrap(), published(tools))
}

async fn create(sessions: &Sessions, name: &str) -> Arc<Session> {
    sessions.create(Some(name), "me", 10_000, Change::default()).await.unwrap()
}

fn names(session: &Session) -> Vec<String> {
    let look = session.now().cached;
    look.view.tools().map(|entry| entry.name.as_deref().unwrap().to_owned()).collect()
}

fn toolset(set: &str, is_on: bool) -> Change {
    Change { toolsets: BTreeMap::from([(set.to_owned(), is_on)]), ..Change::default() }
}

fn one_tool(name: &str, is_on: Option<bool>) -> Change {
    Change { tools: BTreeMap::from([(name.to_owned(), is_on)]), ..Change::default() }
}

#[tokio::test]
async fn every_effective_change_is_one_step_and_no_other_is() {
    let sessions = sessions(&["crm.a", "crm.b", "crm.c"]).await;
    let session = create(&sessions, "s").await;
    let rows = [
        (toolset("pair", false), 2, "crm__c"),
        (toolset("pair", false), 2, "crm__c"),
        (one_tool("crm.a", Some(true)), 3, "crm__c crm__a"),
        (toolset("pair", true), 4, "crm__c crm__a crm__b"),
        (Change { title: Some(Some("T".into())), ..Change::default() }, 4, "crm__c crm__a crm__b"),
        (one_tool("crm__a", Some(false)), 5, "crm__c crm__b"),
        (one_tool("crm.a", None), 6, "crm__c crm__b crm__a"),
        (Change { servers: Some(Some(BTreeSet::new())), ..Change::default() }, 7, ""),
        (Change { servers: Some(None), ..Change::default() }, 8, "crm__a crm__b crm__c"),
    ];
    for (change, revision, shown) in rows {
        let what = format!("{change:?}");
        sessions.change(&session, None, change).await.unwrap();
        assert_eq!(
            (session.revision(), names(&session).join(" ").as_str()),
            (revision, shown),
            "{what}"
        );
    }
    show(&sessions, &["crm.b", "crm.a", "crm.c"]);
    assert_eq!(session.revision(), 8, "another order of the catalog is no change");
    show(&sessions, &["crm.x", "crm.b", "crm.a", "crm.c"]);
    assert_eq!((session.revision(), names(&session).last().unwrap().as_str()), (9, "crm__x"));
    let steps = session.steps_after(7).unwrap();
    let told: Vec<_> = steps.iter().map(|step| (step.revision, step.cause)).collect();
    assert_eq!(told, [(8, Cause::Session), (9, Cause::Catalog)]);
    assert_eq!(steps[1].difference.added, ["crm__x".into()]);
    assert!(session.steps_after(9).unwrap().is_empty());
    assert!(session.steps_after(10).is_none(), "nobody has seen the future");
}

#[tokio::test]
async fn a_change_that_cannot_be_leaves_everything_as_it_was() {
    let sessions = sessions(&["crm.a", "crm.b"]).await;
    let session = create(&sessions, "s").await;
    let unknown_server = Some(Some(BTreeSet::from(["mail".to_owned()])));
    let rows = [
        (
            toolset("quotes", true),
            "/toolsets/quotes",
            "there is no toolset 'quotes' here; there are: pair",
        ),
        (
            one_tool("crm.aa", Some(true)),
            "/tools/crm.aa",
            "there is no tool 'crm.aa' here; did you mean crm__a?",
        ),
        (
            Change { servers: unknown_server, ..Change::default() },
            "/servers",
            "there is no MCP server 'mail' here; none is configured",
        ),
        (
            Change {
                allow: BTreeMap::from([("openia".into(), Some(vec![]))]),
                ..Change::default()
            },
            "/allow/openia",
            "there is no provider `openia`; known are mcp, openai, openai-chat, anthropic, gemini, \
             gemini-parameters, langchain, semantic-kernel, react",
        ),
        (
            Change { title: Some(Some("x".repeat(513))), ..Change::default() },
            "/title",
            "the title is longer than 512 characters",
        ),
    ];
    for (mut change, path, reason) in rows {
        // The rest of the change is not applied either.
        change.toolsets.insert("pair".into(), false);
        let refused = sessions.change(&session, None, change).await.unwrap_err();
        let expected = SessionError::Invalid { path: path.into(), reason: reason.into() };
        assert_eq!(refused, expected);
        assert_eq!((session.revision(), names(&session).len()), (1, 2), "{reason}");
    }
    let stale = sessions.change(&session, Some(2), toolset("pair", false)).await.unwrap_err();
    assert_eq!(stale, SessionError::Stale { expected: 2, current: 1 });
    sessions.change(&session, Some(1), toolset("pair", false)).await.unwrap();
    assert_eq!(session.revision(), 2);
}

#[tokio::test]
async fn who_sees_the_same_shares_it_and_everything_made_of_it() {
    let sessions = sessions(&["crm.a", "crm.b"]).await;
    let (one, other) = (create(&sessions, "one").await, create(&sessions, "other").await);
    let together =
        |one: &Session, other: &Session| Arc::ptr_eq(&one.now().cached, &other.now().cached);
    assert!(together(&one, &other));
    for provider in Provider::ALL {
        let (mine, theirs) =
            (one.now().cached.rendering(provider), other.now().cached.rendering(provider));
        assert!(Arc::ptr_eq(&mine, &theirs), "{provider}");
        assert_eq!(mine.json().as_ptr(), theirs.json().as_ptr(), "{provider}");
    }
    sessions.change(&one, None, toolset("pair", false)).await.unwrap();
    assert!(!together(&one, &other));
    sessions.change(&other, None, toolset("pair", false)).await.unwrap();
    assert!(together(&one, &other));
    show(&sessions, &["crm.c", "crm.a", "crm.b"]);
    assert!(together(&one, &other));
    assert_eq!(names(&one), ["crm__c"]);
}

#[tokio::test]
async fn a_session_sleeps_in_the_store_and_wakes_as_it_was() {
    let sessions = sessions(&["crm.a", "crm.b"]).await;
    let session = create(&sessions, "s").await;
    sessions.change(&session, None, toolset("pair", false)).await.unwrap();
    show(&sessions, &["crm.c", "crm.a", "crm.b"]);
    sessions.change(&session, None, toolset("pair", true)).await.unwrap();
    let before = (session.revision(), names(&session), session.now().draft);
    assert_eq!(before.1, ["crm__c", "crm__a", "crm__b"]);
    sessions.writes.flush().await;

    let asleep = async |session: Arc<Session>, sessions: &Sessions| {
        sessions.writes.flush().await;
        drop(session);
        sessions.let_go(i64::MAX);
        sessions.find("s").await.unwrap().unwrap()
    };
    drop(session);
    sessions.let_go(0);
    let session = sessions.find("s").await.unwrap().unwrap();
    assert!(session.view_at(1).is_some(), "what has changed a moment ago can still be asked for");
    let woken = asleep(session, &sessions).await;
    assert!(woken.view_at(1).is_none(), "later only the result is known");
    assert_eq!((woken.revision(), names(&woken), woken.now().draft), before);

    // All changes while the session was not in memory count as one step.
    sessions.writes.flush().await;
    drop(woken);
    sessions.let_go(i64::MAX);
    show(&sessions, &["crm.x", "crm.a", "crm.b"]);
    show(&sessions, &["crm.x", "crm.y", "crm.a", "crm.b"]);
    let woken = sessions.find("s").await.unwrap().unwrap();
    assert_eq!(woken.revision(), before.0 + 1);
    assert_eq!(names(&woken), ["crm__a", "crm__b", "crm__x", "crm__y"]);
    let woken = asleep(woken, &sessions).await;
    assert_eq!(woken.revision(), before.0 + 1, "and it is told once");
    assert!(sessions.find("t").await.unwrap().is_none());
}

#[tokio::test]
async fn a_follower_hears_of_every_step() {
    let sessions = sessions(&["crm.a", "crm.b"]).await;
    let session = create(&sessions, "s").await;
    let mut news = session.follow();
    assert_eq!(*news.borrow_and_update(), 1);
    sessions.change(&session, None, toolset("pair", false)).await.unwrap();
    assert!(news.has_changed().unwrap());
    assert_eq!(*news.borrow_and_update(), 2);
    sessions.change(&session, None, toolset("pair", false)).await.unwrap();
    assert!(!news.has_changed().unwrap());
    let before = session.view_at(1).unwrap();
    assert_eq!(before.view.tools().count(), 2);
    for step in 0..100 {
        sessions.change(&session, None, toolset("pair", step % 2 == 0)).await.unwrap();
    }
    assert!(session.view_at(1).is_none(), "old tools are not kept for ever");
    assert!(session.steps_after(1).is_none());
    assert_eq!(session.steps_after(session.revision() - 1).unwrap().len(), 1);
    assert!(session.view_at(session.revision() - 1).is_some());
}

#[tokio::test]
async fn changes_at_the_same_time_never_undo_each_other() {
    let tools: Vec<String> = (0..64).map(|n| format!("crm.t{n}")).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let sessions = Arc::new(sessions(&tools).await);
    let session = create(&sessions, "s").await;
    let part = async |part: usize| {
        for name in tools.iter().skip(part).step_by(4) {
            sessions.change(&session, None, one_tool(name, Some(false))).await.unwrap();
        }
    };
    tokio::join!(part(0), part(1), part(2), part(3));
    assert_eq!((session.revision(), names(&session).len()), (65, 0));
}

#[tokio::test]
async fn names_are_taken_once_and_room_is_bounded() {
    let sessions = sessions(&["crm.a"]).await;
    create(&sessions, "s").await;
    let again = async |name: &str, limit: usize| {
        sessions.create(Some(name), "me", limit, Change::default()).await.map(drop).unwrap_err()
    };
    assert_eq!(again("s", 9).await, SessionError::Taken("s".into()));
    assert_eq!(again("t", 1).await, SessionError::TooMany);
    for bad in ["", "a b", "mcp-x", "é", &"x".repeat(300)] {
        assert_eq!(again(bad, 9).await, SessionError::BadName(bad.into()));
    }
    let unnamed = sessions.create(None, "me", 9, Change::default()).await.unwrap();
    assert!(unnamed.id.len() >= 20);
    assert_eq!(sessions.list(Some("me")).await.unwrap().len(), 2);
    assert_eq!(sessions.list(Some("you")).await.unwrap(), []);
    assert!(matches!(sessions.of("s", Some("you")).await, Err(SessionError::Unknown(_))));
    let session = sessions.of("s", None).await.unwrap();
    sessions.end(&session, Vec::new()).await.unwrap();
    let late = sessions.change(&session, None, Change::default()).await;
    assert_eq!(late, Err(SessionError::Unknown("s".into())), "who still holds it changes nothing");
    assert!(sessions.find("s").await.unwrap().is_none());
}

#[tokio::test]
async fn the_session_of_a_client_does_not_give_its_id_away() {
    let store = Store::in_memory().await.unwrap();
    let published = published_in(ExposureMode::Dynamic, &["crm.a"]);
    let sessions = Sessions::new(store, published);
    let session = sessions.for_client("very-secret", "me", Arc::default());
    assert!(session.id.starts_with("mcp-") && !session.id.contains("secret"), "{}", session.id);
    assert_eq!(sessions.list(None).await.unwrap(), [], "nobody finds it before it is stored");
    let client = StoredClient {
        id: "very-secret".into(),
        kind: "client".into(),
        owner: "me".into(),
        session: Some(session.id.to_string()),
        state: "{}".into(),
        created_at_ms: 1,
        last_seen_at_ms: 1,
    };
    sessions.admit_client(client, &session).await.unwrap();
    let listed = sessions.list(None).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), [&*session.id]);
}

#[tokio::test]
async fn records_of_a_session_are_found_by_the_id_of_its_client() {
    let sessions = sessions(&["crm.a"]).await;
    let shared = sessions.create(Some("work"), "me", 9, Change::default()).await.unwrap();
    let own = sessions.for_client("own-secret", "me", Arc::default());
    for (client, session) in [("own-secret", &own), ("shared-secret", &shared)] {
        let stored = StoredClient {
            id: client.into(),
            kind: "client".into(),
            owner: "me".into(),
            session: Some(session.id.to_string()),
            state: "{}".into(),
            created_at_ms: 1,
            last_seen_at_ms: 1,
        };
        sessions.admit_client(stored, session).await.unwrap();
    }
    // A deleted client is found as long as there are records of it.
    sessions.writes.delete_client("own-secret", &own).await.unwrap();
    for (named, session) in
        [("own-secret", &own), ("shared-secret", &shared), ("work", &shared), (&*own.id, &own)]
    {
        let ids = recorded_session_ids(&sessions.writes.store, named).await.unwrap();
        assert!(ids.iter().any(|id| **id == *session.id), "{named}: {ids:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    let sessions = Sessions::new(store.clone(), published(&["crm.a", "crm.b"]));
    let (changed, ended) = (create(&sessions, "changed").await, create(&sessions, "ended").await);
    let follower = changed.follow();
    let before = changed.now();
    let mut other = SqliteConnectOptions::new()
        .filename(directory.path().join("switchboard.db"))
        .connect()
        .await
        .unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();

    let (made, change, end) = tokio::join!(
        sessions.create(Some("made"), "me", 10, Change::default()),
        sessions.change(&changed, None, toolset("pair", false)),
        sessions.end(&ended, Vec::new()),
    );
    for refused in [made.map(drop), change, end] {
        let Err(SessionError::Store(failure)) = refused else { panic!("{refused:?}") };
        assert_eq!(failure.reason, "its database was locked for too long");
    }
    // A step of the catalog is written in the background, because no request waits for it.
    show(&sessions, &["crm.a", "crm.b", "crm.c"]);
    assert_eq!((changed.revision(), names(&changed).len()), (2, 3));
    assert_eq!(changed.now().draft, before.draft);
    assert_eq!(follower.has_changed().unwrap(), true, "of the catalog alone");
    assert!(!ended.is_ended());
    assert!(sessions.find("made").await.unwrap().is_none());

    other.execute("ROLLBACK").await.unwrap();
    let mut outages = store.outages();
    outages.wait_for(Option::is_none).await.unwrap();
    sessions.writes.flush().await;
    let stored = store.session("changed").await.unwrap().unwrap();
    assert_eq!(stored.tools_revision, 2, "what was noted is written after the outage");
    create(&sessions, "made").await;
    sessions.change(&changed, None, toolset("pair", false)).await.unwrap();
    sessions.end(&ended, Vec::new()).await.unwrap();
    let stored: Vec<_> = store.sessions(None).await.unwrap();
    let stored: Vec<_> = stored.iter().map(|one| (one.id.as_str(), one.tools_revision)).collect();
    assert_eq!(stored, [("changed", 3), ("made", 1)]);
}
