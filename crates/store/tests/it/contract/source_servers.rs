//! Tests of the remembered servers of sources.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use switchboard_model::{FoundServer, HttpTransport, Secret};

use super::database::new_store;

fn server(name: &str) -> FoundServer {
    FoundServer {
        name: name.into(),
        url: "https://mail.example/mcp?tenant=1".parse().unwrap(),
        transport: HttpTransport::Sse,
        headers: BTreeMap::from([("X-Tenant".into(), Secret::new("blue"))]),
    }
}

#[tokio::test]
async fn the_last_servers_of_a_source_come_back_for_the_same_settings_only() {
    let store = new_store().await;
    let read = async |source: &str, settings: &str| {
        store.remembered_source_servers(source, settings).await.unwrap()
    };
    assert_eq!(read("platform", "a").await, None);
    let servers = vec![server("Mail Tools / ü"), server("b")];
    store.remember_source_servers("platform", "a", &servers, 1).await.unwrap();
    store.remember_source_servers("public", "a", &[], 1).await.unwrap();
    let read_again = read("platform", "a").await.unwrap();
    assert_eq!(read_again, servers);
    let tenant = |servers: &[FoundServer]| servers[0].headers["X-Tenant"].expose().to_owned();
    assert_eq!(tenant(&read_again), "blue");
    assert_eq!(read("public", "a").await, Some(Vec::new()), "an empty list is a list");
    assert_eq!(read("platform", "b").await, None, "another gateway");

    store.remember_source_servers("platform", "b", &[server("c")], 2).await.unwrap();
    assert_eq!(read("platform", "b").await.unwrap().len(), 1);
    assert_eq!(read("platform", "a").await, None, "one list for each source");
}

#[tokio::test]
async fn the_number_of_remembered_sources_is_bounded() {
    let store = new_store().await;
    for n in 0..1002_i64 {
        store.remember_source_servers(&format!("s{n}"), "a", &[], n).await.unwrap();
    }
    let is_there =
        async |source: &str| store.remembered_source_servers(source, "a").await.unwrap().is_some();
    assert!(!is_there("s0").await && !is_there("s1").await, "the oldest go");
    assert!(is_there("s2").await && is_there("s1001").await);
}
