//! Tests of views over a small catalog: four toolsets, two of which share a tool, and two servers.

use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_model::{
    AdmissionMode, CanonicalName, Endpoint, EraChoice, Exposure, ExposureMode, JsonText, Naming,
    Plan, ServerName, ServerPlan, ServerSpec, ToolDescriptor, ToolsetPlan,
};
use switchboard_registry::{Catalog, CatalogTool};

use super::*;
use crate::{ScopeFault, Switched, unmatched_patterns};

/// Server, tool, and whether the tool has a `readOnlyHint`.
const TOOLS: [(&str, &str, bool); 7] = [
    ("market", "getQuote", true),
    ("market", "getCompanyProfile", true),
    ("market", "listDividends", true),
    ("market", "getSplits", true),
    ("market", "placeOrder", false),
    ("notes", "readNote", true),
    ("notes", "writeNote", false),
];

/// Each set with its patterns. `calendar` and `earnings` share `listDividends`.
const SETS: [(&str, &[&str]); 5] = [
    ("quotes", &["getQuote"]),
    ("company", &["market.getCompany*"]),
    ("calendar", &["listDividends", "getSplits"]),
    ("earnings", &["listDividends"]),
    ("trade", &["placeOrder", "getQuote"]),
];

pub(crate) const ALL_SETS: [&str; 7] =
    ["quotes", "company", "calendar", "earnings", "trade", "market", "notes"];

pub(crate) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn tool(server: &str, name: &str, is_read_only: bool) -> Arc<CatalogTool> {
    let descriptor = ToolDescriptor {
        description: Some(format!("Does {name}")),
        annotations: is_read_only.then(|| JsonText::from(&json!({"readOnlyHint": true}))),
        ..ToolDescriptor::named(name)
    };
    catalog_tool(server, descriptor)
}

pub(super) fn catalog_tool(server: &str, descriptor: ToolDescriptor) -> Arc<CatalogTool> {
    let name = CanonicalName::new(&ServerName::new(server), &descriptor.name);
    Arc::new(CatalogTool::new(name, descriptor))
}

pub(crate) fn server(name: &str) -> ServerPlan {
    let endpoint = Endpoint::Stdio {
        command: "true".into(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        cwd: None,
    };
    let name = ServerName::new(name);
    ServerPlan {
        spec: ServerSpec {
            name,
            endpoint,
            place: "true".into(),
            referenced: Vec::new(),
            caller_headers: Vec::new(),
            era: EraChoice::Auto,
            connect_timeout: Duration::from_secs(1),
            sharing: switchboard_model::Sharing::Shared,
            egress: None,
        },
        mode: AdmissionMode::Dynamic,
        default_limits: None,
        tool_allowlist: None,
        tool_denylist: Vec::new(),
        required: false,
        required_origin: switchboard_model::RequiredOrigin::Nowhere,
        toolset: None,
        prompts: None,
        poll_interval: None,
        validate_arguments: true,
        content_check: switchboard_model::ContentCheckOverlay::default(),
        record: switchboard_model::RecordOverlay::default(),
        discovered: None,
    }
}

pub(super) fn plan() -> Plan {
    let sets = SETS.iter().map(|(name, tools)| ToolsetPlan {
        name: (*name).to_owned(),
        description: format!("About {name}"),
        when_to_use: (*name == "quotes").then(|| "to know a price".to_owned()),
        servers: Vec::new(),
        tools: owned(tools),
    });
    Plan {
        servers: vec![server("market"), server("notes")],
        toolsets: sets.collect(),
        ..Plan::default()
    }
}

pub(super) fn catalog() -> Catalog {
    let tools = TOOLS.iter().map(|(server, name, read_only)| tool(server, name, *read_only));
    Catalog::new(7, tools.collect())
}

pub(crate) fn index(change: impl FnOnce(&mut Plan)) -> Arc<Index> {
    let mut plan = plan();
    change(&mut plan);
    Arc::new(Index::new(&catalog(), &plan))
}

pub(crate) fn exposure(mode: ExposureMode, sets: &[&str]) -> Exposure {
    Exposure { mode, tool_sets: owned(sets), reason: String::new() }
}

pub(crate) fn view_in(
    index: &Arc<Index>,
    exposure: &Exposure,
    scope: Scope,
    enabled: &[&str],
) -> View {
    let selection = Selection::of_sets(owned(enabled));
    let key =
        ViewKey { scope: Arc::new(scope), selection: Arc::new(selection), past: Arc::default() };
    View::new(index.clone(), exposure, &key)
}

pub(crate) fn dynamic(index: &Arc<Index>, enabled: &[&str]) -> View {
    view_in(index, &exposure(ExposureMode::Dynamic, &[]), Scope::default(), enabled)
}

pub(crate) fn chosen(index: &Arc<Index>, selection: Selection) -> View {
    let key =
        ViewKey { scope: Arc::default(), selection: Arc::new(selection), past: Arc::default() };
    View::new(index.clone(), &Exposure::default(), &key)
}

pub(crate) fn scoped(scope: Scope) -> View {
    view_in(&index(|_| {}), &Exposure::default(), scope, &[])
}

pub(super) fn names(view: &View) -> Vec<&str> {
    view.tools().filter_map(|entry| entry.name.as_deref()).collect()
}

pub(super) fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(super) fn named(set: &str) -> Map<String, Value> {
    arguments(&json!({ "toolsetName": set }))
}

pub(super) fn again(view: &View, selection: &Selection) -> View {
    let enabled: Vec<&str> = selection.switched_on().collect();
    dynamic(view.index(), &enabled)
}

pub(crate) fn unreachable(view: &View, canonical: &str, exposed: &str) {
    assert!(!names(view).contains(&exposed));
    for name in [canonical, exposed] {
        let Found::Unknown { nearest } = view.find(name) else { panic!("{name} is found") };
        assert!(!nearest.contains(&exposed), "{nearest:?}");
        assert!(!view.reach(name).is_err_and(|nearest| nearest.contains(&exposed)));
        assert!(view.reach(name).is_err(), "{name} is reached");
        assert!(view.tool_text(&arguments(&json!({ "name": name })), ListEra::Stateless).is_err());
        let found = view.search_text(&arguments(&json!({"query": name, "limit": 50}))).unwrap();
        assert!(!found.contains(&format!("\"{exposed}\"")), "{found}");
    }
    for set in view.set_names() {
        let told = view.toolset_text(&named(set)).unwrap();
        assert!(!told.contains(exposed), "{told}");
        if let Ok(switched) = view.enable(&named(set)) {
            assert!(!switched.tools.iter().any(|tool| tool == exposed), "{switched:?}");
            assert!(!view.switched_text(&switched, Some(ListEra::Stateless)).contains(exposed));
        }
    }
    for era in [ListEra::Session, ListEra::Stateless] {
        let list = String::from_utf8(view.list(era).to_vec()).unwrap();
        assert!(!list.contains(&format!("\"{exposed}\"")), "{list}");
    }
}

#[test]
fn deny_wins_and_hides_a_tool_of_every_set_that_has_it() {
    let index = index(|plan| {
        plan.gateway.deny_toolsets = owned(&["trade"]);
        plan.gateway.allow_toolsets = Some(owned(&["trade", "quotes", "company", "notes"]));
    });
    for (mode, enabled) in [
        (ExposureMode::Legacy, &[][..]),
        (ExposureMode::Dynamic, &[][..]),
        (ExposureMode::Dynamic, &["trade", "quotes", "market", "company"]),
    ] {
        let view = view_in(&index, &exposure(mode, &[]), Scope::default(), enabled);
        assert_eq!(view.set_names(), ["quotes", "company", "notes"]);
        // `getQuote` is also in `quotes`, which is allowed; `getSplits` is in no allowed set.
        unreachable(&view, "market.placeOrder", "market__placeOrder");
        unreachable(&view, "market.getQuote", "market__getQuote");
        unreachable(&view, "market.getSplits", "market__getSplits");
        assert!(view.reach("market.getCompanyProfile").is_ok());
        for hidden in ["trade", "calendar", "market"] {
            let told = view.enable(&named(hidden)).unwrap_err();
            assert!(told.starts_with(&format!("there is no toolset '{hidden}' here")), "{told}");
        }
    }
}

#[test]
fn an_empty_allow_list_allows_nothing() {
    let index = index(|plan| plan.gateway.allow_toolsets = Some(Vec::new()));
    let view = dynamic(&index, &["quotes"]);
    assert_eq!((names(&view).len(), view.set_names().len()), (0, 0));
    let told = view.enable(&named("quotes")).unwrap_err();
    assert_eq!(told, "there is no toolset 'quotes' here; there are none here");
    assert_eq!(view.toolsets_text(), r#"{"toolsets":[]}"#);
}

#[test]
fn a_scope_narrows_in_every_way_at_once() {
    let open = Scope::default;
    let sets = |places: &[&[&str]]| places.iter().map(|sets| owned(sets)).collect::<Vec<_>>();
    let all: Vec<String> =
        TOOLS.iter().map(|(server, tool, _)| format!("{server}__{tool}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for (scope, shown) in [
        (open(), all.as_slice()),
        (
            Scope { server: Some("notes".into()), ..open() },
            &["notes__readNote", "notes__writeNote"],
        ),
        (
            Scope { toolsets: sets(&[&["quotes", "earnings"]]), ..open() },
            &["market__getQuote", "market__listDividends"],
        ),
        (
            Scope { toolsets: sets(&[&["quotes", "earnings"], &["calendar"]]), ..open() },
            &["market__listDividends"],
        ),
        (Scope { toolsets: sets(&[&["quotes"], &["company"]]), ..open() }, &[]),
        (
            Scope {
                tools: vec![owned(&["market.getQuote", "notes__readNote", "nothing"])],
                ..open()
            },
            &["market__getQuote", "notes__readNote"],
        ),
        (
            // Two sources may name the same tool in two forms.
            Scope {
                tools: vec![
                    owned(&["market.getQuote", "notes__readNote"]),
                    owned(&["market__getQuote"]),
                ],
                ..open()
            },
            &["market__getQuote"],
        ),
        (Scope { tools: vec![Vec::new()], ..open() }, &[]),
        (Scope { tools: vec![owned(&["notes.readNote"]), Vec::new()], ..open() }, &[]),
        (Scope { read_only: true, server: Some("notes".into()), ..open() }, &["notes__readNote"]),
        (Scope { toolsets: sets(&[&["trade"]]), read_only: true, ..open() }, &["market__getQuote"]),
        (Scope { dynamic: true, ..open() }, &[]),
    ] {
        assert_eq!(names(&scoped(scope.clone())), shown, "{scope:?}");
    }
}

#[test]
fn a_dynamic_view_of_a_scope_switches_only_what_the_scope_has() {
    let index = index(|_| {});
    let to_sets = Scope { toolsets: vec![owned(&["quotes", "earnings"])], ..Scope::default() };
    let view =
        view_in(&index, &exposure(ExposureMode::Dynamic, &[]), to_sets, &["company", "quotes"]);
    assert_eq!(view.set_names(), ["quotes", "earnings"]);
    assert_eq!(names(&view), ["market__getQuote"]);
    unreachable(&view, "market.getCompanyProfile", "market__getCompanyProfile");
    let to_server = Scope { server: Some("notes".into()), ..Scope::default() };
    let view =
        view_in(&index, &exposure(ExposureMode::Dynamic, &[]), to_server, &["market", "notes"]);
    assert_eq!(view.set_names(), ["notes"]);
    assert_eq!(names(&view), ["notes__readNote", "notes__writeNote"]);
    let within_static = Scope { dynamic: true, ..Scope::default() };
    let statics = exposure(ExposureMode::Static, &["quotes", "company"]);
    let view = view_in(&index, &statics, within_static, &["notes", "company"]);
    assert_eq!(
        (view.mode(), view.set_names()),
        (ExposureMode::Dynamic, &owned(&["quotes", "company"])[..])
    );
    assert_eq!(names(&view), ["market__getCompanyProfile"]);
    unreachable(&view, "notes.readNote", "notes__readNote");
}

#[test]
fn a_connection_cannot_name_what_is_not_shown() {
    let index = index(|plan| plan.gateway.deny_toolsets = owned(&["trade"]));
    let servers = owned(&["market", "notes"]);
    let statics = exposure(ExposureMode::Static, &["quotes", "company"]);
    let to_set =
        |name: &str| Scope { toolsets: vec![owned(&["quotes", name])], ..Scope::default() };
    let check = |scope: &Scope, exposure: &Exposure| scope.check(&index, exposure, &servers);
    assert_eq!(check(&to_set("company"), &statics), Ok(()));
    let refused = check(&to_set("notes"), &statics).unwrap_err();
    assert_eq!(refused.to_string(), "there is no toolset 'notes' here; there are: quotes, company");
    let open = Exposure::default();
    assert_eq!(check(&to_set("notes"), &open), Ok(()));
    let known = ALL_SETS.iter().filter(|set| **set != "trade").map(|set| (*set).to_owned());
    let unknown = ScopeFault::UnknownToolset { name: "trade".into(), known: known.collect() };
    assert_eq!(check(&to_set("trade"), &open), Err(unknown));
    let to_server = Scope { server: Some("nobody".into()), ..Scope::default() };
    let refused = check(&to_server, &open).unwrap_err();
    assert_eq!(refused.to_string(), "there is no MCP server 'nobody' here");
}

#[test]
fn a_dynamic_connection_begins_with_no_more_sets_than_may_be_active() {
    use ExposureMode::{Dynamic, Legacy, Static};
    let index = index(|plan| plan.gateway.max_active_toolsets = Some(2));
    let sets = |places: &[&[&str]]| Scope {
        toolsets: places.iter().map(|sets| owned(sets)).collect(),
        ..Scope::default()
    };
    let three = &["quotes", "company", "calendar"][..];
    let dynamically = |scope: Scope| Scope { dynamic: true, ..scope };
    for (configured, scope, is_good) in [
        (exposure(Dynamic, &[]), sets(&[three]), false),
        (exposure(Dynamic, &[]), sets(&[&three[1..]]), true),
        (exposure(Dynamic, &[]), sets(&[&["quotes", "quotes", "company"]]), true),
        // Two sources that have two toolsets in common.
        (exposure(Dynamic, &[]), sets(&[three, &three[1..]]), true),
        (exposure(Dynamic, &["quotes"]), Scope::default(), true),
        // The limit applies only where toolsets can be switched.
        (exposure(Legacy, &[]), sets(&[three]), true),
        (exposure(Static, three), sets(&[three]), true),
        (exposure(Legacy, &[]), dynamically(sets(&[three])), false),
        (exposure(Static, three), dynamically(sets(&[three])), false),
    ] {
        let checked = scope.check_first_sets(&index, &configured);
        assert_eq!(checked.is_ok(), is_good, "{configured:?} {scope:?}");
    }
    let told = sets(&[three]).check_first_sets(&index, &exposure(Dynamic, &[])).unwrap_err();
    assert_eq!(
        told.to_string(),
        "at most 2 toolsets may be active (max_active_toolsets), and this connection would begin with 3: calendar, \
         company, quotes; name fewer, and enable others when they are needed"
    );
}

#[test]
fn the_mode_and_the_first_sets_of_a_connection() {
    use ExposureMode::{Dynamic, Legacy, Static};
    let sets = |sets: &[&str]| Scope { toolsets: vec![owned(sets)], ..Scope::default() };
    let dynamic = |scope: Scope| Scope { dynamic: true, ..scope };
    for (configured, scope, mode, first) in [
        (exposure(Legacy, &[]), Scope::default(), Legacy, &[][..]),
        (exposure(Legacy, &[]), sets(&["a"]), Static, &["a"]),
        (exposure(Legacy, &[]), dynamic(sets(&["a"])), Dynamic, &["a"]),
        (exposure(Legacy, &[]), dynamic(Scope::default()), Dynamic, &[]),
        (exposure(Static, &["a", "b"]), Scope::default(), Static, &[]),
        (exposure(Static, &["a", "b"]), dynamic(Scope::default()), Dynamic, &[]),
        (exposure(Dynamic, &["a"]), Scope::default(), Dynamic, &["a"]),
        (exposure(Dynamic, &["a"]), sets(&["b"]), Dynamic, &["b"]),
    ] {
        let found = (scope.mode(&configured), scope.first_sets(&configured));
        assert_eq!(found, (mode, owned(first)), "{configured:?} {scope:?}");
    }
    let twice =
        Scope { toolsets: vec![owned(&["a", "b"]), owned(&["b", "c"])], ..Scope::default() };
    assert_eq!(twice.first_sets(&exposure(Dynamic, &[])), ["b"]);
}

#[test]
fn where_two_places_name_sets_a_dynamic_client_begins_with_what_is_in_both() {
    let (index, configured) = (index(|_| {}), exposure(ExposureMode::Dynamic, &[]));
    for (one, other, tools, sets) in [
        (
            &["calendar"][..],
            &["earnings"][..],
            &["listDividends"][..],
            &["calendar", "earnings"][..],
        ),
        (&["quotes"], &["quotes", "company", "notes"], &["getQuote"], &["quotes"]),
        (
            &["quotes", "company"],
            &["trade", "market"],
            &["getQuote", "getCompanyProfile"],
            &["quotes", "company", "trade", "market"],
        ),
        (&["quotes"], &["notes"], &[], &[]),
    ] {
        let scope = Scope { toolsets: vec![owned(one), owned(other)], ..Scope::default() };
        let first = scope.first_sets(&configured);
        let first: Vec<_> = first.iter().map(String::as_str).collect();
        let view = view_in(&index, &configured, scope, &first);
        let shown: Vec<_> = view.tools().map(|entry| entry.tool.name.tool()).collect();
        assert_eq!(shown, tools, "{one:?} {other:?}");
        assert_eq!(view.set_names(), owned(sets), "{one:?} {other:?}");
    }
}

#[test]
fn names_that_are_not_given_and_patterns_for_nothing_are_warned_of() {
    let ghost = ToolsetPlan {
        name: "ghost".into(),
        description: String::new(),
        when_to_use: None,
        servers: Vec::new(),
        tools: owned(&["market.nope", "zz_*", "get*", "market.getQoute", "getQuot"]),
    };
    let mut plan = Plan { toolsets: vec![ghost], ..plan() };
    let exposed = |server: &str, name: &str, expose_as: &str| {
        let tool = CatalogTool::clone(&tool(server, name, true));
        Arc::new(CatalogTool { expose_as: Some(expose_as.into()), ..tool })
    };
    let tools = vec![
        tool("market", "getQuote", true),
        exposed("notes", "readNote", "market__getQuote"),
        exposed("notes", "writeNote", "write"),
    ];
    let index = Index::new(&Catalog::new(1, tools.clone()), &plan);
    insta::assert_debug_snapshot!(index.warnings(), @r#"
    [
        "tool 'notes.readNote' is exposed as `market__getQuote_5a3e83c2`: its `expose_as: market__getQuote` is also the name of 'market.getQuote', so neither has it; choose another one",
    ]
    "#);
    // The tools of a server that has not connected are unknown.
    plan.servers = vec![server("market"), server("late")];
    let catalog = Catalog::new(1, tools);
    let unmatched =
        |heard: &[&str]| unmatched_patterns(&catalog, &plan, |name| heard.contains(&name.as_str()));
    let paths = |heard: &[&str]| -> Vec<_> {
        unmatched(heard).into_iter().map(|it| (it.path, it.nearest)).collect()
    };
    let at = |index: usize, nearest: Option<&str>| {
        (format!("toolsets[0].tools[{index}]"), nearest.map(str::to_owned))
    };
    let (nope, near) = (at(0, None), at(3, Some("market.getQuote")));
    assert_eq!(
        paths(&["market", "late"]),
        [nope.clone(), at(1, None), near.clone(), at(4, Some("getQuote"))]
    );
    assert_eq!(paths(&["market"]), [nope, near]);
    assert!(paths(&["late"]).is_empty());
    let first = unmatched(&["market"]).remove(0);
    assert_eq!(first.to_string(), "toolset 'ghost' names `market.nope`, and no tool is called so");
}

#[test]
fn names_of_meta_tools_and_taken_names_lead_where_they_should() {
    let tools = vec![tool("a", "call_tool", true), tool("a", "get", true), tool("b", "get", true)];
    let mut plan = Plan { servers: vec![server("a"), server("b")], ..Plan::default() };
    plan.gateway.naming = Naming::Bare;
    let index = Arc::new(Index::new(&Catalog::new(1, tools), &plan));
    assert_eq!(
        index.warnings(),
        [
            "tool 'a.get' is hidden by 'b.get': with `gateway.naming: bare` the last of one name wins; give one of them \
          an `expose_as`, or use `naming: prefixed`"
        ]
    );
    let view = dynamic(&index, &["a", "b"]);
    assert!(matches!(view.find("call_tool"), Found::Meta(MetaTool::CallTool)));
    let Found::Tool(entry) = view.find("get") else { panic!("get") };
    assert_eq!(entry.tool.name.as_str(), "b.get");
    let shown = names(&view);
    assert_eq!(shown.len(), 2);
    assert!(shown[0].starts_with("call_tool_"), "{shown:?}");
    assert!(view.reach("a.get").is_err(), "what another has the name of is not reached");
    let Found::Tool(entry) = view.find(shown[0]) else { panic!("{shown:?}") };
    assert_eq!(entry.tool.name.as_str(), "a.call_tool");
}

/// Tool `pay` of three servers, of which only `b` is read-only, and tool `own` of the first server.
fn rivals(change: impl FnOnce(&mut Plan)) -> Arc<Index> {
    let tools = vec![
        tool("a", "pay", false),
        tool("a", "own", false),
        tool("b", "pay", true),
        tool("c", "pay", false),
    ];
    let mut plan = Plan { servers: vec![server("a"), server("b"), server("c")], ..Plan::default() };
    plan.gateway.naming = Naming::Bare;
    change(&mut plan);
    Arc::new(Index::new(&Catalog::new(1, tools), &plan))
}

/// The tool that `pay` resolves to, checked by every lookup; `None` if there is none.
fn pay(view: &View) -> Option<String> {
    let found = match view.find("pay") {
        Found::Tool(entry) | Found::Disabled { entry, .. } => Some(entry.tool.name.to_string()),
        Found::Unknown { .. } => None,
        Found::Meta(meta) => panic!("{meta:?}"),
    };
    let reached = view.reach("pay").ok().map(|entry| entry.tool.name.to_string());
    assert_eq!(found, reached);
    let called = view.callable("pay").ok().map(|entry| entry.tool.name.to_string());
    assert_eq!(found, called);
    for canonical in ["a.pay", "b.pay", "c.pay"] {
        let is_it = found.as_deref() == Some(canonical);
        assert_eq!(view.reach(canonical).is_ok(), is_it, "{canonical}");
    }
    let matches = view.search("pay", 50);
    let matches: Vec<_> =
        matches.iter().filter(|(e, _)| e.name.as_deref() == Some("pay")).collect();
    assert_eq!(matches.len(), usize::from(found.is_some()));
    found
}

#[test]
fn of_one_bare_name_the_last_that_is_permitted_and_in_scope_has_it() {
    let open = Scope::default;
    let to_server = |name: &str| Scope { server: Some(name.into()), ..open() };
    let to_sets = |sets: &[&str]| Scope { toolsets: vec![owned(sets)], ..open() };
    let to_tool = |name: &str| Scope { tools: vec![owned(&[name])], ..open() };
    for (denied, scope, expected) in [
        (&[][..], open(), Some("c.pay")),
        (&["c"], open(), Some("b.pay")),
        (&["b", "c"], open(), Some("a.pay")),
        (&["b"], open(), Some("c.pay")),
        (&["a", "b", "c"], open(), None),
        (&[], to_server("a"), Some("a.pay")),
        (&[], to_server("b"), Some("b.pay")),
        (&["b"], to_server("b"), None),
        (&[], to_sets(&["a"]), Some("a.pay")),
        (&[], to_sets(&["b", "a"]), Some("b.pay")),
        (&["c"], to_sets(&["a"]), Some("a.pay")),
        (&[], Scope { read_only: true, ..open() }, Some("b.pay")),
        (&[], to_tool("a.pay"), Some("a.pay")),
        (&[], to_tool("pay"), Some("c.pay")),
        (&["c"], to_tool("c.pay"), None),
    ] {
        let index = rivals(|plan| plan.gateway.deny_toolsets = owned(denied));
        for mode in [ExposureMode::Legacy, ExposureMode::Dynamic] {
            let view = view_in(&index, &exposure(mode, &[]), scope.clone(), &["a", "b", "c"]);
            assert_eq!(pay(&view).as_deref(), expected, "{denied:?} {scope:?} {mode:?}");
            let shown: Vec<_> =
                view.tools().filter(|entry| entry.tool.name.tool() == "pay").collect();
            let shown: Vec<_> = shown.iter().map(|entry| entry.tool.name.as_str()).collect();
            assert_eq!(shown, expected.into_iter().collect::<Vec<_>>(), "{denied:?} {scope:?}");
        }
    }
    let statics = exposure(ExposureMode::Static, &["a", "b"]);
    let view = view_in(&rivals(|_| {}), &statics, open(), &[]);
    assert_eq!(pay(&view).as_deref(), Some("b.pay"));
    assert_eq!(names(&view), ["own", "pay"]);
    let bound = Selection { servers: Some(BTreeSet::from(["a".into()])), ..Selection::default() };
    assert_eq!(pay(&chosen(&rivals(|_| {}), bound)).as_deref(), Some("a.pay"));
}

#[test]
fn a_warning_names_what_is_hidden_among_what_is_permitted() {
    let told = |denied: &[&str]| -> Vec<String> {
        let index = rivals(|plan| plan.gateway.deny_toolsets = owned(denied));
        index.warnings().iter().map(|told| told.split(':').next().unwrap().to_owned()).collect()
    };
    let [a, b] = ["tool 'a.pay' is hidden by 'c.pay'", "tool 'b.pay' is hidden by 'c.pay'"];
    assert_eq!(told(&[]), [a, b]);
    assert_eq!(told(&["c"]), ["tool 'a.pay' is hidden by 'b.pay'"]);
    assert_eq!(told(&["b", "c"]), Vec::<String>::new());
}

#[test]
fn a_session_keeps_the_tool_of_a_name_in_its_place_when_a_rival_goes() {
    let before = chosen(&rivals(|_| {}), Selection::default());
    assert_eq!(names(&before), ["own", "pay"]);
    let key =
        ViewKey { past: before.past().clone(), scope: Arc::default(), selection: Arc::default() };
    let denied = rivals(|plan| plan.gateway.deny_toolsets = owned(&["c"]));
    let after = View::new(denied, &Exposure::default(), &key);
    assert_eq!(names(&after), ["own", "pay"]);
    assert_eq!(pay(&after).as_deref(), Some("b.pay"));
}

#[test]
fn sets_are_made_by_servers_too_and_a_written_one_replaces_them() {
    let described = |index: &Index| -> Vec<String> {
        let sets = index.toolsets();
        sets.map(|set| format!("{} {} {}", set.name, set.members.len(), set.description)).collect()
    };
    let plain = described(&index(|plan| plan.toolsets.clear()));
    assert_eq!(
        plain,
        [
            "market 5 All tools of the MCP server 'market'",
            "notes 2 All tools of the MCP server 'notes'"
        ]
    );
    let written = index(|plan| {
        plan.toolsets = vec![ToolsetPlan {
            name: "market".into(),
            description: "Mine".into(),
            when_to_use: None,
            servers: vec![ServerName::new("notes")],
            tools: owned(&["*Quote"]),
        }];
    });
    assert_eq!(described(&written)[0], "market 7 Mine");
}

fn text(view: &View, era: ListEra) -> String {
    String::from_utf8(view.list(era).to_vec()).unwrap()
}

#[test]
fn lists_are_these_bytes() {
    let index = index(|_| {});
    let statics = exposure(ExposureMode::Static, &["company", "notes"]);
    let view = view_in(&index, &statics, Scope::default(), &[]);
    insta::assert_snapshot!(text(&view, ListEra::Session));
    insta::assert_snapshot!(text(&view, ListEra::Stateless));
    let view = dynamic(&index, &["quotes"]);
    insta::assert_snapshot!(text(&view, ListEra::Session));
    insta::assert_snapshot!(text(&view, ListEra::Stateless));
    let nothing = scoped(Scope { tools: vec![Vec::new()], ..Scope::default() });
    assert_eq!(text(&nothing, ListEra::Session), r#"{"tools":[]}"#);
    for list in [text(&view, ListEra::Session), text(&view, ListEra::Stateless)] {
        let read: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(read["tools"].as_array().unwrap().len(), 8);
    }
}

#[test]
fn views_that_list_the_same_are_told_from_those_that_do_not() {
    let (one, other) = (index(|_| {}), index(|_| {}));
    let same = |a: &View, b: &View| {
        let bytes = text(a, ListEra::Session) == text(b, ListEra::Session);
        assert_eq!((a.lists_same(b), a.digest() == b.digest()), (bytes, bytes));
        bytes
    };
    assert!(same(&dynamic(&one, &["calendar"]), &dynamic(&other, &["calendar"])));
    assert!(same(&dynamic(&one, &["calendar"]), &dynamic(&one, &["calendar", "earnings"])));
    assert!(!same(&dynamic(&one, &["earnings"]), &dynamic(&one, &["calendar"])));
    assert!(!same(&dynamic(&one, &[]), &scoped(Scope { tools: vec![vec![]], ..Scope::default() })));
    let more_sets = index(|plan| plan.toolsets.truncate(2));
    assert!(
        !same(&dynamic(&one, &[]), &dynamic(&more_sets, &[])),
        "the catalogue line is part of the list"
    );
    let changed = {
        let mut tools: Vec<_> = catalog().tools().to_vec();
        let mut first = CatalogTool::clone(&tools[0]);
        first.descriptor.description = Some("Does it better".into());
        tools[0] = Arc::new(first);
        Arc::new(Index::new(&Catalog::new(8, tools), &plan()))
    };
    assert!(!same(&dynamic(&one, &["quotes"]), &dynamic(&changed, &["quotes"])));
    assert!(same(&dynamic(&one, &["notes"]), &dynamic(&changed, &["notes"])), "not in this view");
}

type Switch = fn(&View, &Map<String, Value>) -> Result<Switched, String>;

fn some_sets() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(ALL_SETS.to_vec(), 0..=ALL_SETS.len())
}

fn some_scope() -> impl Strategy<Value = Scope> {
    let server = proptest::option::of(proptest::sample::select(vec!["market", "notes"]));
    let tools: Vec<String> =
        TOOLS.iter().map(|(server, tool, _)| format!("{server}.{tool}")).collect();
    let tools = proptest::sample::subsequence(tools, 0..=TOOLS.len());
    let tools = proptest::collection::vec(tools, 0..3);
    let toolsets = proptest::collection::vec(some_sets(), 0..3);
    (server, toolsets, tools, any::<bool>(), any::<bool>()).prop_map(
        |(server, toolsets, tools, read_only, dynamic)| Scope {
            access: Vec::new(),
            agent: None,
            server: server.map(str::to_owned),
            toolsets: toolsets
                .iter()
                .filter(|sets| !sets.is_empty())
                .map(|sets| owned(sets))
                .collect(),
            tools,
            read_only,
            dynamic,
            groups: None,
        },
    )
}

proptest! {
    #[test]
    fn no_view_shows_what_policy_hides(
        allowed in proptest::option::of(some_sets()),
        denied in some_sets(),
        mode in proptest::sample::select(vec![ExposureMode::Legacy, ExposureMode::Static, ExposureMode::Dynamic]),
        first in some_sets(),
        scope in some_scope(),
        enabled in some_sets(),
        naming in proptest::sample::select(vec![Naming::Prefixed, Naming::Bare]),
    ) {
        let index = index(|plan| {
            plan.gateway.allow_toolsets = allowed.as_ref().map(|sets| owned(sets));
            plan.gateway.deny_toolsets = owned(&denied);
            plan.gateway.naming = naming;
        });
        let has = |set: &str, server: &str, tool: &str| {
            set == server || SETS.iter().any(|(name, tools)| {
                *name == set && tools.iter().any(|pattern| {
                    *pattern == tool || (*pattern == "market.getCompany*" && tool == "getCompanyProfile")
                })
            })
        };
        let view = view_in(&index, &exposure(mode, &first), scope.clone(), &enabled);
        for (server, tool, is_read_only) in TOOLS {
            let canonical = format!("{server}.{tool}");
            let exposed = match naming {
                Naming::Prefixed => format!("{server}__{tool}"),
                Naming::Bare => (*tool).to_owned(),
            };
            let is_in = |sets: &[&str]| sets.iter().any(|set| has(set, server, tool));
            let is_hidden = is_in(&denied)
                || allowed.as_ref().is_some_and(|allowed| !is_in(allowed))
                || (scope.read_only && !is_read_only)
                || scope.server.as_deref().is_some_and(|only| only != server)
                || scope.tools.iter().any(|tools| !tools.contains(&canonical))
                || (mode == ExposureMode::Static && !is_in(&first));
            if is_hidden {
                unreachable(&view, &canonical, &exposed);
            }
        }
        for entry in view.tools() {
            let name = entry.name.as_deref().unwrap();
            let Found::Tool(found) = view.find(name) else { panic!("{name} is shown and not found") };
            prop_assert_eq!(&found.tool.name, &entry.tool.name);
            prop_assert_eq!(&view.reach(name).unwrap().tool.name, &entry.tool.name);
        }
    }

    #[test]
    fn enabling_and_disabling_again_changes_nothing(
        enabled in some_sets(), set in proptest::sample::select(ALL_SETS.to_vec()),
    ) {
        let before = dynamic(&index(|_| {}), &enabled);
        let (there, back): (Switch, Switch) =
            if enabled.contains(&set) { (View::disable, View::enable) } else { (View::enable, View::disable) };
        let between = again(&before, &there(&before, &named(set)).unwrap().selection);
        let after = again(&before, &back(&between, &named(set)).unwrap().selection);
        prop_assert_eq!(text(&before, ListEra::Session), text(&after, ListEra::Session));
        prop_assert_eq!(text(&before, ListEra::Stateless), text(&after, ListEra::Stateless));
        prop_assert!(before.lists_same(&after));
    }
}

#[test]
fn a_server_whose_set_is_hidden_makes_none_and_its_tools_stay() {
    let index = index(|plan| plan.servers[1].toolset = Some(switchboard_model::NO_TOOLSET.into()));
    let names: Vec<_> = index.toolsets().map(|set| set.name.as_str()).collect();
    assert!(names.contains(&"market") && !names.contains(&"notes"), "{names:?}");
    assert!(!names.contains(&switchboard_model::NO_TOOLSET), "{names:?}");
    let notes = index.entries().iter().filter(|entry| entry.tool.name.server().as_str() == "notes");
    assert!(notes.count() > 0);
}
