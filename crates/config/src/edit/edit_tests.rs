use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fields(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(members) => members,
        other => panic!("not an object: {other}"),
    }
}

fn put(name: &str, json: Json) -> ConfigEdit {
    ConfigEdit::Put { list: EntryList::Tools, name: name.into(), fields: fields(json) }
}

fn patch(name: &str, json: Json) -> ConfigEdit {
    ConfigEdit::Patch { list: EntryList::Tools, name: name.into(), fields: fields(json) }
}

fn remove(name: &str) -> ConfigEdit {
    ConfigEdit::Remove { list: EntryList::Tools, name: name.into() }
}

fn set(path: &str, value: Json) -> ConfigEdit {
    let path = path.split('.').map(str::to_owned).collect();
    ConfigEdit::Set { path, value }
}

fn edited(text: &str, edit: ConfigEdit) -> Result<String, String> {
    let text = ConfigText::new("x.yaml", text).map_err(|problems| problems.to_string())?;
    text.edit(&[edit]).map_err(|refusal| refusal.to_string())
}

#[track_caller]
fn check(before: &str, edit: ConfigEdit, after: &str) {
    assert_eq!(edited(before, edit).as_deref(), Ok(after));
}

const COMMENTED: &str = "\
# The board of the lab.
switchboard:
  toolbox:
    max_concurrent: 10   # all tools

    tools:
      # Weather first.
      - name: forecast       # from wx
        timeout: '30s'
        description: \"Says: \\\"sun\\\"\"   # quoted

      - {name: sum, max_instances: 2}  # one line
      # The last one.
      - name: notes.add
        arguments:
          - name: text
            type: string
            description: |
              The text.
              # not a comment
          - name: when
            type: string
            description: a day   # format
    mcps: []  # none yet
";

#[test]
fn a_changed_field_changes_its_line_only() {
    let before = COMMENTED;
    check(
        before,
        patch("forecast", json!({"timeout": "1m"})),
        &before.replace("timeout: '30s'", "timeout: '1m'"),
    );
    check(
        before,
        patch("forecast", json!({"description": "Rain"})),
        &before.replace("\"Says: \\\"sun\\\"\"", "\"Rain\""),
    );
    check(
        before,
        patch("sum", json!({"max_instances": 3})),
        &before.replace("max_instances: 2", "max_instances: 3"),
    );
    check(
        before,
        patch("sum", json!({"enabled": false})),
        &before.replace("2}", "2, enabled: false}"),
    );
    check(
        before,
        patch("forecast", json!({"max_instances": 4})),
        &before.replace("  # quoted\n", "  # quoted\n        max_instances: 4\n"),
    );
}

#[test]
fn a_field_of_an_argument_changes_alone() {
    let arguments = json!([
        {"name": "text", "type": "string", "description": "The text.\n# not a comment\n"},
        {"name": "when", "type": "string", "description": "a day", "required": true},
    ]);
    check(
        COMMENTED,
        patch("notes.add", json!({"arguments": arguments})),
        &COMMENTED.replace("# format\n", "# format\n            required: true\n"),
    );
    check(
        COMMENTED,
        patch("notes.add", json!({"arguments": [arguments[0]]})),
        &COMMENTED.replace(
            "          - name: when\n            type: string\n            description: a day   # format\n",
            "",
        ),
    );
    let shorter = json!([{"name": "text", "type": "string", "description": "Words"}]);
    let after = edited(COMMENTED, patch("notes.add", json!({"arguments": shorter}))).unwrap();
    assert!(
        after.contains("            description: Words\n    mcps: []  # none yet\n"),
        "{after}"
    );
}

#[test]
fn a_new_entry_follows_the_last_one_in_the_style_of_the_file() {
    let new = "      - name: b\n        timeout: 5s\n";
    check(
        COMMENTED,
        put("b", json!({"timeout": "5s"})),
        &COMMENTED.replace("    mcps: []", &format!("{new}    mcps: []")),
    );
    check(
        "myai:\n    toolbox:\n        tools:\n        - name: a\n          # limits\n        mcps: []\n",
        put("b", json!({"arguments": [{"name": "x", "type": "string"}]})),
        "myai:\n    toolbox:\n        tools:\n        - name: a\n          # limits\n        - name: b\n          arguments:\n          - name: x\n            type: string\n        mcps: []\n",
    );
}

#[test]
fn missing_and_empty_parents_are_filled() {
    let added = "toolbox:\n    tools:\n      - name: a\n        enabled: false\n";
    let rows = [
        ("", format!("switchboard:\n  {added}")),
        ("# nothing yet\n", format!("# nothing yet\nswitchboard:\n  {added}")),
        ("switchboard:\n", format!("switchboard:\n  {added}")),
        ("switchboard: {}\n", format!("switchboard:\n  {added}")),
        ("switchboard: # main\n# end\n", format!("switchboard: # main\n  {added}# end\n")),
        ("switchboard:\n  toolbox:\n", format!("switchboard:\n  {added}")),
        ("switchboard:\n  toolbox: {}\n  gateway:\n", format!("switchboard:\n  {added}  gateway:\n")),
        ("switchboard:\n  toolbox:\n    tools: []\n", format!("switchboard:\n  {added}")),
        ("switchboard:\n  toolbox:\n    tools: [ ]  # none\n", format!("switchboard:\n  {}", added.replace("tools:", "tools:  # none"))),
        ("switchboard:\n  toolbox:\n    tools:\n    mcps:\n", format!("switchboard:\n  {added}    mcps:\n")),
        ("switchboard:\n  toolbox:\n    tools: ~\n", format!("switchboard:\n  {added}")),
        ("switchboard:\n  toolbox:\n    max_concurrent: 3", "switchboard:\n  toolbox:\n    max_concurrent: 3\n    tools:\n      - name: a\n        enabled: false".into()),
    ];
    for (before, after) in rows {
        check(before, put("a", json!({"enabled": false})), &after);
    }
}

#[test]
fn a_removed_entry_leaves_everything_else() {
    check(
        COMMENTED,
        remove("forecast"),
        &COMMENTED.replace(
            "      - name: forecast       # from wx\n        timeout: '30s'\n        description: \"Says: \\\"sun\\\"\"   # quoted\n",
            "",
        ),
    );
    check(
        COMMENTED,
        remove("sum"),
        &COMMENTED.replace("      - {name: sum, max_instances: 2}  # one line\n", ""),
    );
    check(
        "switchboard:\n  toolbox:\n    tools: # all\n      # one\n      - name: a\n    mcps: []\n",
        remove("a"),
        "switchboard:\n  toolbox:\n    tools: [] # all\n      # one\n    mcps: []\n",
    );
    assert_eq!(
        edited(COMMENTED, remove("other")),
        Err("the file has no entry for the tool 'other'".into())
    );
}

#[test]
fn windows_line_breaks_stay() {
    let before = COMMENTED.replace('\n', "\r\n");
    let after = edited(&before, put("b", json!({"timeout": "5s"}))).unwrap();
    assert_eq!(
        after,
        edited(COMMENTED, put("b", json!({"timeout": "5s"}))).unwrap().replace('\n', "\r\n")
    );
    check(&before, patch("forecast", json!({"timeout": "1m"})), &before.replace("30s", "1m"));
}

#[test]
fn json_files_stay_json() {
    let before = "{\n  \"switchboard\": {\n    \"toolbox\": {\n      \"tools\": [\n        {\n          \"name\": \"a\",\n          \"timeout\": \"5s\"\n        }\n      ]\n    }\n  }\n}\n";
    let check_json = |edit: ConfigEdit, part: &str| {
        let after = edited(before, edit).unwrap();
        serde_json::from_str::<Json>(&after).unwrap();
        assert!(after.contains(part), "{after}");
    };
    check_json(patch("a", json!({"timeout": "9s"})), "          \"timeout\": \"9s\"\n        }");
    check_json(
        patch("a", json!({"enabled": true})),
        "\"5s\",\n          \"enabled\": true\n        }",
    );
    check_json(
        put("b", json!({"arguments": [{"name": "x"}]})),
        "        },\n        {\n          \"name\": \"b\",\n          \"arguments\": [\n            {\n              \"name\": \"x\"\n            }\n          ]\n        }\n      ]",
    );
    check_json(set("toolbox.mcps", json!([])), "      ],\n      \"mcps\": []\n    }");
    check_json(remove("a"), "\"tools\": []");
    check(
        r#"{"switchboard": {"toolbox": {"tools": [{"name": "a"}, {"name": "b"}]}}}"#,
        remove("a"),
        r#"{"switchboard": {"toolbox": {"tools": [{"name": "b"}]}}}"#,
    );
}

#[test]
fn values_at_a_path_are_set_and_removed() {
    let before =
        "switchboard:\n  gateway:\n    naming: bare # short\n    tool_sets: [a, b] # sets\n";
    let rows = [
        ("gateway.naming", json!("prefixed"), before.replace("bare", "prefixed")),
        ("gateway.naming", Json::Null, before.replace("    naming: bare # short\n", "")),
        ("gateway.tool_sets", json!(["a", "c d"]), before.replace("[a, b]", "[a, \"c d\"]")),
        ("gateway.tool_sets", json!(["x"]), before.replace("[a, b]", "[x]")),
        ("gateway.tool_sets", json!([]), before.replace("[a, b]", "[]")),
        ("gateway.other.key", Json::Null, before.to_owned()),
        (
            "security.egress",
            json!({"allow": ["10.0.0.0/8"]}),
            format!("{before}  security:\n    egress:\n      allow:\n        - 10.0.0.0/8\n"),
        ),
    ];
    for (path, value, after) in rows {
        check(before, set(path, value), &after);
    }
}

#[test]
fn layouts_that_cannot_be_edited_are_refused_with_their_place() {
    let shared = "switchboard:\n  toolbox:\n    tools:\n      - &base\n        name: a\n        timeout: 5s\n      - *base\n";
    insta::assert_snapshot!(edited(shared, patch("a", json!({"timeout": "6s"}))).unwrap_err());
    let alias = "switchboard:\n  toolbox:\n    tools: &t\n      - name: a\n    mcps: *t\n";
    let edit = ConfigEdit::Patch {
        list: EntryList::Servers,
        name: "b".into(),
        fields: fields(json!({"mode": "dynamic"})),
    };
    insta::assert_snapshot!(edited(alias, edit).unwrap_err());
    let scalar = "switchboard:\n  toolbox:\n    tools: none\n";
    insta::assert_snapshot!(edited(scalar, put("a", json!({}))).unwrap_err());
    insta::assert_snapshot!(edited("other: 1\n", put("a", json!({}))).unwrap_err());
    insta::assert_snapshot!(edited("switchboard:\r  toolbox:\r", put("a", json!({}))).unwrap_err());
    insta::assert_snapshot!(
        edited("switchboard:\n  a: 1\n  a: 2\n", put("a", json!({}))).unwrap_err()
    );
}

#[test]
fn anchors_elsewhere_in_the_file_do_not_matter() {
    let before = "switchboard:\n  toolbox:\n    tools:\n      - name: a\n        timeout: &t 5s\n      - name: b\n        timeout: *t\n        queue_timeout: *t # same\n";
    check(
        before,
        patch("b", json!({"max_instances": 1})),
        &format!("{before}        max_instances: 1\n"),
    );
    check(
        before,
        patch("b", json!({"queue_timeout": "9s"})),
        &before.replace("*t # same", "9s # same"),
    );
    assert!(edited(before, remove("a")).is_err(), "the alias would lose its anchor");
}

#[test]
fn a_setting_in_a_file_of_two_hundred_lines_changes_one_line() {
    use std::fmt::Write as _;
    let mut text = String::from("# head\nswitchboard:\n  toolbox:\n    tools:\n");
    for index in 0..40 {
        write!(text, "\n      # tool {index}\n      - name: t{index}\n        description: 'about {index}'  # why\n        timeout: {index}s\n").unwrap();
    }
    let after = edited(&text, patch("t17", json!({"timeout": "99s", "max_instances": 2}))).unwrap();
    let mut expected: Vec<_> = text.lines().map(str::to_owned).collect();
    assert!(expected.len() > 200);
    let line = expected.iter().position(|line| line == "        timeout: 17s").unwrap();
    expected[line] = "        timeout: 99s".into();
    expected.insert(line + 1, "        max_instances: 2".into());
    assert_eq!(after.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_variable_that_sets_a_list_or_an_element_is_found() {
    let rows = [
        ("SWITCHBOARD__TOOLBOX__TOOLS", 1, false, true),
        ("APP_MYAI__TOOLBOX", 1, false, true),
        ("switchboard__toolbox__tools__1__timeout", 1, false, true),
        ("SWITCHBOARD__TOOLBOX__TOOLS__2__NAME", 1, false, false),
        ("SWITCHBOARD__TOOLBOX__TOOLS__2__NAME", 1, true, true),
        ("SWITCHBOARD__TOOLBOX__TOOLS__0__NAME", 1, true, false),
        ("SWITCHBOARD__TOOLBOX__MCPS__1__NAME", 1, true, false),
        ("SWITCHBOARD__GATEWAY__NAMING", 1, true, false),
        ("PATH", 1, true, false),
    ];
    for (variable, index, moves, is_found) in rows {
        let env = [(variable.to_owned(), "x".to_owned())];
        let found = overriding_variable(&env, EntryList::Tools, index, moves);
        assert_eq!(found, is_found.then_some(variable), "{variable} {index} {moves}");
    }
}

#[test]
fn every_scalar_of_an_entry_has_its_place() {
    let text = ConfigText::new("x.yaml", COMMENTED).unwrap();
    let places = text.places(EntryList::Tools, "notes.add");
    let shown: Vec<_> = places.iter().map(|(at, place)| format!("{at} {place}")).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Values as they occur in configurations: short texts, numbers, nested lists and maps.
fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        (0..100i64).prop_map(Json::from),
        "[a-z ]{0,8}".prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        prop_oneof![
            Just("30s"),
            Just("a: b"),
            Just("# x"),
            Just("- y"),
            Just("~"),
            Just("${A}"),
            Just("l1\nl2\n")
        ]
        .prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            members(inner).prop_map(Json::Object),
        ]
    })
}

fn members(value: impl Strategy<Value = Json>) -> impl Strategy<Value = Map<String, Json>> {
    prop::collection::vec(("[a-e]", value), 0..4).prop_map(|members| members.into_iter().collect())
}

/// A document in one of the styles in which people write them, with a comment after every line that can have one.
fn written(entries: &[(String, Map<String, Json>)], form: usize, break_: &str) -> String {
    use std::fmt::Write as _;
    let whole = |(name, fields): &(String, Map<String, Json>)| {
        let mut entry = Map::from_iter([("name".to_owned(), Json::from(name.as_str()))]);
        entry.extend(fields.clone());
        Json::Object(entry)
    };
    let entries: Vec<_> = entries.iter().map(whole).collect();
    let mut text = String::from("# first\nswitchboard:  # root\n  toolbox:\n");
    if entries.is_empty() {
        text.push_str(
            ["    tools: []  # none\n", "    tools:\n", "    # no tools\n    max_concurrent: 1\n"]
                [form % 3],
        );
    } else {
        let margin = if form.is_multiple_of(2) { "      " } else { "    " };
        text.push_str("    tools: # list\n");
        for entry in &entries {
            writeln!(
                text,
                "{margin}# about {}\n{margin}- name: {}  # name",
                entry["name"], entry["name"]
            )
            .unwrap();
            for (key, value) in entry.as_object().unwrap().iter().filter(|(key, _)| *key != "name")
            {
                let value = match (form / 2 % 3, value) {
                    (0, Json::String(text)) => crate::emit::plain_or_quoted(text),
                    (1, Json::String(text)) if !text.chars().any(char::is_control) => {
                        format!("'{}'", text.replace('\'', "''"))
                    }
                    (_, Json::String(text)) => crate::emit::quoted(text),
                    (2, value) if !is_empty(value) => {
                        let lines = block(value, margin.len() + 4);
                        format!("# below\n{}", lines.trim_end())
                    }
                    (_, value) => {
                        style::FlowStyle { quotes_keys: form.is_multiple_of(2) }.value(value)
                    }
                };
                writeln!(text, "{margin}  {key}: {value}  # {key}\n").unwrap();
            }
        }
    }
    text.push_str("    mcps: []\n  # last\n");
    text.replace('\n', break_)
}

fn is_empty(value: &Json) -> bool {
    style::is_inline(value)
}

fn block(value: &Json, indent: usize) -> String {
    let lines = Lines::new("");
    style::FileStyle::of(None, &lines).block(value, indent).join("\n")
}

fn entries() -> impl Strategy<Value = Vec<(String, Map<String, Json>)>> {
    prop::collection::vec(("[p-t]", members(value())), 0..4).prop_map(|entries| {
        let mut seen = std::collections::BTreeSet::new();
        entries.into_iter().filter(|(name, _)| seen.insert(name.clone())).collect()
    })
}

proptest! {
    #[test]
    fn an_edit_changes_the_values_that_it_names_and_no_comment_outside(
        entries in entries(),
        form in 0..12usize,
        is_windows in any::<bool>(),
        name in "[p-u]",
        new in members(value()),
        removes in any::<bool>(),
    ) {
        let text = written(&entries, form, if is_windows { "\r\n" } else { "\n" });
        let Ok(before) = ConfigText::new("x.yaml", &text) else {
            // Texts with characters that this style cannot hold are not valid YAML.
            return Ok(());
        };
        let is_known = entries.iter().any(|(known, _)| *known == name);
        let edit = if removes {
            remove(&name)
        } else {
            ConfigEdit::Put { list: EntryList::Tools, name: name.clone(), fields: new.clone() }
        };
        let after = match before.edit(&[edit]) {
            Ok(after) => after,
            Err(refusal) => {
                prop_assert!(removes && !is_known, "{refusal}\n{text}");
                return Ok(());
            }
        };
        let read = ConfigText::new("x.yaml", &after).unwrap();
        let expected = (!removes).then(|| {
            let mut entry = Map::from_iter([("name".to_owned(), Json::from(name.as_str()))]);
            entry.extend(new);
            entry
        });
        prop_assert_eq!(read.entry(EntryList::Tools, &name), expected.as_ref());
        for (other, _) in entries.iter().filter(|(other, _)| *other != name) {
            prop_assert_eq!(read.entry(EntryList::Tools, other), before.entry(EntryList::Tools, other));
            // Every line of the other entries stays as it is.
            let own = lines_of(&text, other);
            prop_assert!(after.contains(&own), "{own}\nis not in\n{after}");
        }
        for kept in ["# first", "switchboard:  # root", "  # last"] {
            prop_assert!(after.lines().any(|line| line == kept), "{after}");
        }
        prop_assert_eq!(after.contains('\r'), is_windows || text.contains('\r'));
    }
}

/// The lines of an entry from its `- name` to its last value.
fn lines_of(text: &str, name: &str) -> String {
    let start = text.find(&format!("- name: \"{name}\"")).unwrap();
    let rest = text.get(start..).unwrap();
    let end = ["# about", "    mcps: []"].iter().filter_map(|next| rest.find(next)).min().unwrap();
    rest.get(..end).unwrap().trim_end().to_owned()
}
