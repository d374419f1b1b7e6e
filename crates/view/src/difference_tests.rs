//! What differs between two views, and what a selection and a history mean for a view.

use std::collections::HashSet;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use switchboard_model::CanonicalName;
use switchboard_registry::{Catalog, CatalogTool};

use super::tests::*;
use super::*;
use crate::{DeclaredTool, not_enabled};

/// The added, removed and changed names from one view to the next.
#[track_caller]
fn check(before: &View, after: &View, expected: [&[&str]; 3]) {
    let difference = after.since(before);
    let told = [&difference.added, &difference.removed, &difference.changed];
    let told = told.map(|names| names.iter().map(|name| &**name).collect::<Vec<_>>());
    assert_eq!(told, expected.map(<[_]>::to_vec));
    assert_eq!(difference.is_empty(), expected.iter().all(|names| names.is_empty()));
}

#[test]
fn a_difference_names_what_came_what_went_and_what_has_another_definition() {
    let index = index(|_| {});
    let quotes = dynamic(&index, &["quotes"]);
    let calendar = dynamic(&index, &["calendar"]);
    check(&quotes, &quotes, [&[], &[], &[]]);
    check(
        &quotes,
        &calendar,
        [&["market__listDividends", "market__getSplits"], &["market__getQuote"], &[]],
    );
    // The same set of tools by another selection is no difference.
    check(&calendar, &dynamic(&index, &["calendar", "earnings"]), [&[], &[], &[]]);
    let mut tools: Vec<_> = catalog().tools().to_vec();
    let mut first = CatalogTool::clone(&tools[0]);
    first.descriptor.description = Some("Does it better".into());
    tools[0] = Arc::new(first);
    let changed = Arc::new(Index::new(&Catalog::new(8, tools), &plan()));
    check(&quotes, &dynamic(&changed, &["quotes"]), [&[], &[], &["market__getQuote"]]);
    check(&calendar, &dynamic(&changed, &["calendar"]), [&[], &[], &[]]);
}

#[test]
fn a_view_knows_the_servers_of_its_tools_and_those_that_it_can_reach() {
    let index = index(|plan| plan.gateway.deny_toolsets = owned(&["notes"]));
    let (market, notes) = (ServerName::new("market"), ServerName::new("notes"));
    let nothing = dynamic(&index, &[]);
    assert!(!nothing.has_server(&market) && nothing.reaches_server(&market));
    let quotes = dynamic(&index, &["quotes"]);
    assert!(quotes.has_server(&market) && quotes.reaches_server(&market));
    assert!(!quotes.has_server(&notes) && !quotes.reaches_server(&notes));
    assert!(index.has_server(&notes), "the index has what policy hides");
    assert!(index.permits("market.getQuote") && !index.permits("notes.readNote"));
    let quote = CanonicalName::new(&market, "getQuote");
    assert!(nothing.reaches_tool(&quote));
    assert!(!nothing.reaches_tool(&CanonicalName::new(&notes, "readNote")));
}

#[test]
fn a_disabled_tool_is_answered_with_the_way_to_enable_it() {
    let index = index(|_| {});
    let message = |view: &View, name: &str, has_session: bool| {
        let Found::Disabled { entry, sets } = view.find(name) else { panic!("{name} is enabled") };
        not_enabled(view, entry, &sets, has_session)
    };
    let view = dynamic(&index, &[]);
    assert_eq!(
        message(&view, "market__getCompanyProfile", true),
        "tool 'market__getCompanyProfile' is in the toolsets company, market, none of which is enabled in this \
         session: call enable_toolset with {\"toolsetName\":\"company\"} first, or use call_tool"
    );
    let shown = message(&view, "market__getCompanyProfile", false);
    assert!(shown.ends_with("run it with call_tool"), "{shown}");
    let off = |set: &str| Selection {
        toolsets: [(set.to_owned(), false)].into(),
        ..Selection::default()
    };
    assert_eq!(
        message(&chosen(&index, off("notes")), "notes__readNote", true),
        "tool 'notes__readNote' is in toolset 'notes', which is not enabled in this session: `switchboard session \
         enable` switches one on"
    );
    let tools = [("notes.readNote".to_owned(), false)].into();
    let view = chosen(&index, Selection { tools, ..Selection::default() });
    let shown = message(&view, "notes__readNote", true);
    assert!(shown.contains("is switched off in this session"), "{shown}");
}

#[test]
fn selections_are_compared_by_their_choices_and_allow_by_pattern() {
    let quotes = Selection::of_sets(owned(&["quotes"]));
    let attached = Selection { owner: Some("work".into()), ..quotes.clone() };
    assert!(quotes.chooses_same(&attached) && quotes != attached);
    assert!(!quotes.chooses_same(&Selection::default()));
    let allow = [("openai".to_owned(), owned(&["market__get*", "notes.?eadNote"]))].into();
    let selection = Selection { allow, ..Selection::default() };
    for (provider, names, expected) in [
        ("openai", &["market__getQuote", "market.getQuote"][..], true),
        ("openai", &["notes__readNote", "notes.readNote"], true),
        ("openai", &["notes__writeNote", "notes.writeNote"], false),
        ("gemini", &["notes__writeNote"], true),
    ] {
        assert_eq!(selection.allows(provider, names), expected, "{provider} {names:?}");
    }
}

#[test]
fn histories_are_equal_when_their_names_are() {
    let one = |name: &str| DeclaredTool {
        name: name.into(),
        tool: CanonicalName::new(&ServerName::new("market"), name),
    };
    let past = |declared: &[&str], retired: &[&str]| {
        let of = |names: &[&str]| names.iter().map(|name| one(name)).collect();
        Past::new(of(declared), of(retired))
    };
    assert_eq!(past(&["a", "b"], &["c"]), past(&["a", "b"], &["c"]));
    assert_ne!(past(&["a", "b"], &["c"]), past(&["b", "a"], &["c"]));
    assert_ne!(past(&["a", "b"], &[]), past(&["a"], &["b"]));
    let all = [past(&["a"], &[]), past(&["a"], &[]), past(&[], &["a"])];
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 2);
}
