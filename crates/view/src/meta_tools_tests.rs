//! Tests of the meta-tools in a dynamic view: switching, searching, describing.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_model::{Exposure, ExposureMode, JsonText, Plan, ToolDescriptor};
use switchboard_registry::Catalog;

use super::tests::*;
use super::*;

#[test]
fn enabled_sets_are_counted_where_they_share_tools() {
    let index = index(|_| {});
    for (enabled, shown) in [
        (&[][..], &[][..]),
        (&["quotes"], &["market__getQuote"]),
        (&["earnings"], &["market__listDividends"]),
        (&["calendar"], &["market__listDividends", "market__getSplits"]),
        (&["calendar", "earnings"], &["market__listDividends", "market__getSplits"]),
        (&["notes"], &["notes__readNote", "notes__writeNote"]),
        (&["quotes", "trade"], &["market__getQuote", "market__placeOrder"]),
        (&["nowhere"], &[]),
    ] {
        assert_eq!(names(&dynamic(&index, enabled)), shown, "{enabled:?}");
    }
}

#[test]
fn switching_says_what_comes_and_what_really_goes() {
    let first = dynamic(&index(|_| {}), &["calendar"]);
    let both = first.enable(&named("earnings")).unwrap();
    assert_eq!(both.message, "Toolset 'earnings' is enabled; it has 1 tools.");
    let view = again(&first, &both.selection);
    let one = view.disable(&named("earnings")).unwrap();
    assert_eq!(one.tools, Vec::<String>::new());
    assert_eq!(
        one.message,
        "Toolset 'earnings' is disabled; 0 tools are gone. 1 stay, because other enabled toolsets have them."
    );
    let none = again(&first, &one.selection).disable(&named("calendar")).unwrap();
    assert_eq!(none.tools, ["market__listDividends", "market__getSplits"]);
    assert_eq!(none.message, "Toolset 'calendar' is disabled; 2 tools are gone.");
    assert!(none.selection.toolsets.is_empty());
}

#[test]
fn a_set_is_named_in_one_of_three_arguments() {
    let view = dynamic(&index(|_| {}), &[]);
    for good in [
        json!({"toolsetName": "quotes"}),
        json!({"name": " quotes "}),
        json!({"toolset": "quotes", "else": 1}),
        json!({"toolsetName": "quotes", "name": "company"}),
    ] {
        let switched = view.enable(&arguments(&good)).unwrap();
        assert_eq!(switched.tools, ["market__getQuote"], "{good}");
    }
}

#[test]
fn a_refused_switch_says_why_and_what_there_is() {
    let view = dynamic(&index(|_| {}), &["quotes"]);
    let known = ALL_SETS.join(", ");
    let unsaid = format!("say which toolset in `toolsetName`; there are: {known}");
    for bad in [json!({}), json!({"toolsetName": ""}), json!({"name": 7}), json!({"toolset": null})]
    {
        assert_eq!(view.enable(&arguments(&bad)), Err(unsaid.clone()), "{bad}");
        assert_eq!(view.disable(&arguments(&bad)), Err(unsaid.clone()), "{bad}");
        assert_eq!(view.toolset_text(&arguments(&bad)), Err(unsaid.clone()), "{bad}");
    }
    let unknown = format!("there is no toolset 'Quotes' here; there are: {known}");
    assert_eq!(view.enable(&named("Quotes")), Err(unknown.clone()));
    assert_eq!(view.disable(&named("Quotes")), Err(unknown.clone()));
    assert_eq!(view.toolset_text(&named("Quotes")), Err(unknown));
    let already = view.enable(&named("quotes"));
    assert_eq!(already, Err("toolset 'quotes' is already enabled".into()));
    let inactive = view.disable(&named("company"));
    assert_eq!(inactive, Err("toolset 'company' is not enabled; enabled: quotes".into()));
    let inactive = dynamic(view.index(), &[]).disable(&named("company"));
    assert_eq!(inactive, Err("toolset 'company' is not enabled; enabled: none".into()));
}

#[test]
fn at_most_so_many_sets_are_active() {
    let index = index(|plan| plan.gateway.max_active_toolsets = Some(2));
    let view = dynamic(&index, &["calendar", "quotes"]);
    assert_eq!(
        view.enable(&named("company")),
        Err("toolset 'company' cannot be enabled: at most 2 may be active (max_active_toolsets), and calendar, \
             quotes are: disable one first"
            .into())
    );
    let fewer = view.disable(&named("quotes")).unwrap();
    assert!(again(&view, &fewer.selection).enable(&named("company")).is_ok());
}

#[test]
fn a_set_that_is_gone_takes_no_place() {
    let index = index(|plan| plan.gateway.max_active_toolsets = Some(1));
    let view = dynamic(&index, &["removed-by-a-reload"]);
    assert_eq!(view.enable(&named("quotes")).unwrap().tools, ["market__getQuote"]);
    let full = dynamic(&index, &["removed-by-a-reload", "company"]).enable(&named("quotes"));
    assert!(full.unwrap_err().contains("and company are: disable one first"));
}

/// No lookup finds a tool that policy hides.
#[test]
fn a_tool_that_is_switched_off_names_its_sets() {
    let view = dynamic(&index(|_| {}), &["company"]);
    for (name, expected) in [
        ("market__getQuote", &["quotes", "trade", "market"][..]),
        ("market__listDividends", &["calendar", "earnings", "market"]),
        ("notes__readNote", &["notes"]),
    ] {
        let Found::Disabled { entry, sets } = view.find(name) else { panic!("{name}") };
        assert_eq!((entry.name.as_deref(), sets.as_slice()), (Some(name), expected));
    }
    assert!(matches!(view.find("market__getCompanyProfile"), Found::Tool(_)));
    assert!(matches!(view.find("call_tool"), Found::Meta(MetaTool::CallTool)));
    // Only the meta-tools take canonical names.
    assert!(matches!(view.find("market.getCompanyProfile"), Found::Unknown { .. }));
    let Found::Unknown { nearest } = view.find("market__getCompanyProfil") else { panic!() };
    assert_eq!(nearest, ["market__getCompanyProfile"]);
    // Long names are not compared with every tool.
    let long = format!("market__getCompanyProfile{}", "e".repeat(300));
    let Found::Unknown { nearest } = view.find(&long) else { panic!() };
    assert_eq!(nearest, [""; 0]);
    let all = scoped(Scope::default());
    assert!(matches!(all.find("call_tool"), Found::Unknown { .. }), "only dynamic views have them");
}

#[test]
fn a_tool_that_somebody_switched_off_is_shown_as_such_and_not_run() {
    let index = index(|_| {});
    let exposure = Exposure { mode: ExposureMode::Dynamic, ..Exposure::default() };
    let mut selection = Selection::of_sets(owned(&["calendar"]));
    selection.tools.insert("market.getSplits".into(), false);
    let key =
        ViewKey { scope: Arc::default(), selection: Arc::new(selection), past: Arc::default() };
    let view = View::new(index, &exposure, &key);
    assert_eq!(names(&view), ["market__listDividends"]);
    let told = "tool 'market__getSplits' is switched off in this session; `switchboard session enable` switches it on \
                again";
    for name in ["market__getSplits", "market.getSplits"] {
        assert_eq!(view.callable(name).unwrap_err(), told, "{name}");
        assert!(view.reach(name).is_ok(), "it can be switched on again: {name}");
        let described = view.tool_text(&arguments(&json!({"name": name})), ListEra::Stateless);
        let described: Value = serde_json::from_str(&described.unwrap()).unwrap();
        assert_eq!(described["switchedOff"], true, "{described}");
    }
    // A disabled toolset does not prevent `call_tool`.
    assert!(view.callable("market__getQuote").is_ok());
    let other = view.tool_text(&arguments(&json!({"name": "market.getQuote"})), ListEra::Stateless);
    assert!(!other.unwrap().contains("switchedOff"));
    let found = view.search_text(&arguments(&json!({"query": "splits dividends"}))).unwrap();
    let found: Value = serde_json::from_str(&found).unwrap();
    let mark = |name: &str| {
        let mut found = found["matches"].as_array().unwrap().iter();
        found.find(|one| one["name"] == name).unwrap().get("switchedOff").cloned()
    };
    assert_eq!(mark("market__getSplits"), Some(true.into()));
    assert_eq!(mark("market__listDividends"), None);
    let set: Value = serde_json::from_str(&view.toolset_text(&named("calendar")).unwrap()).unwrap();
    assert_eq!(set["tools"][1]["switchedOff"], true, "{set}");
    // Switching its toolset neither removes it nor brings it back.
    let gone = view.disable(&named("calendar")).unwrap();
    assert_eq!(gone.tools, ["market__listDividends"]);
    let selection = Arc::new(gone.selection);
    let view = View::new(view.index().clone(), &exposure, &ViewKey { selection, ..key });
    let come = view.enable(&named("calendar")).unwrap();
    assert_eq!(come.tools, ["market__listDividends"]);
    assert!(!view.switched_text(&come, Some(ListEra::Stateless)).contains("getSplits"));
}

fn search_view() -> View {
    let tool = |name: &str, description: &str, schema: &Value| {
        let descriptor = ToolDescriptor {
            description: Some(description.into()),
            input_schema: JsonText::from(schema),
            ..ToolDescriptor::named(name)
        };
        catalog_tool("s", descriptor)
    };
    let empty = json!({"type": "object"});
    let isin = json!({"type": "object", "properties": {"isin": {"type": "string", "description": "securities identifier"}}});
    let tools = vec![
        tool("getHistoricalQuote", "A quote of the past, for one quote date", &empty),
        tool("getQuote", "The price now", &empty),
        tool("listCompanies", "Everybody who is listed", &empty),
        tool("lookUp", "Finds a paper", &isin),
        tool("deleteAll", "Mentions the quote only here", &empty),
    ];
    let plan = Plan { servers: vec![server("s")], ..Plan::default() };
    dynamic(&Arc::new(Index::new(&Catalog::new(1, tools), &plan)), &[])
}

#[test]
fn search_ranks_names_over_descriptions_and_knows_words() {
    let view = search_view();
    let found = |query: &str| -> Vec<&str> {
        view.search(query, 50).into_iter().map(|(entry, _)| entry.tool.name.tool()).collect()
    };
    for (query, first) in [
        ("getQuote", "getQuote"),
        ("get quote", "getQuote"),
        ("s__getQuote", "getQuote"),
        ("historical quotes", "getHistoricalQuote"),
        ("company", "listCompanies"),
        ("COMPANIES", "listCompanies"),
        ("isin", "lookUp"),
        ("security identifiers", "lookUp"),
        ("identifier of a security", "lookUp"),
    ] {
        assert_eq!(found(query).first(), Some(&first), "{query}: {:?}", found(query));
    }
    assert_eq!(found("quote").last(), Some(&"deleteAll"));
    assert_eq!(found("xyzzy"), Vec::<&str>::new());
    let scores: Vec<f32> = view.search("quote", 50).into_iter().map(|(_, score)| score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| *score > 0.0));
}

#[test]
fn search_takes_a_query_and_a_limit_and_nothing_else() {
    let view = search_view();
    let search = |given: Value| view.search_text(&arguments(&given));
    let found: Value =
        serde_json::from_str(&search(json!({"query": "quote", "limit": 1})).unwrap()).unwrap();
    let found = found["matches"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["toolsets"], json!(["s"]));
    assert_eq!(found[0]["enabled"], json!(false));
    for bad in [json!({}), json!({"query": " "}), json!({"query": 1}), json!({"query": null})] {
        assert_eq!(search(bad), Err("say in `query` what the tool should do".into()));
    }
    for limit in [json!(0), json!(51), json!("3"), json!(1.5), json!(-1)] {
        let told = search(json!({"query": "quote", "limit": limit}));
        assert_eq!(told, Err("`limit` must be a whole number from 1 to 50".into()), "{limit}");
    }
    assert!(search(json!({"query": "quote", "limit": null})).is_ok());
}

#[test]
fn toolsets_and_tools_are_described() {
    let view = dynamic(&index(|_| {}), &["calendar"]);
    insta::assert_snapshot!(view.toolsets_text());
    insta::assert_snapshot!(view.toolset_text(&named("calendar")).unwrap());
    insta::assert_snapshot!(view.toolset_text(&named("quotes")).unwrap());
    let told = view.tool_text(&arguments(&json!({"name": "market.getQuote"})), ListEra::Session);
    insta::assert_snapshot!(told.unwrap());
    let told = view.tool_text(&arguments(&json!({"name": "getQuot"})), ListEra::Session);
    assert_eq!(told, Err("there is no tool 'getQuot' here; did you mean market__getQuote?".into()));
    assert_eq!(
        view.tool_text(&Map::new(), ListEra::Session),
        Err("say which tool in `name`".into())
    );
}

#[test]
fn what_switching_answers() {
    let view = dynamic(&index(|_| {}), &[]);
    let switched = view.enable(&named("quotes")).unwrap();
    insta::assert_snapshot!(view.switched_text(&switched, None));
    insta::assert_snapshot!(view.switched_text(&switched, Some(ListEra::Stateless)));
}
