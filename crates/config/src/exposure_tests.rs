use ExposureMode::{Dynamic, Legacy, Static};
use pretty_assertions::assert_eq;
use switchboard_model::{GatewayPlan, ToolsetPlan};

use super::*;

const NOTHING: (Option<bool>, &str) = (None, "-");

/// `-` means not given; otherwise comma-separated names.
fn sets(text: &str) -> Option<Vec<String>> {
    (text != "-").then(|| text.split(',').map(str::to_owned).collect())
}

fn source((dynamic, tool_sets): (Option<bool>, &str)) -> ExposureSource {
    ExposureSource { dynamic, tool_sets: sets(tool_sets), is_alias: false }
}

fn plan(exposure: Option<ExposureMode>, tool_sets: &str) -> Plan {
    let set = |name: &str| ToolsetPlan {
        name: name.into(),
        description: name.into(),
        when_to_use: None,
        servers: vec![],
        tools: vec![],
    };
    Plan {
        toolsets: ["search", "company", "quotes", "secret"].map(set).into(),
        gateway: GatewayPlan {
            exposure,
            tool_sets: sets(tool_sets),
            deny_toolsets: vec!["secret".into()],
            max_active_toolsets: Some(2),
            ..GatewayPlan::default()
        },
        ..Plan::default()
    }
}

/// Command line, environment, file, and the expected exposure.
fn check(
    cli: (Option<bool>, &str),
    env: (Option<bool>, &str),
    file: (Option<ExposureMode>, &str),
    expected: (ExposureMode, &str, &str),
) {
    let found = resolve_exposure(&source(cli), &source(env), &plan(file.0, file.1)).unwrap();
    let (mode, tool_sets, reason) = expected;
    assert_eq!(
        (found.mode, found.tool_sets.join(",").as_str(), found.reason.as_str()),
        (mode, tool_sets, reason),
        "{cli:?} {env:?} {file:?}"
    );
}

const FILE_NOTHING: (Option<ExposureMode>, &str) = (None, "-");
const LEGACY: (ExposureMode, &str, &str) =
    (Legacy, "", "legacy (all tools) because nothing else is configured");

/// Three modes from each of three sources.
#[test]
fn every_mode_from_every_source() {
    let on = (Some(true), "-");
    let two = (None, "search,company");
    check(
        on,
        NOTHING,
        FILE_NOTHING,
        (Dynamic, "", "dynamic (meta-tools) because --dynamic-tool-discovery says so"),
    );
    check(
        two,
        NOTHING,
        FILE_NOTHING,
        (Static, "search,company", "static (search, company) because --tool-sets says so"),
    );
    check(NOTHING, NOTHING, FILE_NOTHING, LEGACY);

    check(
        NOTHING,
        on,
        FILE_NOTHING,
        (Dynamic, "", "dynamic (meta-tools) because DYNAMIC_TOOL_DISCOVERY says so"),
    );
    check(
        NOTHING,
        two,
        FILE_NOTHING,
        (Static, "search,company", "static (search, company) because TOOL_SETS says so"),
    );
    check(NOTHING, (None, ""), FILE_NOTHING, LEGACY);

    check(
        NOTHING,
        NOTHING,
        (Some(Dynamic), "-"),
        (Dynamic, "", "dynamic (meta-tools) because gateway.exposure in the configuration says so"),
    );
    let of_file = "static (search, company) because gateway.tool_sets in the configuration says so";
    check(NOTHING, NOTHING, (None, "search,company"), (Static, "search,company", of_file));
    check(NOTHING, NOTHING, (Some(Static), "search,company"), (Static, "search,company", of_file));
    let of_file = "legacy (all tools) because gateway.exposure in the configuration says so";
    check(NOTHING, NOTHING, (Some(Legacy), "search"), (Legacy, "", of_file));
}

#[test]
fn the_higher_source_wins_whatever_the_lower_says() {
    let on = (Some(true), "-");
    let dynamic = |words| (Dynamic, "", words);
    let of_cli = "dynamic (meta-tools) because --dynamic-tool-discovery says so";
    let of_env = "dynamic (meta-tools) because DYNAMIC_TOOL_DISCOVERY says so";
    let search_of_cli = (Static, "search", "static (search) because --tool-sets says so");
    let search_of_env = (Static, "search", "static (search) because TOOL_SETS says so");
    for file in
        [FILE_NOTHING, (Some(Dynamic), "quotes"), (Some(Static), "quotes"), (Some(Legacy), "-")]
    {
        for env in [NOTHING, on, (None, "company"), (Some(true), "company"), (Some(false), "-")] {
            check(on, env, file, dynamic(of_cli));
            check((None, "search"), env, file, search_of_cli);
        }
        check(NOTHING, on, file, dynamic(of_env));
        check(NOTHING, (None, "search"), file, search_of_env);
    }
}

#[test]
fn dynamic_wins_within_a_source_and_takes_only_the_sets_of_that_source() {
    let of_cli =
        "dynamic (meta-tools, and search at first) because --dynamic-tool-discovery says so";
    check((Some(true), "search"), (None, "company"), FILE_NOTHING, (Dynamic, "search", of_cli));
    let of_env =
        "dynamic (meta-tools, and company at first) because DYNAMIC_TOOL_DISCOVERY says so";
    check(NOTHING, (Some(true), "company"), (None, "quotes"), (Dynamic, "company", of_env));
    let of_file = "dynamic (meta-tools, and quotes at first) because gateway.exposure in the configuration says so";
    check(NOTHING, NOTHING, (Some(Dynamic), "quotes"), (Dynamic, "quotes", of_file));
    let none = "dynamic (meta-tools) because --dynamic-tool-discovery says so";
    check((Some(true), ""), (None, "company"), (None, "quotes"), (Dynamic, "", none));
}

#[test]
fn false_switches_off_every_lower_source_and_goes_on_looking_for_sets() {
    let off = (Some(false), "-");
    let of_cli =
        "legacy (all tools) because --dynamic-tool-discovery is off and no toolset is named";
    check(off, NOTHING, FILE_NOTHING, (Legacy, "", of_cli));
    check(off, (Some(true), "-"), (Some(Dynamic), "-"), (Legacy, "", of_cli));
    let of_env = "legacy (all tools) because DYNAMIC_TOOL_DISCOVERY is off and no toolset is named";
    check(NOTHING, off, (Some(Dynamic), "-"), (Legacy, "", of_env));
    let search = (Static, "search", "static (search) because TOOL_SETS says so");
    check(off, (Some(true), "search"), (Some(Dynamic), "quotes"), search);
    check(off, (None, "search"), FILE_NOTHING, search);
    let quotes = (
        Static,
        "quotes",
        "static (quotes) because gateway.tool_sets in the configuration says so",
    );
    check(off, (Some(true), "-"), (Some(Dynamic), "quotes"), quotes);
    check(NOTHING, off, (Some(Dynamic), "quotes"), quotes);
    check(
        (Some(false), "search"),
        (Some(true), "-"),
        FILE_NOTHING,
        (Static, "search", "static (search) because --tool-sets says so"),
    );
    // `false` disables only the sources below.
    let on = (Dynamic, "", "dynamic (meta-tools) because --dynamic-tool-discovery says so");
    check((Some(true), "-"), off, FILE_NOTHING, on);
}

#[test]
fn empty_names_are_not_given_and_equal_ones_count_once() {
    check((None, ""), (None, " , "), (Some(Static), ""), LEGACY);
    check(
        (None, " search ,,search, quotes"),
        NOTHING,
        FILE_NOTHING,
        (Static, "search,quotes", "static (search, quotes) because --tool-sets says so"),
    );
}

fn refused(cli: (Option<bool>, &str), env: (Option<bool>, &str), file: &str) -> String {
    resolve_exposure(&source(cli), &source(env), &plan(None, file)).unwrap_err()
}

#[test]
fn an_unknown_or_denied_set_is_an_error() {
    const KNOWN: &str = "the toolsets are `search`, `company`, `quotes`";
    assert_eq!(
        refused((None, "search,qoutes,zzz"), NOTHING, "-"),
        format!(
            "--tool-sets: there is no toolset `qoutes`; did you mean `quotes`?\n\
             --tool-sets: there is no toolset `zzz`\n{KNOWN}"
        )
    );
    assert_eq!(
        refused(NOTHING, (Some(true), "serch"), "-"),
        format!("TOOL_SETS: there is no toolset `serch`; did you mean `search`?\n{KNOWN}")
    );
    assert_eq!(
        refused(NOTHING, NOTHING, "secret"),
        format!(
            "gateway.tool_sets in the configuration: the toolset `secret` is not permitted: `gateway.deny_toolsets` names it\n{KNOWN}"
        )
    );
    let mut allowed = plan(None, "-");
    allowed.gateway.allow_toolsets = Some(vec![]);
    let found = resolve_exposure(&source((None, "search")), &source(NOTHING), &allowed);
    assert_eq!(
        found.unwrap_err(),
        "--tool-sets: the toolset `search` is not permitted: it is not in `gateway.allow_toolsets`\nthere is none to choose from"
    );
    // Settings that a higher source overrides are not validated.
    check(
        (None, "search"),
        (None, "nowhere"),
        (None, "nowhere"),
        (Static, "search", "static (search) because --tool-sets says so"),
    );
}

#[test]
fn more_sets_than_may_be_active_are_refused_where_sets_are_switched() {
    assert_eq!(
        refused((Some(true), "search,company,quotes"), NOTHING, "-"),
        "--tool-sets names 3 toolsets, but `gateway.max_active_toolsets` is 2"
    );
    let all = "static (search, company, quotes) because --tool-sets says so";
    let found = (Static, "search,company,quotes", all);
    check((None, "search,company,quotes"), NOTHING, FILE_NOTHING, found);
}

#[test]
fn flags_in_every_spelling() {
    for text in ["true", "1", "yes", "on", "TRUE", "Yes", " on "] {
        assert_eq!(parse_flag(text), Ok(true), "{text}");
    }
    for text in ["false", "0", "no", "off", "False", "OFF"] {
        assert_eq!(parse_flag(text), Ok(false), "{text}");
    }
    for text in ["", "2", "y", "truee", "maybe"] {
        assert!(parse_flag(text).unwrap_err().contains("neither true nor false"), "{text}");
    }
}

#[test]
fn the_environment_is_read_from_its_texts() {
    let read = ExposureSource::from_environment;
    assert_eq!(read(None, None, None), Ok(ExposureSource::default()));
    assert_eq!(read(Some(" "), None, Some("")), Ok(ExposureSource::default()));
    assert_eq!(read(Some("yes"), Some("a, b"), None), Ok(source((Some(true), "a, b"))));
    assert_eq!(read(None, Some("a"), Some("b")), Ok(source((None, "a"))));
    let of_alias = ExposureSource { is_alias: true, ..source((None, "b")) };
    assert_eq!(read(None, None, Some("b")), Ok(of_alias.clone()));
    assert_eq!(read(None, Some(" "), Some("b")), Ok(of_alias));
    assert_eq!(
        read(Some("maybe"), None, None),
        Err("DYNAMIC_TOOL_DISCOVERY: \"maybe\" is neither true nor false; write true, false, 1, 0, yes, no, on or off".into())
    );
}
