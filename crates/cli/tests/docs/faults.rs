//! Each row of "What one fault costs" names existing tests.

use crate::page::{read, workspace};

const PAGE: &str = "docs/faults.md";

#[test]
fn each_fault_names_tests_that_exist() {
    let text = read(PAGE);
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| A")).collect();
    assert!(!rows.is_empty(), "{PAGE} has no rows");
    let mut wrong = Vec::new();
    for row in rows.iter().filter(|row| tests_in(row).is_empty()) {
        wrong.push(format!("no test is named: {row}"));
    }
    for (name, file) in rows.iter().flat_map(|row| tests_in(row)) {
        let source = std::fs::read_to_string(workspace().join("docs").join(&file));
        if !source.is_ok_and(|source| source.contains(&format!("fn {name}("))) {
            wrong.push(format!("{file} has no test `{name}`"));
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}

/// The links [`name`](file.rs) of a row.
fn tests_in(row: &str) -> Vec<(String, String)> {
    let links = row.split("[`").skip(1);
    links
        .filter_map(|rest| {
            let (name, rest) = rest.split_once("`](")?;
            let (file, _) = rest.split_once(')')?;
            let is_source = std::path::Path::new(file).extension().is_some_and(|it| it == "rs");
            is_source.then(|| (name.to_owned(), file.to_owned()))
        })
        .collect()
}
