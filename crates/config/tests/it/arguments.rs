//! Declared arguments, groups and states of tool entries.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{ArgumentSource, ArgumentSpec, ArgumentType, FixedValue, ToolEntry};

use crate::support::{load_text, load_with};

fn tools(entries: &str) -> Vec<ToolEntry> {
    let text = format!("switchboard:\n  toolbox:\n    tools: {entries}\n");
    load_text(&text).unwrap_or_else(|problems| panic!("{problems}")).plan.tools
}

fn argument(fields: &str) -> ArgumentSpec {
    let entries = format!("[{{name: a, arguments: [{fields}]}}]");
    tools(&entries).remove(0).arguments.unwrap_or_default().remove(0)
}

/// The entry as TrustGraph writes it, in JSON.
const BANK: &str = r#"{
  "type": "mcp-tool",
  "name": "get_bank_balance",
  "description": "Get bank account balance",
  "mcp-tool": "get_bank_balance",
  "arguments": [
    {"name": "account_id", "type": "string", "description": "Bank account identifier"},
    {"name": "date", "type": "string", "description": "Date for balance query (optional, format: YYYY-MM-DD)"}
  ]
}"#;

#[test]
fn an_entry_of_trustgraph_is_read_as_it_stands() {
    let file = format!(r#"{{"switchboard": {{"toolbox": {{"tools": [{BANK}]}}}}}}"#);
    let bank = load_text(&file).unwrap().plan.tools.remove(0);
    assert_eq!(
        (bank.name.as_str(), &bank.expose_as),
        ("get_bank_balance", &Some("get_bank_balance".into()))
    );
    assert_eq!(bank.description.as_deref(), Some("Get bank account balance"));
    let arguments = bank.arguments.unwrap();
    let shown: Vec<_> = arguments
        .iter()
        .map(|it| (it.name.as_str(), it.kind.unwrap().as_str(), it.required))
        .collect();
    assert_eq!(shown, [("account_id", "string", None), ("date", "string", None)]);
    assert!(arguments[1].description.as_ref().unwrap().ends_with("format: YYYY-MM-DD)"));
}

#[test]
fn an_entry_of_trustgraph_without_arguments_stays_valid() {
    let plain = r#"[{"type": "mcp-tool", "name": "x", "description": "d", "mcp-tool": "x"}]"#;
    assert_eq!(tools(plain)[0].arguments, None);
    let empty = r#"[{"type": "mcp-tool", "name": "x", "mcp-tool": "x", "arguments": []}]"#;
    assert_eq!(tools(empty)[0].arguments, Some(Vec::new()));
}

#[test]
fn the_name_of_such_an_entry_is_the_exposed_name_of_the_tool_that_it_names() {
    let file = |target: &str| {
        format!(
            "switchboard:\n  toolbox:\n    tools:\n    - {{type: mcp-tool, name: balance, mcp-tool: {target}}}\n    mcps:\n    \
             - {{name: bank, url: 'http://localhost:1/', mode: strict, tool_allowlist: [get_balance]}}\n    \
             - {{name: many, url: 'http://localhost:2/', mode: strict, tool_allowlist: ['get_*']}}\n"
        )
    };
    for (target, expected) in [
        ("get_balance", "get_balance"),
        ("bank.get_balance", "bank.get_balance"),
        // A server with one tool stands for that tool.
        ("bank", "bank.get_balance"),
        ("many", "many"),
    ] {
        let tool = load_text(&file(target)).unwrap().plan.tools.remove(0);
        assert_eq!((tool.name.as_str(), tool.expose_as.as_deref()), (expected, Some("balance")));
    }
}

#[test]
fn an_entry_may_have_an_id_for_the_clients_of_trustgraph() {
    let plan = load_text(
        "switchboard: {gateway: {trustgraph: true}, toolbox: {mcps: [], tools: [\n\
         {type: mcp-tool, name: a, mcp-tool: b, id: the tool}, {type: mcp-tool, name: c, mcp-tool: d}]}}",
    )
    .unwrap()
    .plan;
    let ids: Vec<_> = plan.tools.iter().map(|tool| tool.id.as_deref()).collect();
    assert_eq!(ids, [Some("the tool"), None]);
    assert!(plan.gateway.trustgraph);
    let silent = load_text("switchboard: {toolbox: {mcps: [], tools: []}}").unwrap().plan;
    assert!(!silent.gateway.trustgraph);
}

#[test]
fn every_field_of_an_argument_reaches_the_plan() {
    let spec = argument(
        "{name: unit, type: string, description: d, required: false, enum: [c, f], default: c}",
    );
    assert_eq!(
        spec,
        ArgumentSpec {
            kind: Some(ArgumentType::String),
            description: Some("d".into()),
            required: Some(false),
            choices: Some(vec![json!("c"), json!("f")]),
            default: Some(json!("c")),
            ..ArgumentSpec::named("unit")
        }
    );
    let spec = argument("{name: tags, type: array, items: {type: string, maxLength: 3}}");
    assert_eq!(spec.items, Some(json!({"type": "string", "maxLength": 3})));
    let spec = argument("{name: to, type: object, properties: {zip: {type: string}}}");
    assert_eq!(spec.properties, Some(json!({"zip": {"type": "string"}})));
    assert_eq!(argument("{name: bare}"), ArgumentSpec::named("bare"));
}

#[test]
fn fixed_and_hidden_arguments_are_not_the_callers() {
    let fixed = |value: Value| ArgumentSource::Fixed(FixedValue::new(value));
    assert_eq!(argument("{name: a, value: 7}").source, fixed(json!(7)));
    assert_eq!(argument("{name: a, value: {b: [1]}}").source, fixed(json!({"b": [1]})));
    let hidden = ArgumentSource::HiddenDefault(FixedValue::new(json!("x")));
    assert_eq!(argument("{name: a, hidden: true, default: x}").source, hidden);
    assert_eq!(argument("{name: a, hidden: true}").source, ArgumentSource::Withheld);
    assert!(argument("{name: a, hidden: false}").is_shown());
}

#[test]
fn a_fixed_value_from_a_variable_has_the_declared_type_and_is_never_shown() {
    let text = "switchboard:\n  toolbox:\n    tools:\n    - name: a\n      arguments:\n      \
                - {name: key, value: '${API_KEY}'}\n      \
                - {name: limit, type: integer, value: '${LIMIT}'}\n      \
                - {name: nested, value: {token: '${API_KEY}'}}\n      - {name: plain, value: metric}\n";
    let loaded = load_with(Some(text), &[("API_KEY", "key-4711"), ("LIMIT", "12")]).unwrap();
    let arguments = loaded.plan.tools[0].arguments.clone().unwrap();
    let values: Vec<_> = arguments
        .iter()
        .map(|argument| match &argument.source {
            ArgumentSource::Fixed(value) => value.expose().clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        values,
        [json!("key-4711"), json!(12), json!({"token": "key-4711"}), json!("metric")]
    );
    let shown = format!("{}\n{}\n{loaded:?}\n{arguments:?}", loaded.to_yaml(), loaded.to_json());
    assert!(!shown.contains("key-4711"), "{shown}");
    assert!(
        !loaded.to_yaml().contains("metric"),
        "a fixed value is not shown, wherever it is from"
    );
    // What refers to variables can be loaded again and means the same.
    let again = load_with(Some(&loaded.to_yaml()), &[("API_KEY", "key-4711"), ("LIMIT", "12")]);
    let again = again.unwrap().plan.tools[0].arguments.clone().unwrap();
    assert_eq!(again[..3], arguments[..3]);
}

#[test]
fn groups_and_states_are_read_in_both_spellings() {
    let entries = r#"[{"name": "a", "group": ["x", "y"], "state": "done", "applicable-states": ["new"]},
                      {"name": "b", "group": [], "applicable_states": []}, {"name": "c"}]"#;
    let tools = tools(entries);
    assert_eq!(tools[0].grouping.group, Some(vec!["x".into(), "y".into()]));
    assert_eq!(tools[0].grouping.state.as_deref(), Some("done"));
    assert_eq!(tools[0].grouping.applicable_states, Some(vec!["new".into()]));
    assert_eq!(tools[1].grouping.group, Some(Vec::new()));
    assert_eq!(tools[1].grouping.applicable_states, Some(Vec::new()));
    assert_eq!(tools[2].grouping, switchboard_model::ToolGrouping::default());
}

#[test]
fn checking_is_switched_off_for_a_tool_or_a_server() {
    let text = "switchboard:\n  toolbox:\n    tools: [{name: a, validate_arguments: false}, {name: b}]\n    mcps:\n    \
                - {name: s, url: 'http://localhost:1/', mode: strict, validate_arguments: false}\n    \
                - {name: t, url: 'http://localhost:1/', mode: strict}\n";
    let plan = load_text(text).unwrap().plan;
    let tools: Vec<_> = plan.tools.iter().map(|tool| tool.validate_arguments).collect();
    assert_eq!(tools, [Some(false), None]);
    let servers: Vec<_> = plan.servers.iter().map(|server| server.validate_arguments).collect();
    assert_eq!(servers, [false, true]);
}

#[test]
fn a_prompt_tool_is_read_with_its_template_and_its_limits() {
    let text = "switchboard:\n  toolbox:\n    tools:\n    - name: sum\n      type: prompt\n      description: Sums up\n      \
                template: 'In {{ words }} words: {{ text }}'\n      provider: ollama\n      model: small\n      \
                instructions: Be brief\n      tools: ['files.read_*']\n      max_depth: 2\n      timeout: 2m\n      \
                arguments: [{name: text, required: true}, {name: words, type: integer, default: 20}]\n";
    let loaded = load_text(text).unwrap();
    let tool = &loaded.plan.tools[0];
    let prompt = tool.prompt.as_ref().unwrap();
    assert_eq!(prompt.template, "In {{ words }} words: {{ text }}");
    assert_eq!(
        (prompt.provider.as_deref(), prompt.model.as_deref()),
        (Some("ollama"), Some("small"))
    );
    assert_eq!((prompt.tools.as_slice(), prompt.max_depth), (&["files.read_*".to_owned()][..], 2));
    let kinds: Vec<_> =
        tool.arguments.iter().flatten().map(|it| it.kind.unwrap().as_str()).collect();
    assert_eq!(kinds, ["string", "integer"]);
    let again = load_text(&loaded.to_yaml()).unwrap();
    assert_eq!(again.plan.tools, loaded.plan.tools);
}
