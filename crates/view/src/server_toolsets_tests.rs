use switchboard_model::ToolsetPlan;

use super::*;
use crate::selection::Selection;
use crate::view::tests::{chosen, dynamic, index, owned, scoped, server};

/// Two servers, and the toolsets `reading` (all of `notes` by name), `all` (all of `market` by pattern) and `some`.
fn plan(change: impl FnOnce(&mut Plan)) -> Plan {
    let set = |name: &str, servers: &[&str], tools: &[&str]| ToolsetPlan {
        name: name.to_owned(),
        description: String::new(),
        when_to_use: None,
        servers: servers.iter().map(|name| ServerName::new(*name)).collect(),
        tools: owned(tools),
    };
    let mut plan = Plan {
        servers: vec![server("market"), server("notes")],
        toolsets: vec![
            set("reading", &["notes"], &[]),
            set("all", &[], &["market.*"]),
            set("some", &[], &["market.get*"]),
        ],
        ..Plan::default()
    };
    change(&mut plan);
    plan
}

/// Whether `market` and `notes` may be named to clients.
#[track_caller]
fn check_named(expected: [bool; 2], change: impl FnOnce(&mut Plan)) {
    let sets = ServerToolsets::new(&plan(change));
    let named = ["market", "notes"].map(|name| sets.may_be_named(&ServerName::new(name)));
    assert_eq!(named, expected, "{sets:?}");
}

#[test]
fn a_server_may_be_named_unless_policy_denies_it_whole() {
    check_named([true, true], |_| {});
    check_named([true, false], |plan| plan.gateway.deny_toolsets = owned(&["notes"]));
    check_named([true, false], |plan| plan.gateway.deny_toolsets = owned(&["reading"]));
    check_named([false, true], |plan| plan.gateway.deny_toolsets = owned(&["all"]));
    check_named([true, true], |plan| plan.gateway.deny_toolsets = owned(&["some"]));
    check_named([false, true], |plan| plan.gateway.allow_toolsets = Some(owned(&["reading"])));
    // A later tool of either server could match a pattern.
    check_named([true, true], |plan| plan.gateway.allow_toolsets = Some(owned(&["some"])));
    check_named([false, false], |plan| plan.gateway.allow_toolsets = Some(Vec::new()));
    let unknown = ServerToolsets::new(&plan(|_| {}));
    assert!(!unknown.may_be_named(&ServerName::new("crm")));
}

/// Whether `notes` belongs to a view.
#[track_caller]
fn check_shown(expected: bool, view: &View, scope: &Scope, exposure: &Exposure) {
    let sets = ServerToolsets::new(&plan(|_| {}));
    let shown = sets.shows(&ServerName::new("notes"), view, scope, exposure);
    assert_eq!(shown, expected, "{scope:?} {:?}", view.selection());
}

#[test]
fn a_connection_narrows_servers_without_tools_like_those_with_tools() {
    let open = Exposure::default();
    let check = |expected: bool, scope: Scope| {
        check_shown(expected, &scoped(scope.clone()), &scope, &open);
    };
    check(true, Scope::default());
    check(true, Scope { server: Some("notes".into()), ..Scope::default() });
    check(false, Scope { server: Some("market".into()), ..Scope::default() });
    check(true, Scope { toolsets: vec![owned(&["notes", "market"])], ..Scope::default() });
    let both = vec![owned(&["reading"]), owned(&["market"])];
    check(false, Scope { toolsets: both, ..Scope::default() });
    check(false, Scope { read_only: true, ..Scope::default() });
    check(false, Scope { tools: vec![owned(&["notes__readNote"])], ..Scope::default() });
}

#[test]
fn a_session_switches_servers_without_tools_with_their_toolsets() {
    let (index, scope, open) = (index(|_| {}), Scope::default(), Exposure::default());
    let off = |set: &str| Selection {
        toolsets: [(set.to_owned(), false)].into(),
        ..Selection::default()
    };
    check_shown(true, &chosen(&index, off("market")), &scope, &open);
    check_shown(false, &chosen(&index, off("notes")), &scope, &open);
    check_shown(false, &chosen(&index, off("reading")), &scope, &open);
    let bound = |server: &str| Selection {
        servers: Some([server.to_owned()].into()),
        ..Selection::default()
    };
    check_shown(true, &chosen(&index, bound("notes")), &scope, &open);
    check_shown(false, &chosen(&index, bound("market")), &scope, &open);
    let dynamic_mode = Exposure { mode: ExposureMode::Dynamic, ..Exposure::default() };
    check_shown(false, &dynamic(&index, &["market"]), &scope, &dynamic_mode);
    check_shown(true, &dynamic(&index, &["notes"]), &scope, &dynamic_mode);
    let statics = |sets: &[&str]| Exposure {
        mode: ExposureMode::Static,
        tool_sets: owned(sets),
        ..Exposure::default()
    };
    let all = chosen(&index, Selection::default());
    check_shown(true, &all, &scope, &statics(&["reading"]));
    check_shown(false, &all, &scope, &statics(&["market"]));
}

#[test]
fn a_server_without_a_toolset_of_its_own_is_in_those_that_name_it() {
    let alone = |name: &str, plan: &mut Plan| {
        let server = plan.servers.iter_mut().find(|server| server.spec.name.as_str() == name);
        server.unwrap().toolset = Some(NO_TOOLSET.into());
    };
    let of = |name: &str, change: &dyn Fn(&mut Plan)| {
        let plan = plan(|plan| change(plan));
        let server = plan.servers.iter().find(|server| server.spec.name.as_str() == name);
        sets_of(server.unwrap(), &plan)
    };
    assert_eq!(of("notes", &|_| {}), ["notes", "reading"]);
    assert_eq!(of("notes", &|plan| alone("notes", plan)), ["reading"]);
    assert_eq!(of("market", &|_| {}), ["market", "all"]);
    assert_eq!(of("market", &|plan| plan.servers[0].toolset = Some("all".into())), ["all"]);
}
