//! Links between the documents lead to existing files and headings.

use crate::page::{all_pages, read, workspace};

#[test]
fn every_relative_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in all_pages() {
        let directory = page.rsplit_once('/').map_or("", |(directory, _)| directory);
        for target in links(&read(&page)) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { page.clone() } else { join(directory, file) };
            if !workspace().join(&path).exists() {
                broken.push(format!("{page}: {target}"));
            } else if !heading.is_empty() && !headings(&read(&path)).contains(&heading.to_owned()) {
                broken.push(format!("{page}: {target} has no such heading"));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

fn links(text: &str) -> Vec<String> {
    text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

fn join(directory: &str, file: &str) -> String {
    let mut parts: Vec<_> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors that a page has, as GitHub makes them.
fn headings(text: &str) -> Vec<String> {
    let anchor = |line: &str| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>()
    };
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| anchor(line).replace(' ', "-")).collect()
}
