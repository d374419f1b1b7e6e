//! API keys and the secrets of an installation.

use pretty_assertions::assert_eq;
use switchboard_store::{Store, StoreError, StoredKey};

use super::database::{Database, new_store};

fn key(id: &str, name: &str) -> StoredKey {
    StoredKey {
        id: id.into(),
        name: name.into(),
        role: "client".into(),
        created_at_ms: 10,
        last_used_at_ms: None,
        revoked_at_ms: None,
        expires_at_ms: Some(99),
        user: Some("anna".into()),
        access: Some(r#"{"readonly":true}"#.into()),
    }
}

async fn valid(store: &Store) -> Vec<String> {
    store.key_hashes().await.unwrap().into_iter().map(|(key, _)| key.id).collect()
}

#[tokio::test]
async fn a_key_comes_back_with_its_hash_until_it_is_revoked() {
    let store = new_store().await;
    store.add_key(&key("k1", "laptop"), &[1; 32]).await.unwrap();
    store.add_key(&key("k2", "build"), &[2; 32]).await.unwrap();
    let wanted = [(key("k1", "laptop"), [1; 32]), (key("k2", "build"), [2; 32])];
    assert_eq!(store.key_hashes().await.unwrap(), wanted);

    assert!(store.revoke_key("laptop", 50).await.unwrap());
    assert!(!store.revoke_key("laptop", 60).await.unwrap(), "it is revoked already");
    assert!(!store.revoke_key("nobody", 60).await.unwrap());
    assert_eq!(valid(&store).await, ["k2"]);
    let revoked = StoredKey { revoked_at_ms: Some(50), ..key("k1", "laptop") };
    assert_eq!(store.keys().await.unwrap(), [revoked, key("k2", "build")]);
    assert!(store.revoke_key("k2", 70).await.unwrap(), "by id");
    assert_eq!(valid(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_free_again_only_when_its_key_is_revoked() {
    let store = new_store().await;
    store.add_key(&key("k1", "laptop"), &[1; 32]).await.unwrap();
    let error = store.add_key(&key("k2", "laptop"), &[2; 32]).await.unwrap_err();
    assert!(matches!(&error, StoreError::NameTaken { name, .. } if name == "laptop"), "{error:?}");
    assert!(error.hint().unwrap().contains("revoke"));
    assert_eq!(store.keys().await.unwrap().len(), 1);

    store.revoke_key("k1", 50).await.unwrap();
    store.add_key(&key("k2", "laptop"), &[2; 32]).await.unwrap();
    assert_eq!(valid(&store).await, ["k2"]);
    // The same secret or the same id twice is a fault of the caller, not a matter of names.
    for (again, hash) in [(key("k3", "other"), [2; 32]), (key("k2", "other"), [3; 32])] {
        let error = store.add_key(&again, &hash).await.unwrap_err();
        assert!(matches!(error, StoreError::Query { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_name_that_looks_like_an_id_takes_no_other_key_with_it() {
    let store = new_store().await;
    store.add_key(&key("k1", "laptop"), &[1; 32]).await.unwrap();
    store.add_key(&key("k2", "k1"), &[2; 32]).await.unwrap();
    assert!(store.revoke_key("k1", 50).await.unwrap());
    assert_eq!(valid(&store).await, ["k2"]);
}

#[tokio::test]
async fn the_last_use_never_goes_back() {
    let store = new_store().await;
    store.add_key(&key("k1", "laptop"), &[1; 32]).await.unwrap();
    for (at_ms, wanted) in [(30, 30), (20, 30), (40, 40)] {
        store.touch_key("k1", at_ms).await.unwrap();
        assert_eq!(store.keys().await.unwrap()[0].last_used_at_ms, Some(wanted));
    }
    store.touch_key("unknown", 1).await.unwrap();
}

#[tokio::test]
async fn a_secret_is_random_by_name_and_stays() {
    let database = Database::new();
    let store = database.open().await;
    let other = database.open().await;
    let (one, two) =
        tokio::join!(store.installation_secret("keys"), other.installation_secret("keys"));
    let secret = one.unwrap();
    assert_eq!(two.unwrap(), secret);
    assert_ne!(secret, [0; 32]);
    assert_ne!(store.installation_secret("cookies").await.unwrap(), secret);
    store.close().await;
    let reopened = database.open().await;
    assert_eq!(reopened.installation_secret("keys").await.unwrap(), secret);
    let elsewhere = new_store().await;
    assert_ne!(elsewhere.installation_secret("keys").await.unwrap(), secret);
}
