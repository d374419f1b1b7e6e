//! Generated parts of the reference pages.
//!
//! They are between `<!-- generated: NAME -->` and `<!-- end -->`.

use std::collections::BTreeMap;
use std::fs;

use crate::page::{read, workspace};

/// Compares the generated parts of a page with what they should be, or writes them.
pub(crate) fn check(page: &str, parts: &BTreeMap<String, String>) {
    let before = read(page);
    let mut after = String::new();
    let mut rest = before.as_str();
    let mut seen = Vec::new();
    while let Some((head, tail)) = rest.split_once("<!-- generated: ") {
        let (name, tail) = tail.split_once(" -->\n").expect("the name ends on its line");
        let (_, tail) = tail.split_once("<!-- end -->").expect("a generated part ends");
        let part = parts.get(name).unwrap_or_else(|| panic!("{page}: nothing makes `{name}`"));
        after.extend([head, "<!-- generated: ", name, " -->\n", part, "<!-- end -->"]);
        seen.push(name.to_owned());
        rest = tail;
    }
    after += rest;
    let missing: Vec<_> = parts.keys().filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "{page} has no part for {missing:?}");
    if before == after {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(workspace().join(page), after).expect("the page can be written");
        return;
    }
    pretty_assertions::assert_eq!(before, after, "{page} is out of date: run with UPDATE_DOCS=1");
}
