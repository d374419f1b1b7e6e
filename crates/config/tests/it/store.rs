//! The `store` section.

use pretty_assertions::assert_eq;
use switchboard_model::{Secret, StorePlan};

use crate::support::{load_text, problems};

#[test]
fn the_address_is_read_and_never_shown() {
    let text =
        "switchboard:\n  store: {url: 'postgres://me:hunter2@db/board', max_connections: 4}\n";
    let loaded = load_text(text).unwrap();
    let url = Some(Secret::new("postgres://me:hunter2@db/board"));
    assert_eq!(loaded.plan.store, StorePlan { url, listen_url: None, max_connections: 4 });
    let shown = loaded.to_yaml();
    assert!(shown.contains("url: '***'") || shown.contains("url: \"***\""), "{shown}");
    assert!(
        !shown.contains("hunter2") && !format!("{:?}", loaded.plan).contains("hunter2"),
        "{shown}"
    );
}

#[test]
fn another_address_is_refused_without_showing_it() {
    for url in ["sqlite://x:hunter2@y", "me:hunter2@db", "mysql://me:hunter2@db/x"] {
        let told = problems(&format!("switchboard:\n  store: {{url: '{url}'}}\n"), &[]);
        assert!(
            told.contains("switchboard.store.url is not the address of a PostgreSQL database"),
            "{told}"
        );
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn without_the_section_the_data_directory_has_the_database() {
    assert_eq!(load_text("switchboard: {}\n").unwrap().plan.store, StorePlan::default());
}
