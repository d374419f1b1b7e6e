//! Overrides from the environment.

use pretty_assertions::assert_eq;
use switchboard_model::{AdmissionMode, Endpoint, LocalToolChoice, Plan, RootKey};

use crate::support::{load_with, problems, with_server};

const FILE: &str = include_str!("../fixtures/minimal_strict.yaml");

fn plan(text: Option<&str>, env: &[(&str, &str)]) -> Plan {
    load_with(text, env).unwrap_or_else(|problems| panic!("{problems}")).plan
}

#[test]
fn both_prefixes_set_a_value_and_ours_wins() {
    let key = "TOOLBOX__MAX_CONCURRENT";
    let (ours, seed) = (format!("SWITCHBOARD__{key}"), format!("APP_MYAI__{key}"));
    assert_eq!(plan(Some(FILE), &[(&seed, "77")]).max_concurrent, 77);
    assert_eq!(plan(Some(FILE), &[(&ours, "78")]).max_concurrent, 78);
    for env in [[(&*ours, "78"), (&*seed, "77")], [(&*seed, "77"), (&*ours, "78")]] {
        assert_eq!(plan(Some(FILE), &env).max_concurrent, 78);
    }
    assert_eq!(
        plan(Some(FILE), &[("switchboard__toolbox__Max_Concurrent", "5")]).max_concurrent,
        5
    );
    assert_eq!(plan(Some(FILE), &[("SWITCHBOARD_CONFIG", "x"), ("PATH", "é")]).max_concurrent, 10);
}

#[test]
fn an_element_of_a_list_is_changed_by_its_index() {
    let env = [
        ("APP_MYAI__TOOLBOX__MCPS__0__MODE", "dynamic"),
        ("APP_MYAI__TOOLBOX__MCPS__0__DEFAULT_TOOL_CONFIG__MAX_INSTANCES", "3"),
        ("APP_MYAI__TOOLBOX__MCPS__0__REQUIRED", "False"),
    ];
    let server = &plan(Some(FILE), &env).servers[0];
    assert_eq!(server.mode, AdmissionMode::Dynamic);
    assert_eq!(server.default_limits.unwrap().max_instances, Some(3));
    assert!(!server.required);
}

#[test]
fn a_whole_list_is_json_and_its_elements_can_be_changed_on_top() {
    let json = r#"[{"name": "a", "url": "http://h/", "mode": "strict"}, {"name": "b", "command": "x", "mode": "strict", "env": {"PORT": 80, "ON": true}}]"#;
    let env = [("APP_MYAI__TOOLBOX__MCPS__1__NAME", "c"), ("APP_MYAI__TOOLBOX__MCPS", json)];
    let plan = plan(Some(FILE), &env);
    let names: Vec<_> = plan.servers.iter().map(|server| server.spec.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
    let Endpoint::Stdio { env, .. } = &plan.servers[1].spec.endpoint else { panic!("stdio") };
    assert_eq!((env["PORT"].expose(), env["ON"].expose()), ("80", "true"));
}

#[test]
fn without_a_file_the_environment_is_enough() {
    assert_eq!(plan(None, &[]).root, RootKey::Switchboard);
    let mut env = vec![("SWITCHBOARD__TOOLBOX__LOCAL_TOOLS", "[\"sum\"]")];
    let names: Vec<_> = (0..11)
        .map(|i| (format!("SWITCHBOARD__TOOLBOX__TOOLS__{i}__NAME"), format!("t{i}")))
        .collect();
    env.extend(names.iter().rev().map(|(name, value)| (name.as_str(), value.as_str())));
    let plan = plan(None, &env);
    assert_eq!(plan.local_tools, LocalToolChoice::Only(vec!["sum".into()]));
    assert_eq!((plan.tools.len(), plan.tools[10].name.as_str()), (11, "t10"));
    assert_eq!(
        self::plan(None, &[("SWITCHBOARD__TOOLBOX__LOCAL_TOOLS", "all")]).local_tools,
        LocalToolChoice::All
    );
}

#[test]
fn free_form_maps_keep_the_spelling_of_the_variable() {
    let text = with_server("- name: a\n  command: x\n  mode: strict\n  env:\n    Path: old");
    let env = [
        ("SWITCHBOARD__TOOLBOX__MCPS__0__ENV__PATH", "new"),
        ("SWITCHBOARD__TOOLBOX__MCPS__0__ENV__My__Var", "file:two-lines.txt"),
    ];
    let plan = plan(Some(&text), &env);
    let Endpoint::Stdio { env, .. } = &plan.servers[0].spec.endpoint else { panic!("stdio") };
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("My__Var", "a\nb"), ("Path", "new")]);
}

#[test]
fn what_leads_nowhere_is_a_problem() {
    let rows = [
        ("SWITCHBOARD__TOOLBOX__MAX_CONCURRENT", "many", "switchboard"),
        ("SWITCHBOARD__TOOLBOX__MCPS__0__MOED", "x", "moed"),
        ("SWITCHBOARD__ZZZ", "x", "zzz"),
        ("SWITCHBOARD__TOOLBOX__MCPS__7__MODE", "x", "[7]"),
        ("SWITCHBOARD__TOOLBOX__MCPS__FIRST__MODE", "x", "FIRST"),
        ("SWITCHBOARD__TOOLBOX__MAX_CONCURRENT__X", "x", "single"),
        ("SWITCHBOARD__TOOLBOX__MCPS", "[{", "JSON"),
        ("SWITCHBOARD__TOOLBOX", "no", "JSON"),
        ("SWITCHBOARD__TOOLBOX__MCPS__0__HEADERS__", "x", "headers"),
        ("SWITCHBOARD__", "x", "sets an unknown key"),
    ];
    let all: Vec<_> =
        rows.iter().map(|(name, value, _)| problems(FILE, &[(name, value)])).collect();
    for ((name, ..), text) in rows.iter().zip(&all) {
        assert!(text.contains(&format!("  --> environment variable {name}")), "{text}");
        assert!(text.ends_with("1 problem found"), "{text}");
    }
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("nowhere", all.join("\n\n"));
    });
}
