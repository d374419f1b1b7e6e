//! Sign-ins at upstream servers.

use switchboard_model::{Secret, ServerName};
use switchboard_store::Store;

#[tokio::test]
async fn the_newest_sign_in_counts_and_each_issuer_keeps_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let server = ServerName::new("crm");
    let store = Store::open(directory.path()).await.unwrap();
    assert_eq!(store.oauth_grant(&server, None).await.unwrap(), None);
    for (issuer, content, at) in [("a", "one", 1), ("b", "two", 2), ("a", "three", 3)] {
        store.keep_oauth_grant(&server, issuer, &Secret::new(content), at).await.unwrap();
    }
    store.close().await;

    // Another process, later.
    let store = Store::open(directory.path()).await.unwrap();
    let content = async |issuer| store.oauth_grant(&server, issuer).await.unwrap();
    assert_eq!(content(None).await, Some(Secret::new("three")));
    assert_eq!(content(Some("b")).await, Some(Secret::new("two")));
    assert_eq!(content(Some("c")).await, None);
    assert_eq!(store.oauth_grant(&ServerName::new("other"), None).await.unwrap(), None);
    assert!(store.forget_oauth_grants(&server).await.unwrap());
    assert!(!store.forget_oauth_grants(&server).await.unwrap());
    assert_eq!(content(None).await, None);
}

#[tokio::test]
async fn what_a_sign_in_has_to_ask_for_is_kept_until_it_is_not_wanted() {
    let store = Store::in_memory().await.unwrap();
    let server = ServerName::new("crm");
    for wanted in [Some("first"), Some("second"), None, None] {
        store.want_oauth(&server, wanted).await.unwrap();
        assert_eq!(store.oauth_wanted(&server).await.unwrap().as_deref(), wanted);
    }
}
