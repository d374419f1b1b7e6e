//! The workspace keeps its own rules.

use switchboard_xtask::{
    Package, broken_arrows, broken_habits, generated_files, packages, tracked_files, workspace_root,
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
            "http names rmcp; only mcp may",
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
fn generated_files_are_up_to_date() {
    for file in generated_files() {
        let committed =
            std::fs::read_to_string(workspace_root().join(file.path)).unwrap_or_default();
        assert!(committed == file.text, "{} is out of date: run `cargo xtask generate`", file.path);
    }
}
