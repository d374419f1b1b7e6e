use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use switchboard_model::{AdmissionMode, ArgumentSource, ArgumentSpec, FixedValue, UpstreamAuth};

use super::*;
use crate::test_plans;

fn fixed(name: &str, value: &str) -> ArgumentSpec {
    // Read as configured: `5` is a number, `true` a boolean, everything else a text.
    let value = value.parse().unwrap_or_else(|_| value.into());
    ArgumentSpec {
        source: ArgumentSource::Fixed(FixedValue::new(value)),
        ..ArgumentSpec::named(name)
    }
}

fn hidden(name: &str, value: &str) -> ArgumentSpec {
    ArgumentSpec {
        source: ArgumentSource::HiddenDefault(FixedValue::new(value.into())),
        ..ArgumentSpec::named(name)
    }
}

fn entry(name: &str, arguments: Vec<ArgumentSpec>) -> ToolEntry {
    ToolEntry { arguments: Some(arguments), ..ToolEntry::named(name) }
}

fn prompt(template: &str) -> ToolEntry {
    let prompt = PromptToolPlan {
        template: template.into(),
        provider: None,
        model: None,
        instructions: None,
        tools: vec![],
        max_depth: 1,
    };
    ToolEntry { prompt: Some(prompt), ..entry("ask", vec![fixed("key", "s3cret")]) }
}

fn http(name: &str, url: &str) -> ServerPlan {
    let mut server = test_plans::server(name, AdmissionMode::Dynamic);
    server.spec.endpoint = Endpoint::StreamableHttp {
        url: url.parse().unwrap(),
        headers: BTreeMap::new(),
        auth: UpstreamAuth::None,
    };
    server
}

fn denies(mut server: ServerPlan, tool: &str) -> ServerPlan {
    server.tool_denylist = vec![tool.into()];
    server
}

fn program(name: &str) -> ServerPlan {
    test_plans::server(name, AdmissionMode::Dynamic)
}

fn plan(tools: Vec<ToolEntry>, servers: Vec<ServerPlan>) -> Plan {
    Plan { tools, servers, ..Plan::default() }
}

/// One line for each value that goes elsewhere; entries are at the same index before and after.
fn redirected(before: &Plan, after: &Plan) -> Vec<String> {
    let found = redirected_values(before, after, Some);
    found.iter().map(ToString::to_string).collect()
}

const KEY: &str = "the value that the file gives to argument `key` of";

#[track_caller]
fn stays(before: &Plan, after: &Plan) {
    assert_eq!(redirected(before, after), Vec::<String>::new());
}

#[track_caller]
fn goes(before: &Plan, after: &Plan, expected: &str) {
    assert_eq!(redirected(before, after), [format!("{KEY} {expected}")]);
}

#[test]
fn an_entry_for_another_tool_sends_its_values_elsewhere() {
    let servers =
        || vec![http("crm", "https://crm.example/mcp"), http("evil", "https://e.example")];
    let search = |arguments| plan(vec![entry("crm.search", arguments)], servers());
    let at = |name: &str, arguments| plan(vec![entry(name, arguments)], servers());
    let before = search(vec![fixed("key", "s3cret")]);
    stays(&before, &before);
    let evil = "'evil.search' would go to 'evil.search' at https://e.example";
    goes(&before, &at("evil.search", vec![fixed("key", "s3cret")]), evil);
    let other = "'crm.echo' would go to 'crm.echo' at https://crm.example";
    goes(&before, &at("crm.echo", vec![fixed("key", "s3cret")]), other);
    let general = "'search' would go to 'evil.search' at https://e.example";
    goes(&before, &at("search", vec![fixed("key", "s3cret")]), general);
    let local = "'local.search' would go to the local tool 'search'";
    goes(&before, &at("local.search", vec![fixed("key", "s3cret")]), local);
    // Under another name, or as a hidden default, it is the same value.
    let renamed = redirected(&before, &at("evil.search", vec![fixed("q", "s3cret")]));
    assert_eq!(renamed.len(), 1);
    goes(&before, &at("evil.search", vec![hidden("key", "s3cret")]), evil);
    goes(&search(vec![fixed("key", "5")]), &at("evil.search", vec![fixed("key", "5")]), evil);
    // Values that are given anew, or left out, or not secret.
    stays(&before, &at("evil.search", vec![fixed("key", "mine")]));
    stays(&before, &at("evil.search", vec![ArgumentSpec::named("key")]));
    stays(&search(vec![fixed("dry", "true")]), &at("evil.search", vec![fixed("dry", "true")]));
    let new = at("evil.search", vec![fixed("key", "s3cret")]);
    assert_eq!(redirected_values(&before, &new, |_| None), []);
}

#[test]
fn a_server_at_another_host_gets_no_values_that_were_meant_for_the_earlier_one() {
    let with = |servers| plan(vec![entry("crm.search", vec![fixed("key", "s3cret")])], servers);
    let before = with(vec![http("crm", "https://crm.example/mcp")]);
    stays(&before, &with(vec![http("crm", "https://crm.example/v2?x=1")]));
    stays(
        &before,
        &with(vec![http("crm", "https://crm.example/mcp"), http("b", "https://b.example")]),
    );
    let evil = "'crm.search' would go to 'crm.search' at https://e.example";
    goes(&before, &with(vec![http("crm", "https://e.example/mcp")]), evil);
    let port = "'crm.search' would go to 'crm.search' at https://crm.example:444";
    goes(&before, &with(vec![http("crm", "https://crm.example:444/mcp")]), port);
    // Nor does removing the server first help.
    stays(&before, &with(vec![]));
    goes(&with(vec![]), &with(vec![http("crm", "https://e.example/mcp")]), evil);
    // Without its server, the entry is about tools that are literally called `crm.search`.
    let literal = "'crm.search' would go to 'evil.crm.search' at https://e.example";
    let evil_too = || http("evil", "https://e.example/mcp");
    let both = with(vec![http("crm", "https://crm.example/mcp"), evil_too()]);
    goes(&both, &with(vec![evil_too()]), literal);
    goes(&before, &with(vec![program("crm")]), "'crm.search' would go to 'crm.search'");
    stays(&with(vec![program("crm")]), &with(vec![program("crm"), program("b")]));
}

#[test]
fn an_entry_for_every_server_sends_nothing_to_a_new_one() {
    let with = |servers| plan(vec![entry("search", vec![fixed("key", "s3cret")])], servers);
    let crm = || http("crm", "https://crm.example/mcp");
    let evil = || http("evil", "https://e.example/mcp");
    let before = with(vec![crm()]);
    goes(
        &before,
        &with(vec![crm(), evil()]),
        "'search' would go to 'evil.search' at https://e.example",
    );
    let shut = with(vec![crm(), denies(evil(), "sea*")]);
    stays(&before, &shut);
    goes(
        &shut,
        &with(vec![crm(), evil()]),
        "'search' would go to 'evil.search' at https://e.example",
    );
    // A name with a dot is about one server as soon as there is one of that name.
    let dotted = |servers| plan(vec![entry("evil.search", vec![fixed("key", "s3cret")])], servers);
    let expected = "'evil.search' would go to 'evil.search' at https://e.example";
    goes(&dotted(vec![]), &dotted(vec![evil()]), expected);
}

#[test]
fn a_changed_prompt_or_type_sends_values_elsewhere() {
    let with = |entry| plan(vec![entry], vec![]);
    stays(&with(prompt("Hi {{ key }}")), &with(prompt("Hi {{ key }}")));
    let model = "'ask' would go to a model, by a changed prompt";
    goes(&with(prompt("Hi")), &with(prompt("Hi {{ key }}")), model);
    goes(&with(entry("ask", vec![fixed("key", "s3cret")])), &with(prompt("{{ key }}")), model);
}
