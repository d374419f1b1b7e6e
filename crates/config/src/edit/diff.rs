//! The difference between two versions of a configuration file, without secrets.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use crate::expand::hide_literals;
use crate::path::Path;
use crate::source::SourceText;
use crate::yaml;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// A unified diff of two texts. Lines that may hold a secret are replaced by a note.
pub fn unified_diff(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let (old, new) = (shown_source(name, before), shown_source(name, after));
    let mut out = format!("--- {name}\n+++ {name}\n");
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        // Writing to a string cannot fail.
        let _written = writeln!(out, "{}", hunk.header());
        for change in hunk.iter_changes() {
            let (mark, source, index) = match change.tag() {
                ChangeTag::Equal => (' ', &old, change.old_index()),
                ChangeTag::Delete => ('-', &old, change.old_index()),
                ChangeTag::Insert => ('+', &new, change.new_index()),
            };
            let line = index.map(|index| source.shown_line(index + 1)).unwrap_or_default();
            let _written = writeln!(out, "{mark}{line}");
        }
    }
    out
}

fn shown_source<'a>(name: &'a str, text: &'a str) -> SourceText<'a> {
    let mut source = SourceText::new(name, text);
    if let Ok(document) = yaml::parse(&source, text) {
        for entry in document.root.iter().flat_map(crate::tree::Node::entries) {
            hide_literals(&entry.node, &Path::root(&entry.key), &mut source);
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changes_and_no_secret() {
        let before = "switchboard:\n  toolbox:\n    tools:\n      - name: a\n        timeout: 5s\n    mcps:\n      - name: s\n        url: https://h/\n        headers:\n          X-Team: s3cret\n          Authorization: Bearer ${TOKEN}\n";
        let after = before.replace("5s", "6s");
        insta::assert_snapshot!(unified_diff("x.yaml", before, &after));
        let after = before.replace("s3cret", "other");
        let shown = unified_diff("x.yaml", before, &after);
        assert!(!shown.contains("s3cret") && !shown.contains("other"), "{shown}");
        insta::assert_snapshot!(shown);
    }
}
