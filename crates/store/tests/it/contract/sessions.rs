//! Sessions, their snapshots and messages.

use pretty_assertions::assert_eq;
use switchboard_store::{
    SessionBatch, SessionSnapshot, SessionVersion, StoredClient, StoredSession,
};

use super::database::{Database, new_store};

fn session(id: &str, owner: &str) -> StoredSession {
    StoredSession {
        id: id.into(),
        kind: "endpoint".into(),
        owner: owner.into(),
        title: Some("Planning".into()),
        provider: Some("anthropic".into()),
        model: None,
        state: "{\"servers\":[\"crm\"]}".into(),
        tools_revision: 7,
        snapshot: Some("d1".into()),
        created_at_ms: 1,
        updated_at_ms: 2,
        version: 0,
    }
}

fn snapshot(digest: &str) -> SessionSnapshot {
    SessionSnapshot { digest: digest.into(), tools: format!("[\"{digest}\"]") }
}

#[tokio::test]
async fn a_session_comes_back_as_it_was_put_with_the_tools_that_it_saw() {
    let database = Database::new();
    let store = database.open().await;
    store.put_sessions(&[session("a", "local")], &[snapshot("d1")]).await.unwrap();
    store.close().await;

    let store = database.open().await;
    let first = StoredSession { version: 1, ..session("a", "local") };
    assert_eq!(store.session("a").await.unwrap(), Some(first.clone()));
    assert_eq!(store.snapshot("d1").await.unwrap().as_deref(), Some("[\"d1\"]"));
    assert_eq!(store.session("b").await.unwrap(), None);
    assert_eq!(store.snapshot("d2").await.unwrap(), None);
    let changed = StoredSession { tools_revision: 8, created_at_ms: 5, ..first };
    assert!(store.put_sessions(std::slice::from_ref(&changed), &[]).await.unwrap().is_empty());
    let kept = StoredSession { created_at_ms: 1, version: 2, ..changed };
    assert_eq!(store.session("a").await.unwrap(), Some(kept));
}

#[tokio::test]
async fn owners_see_their_own_and_many_fit_into_one_write() {
    let store = new_store().await;
    let many: Vec<_> = (0..1001)
        .map(|n| session(&format!("{n:04}"), if n % 2 == 0 { "even" } else { "odd" }))
        .collect();
    store.put_sessions(&many, &[]).await.unwrap();
    let found = store.sessions(Some("odd")).await.unwrap();
    assert_eq!((found.len(), found[0].id.as_str()), (500, "0001"));
    let stored: Vec<_> =
        many.iter().map(|one| StoredSession { version: 1, ..one.clone() }).collect();
    assert_eq!(store.sessions(None).await.unwrap(), stored);
    assert!(store.put_sessions(&stored, &[]).await.unwrap().is_empty());
    let ids: Vec<_> = many.iter().map(|one| one.id.as_str()).chain(["unknown"]).collect();
    let versions = store.session_versions(&ids).await.unwrap();
    let second = SessionVersion { version: 2, created_at_ms: 1 };
    assert_eq!((versions.len(), versions["0000"], versions["1000"]), (1001, second, second));
    assert_eq!(store.count_sessions("odd", "endpoint").await.unwrap(), 500);
    assert_eq!(store.count_sessions("odd", "client").await.unwrap(), 0);
    let ids: Vec<_> = many.iter().map(|one| one.id.clone()).collect();
    assert_eq!(store.delete_sessions(&ids).await.unwrap(), 1001);
    assert_eq!(store.delete_sessions(&ids).await.unwrap(), 0);
}

#[tokio::test]
async fn a_snapshot_stays_for_as_long_as_a_session_names_it() {
    let store = new_store().await;
    let other = StoredSession { snapshot: Some("d2".into()), ..session("b", "local") };
    let both = [session("a", "local"), other];
    store.put_sessions(&both, &[snapshot("d1"), snapshot("d2")]).await.unwrap();
    assert_eq!(store.prune_snapshots().await.unwrap(), 0);
    store.delete_sessions(&["b".into()]).await.unwrap();
    assert_eq!(store.prune_snapshots().await.unwrap(), 1);
    assert_eq!(store.snapshot("d2").await.unwrap(), None);
    assert!(store.snapshot("d1").await.unwrap().is_some());
}

#[tokio::test]
async fn messages_go_behind_those_that_are_there_and_leave_with_their_session() {
    let store = new_store().await;
    store.put_sessions(&[session("a", "local")], &[]).await.unwrap();
    let texts =
        |from: u32, to: u32| (from..to).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>();
    assert!(store.append_messages("a", 0, &texts(0, 2)).await.unwrap());
    assert!(!store.append_messages("a", 0, &texts(9, 10)).await.unwrap(), "somebody was quicker");
    assert!(store.append_messages("a", 2, &texts(2, 3)).await.unwrap());
    assert_eq!(store.messages("a").await.unwrap(), texts(0, 3));
    assert!(store.append_messages("unknown", 0, &texts(0, 1)).await.is_err());
    assert!(!store.replace_messages("a", 2, &texts(7, 8)).await.unwrap(), "somebody was quicker");
    assert_eq!(store.messages("a").await.unwrap(), texts(0, 3), "and nothing was taken away");
    assert!(store.replace_messages("a", 3, &texts(7, 9)).await.unwrap());
    assert_eq!(store.messages("a").await.unwrap(), texts(7, 9));
    assert!(store.replace_messages("a", 2, &texts(0, 3)).await.unwrap());
    store.delete_sessions(&["a".into()]).await.unwrap();
    assert_eq!(store.messages("a").await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn the_session_of_a_client_goes_when_its_client_is_gone() {
    let store = new_store().await;
    let of_client = |id: &str| StoredSession { kind: "client".into(), ..session(id, "local") };
    let sessions = [of_client("lonely"), of_client("used"), session("endpoint", "local")];
    store.put_sessions(&sessions, &[]).await.unwrap();
    let client = StoredClient {
        id: "secret".into(),
        kind: "client".into(),
        owner: "local".into(),
        session: Some("used".into()),
        state: "{}".into(),
        created_at_ms: 1,
        last_seen_at_ms: 1,
    };
    store.put_clients(&[client]).await.unwrap();
    assert_eq!(store.expire_client_sessions("client", 2).await.unwrap(), 0, "changed just now");
    assert_eq!(store.expire_client_sessions("client", 3).await.unwrap(), 1);
    assert_eq!(store.session("lonely").await.unwrap(), None);
    store.delete_clients(&["secret".into()]).await.unwrap();
    assert_eq!(store.expire_client_sessions("client", 3).await.unwrap(), 1);
    assert_eq!(store.sessions(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_is_written_only_over_the_row_that_its_writer_has_seen() {
    let store = new_store().await;
    let none: &[SessionSnapshot] = &[];
    let put = async |one: &StoredSession| {
        store.put_sessions(std::slice::from_ref(one), none).await.unwrap().into_iter().next()
    };
    let first = session("a", "local");
    assert_eq!(put(&first).await, None);
    assert_eq!(put(&first).await.as_deref(), Some("a"), "somebody has made it");
    let seen = store.session("a").await.unwrap().unwrap();
    let mine = StoredSession { title: Some("mine".into()), ..seen.clone() };
    let theirs = StoredSession { title: Some("theirs".into()), ..seen };
    let (mine, theirs) = (put(&mine).await, put(&theirs).await);
    assert_eq!((mine.as_deref(), theirs.as_deref()), (None, Some("a")));
    let kept = store.session("a").await.unwrap().unwrap();
    assert_eq!((kept.title.as_deref(), kept.version), (Some("mine"), 2));

    // One that was superseded does not keep the others of its batch from being stored.
    let stale = StoredSession { version: 1, ..kept.clone() };
    let batch = SessionBatch {
        sessions: vec![session("b", "local"), stale, session("c", "local")],
        ..SessionBatch::default()
    };
    let superseded = store.write_sessions(&batch).await.unwrap();
    let of_clients = vec!["b".to_owned(), "unknown".to_owned(), "b".to_owned()];
    let batch = SessionBatch { sessions_of_clients: of_clients, ..SessionBatch::default() };
    store.write_sessions(&batch).await.unwrap();
    assert_eq!(store.session("b").await.unwrap().unwrap().version, 2, "its clients changed");
    assert_eq!(superseded.into_iter().collect::<Vec<_>>(), ["a"]);
    assert_eq!(store.session("c").await.unwrap().unwrap().version, 1);

    store.delete_sessions(&["a".into()]).await.unwrap();
    assert_eq!(put(&kept).await.as_deref(), Some("a"), "a deleted session does not come back");
    assert_eq!(store.session("a").await.unwrap(), None);
}

#[tokio::test]
async fn of_many_writers_of_one_version_exactly_one_wins_each_time() {
    const WRITERS: u64 = 8;
    const WINS: u64 = 12;
    let database = Database::new();
    let store = database.open().await;
    store.put_sessions(&[session("a", "local")], &[]).await.unwrap();
    let mut writing = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writing.spawn(async move {
            let mut won = 0;
            while won < WINS {
                let seen = store.session("a").await.unwrap().unwrap();
                let next = StoredSession {
                    tools_revision: seen.tools_revision + 1,
                    title: Some(format!("{writer}")),
                    ..seen
                };
                won += u64::from(store.put_sessions(&[next], &[]).await.unwrap().is_empty());
            }
        });
    }
    writing.join_all().await;
    let last = store.session("a").await.unwrap().unwrap();
    assert_eq!(last.version, 1 + WRITERS * WINS);
    assert_eq!(last.tools_revision, 7 + WRITERS * WINS, "no write was lost");
}

#[tokio::test]
async fn batches_over_the_same_sessions_in_any_order_do_not_wait_in_a_circle() {
    let database = Database::new();
    let store = database.open().await;
    let ids: Vec<_> = (0..40).map(|n| format!("s{n:02}")).collect();
    let first: Vec<_> = ids.iter().map(|id| session(id, "local")).collect();
    store.put_sessions(&first, &[]).await.unwrap();
    let mut writing = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let store = store.clone();
        writing.spawn(async move {
            for _ in 0..10 {
                let mut all = store.sessions(None).await.unwrap();
                all.rotate_left(writer * 10);
                store.put_sessions(&all, &[]).await.unwrap();
            }
        });
    }
    writing.join_all().await;
}
