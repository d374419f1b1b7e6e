//! Grants: their rows, the turn of a renewal, and their encryption.

use pretty_assertions::assert_eq;
use switchboard_model::{
    GrantId, GrantOwner, RenewalTurn, Secret, ServerName, StoreKey, StoreKeys,
};
use switchboard_store::{GrantLock, RENEWAL_TURN_MS, ReencryptedGrants, Store, StoreError};

use super::database::{Database, new_store};

const ISSUER: &str = "https://issuer.example.com";
const TOKEN: &str = "s3cret-token-in-the-store";

fn crm() -> GrantId {
    GrantId::of_server(&ServerName::new("crm"))
}

fn of(owner: &str) -> GrantId {
    crm().with_owner(GrantOwner::from(owner))
}

fn keys(current: Option<u8>, previous: &[u8]) -> StoreKeys {
    let key = |byte: u8| StoreKey::parse(&format!("{byte:02x}").repeat(32)).unwrap();
    StoreKeys {
        current: current.map(key),
        previous: previous.iter().map(|byte| key(*byte)).collect(),
    }
}

async fn with_keys(database: &Database, keys: &StoreKeys) -> Store {
    let store = database.open().await;
    store.set_grant_keys(keys);
    store
}

async fn content(store: &Store, id: &GrantId) -> Result<Secret, GrantLock> {
    store.grant(id, None).await.unwrap().unwrap().content
}

#[tokio::test]
async fn the_newest_grant_counts_and_each_issuer_and_owner_has_its_own() {
    let database = Database::new();
    let store = database.open().await;
    assert_eq!(store.grant(&crm(), None).await.unwrap(), None);
    for (issuer, content, at) in [("a", "one", 1), ("b", "two", 2), ("a", "three", 3)] {
        store.save_grant(&crm(), issuer, &Secret::new(content), at).await.unwrap();
    }
    store.save_grant(&of("user:alice"), "a", &Secret::new("alice's"), 9).await.unwrap();
    store.save_grant(&of("session:1"), "a", &Secret::new("of a session"), 9).await.unwrap();
    store.close().await;

    // Another process, later.
    let store = database.open().await;
    let found = async |id: GrantId, issuer| {
        let row = store.grant(&id, issuer).await.unwrap();
        row.map(|row| (row.content.unwrap().expose().to_owned(), row.version))
    };
    assert_eq!(found(crm(), None).await, Some(("three".into(), 2)));
    assert_eq!(found(crm(), Some("b")).await, Some(("two".into(), 1)));
    assert_eq!(found(crm(), Some("c")).await, None);
    assert_eq!(found(of("user:alice"), None).await, Some(("alice's".into(), 1)));
    assert_eq!(found(of("user:bob"), None).await, None);
    let all = store.grants().await.unwrap();
    let all: Vec<_> = all.iter().map(|row| (row.id.to_string(), row.issuer.as_str())).collect();
    let expected = ["board", "board", "session:1", "user:alice"];
    let expected = expected.map(|owner| format!("server:crm of {owner}"));
    assert_eq!(all, expected.into_iter().zip(["a", "b", "a", "a"]).collect::<Vec<_>>());
    assert!(store.forget_grants(&crm()).await.unwrap());
    assert!(!store.forget_grants(&crm()).await.unwrap());
    assert_eq!(found(crm(), None).await, None);
    assert!(found(of("user:alice"), None).await.is_some());
}

#[tokio::test]
async fn a_need_lasts_until_a_sign_in_or_a_sign_out() {
    let store = new_store().await;
    for (id, other) in [(crm(), of("user:alice")), (of("user:alice"), crm())] {
        for need in ["first", "second"] {
            store.need_grant(&id, need).await.unwrap();
            assert_eq!(store.grant_need(&id).await.unwrap().as_deref(), Some(need));
        }
        store.save_grant(&other, ISSUER, &Secret::new("x"), 1).await.unwrap();
        assert!(store.grant_need(&id).await.unwrap().is_some(), "another owner signed in");
        store.save_grant(&id, ISSUER, &Secret::new("x"), 1).await.unwrap();
        assert_eq!(store.grant_need(&id).await.unwrap(), None);
        store.need_grant(&id, "third").await.unwrap();
        store.forget_grants(&id).await.unwrap();
        assert_eq!(store.grant_need(&id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn one_process_at_a_time_has_the_turn_to_renew() {
    let database = Database::new();
    let (one, other) = (database.open().await, database.open().await);
    let begin = async |store: &Store, version, abandoned| {
        store.begin_renewal(&crm(), ISSUER, version, abandoned).await.unwrap()
    };
    let end_of_turn = async || one.grant(&crm(), None).await.unwrap().unwrap().renewing_until_ms;
    let ends_at = async |end_ms: i64| {
        database.execute(&format!("UPDATE grants SET renewing_until_ms = {end_ms}")).await;
    };
    assert_eq!(begin(&one, 1, None).await, RenewalTurn::Changed, "there is no grant");
    one.save_grant(&crm(), ISSUER, &Secret::new("first"), 1_000).await.unwrap();
    assert_eq!(begin(&one, 1, None).await, RenewalTurn::Taken);
    let until_ms = end_of_turn().await;
    let left = until_ms - one.database_now_ms().await.unwrap();
    assert!((RENEWAL_TURN_MS - 10_000..=RENEWAL_TURN_MS).contains(&left), "{left}");
    assert_eq!(begin(&other, 1, None).await, RenewalTurn::Held { until_ms });
    assert_eq!(begin(&other, 7, None).await, RenewalTurn::Changed);
    assert!(one.finish_renewal(&crm(), ISSUER, 1, &Secret::new("second"), 3_000).await.unwrap());
    assert_eq!(begin(&other, 1, None).await, RenewalTurn::Changed);
    let row = other.grant(&crm(), None).await.unwrap().unwrap();
    assert_eq!((row.version, row.renewing_until_ms, row.updated_at_ms), (2, 0, 3_000));

    // A turn that its holder ends, one that ends by itself, and one whose holder died before the clock went back.
    assert_eq!(begin(&one, 2, None).await, RenewalTurn::Taken);
    one.end_renewal(&crm(), ISSUER, 2).await.unwrap();
    assert_eq!(begin(&other, 2, None).await, RenewalTurn::Taken);
    ends_at(one.database_now_ms().await.unwrap() - 1).await;
    assert_eq!(begin(&one, 2, None).await, RenewalTurn::Taken);
    let until_ms = end_of_turn().await + 3_600_000;
    ends_at(until_ms).await;
    assert_eq!(begin(&other, 2, Some(5)).await, RenewalTurn::Held { until_ms });
    assert_eq!(begin(&other, 2, Some(until_ms)).await, RenewalTurn::Taken);

    // A person signs in meanwhile: the renewed tokens of the earlier sign-in are not written.
    one.save_grant(&crm(), ISSUER, &Secret::new("signed in"), 4_000).await.unwrap();
    assert!(!other.finish_renewal(&crm(), ISSUER, 2, &Secret::new("late"), 4_000).await.unwrap());
    assert_eq!(content(&one, &crm()).await, Ok(Secret::new("signed in")));
}

#[tokio::test]
async fn grants_are_encrypted_once_there_is_a_key_and_again_with_the_next_one() {
    let database = Database::new();
    // Long enough for overflow pages.
    let token = format!("{TOKEN}{}", "x".repeat(20_000));
    let store = with_keys(&database, &keys(None, &[])).await;
    store.save_grant(&crm(), ISSUER, &Secret::new(token.as_str()), 1).await.unwrap();
    store.save_grant(&of("user:alice"), ISSUER, &Secret::new(TOKEN), 1).await.unwrap();
    assert!(!store.encrypts_grants());
    assert_ne!(database.files_contain(TOKEN), Some(false));
    assert_eq!(store.reencrypt_grants().await.unwrap(), ReencryptedGrants::default());

    store.set_grant_keys(&keys(Some(1), &[]));
    let done = store.reencrypt_grants().await.unwrap();
    assert_eq!(done, ReencryptedGrants { changed: 2, locked: 0 });
    assert_ne!(database.files_contain(TOKEN), Some(true));
    assert_eq!(content(&store, &crm()).await, Ok(Secret::new(token.as_str())));
    assert_eq!(store.grant(&crm(), None).await.unwrap().unwrap().version, 1);

    store.set_grant_keys(&keys(Some(2), &[1]));
    assert_eq!(content(&store, &crm()).await, Ok(Secret::new(token.as_str())));
    assert_eq!(store.reencrypt_grants().await.unwrap().changed, 2);
    assert_eq!(store.reencrypt_grants().await.unwrap().changed, 0);
    store.set_grant_keys(&keys(Some(2), &[]));
    assert_eq!(content(&store, &crm()).await, Ok(Secret::new(token)));
}

#[tokio::test]
async fn with_a_wrong_key_nothing_is_overwritten() {
    let database = Database::new();
    let store = with_keys(&database, &keys(Some(1), &[])).await;
    store.save_grant(&crm(), ISSUER, &Secret::new(TOKEN), 1).await.unwrap();
    for wrong in [keys(Some(2), &[3]), keys(None, &[])] {
        store.set_grant_keys(&wrong);
        assert!(matches!(content(&store, &crm()).await, Err(GrantLock::UnknownKey(_))));
        let saved = store.save_grant(&crm(), ISSUER, &Secret::new("new"), 2).await.unwrap_err();
        let begun = store.begin_renewal(&crm(), ISSUER, 1, None).await.unwrap_err();
        for error in [saved, begun] {
            let told = error.to_string();
            assert!(told.contains("the sign-in server:crm of board"), "{told}");
            assert!(told.contains("a key that is not configured (its id is "), "{told}");
            let hint = error.hint().unwrap();
            assert!(hint.contains("`security.previous_store_keys`"), "{hint}");
        }
    }
    store.set_grant_keys(&keys(Some(2), &[]));
    let done = store.reencrypt_grants().await.unwrap();
    assert_eq!(done, ReencryptedGrants { changed: 0, locked: 1 });
    store.set_grant_keys(&keys(Some(1), &[]));
    assert_eq!(content(&store, &crm()).await, Ok(Secret::new(TOKEN)));
    // Signing out needs no key.
    store.set_grant_keys(&keys(Some(2), &[]));
    assert!(store.forget_grants(&crm()).await.unwrap());
}

#[tokio::test]
async fn a_row_that_is_copied_to_another_owner_does_not_decrypt() {
    let database = Database::new();
    let store = with_keys(&database, &keys(Some(1), &[])).await;
    for owner in ["user:alice", "user:bob"] {
        store.save_grant(&of(owner), ISSUER, &Secret::new(owner), 1).await.unwrap();
    }
    database
        .execute(
            "UPDATE grants SET content = (SELECT content FROM grants WHERE owner = 'user:alice')
         WHERE owner = 'user:bob'",
        )
        .await;
    assert_eq!(content(&store, &of("user:bob")).await, Err(GrantLock::Changed));
    assert_eq!(content(&store, &of("user:alice")).await, Ok(Secret::new("user:alice")));
}

#[tokio::test]
async fn a_board_that_others_reach_keeps_nothing_in_clear_text() {
    let store = new_store().await;
    store.save_grant(&crm(), ISSUER, &Secret::new(TOKEN), 1).await.unwrap();
    store.refuse_clear_text_grants();
    let save = async || store.save_grant(&crm(), ISSUER, &Secret::new("new"), 2).await;
    let refused = save().await.unwrap_err();
    assert!(matches!(refused, StoreError::ClearText { .. }), "{refused}");
    let begun = store.begin_renewal(&crm(), ISSUER, 1, None).await.unwrap_err();
    assert!(matches!(begun, StoreError::ClearText { .. }), "before the issuer is asked: {begun}");
    assert_eq!(content(&store, &crm()).await, Ok(Secret::new(TOKEN)));
    store.set_grant_keys(&keys(Some(1), &[]));
    save().await.unwrap();
}

#[tokio::test]
async fn the_accounts_of_a_session_end_with_it() {
    let database = Database::new();
    let store = database.open().await;
    for id in ["a", "b"] {
        let insert = format!(
            "INSERT INTO sessions (id, kind, owner, state, tools_revision, created_at_ms, updated_at_ms)
                 VALUES ('{id}', 'mcp', 'local', '{{}}', 1, 1, 1)"
        );
        database.execute(&insert).await;
    }
    let owners = ["session:a", "session:b", "user:a", "board"];
    for owner in owners {
        store.save_grant(&of(owner), ISSUER, &Secret::new(TOKEN), 1).await.unwrap();
        store.need_grant(&of(owner), "more").await.unwrap();
    }
    database.execute("DELETE FROM sessions WHERE id = 'a'").await;
    for owner in owners {
        let is_kept = owner != "session:a";
        let grant = store.grant(&of(owner), None).await.unwrap();
        assert_eq!(grant.is_some(), is_kept, "{owner}");
        assert_eq!(store.grant_need(&of(owner)).await.unwrap().is_some(), is_kept, "{owner}");
    }
}
