//! Tests of authentication with API keys.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use switchboard_auth::{
    AuthError, Gatekeeper, GatekeeperOptions, KeyAccess, KeyDraft, KeyEdit, NewKey, Principal,
    Refusal, Role,
};
use switchboard_model::{Access, Identity, LiveAccess};
use switchboard_store::Store;

use crate::{bearer, headers};

async fn gatekeeper(store: &Store) -> Arc<Gatekeeper> {
    Gatekeeper::new(store.clone(), GatekeeperOptions::default()).await.unwrap()
}

async fn key(store: &Store, name: &str, role: Role) -> (String, String) {
    let made = NewKey::add(store, KeyDraft::new(name, role)).await.unwrap();
    (made.key.expose().to_owned(), made.stored.id)
}

#[tokio::test]
async fn without_keys_and_tokens_everybody_is_local() {
    let gatekeeper = gatekeeper(&Store::in_memory().await.unwrap()).await;
    assert!(gatekeeper.is_open());
    assert_eq!(gatekeeper.resource_metadata(), None);
    for shown in [headers(&[]), bearer("whatever"), headers(&[("x-user", "root")])] {
        assert_eq!(gatekeeper.admit(&shown).await, Ok(Principal::local()));
    }
}

#[tokio::test]
async fn a_key_looks_as_promised_and_opens_the_door_in_either_header() {
    let store = Store::in_memory().await.unwrap();
    let (key, id) = key(&store, "laptop", Role::Operator).await;
    let secret = key.strip_prefix("sbk_").unwrap();
    assert_eq!(secret.len(), 43);
    assert!(secret.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'));

    let gatekeeper = gatekeeper(&store).await;
    assert!(!gatekeeper.is_open());
    let wanted = Principal {
        id: format!("key:{id}").into(),
        role: Role::Operator,
        name: Some("laptop".into()),
        identity: Arc::new(Identity::of_key(&id, &"laptop".into(), None)),
        access: LiveAccess::default(),
    };
    for shown in [
        bearer(&key),
        headers(&[("authorization", &format!("bearer {key}"))]),
        headers(&[("authorization", &format!("BEARER  {key} "))]),
        headers(&[("x-api-key", &key)]),
    ] {
        assert_eq!(gatekeeper.admit(&shown).await.as_ref(), Ok(&wanted), "{shown:?}");
    }
}

#[tokio::test]
async fn neither_the_store_nor_debug_output_has_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    let made = NewKey::add(&store, KeyDraft::new("laptop", Role::Client)).await.unwrap();
    let gatekeeper = gatekeeper(&store).await;
    let secret = made.key.expose().strip_prefix("sbk_").unwrap();
    assert!(!format!("{made:?} {gatekeeper:?}").contains(secret));
    let plain_hash = *blake3::hash(made.key.expose().as_bytes()).as_bytes();
    assert_ne!(store.key_hashes().await.unwrap()[0].1, plain_hash, "the hash is keyed");
    store.close().await;
    let bytes = std::fs::read(store.file().unwrap()).unwrap();
    assert!(!bytes.windows(secret.len()).any(|some| some == secret.as_bytes()));
}

/// Among others: headers that merely claim an identity are ignored.
#[tokio::test]
async fn what_is_not_exactly_one_good_credential_is_refused() {
    let store = Store::in_memory().await.unwrap();
    let (key, _) = key(&store, "laptop", Role::Admin).await;
    let gatekeeper = gatekeeper(&store).await;
    let good = format!("Bearer {key}");
    let mut wrong = key.clone();
    wrong.replace_range(10..11, if wrong.as_bytes()[10] == b'A' { "B" } else { "A" });
    let missing = [
        vec![],
        vec![("x-forwarded-user", "admin"), ("x-user", "admin"), ("x-forwarded-for", "127.0.0.1")],
        vec![("x-switchboard-role", "admin"), ("x-forwarded-email", "a@b"), ("cookie", &key)],
        vec![("proxy-authorization", &good), ("x-auth-token", &key), ("x-remote-user", "admin")],
    ];
    for shown in missing {
        let refused = gatekeeper.admit(&headers(&shown)).await;
        assert_eq!(refused, Err(Refusal::Missing), "{shown:?}");
    }
    let long = format!("Bearer sbk_{}", "A".repeat(10_000));
    let joined = format!("{good}, {good}");
    let not_ascii = format!("Bearer {key}ü");
    let other = [
        (vec![("authorization", good.as_str()), ("authorization", &good)], "more than once"),
        (vec![("x-api-key", key.as_str()), ("x-api-key", &key)], "more than once"),
        (vec![("authorization", good.as_str()), ("x-api-key", &key)], "two credentials"),
        (vec![("authorization", joined.as_str())], "characters"),
        (vec![("authorization", "")], "empty"),
        (vec![("authorization", "   ")], "empty"),
        (vec![("authorization", "Bearer")], "empty"),
        (vec![("authorization", "Bearer ")], "empty"),
        (vec![("x-api-key", "")], "empty"),
        (vec![("authorization", not_ascii.as_str())], "ASCII"),
        (vec![("x-api-key", "ключ")], "ASCII"),
        (vec![("authorization", long.as_str())], "too long"),
        (vec![("x-api-key", long.as_str())], "too long"),
        (vec![("authorization", key.as_str())], "only `Authorization: Bearer"),
        (vec![("authorization", "Basic YTpi")], "only `Authorization: Bearer"),
        (vec![("x-api-key", good.as_str())], "not known"),
        (vec![("x-api-key", wrong.as_str())], "not known"),
        (vec![("x-api-key", "sbk_")], "not known"),
        (vec![("authorization", "Bearer not-a-key")], "not an API key"),
    ];
    for (shown, reason) in other {
        let refused = gatekeeper.admit(&headers(&shown)).await.unwrap_err();
        assert!(matches!(refused, Refusal::BadCredentials(_)), "{shown:?}: {refused:?}");
        assert!(refused.message().contains(reason), "{shown:?}: {refused:?}");
        assert!(!refused.message().contains("sbk_"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_revoked_key_stops_working_and_the_last_one_leaves_the_door_shut() {
    let store = Store::in_memory().await.unwrap();
    let gatekeeper = gatekeeper(&store).await;
    assert!(gatekeeper.is_open());
    let (key, _) = key(&store, "laptop", Role::Client).await;
    gatekeeper.refresh().await.unwrap();
    assert!(gatekeeper.admit(&bearer(&key)).await.is_ok());
    store.revoke_key("laptop", 1).await.unwrap();
    gatekeeper.refresh().await.unwrap();
    let refused = gatekeeper.admit(&bearer(&key)).await.unwrap_err();
    assert!(refused.message().contains("revoked"), "{refused:?}");
    assert_eq!(gatekeeper.admit(&headers(&[])).await, Err(Refusal::Missing));
    // Credentials stay required after a restart.
    let restarted = Gatekeeper::new(store, GatekeeperOptions::default()).await.unwrap();
    assert!(!restarted.is_open());
    assert_eq!(restarted.admit(&headers(&[])).await, Err(Refusal::Missing));
}

#[tokio::test]
async fn an_expired_key_is_refused() {
    let store = Store::in_memory().await.unwrap();
    let now = jiff::Timestamp::now().as_millisecond();
    let old = NewKey::add(
        &store,
        KeyDraft { expires_at_ms: Some(now), ..KeyDraft::new("old", Role::Client) },
    )
    .await
    .unwrap();
    let new = NewKey::add(
        &store,
        KeyDraft { expires_at_ms: Some(now + 60_000), ..KeyDraft::new("new", Role::Client) },
    )
    .await
    .unwrap();
    let gatekeeper = gatekeeper(&store).await;
    let refused = gatekeeper.admit(&bearer(old.key.expose())).await;
    assert_eq!(refused, Err(Refusal::BadCredentials("this key has expired".into())));
    assert!(gatekeeper.admit(&bearer(new.key.expose())).await.is_ok());
}

#[tokio::test]
async fn a_role_of_a_newer_version_opens_nothing() {
    let store = Store::in_memory().await.unwrap();
    let (key, _) = key(&store, "laptop", Role::Client).await;
    let (mut stored, hash) = store.key_hashes().await.unwrap().remove(0);
    store.revoke_key("laptop", 1).await.unwrap();
    // The same key in another store, with a role that this version does not know.
    let other = Store::in_memory().await.unwrap();
    stored.role = "superuser".into();
    other.add_key(&stored, &hash).await.unwrap();
    let gatekeeper = Gatekeeper::new(other, GatekeeperOptions::default()).await.unwrap();
    assert!(!gatekeeper.is_open());
    assert!(gatekeeper.admit(&bearer(&key)).await.is_err());
}

#[tokio::test]
async fn the_use_of_a_key_is_noted_now_and_then() {
    let store = Store::in_memory().await.unwrap();
    let (key, _) = key(&store, "laptop", Role::Client).await;
    let gatekeeper = gatekeeper(&store).await;
    gatekeeper.refresh().await.unwrap();
    assert_eq!(store.keys().await.unwrap()[0].last_used_at_ms, None);
    gatekeeper.admit(&bearer(&key)).await.unwrap();
    gatekeeper.refresh().await.unwrap();
    let noted = store.keys().await.unwrap()[0].last_used_at_ms;
    assert!(noted.is_some());
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    gatekeeper.admit(&bearer(&key)).await.unwrap();
    gatekeeper.refresh().await.unwrap();
    assert_eq!(store.keys().await.unwrap()[0].last_used_at_ms, noted, "not each time");
}

#[tokio::test]
async fn a_user_label_joins_the_keys_of_one_person() {
    let store = Store::in_memory().await.unwrap();
    let mut keys = Vec::new();
    for (name, user) in [("laptop", Some("anna")), ("phone", Some("anna")), ("build", None)] {
        let draft = KeyDraft { user: user.map(Into::into), ..KeyDraft::new(name, Role::Client) };
        keys.push(NewKey::add(&store, draft).await.unwrap());
    }
    let gatekeeper = gatekeeper(&store).await;
    let mut admitted = Vec::new();
    for made in &keys {
        admitted.push(gatekeeper.admit(&bearer(made.key.expose())).await.unwrap());
    }
    let [laptop, phone, build] = admitted.as_slice() else { panic!("{admitted:?}") };
    assert_ne!(laptop.id, phone.id, "the principal of sessions is the key");
    assert_eq!(&*laptop.identity.person, "user:anna");
    assert_eq!(laptop.identity.person, phone.identity.person);
    assert_eq!(build.identity.person, build.id);
    assert_eq!(build.identity.subject.as_deref(), Some("build"));
    for user in ["", "-x", "a b", "a\r\nX-Admin: 1", "sbk_abc", "ключ", &"u".repeat(129)] {
        let draft = KeyDraft { user: Some(user.into()), ..KeyDraft::new("x", Role::Client) };
        let error = NewKey::add(&store, draft).await.unwrap_err();
        assert!(matches!(error, AuthError::BadUser { .. }), "{user:?}: {error:?}");
        assert!(error.hint().is_some());
    }
}

#[tokio::test]
async fn a_person_is_gone_with_the_last_of_their_keys() {
    let store = Store::in_memory().await.unwrap();
    let mut keys = Vec::new();
    for name in ["laptop", "phone"] {
        let draft = KeyDraft { user: Some("anna".into()), ..KeyDraft::new(name, Role::Client) };
        keys.push(NewKey::add(&store, draft).await.unwrap());
    }
    let unnamed = NewKey::add(&store, KeyDraft::new("build", Role::Client)).await.unwrap();
    let unnamed = format!("key:{}", unnamed.stored.id);
    let gatekeeper = gatekeeper(&store).await;
    let phone = gatekeeper.admit(&bearer(keys[1].key.expose())).await.unwrap();
    assert!(!gatekeeper.is_gone("user:anna") && !gatekeeper.is_gone(&unnamed));
    assert!(gatekeeper.is_gone("user:bob") && gatekeeper.is_gone("key:0"));
    // Nothing is known of who comes with tokens or through an open door.
    assert!(!gatekeeper.is_gone("jwt:issuer|anna") && !gatekeeper.is_gone("local"));

    store.revoke_key("laptop", 1).await.unwrap();
    gatekeeper.refresh().await.unwrap();
    assert!(!gatekeeper.is_gone("user:anna"), "the other key is left");
    let over = KeyEdit { expires_at_ms: Some(Some(1)), ..KeyEdit::default() };
    over.apply(&store, "phone").await.unwrap().unwrap();
    gatekeeper.refresh().await.unwrap();
    assert!(gatekeeper.is_gone("user:anna") && !gatekeeper.is_gone(&unnamed));
    assert_eq!(*phone.access.load(), Access::none(), "nothing runs on with a key that is over");
}

#[tokio::test]
async fn a_changed_key_changes_what_runs_with_it() {
    let store = Store::in_memory().await.unwrap();
    let made = NewKey::add(&store, KeyDraft::new("laptop", Role::Client)).await.unwrap();
    let gatekeeper = gatekeeper(&store).await;
    let running = gatekeeper.admit(&bearer(made.key.expose())).await.unwrap();
    assert!(running.access.load().has_all_tools());
    let versions = gatekeeper.access_versions();
    gatekeeper.refresh().await.unwrap();
    assert!(!versions.has_changed().unwrap());

    let access = KeyAccess { toolsets: Some(vec!["crm".into()]), ..KeyAccess::default() };
    let edit =
        KeyEdit { access: Some(access.clone()), role: Some(Role::Operator), ..KeyEdit::default() };
    let changed = edit.apply(&store, "laptop").await.unwrap().unwrap();
    assert_eq!(
        (changed.role.as_str(), KeyAccess::from_stored(changed.access.as_deref())),
        ("operator", Ok(access))
    );
    gatekeeper.refresh().await.unwrap();
    assert!(versions.has_changed().unwrap());
    assert!(!running.access.load().has_all_tools());
    let again = gatekeeper.admit(&bearer(made.key.expose())).await.unwrap();
    assert_eq!((again.role, again.effective_role()), (Role::Operator, Role::Client));
    assert!(KeyEdit::default().apply(&store, "nobody").await.unwrap().is_none());

    // Keys with equal access share their rules, so that they share their views.
    let draft = KeyDraft {
        access: KeyAccess { toolsets: Some(vec!["crm".into()]), ..KeyAccess::default() },
        ..KeyDraft::new("other", Role::Client)
    };
    let other = NewKey::add(&store, draft).await.unwrap();
    gatekeeper.refresh().await.unwrap();
    let other = gatekeeper.admit(&bearer(other.key.expose())).await.unwrap();
    assert!(Arc::ptr_eq(
        &other.access.tools().unwrap(),
        &gatekeeper.admit(&bearer(made.key.expose())).await.unwrap().access.tools().unwrap()
    ));

    store.revoke_key("laptop", 1).await.unwrap();
    gatekeeper.refresh().await.unwrap();
    assert_eq!(
        *running.access.load(),
        Access::none(),
        "a revoked key grants nothing to what still runs"
    );
}

#[tokio::test]
async fn names_are_plain_and_taken_once() {
    let store = Store::in_memory().await.unwrap();
    let long = "n".repeat(65);
    for name in ["", "a b", "a\nb", "ana's", "-x", "ключ", "sbk_abc", &long] {
        let error = NewKey::add(&store, KeyDraft::new(name, Role::Client)).await.unwrap_err();
        assert!(matches!(error, AuthError::BadName { .. }), "{name:?}: {error:?}");
        assert!(error.hint().is_some());
    }
    NewKey::add(&store, KeyDraft::new("anas-laptop_2.0", Role::Client)).await.unwrap();
    let error =
        NewKey::add(&store, KeyDraft::new("anas-laptop_2.0", Role::Client)).await.unwrap_err();
    assert!(error.to_string().contains("already a key"), "{error}");
}
