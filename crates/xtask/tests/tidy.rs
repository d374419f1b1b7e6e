//! The workspace follows its own conventions.

use switchboard_xtask::{
    Package, SHARED_TYPE_NAMES, SourceFile, broken_arrows, broken_habits, generated_files,
    packages, production_sources, repeated_type_names, tracked_files, workspace_root,
};

#[test]
fn crates_know_only_those_below_them() {
    let packages = packages(&workspace_root()).unwrap();
    assert!(packages.len() > 10, "cargo metadata lists the workspace");
    assert_eq!(broken_arrows(&packages), Vec::<String>::new());
}

#[test]
fn a_broken_arrow_is_named() {
    let package = |name: &str, dependency: &str| Package {
        name: format!("switchboard-{name}"),
        dependencies: vec![dependency.into()],
    };
    let broken = broken_arrows(&[
        package("registry", "switchboard-config"),
        package("model", "tokio"),
        package("http", "rmcp"),
        package("cli", "switchboard-test-support"),
        package("fresh", "serde"),
        package("runtime", "switchboard-mcp-client"),
    ]);
    assert_eq!(
        broken,
        [
            "registry knows config, which is not below it",
            "model is pure and must not use tokio",
            "http names rmcp; only mcp-client, oauth and demo-server may",
            "cli knows test-support, which is not part of the product",
            "fresh has no level: add it to the list in xtask",
        ]
    );
}

#[test]
fn files_keep_our_habits() {
    let root = workspace_root();
    assert_eq!(broken_habits(&root, &tracked_files(&root)), Vec::<String>::new());
}

#[test]
fn each_type_name_has_one_meaning() {
    let root = workspace_root();
    let files = tracked_files(&root);
    if files.is_empty() {
        return;
    }
    let sources = production_sources(&root, &files);
    assert!(sources.len() > 100, "the sources of the product are found");
    assert_eq!(
        repeated_type_names(&sources, SHARED_TYPE_NAMES).unwrap(),
        Vec::<String>::new(),
        "qualify one of the names, or add it to the list in xtask with a reason"
    );
}

#[test]
fn a_repeated_type_name_is_reported() {
    let check = |sources: &[(&str, &str)], allowed: &[(&str, &str)], expected: &[&str]| {
        let source =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), text: (*text).into() };
        let sources: Vec<SourceFile> = sources.iter().map(source).collect();
        assert_eq!(repeated_type_names(&sources, allowed).unwrap(), expected, "{sources:?}");
    };
    let (a, b) = ("crates/a/src/a.rs", "crates/b/src/b.rs");
    let twice = ["Body is defined in crates/a/src/a.rs and crates/b/src/b.rs"];

    check(&[(a, "struct Body;"), (b, "pub(crate) enum Body<'a> { Text(&'a str) }")], &[], &twice);
    check(&[(a, "pub trait Body {}"), (b, "type Body = Vec<u8>;")], &[], &twice);
    check(&[(a, "struct Body;"), (b, "use crate::Body; enum Part { Body }")], &[], &[]);
    // Only the item with the attribute belongs to the tests, not what follows it.
    check(&[(a, "struct Body;"), (b, "#[cfg(test)] struct Body;")], &[], &[]);
    check(&[(a, "struct Body;"), (b, "#[cfg(test)] mod tests { struct Body; }")], &[], &[]);
    check(&[(a, "struct Body;"), (b, "#[cfg(test)] fn f() {} struct Body;")], &[], &twice);
    check(&[(a, "#[cfg(unix)] struct Body; #[cfg(windows)] struct Body;")], &[], &[]);

    let allowed = [("Body", "a reason")];
    check(&[(a, "struct Body;"), (b, "struct Body;")], &allowed, &[]);
    check(&[(a, "struct Body;")], &allowed, &["Body is allowed, but defined only once"]);

    let (chat, claude) = ("crates/wire/src/openai/chat.rs", "crates/wire/src/anthropic/request.rs");
    check(&[(chat, "struct Body;"), (claude, "struct Body;")], &[], &[]);
    check(
        &[(chat, "struct Body;"), (claude, "struct Body;"), (a, "struct Body;")],
        &[],
        &["Body is defined in crates/wire/src/openai/chat.rs and \
           crates/wire/src/anthropic/request.rs and crates/a/src/a.rs"],
    );
}

#[test]
fn only_production_sources_are_read() {
    let root = workspace_root();
    let files = [
        "crates/http/src/lib.rs",
        "crates/http/tests/api.rs",
        "crates/xtask/src/lib.rs",
        "crates/config/src/yaml_tests.rs",
        "crates/http/Cargo.toml",
    ];
    let sources = production_sources(&root, &files.map(str::to_owned));
    let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    assert_eq!(paths, ["crates/http/src/lib.rs"]);
}

#[test]
fn generated_files_are_up_to_date() {
    for file in generated_files() {
        let committed =
            std::fs::read_to_string(workspace_root().join(file.path)).unwrap_or_default();
        assert!(committed == file.text, "{} is out of date: run `cargo xtask generate`", file.path);
    }
}
