//! Property tests: no input makes the loader panic.

use proptest::prelude::*;
use switchboard_config::{ImportScope, import_servers, merge_into};
use switchboard_model::AdmissionMode;

use crate::support::{EVERYTHING, EVERYTHING_ENV, load_text, load_with};

/// The file with everything in it after a few random edits.
fn mutated() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just(String::new()),
        "\\PC{1,4}",
        "[-:{}\\[\\]\"'|>&*!%#?,~ \\n\\t$]{1,3}",
        Just("null".to_owned()),
        Just("${X}".to_owned()),
    ];
    let edit = (any::<prop::sample::Index>(), 0..12_usize, pieces);
    prop::collection::vec(edit, 1..5).prop_map(|edits| {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, length, piece) in edits {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text(text in "\\PC{0,80}|[-a-z:{}\\[\\]\"'|>&*!%#?,~ \\n\\t]{0,80}") {
        if let Err(problems) = load_text(&text) {
            prop_assert!(problems.count() > 0 && !problems.to_string().is_empty());
        }
        if let Err(problems) = load_text(&format!("switchboard: {text}")) {
            prop_assert!(problems.count() > 0);
        }
    }

    #[test]
    fn almost_valid_text(text in mutated()) {
        match load_with(Some(&text), &EVERYTHING_ENV) {
            Ok(loaded) => prop_assert!(!loaded.to_yaml().is_empty()),
            Err(problems) => prop_assert!(problems.to_string().contains("found")),
        }
    }

    #[test]
    fn any_variable(name in "[A-Z0-9_]{0,30}", value in "\\PC{0,20}") {
        let name = format!("SWITCHBOARD__TOOLBOX__{name}");
        let _outcome = load_with(Some(EVERYTHING), &[(name.as_str(), value.as_str())]);
    }

    #[test]
    fn any_import(text in "\\PC{0,60}|[a-z:{}\\[\\]\",/* \\n\\\\]{0,60}", file in mutated()) {
        let _outcome = import_servers("x.json", &text, ImportScope::Everything, &[]);
        let imported = import_servers("x.json", r#"{"mcpServers": {"new": {"command": "x"}}}"#, ImportScope::Everything, &[]).unwrap();
        if let Ok(merged) = merge_into("x.yaml", &file, &imported, AdmissionMode::Strict) {
            prop_assert!(merged.text.contains("new"));
        }
    }
}
