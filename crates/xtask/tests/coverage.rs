//! The coverage of pure crates, summed up from a report.

use serde_json::{Value, json};
use switchboard_xtask::{
    LineCounts, PURE_CRATES, coverage_by_crate, coverage_table, workspace_root,
};

fn file(path: &str, covered: u64, coverable: u64) -> Value {
    let path: Vec<&str> = path.split('/').collect();
    json!({"path": path, "covered": covered, "coverable": coverable, "traces": []})
}

#[test]
fn the_files_of_a_crate_are_summed_up_and_others_do_not_count() {
    let report = json!({"files": [
        file("/home/me/crates/model/src/name.rs", 8, 10),
        file("/home/me/crates/model/src/call/error.rs", 10, 10),
        file("/home/me/crates/schema/src/check.rs", 17, 20),
        file("/home/me/crates/http/src/server.rs", 0, 100),
        file("/home/me/crates/model/tests/it.rs", 0, 100),
    ]});
    let counts = coverage_by_crate(&report, &["model", "schema"]).unwrap();
    assert_eq!(counts["model"], LineCounts { covered: 18, coverable: 20 });
    let (table, low) = coverage_table(&counts);
    assert_eq!(table, "model       90.0 %  18 of 20 lines\nschema      85.0 %  17 of 20 lines\n");
    assert_eq!(low, ["schema"]);
}

#[test]
fn a_crate_that_the_report_does_not_have_is_an_error() {
    let report = json!({"files": [file("/crates/model/src/name.rs", 1, 1)]});
    let error = coverage_by_crate(&report, &["model", "schema"]).unwrap_err().to_string();
    assert!(error.contains("no line of `schema`"), "{error}");
    assert!(coverage_by_crate(&json!({}), &["model"]).is_err());
}

#[test]
fn every_pure_crate_exists_and_the_documents_list_it() {
    let root = workspace_root();
    for (document, start) in [
        ("ARCHITECTURE.md", "**Architecture Invariant:** `model`, `api`"),
        ("CONTRIBUTING.md", "**Pure crates** (`model`, `api`"),
    ] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let at = text.find(start).unwrap_or_else(|| panic!("{document} has no list of crates"));
        let (listed, _) = text.split_at(at).1.split_once("\n\n").unwrap();
        for name in PURE_CRATES {
            assert!(listed.contains(&format!("`{name}`")), "{document} does not list `{name}`");
            assert!(root.join("crates").join(name).is_dir(), "there is no crate {name}");
        }
    }
}
