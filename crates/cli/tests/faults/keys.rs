//! Keys that another process adds to the same database.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::ledger::count;
use crate::program::Place;
use crate::support::Home;

/// Gives the names of the keys that were acknowledged.
pub(crate) async fn work(place: Arc<Place>, home: Arc<Home>) -> Vec<String> {
    let mut names = Vec::new();
    let mut step = 0_u32;
    while !place.is_stopped() {
        step += 1;
        let (name, at) = (format!("key-{step}"), home.clone());
        let line = format!("key add {name} --json");
        let ended = tokio::task::spawn_blocking(move || at.line(&line)).await.unwrap();
        if ended.code == Some(0) {
            count(&place.ledger.acknowledged);
            names.push(name);
        } else {
            count(&place.ledger.refused);
        }
        sleep(Duration::from_millis(500)).await;
    }
    names
}

/// Looks for the keys in a program that was started anew.
pub(crate) fn verify(home: &Home, names: &[String]) {
    let list = home.line("key list --json").expect(0).json();
    let listed: Vec<_> = list["keys"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
    for name in names {
        assert!(listed.iter().any(|listed| **listed == **name), "the key {name} is lost");
    }
}
