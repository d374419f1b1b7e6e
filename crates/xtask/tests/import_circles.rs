//! Modules of one crate do not import each other.
#![expect(clippy::unwrap_used, reason = "tests")]

use switchboard_xtask::{
    ALLOWED_CIRCLES, AllowedCircle, SourceFile, import_circles, production_sources, tracked_files,
    workspace_root,
};

#[test]
fn modules_do_not_import_each_other() {
    let root = workspace_root();
    let files = tracked_files(&root);
    if files.is_empty() {
        return;
    }
    let sources = production_sources(&root, &files);
    assert_eq!(
        import_circles(&sources, ALLOWED_CIRCLES).unwrap(),
        Vec::<String>::new(),
        "move what both need to a place of its own, or add the pair to the list in xtask with a reason"
    );
}

#[track_caller]
fn check(sources: &[(&str, &str)], allowed: &[AllowedCircle], expected: &[&str]) {
    let source = |(path, text): &(&str, &str)| SourceFile {
        path: format!("crates/x/src/{path}"),
        text: (*text).into(),
    };
    let sources: Vec<SourceFile> = sources.iter().map(source).collect();
    assert_eq!(import_circles(&sources, allowed).unwrap(), expected, "{sources:?}");
}

const CIRCLE: [&str; 1] = ["x: a and b import each other"];

#[test]
fn two_modules_that_import_each_other_are_reported_however_they_do_it() {
    let back = ("b.rs", "use crate::a::A;");
    for import in [
        "use crate::b::B;",
        "use crate::b;",
        "use crate::b::*;",
        "use crate::b::{self, B as C};",
        "use crate::{b::B, c::C};",
        "use super::b::B;",
        "pub(crate) use self::super::b::B;",
    ] {
        check(&[("a.rs", import), back], &[], &CIRCLE);
    }
    let nested = [("n/a.rs", "use super::b::B;"), ("n/b.rs", "use crate::n::a::A;")];
    check(&nested, &[], &["x: n::a and n::b import each other"]);
}

#[test]
fn imports_that_are_no_circle_are_not_reported() {
    let back = ("b.rs", "use crate::a::A;");
    check(&[("a.rs", "use std::fmt; use other::b::B;"), back], &[], &[]);
    check(&[("a.rs", "#[cfg(test)] use crate::b::B;"), back], &[], &[]);
    check(&[("a.rs", "#[cfg(test)] mod tests { use crate::b::B; }"), back], &[], &[]);
    // Methods of one type in two files.
    check(&[("a.rs", "use crate::b::B; impl B { fn f() {} }"), back], &[], &[]);
    check(&[("a.rs", "use crate::b::B; impl Clone for B {}"), back], &[], &CIRCLE);
    // A module and its part, and the root of the crate.
    check(&[("a.rs", "use b::B;"), ("a/b.rs", "use super::A;")], &[], &[]);
    check(&[("lib.rs", "pub use a::A;"), ("a.rs", "use crate::A;")], &[], &[]);
}

#[test]
fn an_allowed_circle_is_needed() {
    let allowed = [AllowedCircle { krate: "x", modules: ["b", "a"], reason: "a reason" }];
    let circle = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
    check(&circle, &allowed, &[]);
    let unused = ["x: b and a are allowed to import each other, but do not"];
    check(&circle[..1], &allowed, &unused);
}
