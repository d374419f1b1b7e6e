use std::sync::Arc;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use switchboard_model::{AccessRule, AccessRules, ExposureMode, ServerName};

use crate::view::tests::{ALL_SETS, exposure, index, owned, server, unreachable, view_in};
use crate::{ListEra, Scope, ScopeFault, ToolGroups};

const ALL: [&str; 7] = [
    "market.getQuote",
    "market.getCompanyProfile",
    "market.listDividends",
    "market.getSplits",
    "market.placeOrder",
    "notes.readNote",
    "notes.writeNote",
];

fn rule(change: impl FnOnce(&mut AccessRule)) -> AccessRule {
    let mut rule = AccessRule::ALL;
    change(&mut rule);
    rule
}

fn sets(names: &[&str]) -> AccessRule {
    rule(|rule| rule.toolsets = Some(owned(names)))
}

fn tools(patterns: &[&str]) -> AccessRule {
    rule(|rule| rule.tools = Some(owned(patterns)))
}

fn scope(rules: Vec<AccessRule>) -> Scope {
    Scope { access: vec![Arc::new(AccessRules::new(rules))], ..Scope::default() }
}

/// The rules grant exactly these tools and toolsets, in every exposure, and no path leads to the others.
#[track_caller]
fn check(rules: &[AccessRule], expected: &[&str], expected_sets: &[&str]) {
    let index = index(|_| {});
    let scope = scope(rules.to_vec());
    for mode in [ExposureMode::Legacy, ExposureMode::Dynamic] {
        let view = view_in(&index, &exposure(mode, &[]), scope.clone(), &ALL_SETS);
        let shown: Vec<_> = view.tools().map(|entry| entry.shown_name().to_string()).collect();
        assert_eq!(shown, expected, "{mode:?} {rules:?}");
        assert_eq!(view.set_names(), expected_sets, "{mode:?} {rules:?}");
        for tool in ALL.iter().filter(|tool| !expected.contains(tool)) {
            unreachable(&view, tool, &tool.replace('.', "__"));
        }
    }
    let known: Vec<_> = index.toolsets_for(&scope.access).map(|set| set.name.as_str()).collect();
    for (at, entry) in index.entries().iter().enumerate() {
        let is_granted = expected.contains(&ALL[at]);
        assert_eq!(index.grants(&scope.access[0], &entry.tool), is_granted, "{}", ALL[at]);
    }
    for name in ["market", "notes"] {
        let is_granted = expected.iter().any(|tool| tool.starts_with(name));
        let is_known = index.grants_server(&scope.access[0], &ServerName::new(name));
        assert_eq!(is_known, is_granted, "{name} {rules:?}");
    }
    assert_eq!(known, expected_sets, "{rules:?}");
}

#[test]
fn rules_grant_toolsets_and_tools_together_without_what_they_deny() {
    check(&[AccessRule::ALL], &ALL, &ALL_SETS);
    check(&[], &[], &[]);
    check(&[sets(&[])], &[], &[]);
    check(&[tools(&[])], &[], &[]);
    check(&[sets(&["quotes"])], &ALL[..1], &["quotes"]);
    check(&[sets(&["nobody-has-it"])], &[], &[]);
    check(&[tools(&["notes.*"])], &ALL[5..], &["notes"]);
    check(&[tools(&["readNote"])], &ALL[5..6], &["notes"]);
    let both = rule(|rule| {
        rule.toolsets = Some(owned(&["quotes"]));
        rule.tools = Some(owned(&["*Note"]));
        rule.deny_tools = owned(&["notes.write*"]);
    });
    check(&[both], &[ALL[0], ALL[5]], &["quotes", "notes"]);
    let read_only = rule(|rule| rule.read_only = true);
    let read: Vec<_> = [&ALL[..4], &ALL[5..6]].concat();
    check(&[read_only], &read, &ALL_SETS);
    check(&[sets(&["quotes"]), sets(&["notes"])], &[ALL[0], ALL[5], ALL[6]], &["quotes", "notes"]);
    let without = rule(|rule| {
        rule.toolsets = Some(owned(&["notes"]));
        rule.deny_tools = owned(&["writeNote"]);
    });
    check(&[without], &ALL[5..6], &["notes"]);
    let denied = rule(|rule| rule.deny_tools = owned(&["market.*"]));
    check(&[denied, tools(&["market.placeOrder"])], &ALL[4..], &["trade", "market", "notes"]);
}

#[test]
fn what_is_not_granted_cannot_be_named() {
    let index = index(|plan| plan.servers.push(server("silent")));
    let servers = owned(&["market", "notes", "silent"]);
    let fault = |rules: Vec<AccessRule>, server: Option<&str>, sets: &[&str]| {
        let scope = Scope {
            server: server.map(str::to_owned),
            toolsets: if sets.is_empty() { Vec::new() } else { vec![owned(sets)] },
            ..scope(rules)
        };
        scope.check(&index, &exposure(ExposureMode::Legacy, &[]), &servers).err()
    };
    let no_server = |name: &str| Some(ScopeFault::UnknownServer(name.into()));
    assert_eq!(fault(vec![sets(&["quotes"])], Some("market"), &[]), None);
    assert_eq!(fault(vec![sets(&["quotes"])], Some("notes"), &[]), no_server("notes"));
    assert_eq!(fault(vec![AccessRule::ALL], Some("silent"), &[]), None, "it may get tools");
    assert_eq!(fault(vec![sets(&["silent"])], Some("silent"), &[]), None);
    assert_eq!(fault(vec![tools(&["silent.*"])], Some("silent"), &[]), None);
    assert_eq!(fault(vec![tools(&["silent.one"])], Some("silent"), &[]), no_server("silent"));
    assert_eq!(fault(vec![tools(&["sil.*"])], Some("silent"), &[]), no_server("silent"));
    let read_only = rule(|rule| rule.read_only = true);
    assert_eq!(fault(vec![read_only], Some("silent"), &[]), no_server("silent"));
    let denied = rule(|rule| rule.deny_tools = owned(&["silent.*"]));
    assert_eq!(fault(vec![denied], Some("silent"), &[]), no_server("silent"));
    let (name, known) = ("notes".to_owned(), owned(&["quotes"]));
    assert_eq!(
        fault(vec![sets(&["quotes"])], None, &["notes"]),
        Some(ScopeFault::UnknownToolset { name, known }),
    );
}

#[test]
fn a_server_whose_tools_are_not_known_may_have_granted_ones() {
    let index = index(|plan| plan.servers.push(server("silent")));
    let deny = |rule: AccessRule, denied: &str| AccessRule { deny_tools: owned(&[denied]), ..rule };
    for (rule, server, may) in [
        (AccessRule::ALL, "silent", true),
        (sets(&["silent"]), "silent", true),
        (sets(&["quotes"]), "silent", false),
        (tools(&["silent.one"]), "silent", true),
        (tools(&["*.one"]), "silent", true),
        (tools(&["sil*.one"]), "silent", true),
        (tools(&["silent2.one"]), "silent", false),
        (tools(&["one"]), "silent", false),
        (tools(&[]), "silent", false),
        (rule(|rule| rule.read_only = true), "silent", true),
        (deny(tools(&["silent.one"]), "silent.*"), "silent", false),
        (deny(tools(&["silent.one"]), "silent.two"), "silent", true),
        (tools(&["market.getQuote"]), "market", true),
        (tools(&["market.nothing"]), "market", false),
    ] {
        let rules = Arc::new(AccessRules::new(vec![rule]));
        assert_eq!(index.may_grant_of_server(&rules, &ServerName::new(server)), may, "{rules:?}");
    }
}

/// The toolsets in a view of a catalog with a server `silent` whose tools are not known.
fn sets_beside_silent(rule: AccessRule) -> Vec<String> {
    let index = index(|plan| plan.servers.push(server("silent")));
    let view = view_in(&index, &exposure(ExposureMode::Dynamic, &[]), scope(vec![rule]), &ALL_SETS);
    view.set_names().to_vec()
}

#[test]
fn a_toolset_without_anything_granted_is_not_shown() {
    let (nothing, silent) = (owned(&[]), owned(&["silent"]));
    let denied =
        |set: &str| AccessRule { deny_tools: owned(&[&format!("{set}.*")]), ..sets(&[set]) };
    assert_eq!(sets_beside_silent(denied("notes")), nothing);
    assert_eq!(sets_beside_silent(denied("silent")), nothing);
    assert_eq!(sets_beside_silent(sets(&["silent"])), silent, "it may get tools");
    assert_eq!(sets_beside_silent(tools(&["silent.*"])), silent);
    let beside = AccessRule { tools: Some(owned(&["silent.*"])), ..sets(&["quotes"]) };
    assert_eq!(sets_beside_silent(beside), owned(&["quotes", "silent"]));
}

#[test]
fn a_tool_of_an_attached_server_is_granted_by_its_own_properties() {
    let index = index(|_| {});
    let rules = |rule: AccessRule| Arc::new(AccessRules::new(vec![rule]));
    let reads = rules(rule(|rule| rule.read_only = true));
    let attached = |is_read_only| crate::view::tests::tool("own", "thing", is_read_only);
    assert!(index.grants(&reads, &attached(true)) && !index.grants(&reads, &attached(false)));
    assert!(!index.grants(&rules(tools(&["other.*"])), &attached(true)));
    assert!(index.grants(&rules(tools(&["own.*"])), &attached(false)));
}

#[test]
fn every_access_of_a_scope_counts() {
    let index = index(|_| {});
    let quotes = Arc::new(scope(vec![sets(&["quotes"])]));
    let notes = Arc::new(AccessRules::new(vec![sets(&["notes"])]));
    let replaced = quotes.with_access(std::slice::from_ref(&notes));
    assert_eq!(replaced.access.as_slice(), std::slice::from_ref(&notes));
    assert!(Arc::ptr_eq(&replaced.with_access(std::slice::from_ref(&notes)), &replaced));
    let both = Scope { access: vec![quotes.access[0].clone(), notes], ..Scope::default() };
    let view = view_in(&index, &exposure(ExposureMode::Legacy, &[]), both, &[]);
    for name in ["market", "notes"] {
        assert!(!view.grants_server(&ServerName::new(name)), "{name}");
    }
}

#[test]
fn a_scope_of_access_alone_has_no_other_restriction() {
    let narrowed = scope(vec![tools(&["x"])]);
    assert!(Scope::default().is_access_alone() && narrowed.is_access_alone());
    let text = || Some("x".to_owned());
    for more in [
        Scope { agent: text(), ..narrowed.clone() },
        Scope { server: text(), ..narrowed.clone() },
        Scope { toolsets: vec![owned(&["x"])], ..narrowed.clone() },
        Scope { tools: vec![Vec::new()], ..narrowed.clone() },
        Scope { read_only: true, ..narrowed.clone() },
        Scope { dynamic: true, ..narrowed.clone() },
        Scope { groups: Some(ToolGroups::default()), ..narrowed },
    ] {
        assert!(!more.is_access_alone(), "{more:?}");
    }
}

fn some_rule() -> impl Strategy<Value = AccessRule> {
    let names = proptest::sample::subsequence(ALL_SETS.to_vec(), 0..=ALL_SETS.len());
    let patterns = vec!["*", "market.*", "*Note", "getQuote", "notes.readNote", "get?plits", "x"];
    let patterns = proptest::sample::subsequence(patterns, 0..3);
    let deny = proptest::sample::subsequence(vec!["*Order", "notes.*", "getQuote"], 0..3);
    (proptest::option::of(names), proptest::option::of(patterns), deny, any::<bool>()).prop_map(
        |(toolsets, tools, deny, read_only)| AccessRule {
            toolsets: toolsets.map(|names| owned(&names)),
            tools: tools.map(|names| owned(&names)),
            deny_tools: owned(&deny),
            read_only,
        },
    )
}

proptest! {
    #[test]
    fn access_only_narrows(
        one in proptest::collection::vec(some_rule(), 0..3),
        other in proptest::collection::vec(some_rule(), 0..3),
        mode in proptest::sample::select(vec![ExposureMode::Legacy, ExposureMode::Static, ExposureMode::Dynamic]),
        enabled in proptest::sample::subsequence(ALL_SETS.to_vec(), 0..4),
    ) {
        let index = index(|_| {});
        let exposure = exposure(mode, &["quotes", "calendar", "notes"]);
        let view = |scope: Scope| view_in(&index, &exposure, scope, &enabled);
        let names = |view: &crate::View| -> Vec<String> {
            view.tools().map(|entry| entry.shown_name().to_string()).collect()
        };
        let whole = view(Scope::default());
        let narrow = view(scope(one.clone()));
        let mut both = scope(one.clone());
        both.access.push(Arc::new(AccessRules::new(other.clone())));
        let narrower = view(both);
        let union = view(scope([one.clone(), other.clone()].concat()));
        let (all, some, few) = (names(&whole), names(&narrow), names(&narrower));
        prop_assert!(some.iter().all(|tool| all.contains(tool)));
        prop_assert!(few.iter().all(|tool| some.contains(tool)));
        prop_assert!(narrow.set_names().iter().all(|set| whole.set_names().contains(set)));
        let united = names(&union);
        prop_assert!(united.iter().all(|tool| all.contains(tool)));
        prop_assert!(some.iter().all(|tool| united.contains(tool)));
        for tool in ALL.iter().filter(|tool| narrow.reach(tool).is_err()) {
            unreachable(&narrow, tool, &tool.replace('.', "__"));
            prop_assert!(!narrow.list(ListEra::Session).windows(tool.len()).any(|it| it == tool.as_bytes()));
        }
    }
}
