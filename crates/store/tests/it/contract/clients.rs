//! Tests of stored MCP clients of the session era.

use pretty_assertions::assert_eq;
use switchboard_store::{Store, StoredClient};

use super::database::{Database, new_store};

fn session(kind: &str, id: &str, seen: i64) -> StoredClient {
    StoredClient {
        id: id.into(),
        kind: kind.into(),
        owner: "local".into(),
        session: Some("mcp-1".into()),
        state: format!("{{\"of\":\"{id}\"}}"),
        created_at_ms: 1,
        last_seen_at_ms: seen,
    }
}

/// Kind and last use of all sessions.
async fn seen(store: &Store) -> Vec<(String, i64)> {
    let all = store.clients(None, None).await.unwrap();
    let mut seen: Vec<_> = all.into_iter().map(|one| (one.kind, one.last_seen_at_ms)).collect();
    seen.sort();
    seen
}

#[tokio::test]
async fn what_was_put_is_found_by_its_id_and_can_be_put_back() {
    let store = new_store().await;
    store.put_clients(&[]).await.unwrap();
    for kind in ["client", "endpoint", "principal"] {
        let id = format!("id of {kind}");
        store.put_clients(&[session(kind, &id, 5)]).await.unwrap();
        let found = store.client(&id).await.unwrap().unwrap();
        assert_eq!(found, session(kind, &id, 5));
        let changed =
            StoredClient { state: "{}".into(), last_seen_at_ms: 6, created_at_ms: 3, ..found };
        store.put_clients(std::slice::from_ref(&changed)).await.unwrap();
        let wanted = StoredClient { created_at_ms: 1, ..changed };
        assert_eq!(store.client(&id).await.unwrap(), Some(wanted));
    }
    assert_eq!(store.clients(None, None).await.unwrap().len(), 3);
    assert_eq!(store.client("unknown").await.unwrap(), None);
}

#[tokio::test]
async fn nobody_gets_in_with_what_stands_in_the_database() {
    let database = Database::new();
    let store = database.open().await;
    let secret = "11111111-2222-3333-4444-555555555555";
    let plain = StoredClient { state: "{}".into(), ..session("client", secret, 5) };
    store.put_clients(&[plain]).await.unwrap();
    store.touch_clients(&[(secret.into(), 6)]).await.unwrap();
    let listed = store.clients(Some("local"), Some("client")).await.unwrap();
    assert_eq!((listed.len(), listed[0].last_seen_at_ms), (1, 6));
    assert!(!listed[0].id.contains(secret));
    assert_eq!(store.client(&listed[0].id).await.unwrap(), None);
    assert!(store.client(secret).await.unwrap().is_some());

    // Nor can somebody take its place with an endpoint of that name.
    store.put_clients(&[session("endpoint", &listed[0].id, 9)]).await.unwrap();
    assert_eq!(store.client(secret).await.unwrap().unwrap().last_seen_at_ms, 6);
    store.close().await;
    assert_ne!(database.files_contain(secret), Some(true));
}

#[tokio::test]
async fn sessions_are_listed_by_owner_and_kind() {
    let store = new_store().await;
    let other = StoredClient { owner: "key:1".into(), ..session("client", "c", 1) };
    store
        .put_clients(&[session("client", "a", 1), session("endpoint", "b", 1), other])
        .await
        .unwrap();
    for (owner, kind, wanted) in [
        (None, None, 3),
        (Some("local"), None, 2),
        (None, Some("client"), 2),
        (Some("key:1"), Some("client"), 1),
        (Some("key:1"), Some("endpoint"), 0),
    ] {
        let found = store.clients(owner, kind).await.unwrap().len();
        assert_eq!(found, wanted, "{owner:?} {kind:?}");
    }
}

#[tokio::test]
async fn sessions_go_by_either_form_of_their_id() {
    let store = new_store().await;
    let all = [session("client", "a", 1), session("client", "b", 1), session("endpoint", "c", 1)];
    store.put_clients(&all).await.unwrap();
    assert_eq!(store.delete_clients(&[]).await.unwrap(), 0);
    let ids = ["a".to_owned(), "c".to_owned(), "unknown".to_owned()];
    assert_eq!(store.delete_clients(&ids).await.unwrap(), 2);
    let listed = store.clients(None, None).await.unwrap().remove(0).id;
    assert_eq!(store.delete_clients(&[listed]).await.unwrap(), 1);
    assert_eq!(store.clients(None, None).await.unwrap(), []);
}

#[tokio::test]
async fn use_is_noted_forwards_only_and_idle_sessions_of_a_kind_expire() {
    let store = new_store().await;
    let all =
        [session("client", "a", 10), session("endpoint", "e", 10), session("principal", "p", 10)];
    store.put_clients(&all).await.unwrap();
    let note = |id: &str, at_ms| (id.to_owned(), at_ms);
    store.touch_clients(&[]).await.unwrap();
    store
        .touch_clients(&[note("a", 30), note("a", 20), note("e", 5), note("p", 15), note("x", 99)])
        .await
        .unwrap();
    let word = |kind: &str, at_ms| (kind.to_owned(), at_ms);
    assert_eq!(
        seen(&store).await,
        [word("client", 30), word("endpoint", 10), word("principal", 15)]
    );
    assert_eq!(store.expire_clients("client", 30).await.unwrap(), 0);
    assert_eq!(store.expire_clients("client", 31).await.unwrap(), 1);
    assert_eq!(store.expire_clients("client", 31).await.unwrap(), 0);
    assert_eq!(seen(&store).await, [word("endpoint", 10), word("principal", 15)]);
}

#[tokio::test]
async fn more_sessions_than_one_statement_holds() {
    let store = new_store().await;
    let many: Vec<_> = (0..1203).map(|n| session("client", &format!("s{n}"), 1)).collect();
    store.put_clients(&many).await.unwrap();
    let notes: Vec<_> = many.iter().map(|one| (one.id.clone(), 2)).collect();
    store.touch_clients(&notes).await.unwrap();
    assert!(seen(&store).await.iter().all(|(_, at_ms)| *at_ms == 2));
    let ids: Vec<_> = many.into_iter().map(|one| one.id).collect();
    assert_eq!(store.delete_clients(&ids).await.unwrap(), 1203);
}
