//! Tests of the documents: examples run, configurations load, references are complete, links resolve.
//!
//! `UPDATE_DOCS=1 cargo test -p switchboard-cli --test docs` rewrites the generated parts.
#![expect(clippy::expect_used, reason = "tests, and what they are made of")]

mod compare;
mod faults;
mod generated;
mod links;
mod page;
mod reference;
mod stage;

use crate::page::{Marker, all_pages, blocks};
use crate::stage::Stage;

/// A page with more of these is not tested any more, it is excused.
const MAX_SKIPPED: usize = 17;

macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        const PAGES_WITH_EXAMPLES: &[&str] = &[$($page),*];

        $(#[test]
        fn $name() {
            perform($page);
        })*
    };
}

pages! {
    readme: "README.md",
    contributing: "CONTRIBUTING.md",
    getting_started: "docs/getting-started.md",
    configuration: "docs/configuration.md",
    connect_a_client: "docs/connect-a-client.md",
    gateway: "docs/gateway.md",
    toolsets: "docs/toolsets.md",
    sessions: "docs/sessions.md",
    chat: "docs/chat.md",
    providers: "docs/providers.md",
    react: "docs/react.md",
    inject: "docs/inject.md",
    renderings: "docs/renderings.md",
    tool_arguments: "docs/tool-arguments.md",
    manage_tools: "docs/manage-tools.md",
    sign_in: "docs/sign-in.md",
    accounts: "docs/accounts.md",
    records: "docs/records.md",
    running_calls: "docs/running-calls.md",
    trustgraph: "docs/trustgraph.md",
    agent365: "docs/agent365.md",
    discovery: "docs/discovery.md",
    threat_protection: "docs/threat-protection.md",
    troubleshooting: "docs/troubleshooting.md",
    security: "docs/security.md",
    cli: "docs/reference/cli.md",
    configuration_reference: "docs/reference/configuration.md",
    environment: "docs/reference/environment.md",
    api: "docs/api.md",
    http: "docs/reference/http.md",
    metrics: "docs/reference/metrics.md",
    deploy: "docs/deploy.md",
    observability: "docs/observability.md",
    upgrade_and_backup: "docs/upgrade-and-backup.md",
}

fn perform(page: &str) {
    let mut stage = Stage::new();
    let mut wrong = Vec::new();
    for block in blocks(page).iter().filter(|block| !block.is_skipped()) {
        if let Err(why) = stage.perform(block) {
            wrong.push(format!("{}\n{why}", block.place));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn no_page_with_examples_is_forgotten() {
    let is_example = |language: &str| matches!(language, "console" | "sh" | "yaml");
    for page in all_pages() {
        let has_examples = blocks(&page).iter().any(|block| is_example(&block.language));
        let is_listed = PAGES_WITH_EXAMPLES.contains(&page.as_str());
        assert!(is_listed || !has_examples, "{page} has examples and is not in `pages!`");
    }
}

#[test]
fn few_examples_are_skipped_and_each_says_why() {
    let skipped: Vec<_> = all_pages()
        .iter()
        .flat_map(|page| blocks(page))
        .filter_map(|block| {
            block.markers.into_iter().find_map(|marker| match marker {
                Marker::Skip(reason) => Some(format!("{}: {reason}", block.place)),
                _ => None,
            })
        })
        .collect();
    assert!(skipped.len() <= MAX_SKIPPED, "{}", skipped.join("\n"));
}
