//! The section `agents`, and `gateway.public_url`: valid values and error messages.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_config::Loaded;
use switchboard_model::{AgentLimits, AgentPlan, ServerName};

use crate::support::{load_text, load_with, problems};

/// A file with the servers `crm` and `mail`, the toolset `reading`, and these members.
fn with(members: &str) -> String {
    format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: crm, url: 'http://h', mode: strict}}\n      - {{name: mail, url: 'http://h', mode: strict}}\n  toolsets: [{{name: reading, description: Reads, tools: [crm.get_*]}}]\n  {members}\n"
    )
}

fn loaded(members: &str) -> Loaded {
    load_text(&with(members)).unwrap_or_else(|problems| panic!("{problems}"))
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const FULL: &str = "agents: [{name: sales, description: Sells, servers: [crm, local], toolsets: [reading, mail], \
                    tools: {allow: ['crm.*'], deny: ['*_delete']}, \
                    limits: {max_concurrent: 2, timeout: 5s, queue_timeout: PT1S, max_result_bytes: 2048}, \
                    keys: [sales-bot]}, {name: 9b1c2d3e-0000-4000-8000-aaaaaaaaaaaa}]";

#[test]
fn a_profile_is_read_whole() {
    let loaded = loaded(FULL);
    let sales = AgentPlan {
        name: "sales".into(),
        description: Some("Sells".into()),
        servers: Some(vec![ServerName::new("crm"), ServerName::local()]),
        toolsets: Some(owned(&["reading", "mail"])),
        allow_tools: Some(owned(&["crm.*"])),
        deny_tools: owned(&["*_delete"]),
        limits: AgentLimits {
            max_concurrent: Some(2),
            timeout: Some(Duration::from_secs(5)),
            queue_timeout: Some(Duration::from_secs(1)),
            max_result_bytes: Some(2048),
        },
        keys: Some(owned(&["sales-bot"])),
    };
    let bare =
        AgentPlan { name: "9b1c2d3e-0000-4000-8000-aaaaaaaaaaaa".into(), ..AgentPlan::default() };
    assert_eq!(loaded.plan.agents, [sales, bare]);
    assert_eq!(loaded.plan.agent("sales").map(|agent| agent.name.as_str()), Some("sales"));
    assert_eq!(loaded.plan.agent("sale"), None);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn the_effective_configuration_can_be_loaded_again() {
    let first = loaded(FULL);
    let text = first.to_yaml();
    let again = load_text(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert_eq!(again.plan.agents, first.plan.agents);
    let paths: Vec<_> = first.settings().into_iter().map(|setting| setting.path).collect();
    for path in ["agents[0].servers[1]", "agents[0].tools.deny[0]", "agents[0].limits.timeout"] {
        assert!(paths.contains(&format!("switchboard.{path}")), "{path}: {paths:#?}");
    }
}

#[test]
fn a_variable_changes_a_profile() {
    let env = [("SWITCHBOARD__AGENTS__0__LIMITS__MAX_CONCURRENT", "7")];
    let loaded = load_with(Some(&with("agents: [{name: sales, limits: {timeout: 5s}}]")), &env);
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.plan.agents[0].limits.max_concurrent, Some(7));
    assert_eq!(loaded.plan.agents[0].limits.timeout, Some(Duration::from_secs(5)));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place_and_a_way_out() {
    for (agents, parts) in [
        (
            "{name: a, servers: [mail, crmm]}",
            &["agents[0].servers[1]: there is no server \"crmm\"", "did you mean `crm`?"][..],
        ),
        (
            "{name: a, toolsets: [readin]}",
            &["agents[0].toolsets[0]: there is no toolset \"readin\"", "did you mean `reading`?"],
        ),
        ("{name: a}, {name: a}", &["two agents are named `a`", "rename one of them"]),
        ("{name: 'a/b'}", &["agents[0].name"]),
        ("{name: 'a b'}", &["agents[0].name"]),
        ("{name: 'ü'}", &["agents[0].name"]),
        ("{name: ''}", &["agents[0].name"]),
        ("{servers: [crm]}", &["missing", "name"]),
        ("{name: a, server: [crm]}", &["server", "did you mean `servers`?"]),
        ("{name: a, limits: {timeout: 0s}}", &["agents[0].limits.timeout"]),
        ("{name: a, limits: {max_concurrent: 0}}", &["agents[0].limits.max_concurrent"]),
        ("{name: a, limits: {max_result_bytes: 1}}", &["agents[0].limits.max_result_bytes"]),
        ("{name: a, keys: [' ']}", &["agents[0].keys[0]", "names no key", "key list"]),
        ("{name: a, tools: {allow: ['']}}", &["agents[0].tools.allow[0]", "matches no tool"]),
        ("{name: a, tools: [crm.get]}", &["agents[0].tools"]),
    ] {
        let said = problems(&with(&format!("agents: [{agents}]")), &[]);
        for part in parts {
            assert!(said.contains(part), "{agents}: {said}");
        }
    }
}

#[test]
fn a_pattern_with_an_unknown_server_is_a_warning() {
    let loaded = loaded("agents: [{name: a, tools: {deny: [crn.delete]}}]");
    let said = loaded.warnings.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("agents[0].tools.deny[0]: `crn` is not the name of a server"), "{said}");
}

#[test]
fn the_public_address_has_neither_credentials_nor_a_query() {
    let url = |text: &str| format!("gateway: {{public_url: '{text}'}}");
    for good in ["https://tools.example.com", "http://10.0.0.1:8420/board/"] {
        let loaded = loaded(&url(good));
        let public = loaded.plan.gateway.public_url.as_ref().map(url::Url::as_str);
        assert_eq!(public.map(|url| url.trim_end_matches('/')), Some(good.trim_end_matches('/')));
    }
    for (bad, said) in [
        ("tools.example.com", "is not a valid URL"),
        ("ftp://tools.example.com", "is not an http or https address"),
        ("https://me:secret@tools.example.com", "carries credentials"),
        ("https://tools.example.com?x=1", "has a query or a fragment"),
    ] {
        let problems = problems(&with(&url(bad)), &[]);
        assert!(problems.contains("gateway.public_url") && problems.contains(said), "{problems}");
    }
}
