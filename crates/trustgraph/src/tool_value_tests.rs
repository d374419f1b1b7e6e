#![expect(clippy::needless_pass_by_value, reason = "rows of tables are easier to read without `&`")]

use pretty_assertions::assert_eq;
use serde_json::Map;

use super::*;

fn entry(json: Value) -> WrittenFields {
    json.as_object().cloned().unwrap()
}

fn edited(tools: &[Value], key: &str, value: &Value) -> Result<(String, Value), String> {
    let tools: Vec<_> = tools.iter().cloned().map(entry).collect();
    let tools: Vec<_> = tools.iter().collect();
    match put_tool(&tools, key, &value.to_string()) {
        Ok(ConfigEdit::Patch { list: EntryList::Tools, name, fields }) => Ok((name, fields.into())),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.message),
    }
}

#[track_caller]
fn check(tools: &[Value], key: &str, value: Value, name: &str, fields: Value) {
    assert_eq!(edited(tools, key, &value), Ok((name.to_owned(), fields)));
}

#[track_caller]
fn check_refused(tools: &[Value], key: &str, value: Value, expected: &str) {
    assert_eq!(edited(tools, key, &value), Err(expected.to_owned()));
}

fn balance() -> Value {
    json!({
        "name": "get_balance", "description": "The balance", "type": "mcp-tool", "mcp-tool": "bank",
        "arguments": [{"name": "account", "type": "string", "description": "The account"}],
        "group": ["read"], "state": "open", "applicable-states": ["undefined"],
    })
}

#[test]
fn a_new_tool_is_an_entry_with_its_id() {
    check(
        &[],
        "balance-tool",
        balance(),
        "get_balance",
        json!({
            "name": "get_balance", "type": "mcp-tool", "mcp-tool": "bank", "description": "The balance",
            "arguments": [{"name": "account", "type": "string", "description": "The account"}],
            "group": ["read"], "state": "open", "applicable-states": ["undefined"],
            "id": "balance-tool",
        }),
    );
    let least = json!({"name": "a", "description": null, "type": "mcp-tool", "mcp-tool": "b"});
    check(&[], "a", least, "a", json!({"name": "a", "type": "mcp-tool", "mcp-tool": "b"}));
}

#[test]
fn what_was_set_is_what_is_shown() {
    let prompt = json!({"name": "sum_up", "description": "Sums up ${x}", "type": "prompt",
        "template": "Sum up: {{ text }}", "arguments": [{"name": "text", "type": "string", "description": ""}]});
    for (key, value) in [("balance-tool", balance()), ("sum_up", prompt)] {
        let (name, fields) = edited(&[], key, &value).unwrap();
        let shown = shown_tools([&entry(fields)]);
        let expected = ShownValue { key: key.into(), value: entry(value), entry: name };
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].value, expected.value);
        assert_eq!((&shown[0].key, &shown[0].entry), (&expected.key, &expected.entry));
    }
}

#[test]
fn a_change_keeps_what_the_client_does_not_know() {
    let present = json!({
        "name": "get_balance", "id": "balance-tool", "type": "mcp-tool", "mcp-tool": "bank",
        "description": "The balance", "max_instances": 2, "group": ["read"], "state": "open",
        "applicable_states": ["undefined"],
        "arguments": [{"name": "account", "description": "The account", "required": true}],
    });
    check(
        std::slice::from_ref(&present),
        "balance-tool",
        balance(),
        "get_balance",
        json!({"id": "balance-tool"}),
    );
    let mut renamed = balance();
    renamed["name"] = json!("balance");
    renamed.as_object_mut().unwrap().shift_remove("group");
    check(
        &[present],
        "balance-tool",
        renamed,
        "get_balance",
        json!({"name": "balance", "group": null, "id": "balance-tool"}),
    );
}

#[test]
fn a_reference_in_a_value_is_not_expanded() {
    let value = json!({"name": "a", "type": "mcp-tool", "mcp-tool": "b", "description": "${HOME}"});
    let (_, fields) = edited(&[], "a", &value).unwrap();
    assert_eq!(fields["description"], "$${HOME}");
}

#[test]
fn fixed_and_hidden_arguments_are_not_shown() {
    let present = entry(json!({"name": "a", "type": "mcp-tool", "mcp-tool": "b", "arguments": [
        {"name": "key", "value": "secret"},
        {"name": "region", "hidden": true, "default": "eu"},
        {"name": "text", "type": "integer", "required": true},
    ]}));
    let shown = shown_tools([&present]);
    assert_eq!(
        shown[0].value["arguments"],
        json!([{"name": "text", "type": "integer", "description": ""}])
    );
}

#[test]
fn only_entries_with_a_type_are_shown() {
    let entries = [json!({"name": "a", "max_instances": 1}), json!({"name": 3, "type": "prompt"})];
    let entries: Vec<_> = entries.into_iter().map(entry).collect();
    assert_eq!(shown_tools(&entries), []);
    assert_eq!(shown_tools(&[Map::new()]), []);
}

/// A tool with another value of one member.
fn with(member: &str, value: Value) -> Value {
    let mut tool = balance();
    tool[member] = value;
    tool
}

#[test]
fn a_value_that_cannot_be_used_says_why() {
    check_refused(
        &[],
        "x",
        json!([1]),
        "the value of tool 'x' is not a JSON object: it is another JSON value",
    );
    check_refused(&[], " ", balance(), "the id of a tool must not be empty");
    check_refused(&[], "x", with("name", json!("")), "tool 'x' needs a `name`");
    check_refused(
        &[],
        "x",
        with("type", Value::Null),
        "tool 'x' needs a `type`: mcp-tool or prompt",
    );
    check_refused(
        &[],
        "x",
        with("type", json!("knowledge-query")),
        "tool 'x' has the type 'knowledge-query', which needs a service of TrustGraph; Switchboard has mcp-tool and prompt",
    );
    check_refused(
        &[],
        "x",
        with("type", json!("y")),
        "tool 'x' has the unknown type 'y'; use mcp-tool or prompt",
    );
    check_refused(
        &[],
        "x",
        with("type", json!("prompt")),
        "tool 'x' needs a `template`, the text of the prompt",
    );
    check_refused(
        &[],
        "x",
        with("mcp-tool", Value::Null),
        "tool 'x' needs `mcp-tool`, the id of an MCP tool",
    );
    check_refused(
        &[],
        "x",
        with("collection", json!("c")),
        "the value of tool 'x' has `collection`, which has no meaning here; it can have name, description, type, mcp-tool, mcp_tool_id, template, arguments, group, state, applicable-states",
    );
}

#[test]
fn groups_states_and_arguments_have_their_shapes() {
    check_refused(
        &[],
        "x",
        with("group", json!("a")),
        "Tool 'group' field must be a list of strings",
    );
    check_refused(&[], "x", with("group", json!([1])), "All group names must be strings");
    check_refused(&[], "x", with("state", json!(1)), "Tool 'state' field must be a string");
    check_refused(
        &[],
        "x",
        with("applicable-states", json!("a")),
        "Tool 'applicable-states' field must be a list of strings",
    );
    check_refused(
        &[],
        "x",
        with("applicable-states", json!([1])),
        "All state names must be strings",
    );
    check_refused(
        &[],
        "x",
        with("arguments", json!([{"name": "a", "value": "${HOME}"}])),
        "argument 1 of tool 'x' has `value`; it can have name, type, description, required",
    );
}

#[test]
fn the_type_is_judged_first_as_in_trustgraph() {
    let query = json!({"name": 5, "type": "knowledge-query", "collection": "c", "group": "a"});
    check_refused(
        &[],
        "x",
        query,
        "tool 'x' has the type 'knowledge-query', which needs a service of TrustGraph; Switchboard has mcp-tool and prompt",
    );
    check_refused(
        &[],
        "x",
        json!({"limit": 5, "group": 1}),
        "tool 'x' needs a `type`: mcp-tool or prompt",
    );
    check_refused(&[], "x", json!({"type": 5, "name": 5}), "`type` of tool 'x' must be a text");
    let mut groups = with("group", json!("a"));
    groups["state"] = json!(1);
    groups["arguments"] = json!("none");
    check_refused(&[], "x", groups, "Tool 'group' field must be a list of strings");
}

#[test]
fn a_client_cannot_drop_what_it_does_not_see() {
    let mut present = balance();
    let tenant = json!({"name": "tenant", "value": "${TENANT}"});
    present["arguments"].as_array_mut().unwrap().push(tenant.clone());
    let new = json!([{"name": "day", "type": "string", "description": "A day: YYYY-MM-DD"}]);
    check(
        std::slice::from_ref(&present),
        "get_balance",
        with("arguments", new.clone()),
        "get_balance",
        json!({"arguments": [new[0], tenant], "id": null}),
    );
    let mut without = balance();
    without.as_object_mut().unwrap().shift_remove("arguments");
    check(
        std::slice::from_ref(&present),
        "get_balance",
        without,
        "get_balance",
        json!({"arguments": [tenant], "id": null}),
    );
    check_refused(
        std::slice::from_ref(&present),
        "get_balance",
        with("arguments", json!([{"name": "tenant", "type": "string", "description": ""}])),
        "the argument \"tenant\" of tool 'get_balance' is fixed or hidden in the configuration file and cannot be declared here",
    );
    let (present, plain) = (entry(present), entry(balance()));
    let deleted = |entry: &WrittenFields| delete_tool(&[entry], &shown_tools([entry])[0]);
    let said = deleted(&present).unwrap_err().message;
    assert!(said.contains("fixed or hidden in the configuration file (tenant)"), "{said}");
    let name = "get_balance".to_owned();
    assert_eq!(deleted(&plain), Ok(ConfigEdit::Remove { list: EntryList::Tools, name }));
}

#[test]
fn a_name_belongs_to_one_entry() {
    let plain = json!({"name": "get_balance", "max_instances": 1});
    check_refused(
        &[plain],
        "x",
        balance(),
        "the name 'get_balance' of tool 'x' is the name of an entry of the configuration file: choose another name",
    );
    let other = json!({"name": "get_balance", "id": "y", "type": "mcp-tool", "mcp-tool": "z"});
    check_refused(
        &[other],
        "x",
        balance(),
        "the name 'get_balance' of tool 'x' is the name of the tool 'y': choose another name",
    );
}
