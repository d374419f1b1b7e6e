use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

fn tools(names: &[&str]) -> Vec<DraftTool> {
    let tool = |name: &&str| DraftTool { name: (*name).into(), is_read_only: name.contains("get") };
    names.iter().map(tool).collect()
}

#[track_caller]
fn check(names: &[&str], grouping: Option<&Json>, expected: &[(&str, &[&str])]) -> ToolsetDraft {
    let draft = ToolsetDraft::propose("fmp", &tools(names), grouping);
    let sets = draft.sets.iter();
    let found: Vec<_> = sets.map(|set| (set.name.as_str(), set.tools.clone())).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, tools)| {
            (*name, tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(found, expected);
    draft
}

#[test]
fn tools_are_grouped_by_what_they_are_about() {
    check(
        &["get_issue", "create_issue", "listIssues", "branch_add", "branch_delete", "ping"],
        None,
        &[
            ("fmp-branch", &["fmp.branch_*"]),
            ("fmp-issue", &["fmp.get_issue", "fmp.create_issue", "fmp.listIssues"]),
            ("fmp-other", &["fmp.ping"]),
            ("fmp-read", &["fmp.get_issue"]),
        ],
    );
    check(&[], None, &[]);
}

#[test]
fn a_draft_that_would_be_one_set_is_grouped_otherwise_or_says_why() {
    // Grouped by verb if every tool has a different subject.
    check(
        &["create_user", "create_invoice", "delete_mail", "delete_fax"],
        None,
        &[("fmp-create", &["fmp.create_*"]), ("fmp-delete", &["fmp.delete_*"])],
    );
    // Grouped by annotation.
    check(
        &["getIssue", "delete_issue", "issue"],
        None,
        &[("fmp-write", &["fmp.delete_issue", "fmp.issue"]), ("fmp-read", &["fmp.getIssue"])],
    );
    let whole = check(&["add", "echo"], None, &[("fmp", &["fmp.add", "fmp.echo"])]);
    assert_eq!(
        whole.to_yaml(),
        "switchboard:\n  toolsets:\n    \
         # The names and annotations of these tools show no groups. Divide them by what they are for, or leave this\n    \
         # out: `fmp` has a set of this name without it.\n    \
         - name: fmp\n      description: \"All tools of fmp\"\n      tools:\n        - fmp.add\n        - fmp.echo\n"
    );
    assert!(check(&["x"], None, &[("fmp", &["fmp.x"])]).comment.is_some());
}

#[test]
fn a_servers_own_groups_come_first() {
    let answer = json!({"toolsets": [
        {"key": "quotes", "active": false, "tools": [], "definition":
            {"name": "Quotes", "description": "Prices", "modules": ["quotes"], "decisionCriteria": "a price"}},
        {"key": "search", "tools": ["findName", "gone"], "definition": {"description": "Search"}},
        {"key": "crypto", "tools": [], "definition": {"modules": ["crypto"]}},
        {"nothing": 1},
    ]});
    let names = [
        "getQuote",
        "batchQuotes",
        "findName",
        "newsA",
        "newsB",
        "list_toolsets",
        "enable_toolset",
    ];
    let draft = check(
        &names,
        Some(&answer),
        &[
            ("fmp-quotes", &["fmp.getQuote", "fmp.batchQuotes"]),
            ("fmp-search", &["fmp.findName"]),
            ("fmp-news", &["fmp.news*"]),
            ("fmp-read", &["fmp.getQuote"]),
        ],
    );
    assert_eq!(draft.sets[0].when_to_use.as_deref(), Some("a price"));
    assert_eq!(draft.notes, ["crypto: none of the tools that are listed now belongs to it"]);
    let as_map = json!({"a": {"name": "A", "tools": [{"name": "findName"}]}});
    check(&["findName"], Some(&as_map), &[("fmp-a", &["fmp.findName"])]);
}
