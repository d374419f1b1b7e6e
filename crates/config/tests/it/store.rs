//! The `store` section.

use pretty_assertions::assert_eq;
use switchboard_model::{AfterLoss, OnStoreLoss, Secret, SlotPlan, StorePlan};

use crate::support::{load_text, problems};

#[test]
fn the_address_is_read_and_never_shown() {
    let text =
        "switchboard:\n  store: {url: 'postgres://me:hunter2@db/board', max_connections: 4}\n";
    let loaded = load_text(text).unwrap();
    let url = Some(Secret::new("postgres://me:hunter2@db/board"));
    let expected = StorePlan { url, max_connections: 4, ..StorePlan::default() };
    assert_eq!(loaded.plan.store, expected);
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
fn how_boards_share_slots_is_read_and_shown() {
    let text = |slots: &str| format!("switchboard:\n  store:\n    slots: {slots}\n");
    let loaded = load_text(&text("{after_loss: timeout, on_store_loss: share}")).unwrap();
    let expected =
        SlotPlan { after_loss: Some(AfterLoss::Timeout), on_store_loss: OnStoreLoss::Share };
    assert_eq!(loaded.plan.store.slots, expected);
    let shown = loaded.to_yaml();
    assert!(shown.contains("after_loss: timeout"), "{shown}");
    assert!(shown.contains("on_store_loss: share"), "{shown}");
    let by_default = load_text(&text("{}")).unwrap().plan.store.slots;
    assert_eq!(by_default, SlotPlan { after_loss: None, on_store_loss: OnStoreLoss::Stop });
    let told = problems(&text("{after_loss: never}"), &[]);
    assert!(told.contains("after_loss"), "{told}");
}

#[test]
fn without_the_section_the_data_directory_has_the_database() {
    assert_eq!(load_text("switchboard: {}\n").unwrap().plan.store, StorePlan::default());
}
