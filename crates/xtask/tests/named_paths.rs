//! Each source file that the developers' documents name exists.
//!
//! The documents leave out `crates/` and `src/`: `runtime/call.rs` is `crates/runtime/src/call.rs`. In a table row that
//! begins with the name of a crate, paths are relative to that crate.

use std::path::Path;

use switchboard_xtask::workspace_root;

/// The documents that are checked: these pages, and all pages in the directory.
const PAGES: &[&str] = &[
    "ARCHITECTURE.md",
    "docs/life-of-a-tool-call.md",
    "docs/tool-arguments.md",
    "docs/life-of-a-turn.md",
    "docs/life-of-a-reload.md",
];
const DIRECTORY: &str = "docs/decisions";

#[test]
fn every_source_file_that_a_document_names_exists() {
    let root = workspace_root();
    let decisions = std::fs::read_dir(root.join(DIRECTORY)).unwrap();
    let decisions = decisions.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let decisions = decisions.map(|name| format!("{DIRECTORY}/{name}"));
    let mut missing = Vec::new();
    let mut checked = 0;
    for page in PAGES.iter().map(|page| (*page).to_owned()).chain(decisions) {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        for path in source_paths(&root, &text) {
            checked += 1;
            if !exists(&root, &path) {
                missing.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(checked > 150, "the documents name {checked} files");
    assert!(missing.is_empty(), "these files do not exist:\n{}", missing.join("\n"));
}

/// The paths in backticks that a text names, each beginning with a crate where the text says which one.
fn source_paths(root: &Path, text: &str) -> Vec<String> {
    let is_crate = |name: &str| root.join("crates").join(name).is_dir();
    let mut paths = Vec::new();
    for line in text.lines() {
        let quoted: Vec<_> = line.split('`').skip(1).step_by(2).collect();
        let row = quoted.first().filter(|name| line.starts_with("| `") && is_crate(name));
        let is_file = |text: &&&str| Path::new(text).extension().is_some_and(|it| it == "rs");
        let is_directory =
            |text: &&&str| text.ends_with('/') && (row.is_some() || text.matches('/').count() > 1);
        for path in quoted.iter().filter(|path| is_file(path) || is_directory(path)) {
            match row {
                Some(name) => paths.push(format!("{name}/{path}")),
                None => paths.push((*path).to_owned()),
            }
        }
    }
    paths
}

/// Whether a path leads to a file: from the root, from a crate, or from the sources of a crate.
fn exists(root: &Path, path: &str) -> bool {
    let in_crate = path.split_once('/').is_some_and(|(name, rest)| {
        let directory = root.join("crates").join(name);
        directory.join("src").join(rest).exists() || directory.join(rest).exists()
    });
    in_crate || (path.contains('/') && root.join(path).exists())
}

#[test]
fn paths_are_found_in_text_and_in_rows_of_crates() {
    let root = workspace_root();
    let check = |text: &str, expected: &[(&str, bool)]| {
        let paths = source_paths(&root, text);
        let found: Vec<_> = paths.iter().map(|path| (path.as_str(), exists(&root, path))).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("see `runtime/call.rs` and `Board::call`", &[("runtime/call.rs", true)]);
    check("`runtime/conductor.rs`", &[("runtime/conductor.rs", false)]);
    check("`call.rs` belongs to no crate", &[("call.rs", false)]);
    check("| `runtime` | the board | `call.rs` |", &[("runtime/call.rs", true)]);
    check(
        "| `wire` | formats | `gemini/`, `none/` |",
        &[("wire/gemini/", true), ("wire/none/", false)],
    );
    check("`wire/gemini/` and `wire/none/`", &[("wire/gemini/", true), ("wire/none/", false)]);
    check("`mcp-server/tests/it/reloads.rs`", &[("mcp-server/tests/it/reloads.rs", true)]);
    check("`crates/cli/tests/docs/page.rs`", &[("crates/cli/tests/docs/page.rs", true)]);
    check("`crates/` and `src/` are left out", &[]);
}
