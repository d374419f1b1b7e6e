//! `tool set|delete` and `server set|show|delete|reconnect`, on the file and at a running instance.

use std::fmt::Write as _;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::Tool;

use crate::support::{Home, server};

/// A file of more than 200 lines with comments, blank lines and quotes.
fn commented() -> String {
    let mut text = String::from("# The lab.\nswitchboard:\n  toolbox:\n    tools:\n");
    for index in 0..50 {
        write!(
            text,
            "\n      # number {index}\n      - name: \"t{index}\"   # quoted\n        timeout: {}s\n",
            index + 1
        )
        .unwrap();
    }
    text.push_str("    mcps: [] # none\n");
    text
}

fn text(home: &Home) -> String {
    std::fs::read_to_string(home.config()).unwrap()
}

#[test]
fn tool_set_leaves_every_other_line_of_a_commented_file_untouched() {
    let home = Home::new(commented());
    let arguments = [
        "tool",
        "set",
        "t20",
        "--timeout",
        "99s",
        "--argument",
        "day:string:format: YYYY-MM-DD",
        "--required",
        "day",
    ];
    let outcome = home.run(&arguments).expect(0);
    assert!(outcome.stdout.ends_with(": written\n"), "{}", outcome.all());
    let new = "        timeout: 99s\n        arguments:\n          - name: day\n            type: string\n            \
               description: \"format: YYYY-MM-DD\"\n            required: true\n";
    assert_eq!(text(&home), commented().replace("        timeout: 21s\n", new));
    home.line("tool set new_one --max-instances 3").expect(0);
    home.line("tool delete new_one").expect(0);
    home.line("tool set t20 --timeout 21s --unset arguments").expect(0);
    assert_eq!(text(&home), commented());
    let json = home.line("tool set t20 --timeout 21s --json").expect(0).json();
    assert_eq!((&json["changed"], &json["diff"]), (&json!(false), &json!("")));
}

#[test]
fn a_dry_run_shows_the_change_and_writes_nothing() {
    let home = Home::new(commented());
    let outcome = home.line("tool set t3 --disabled --dry-run").expect(0);
    for line in ["@@ ", "         timeout: 4s", "+        enabled: false"] {
        assert!(outcome.stdout.contains(line), "{}", outcome.all());
    }
    assert_eq!(text(&home), commented());
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_nothing_is_written() {
    let home = Home::new(commented());
    for (arguments, code, said) in [
        (
            &["tool", "set", "t1", "--argument", "a:string:x", "--argument", "a:string:y"][..],
            2,
            "two arguments are named \"a\"",
        ),
        (&["tool", "set", "t1", "--argument", ":string:x"], 2, "the name is empty"),
        (&["tool", "set", "t1", "--argument", "a:text:x"], 2, "'text' is not a type"),
        (
            &["tool", "set", "t1", "--required", "b"],
            2,
            "--required b: the entry declares no such argument",
        ),
        (&["tool", "set", ""], 2, "the name is empty"),
        (&["tool", "set", "t1", "--timeout", "never"], 1, "switchboard.yaml:"),
        (&["tool", "set", "t1", "--unset", "name"], 1, "name"),
        (&["tool", "delete", "t99"], 2, "the file has no entry for the tool 't99'"),
        (&["server", "set", "x"], 2, "give --tool-url URL or --command PROGRAM"),
        (&["server", "set", "x", "--tool-url", "nonsense"], 1, "url"),
        (&["server", "delete", "x"], 2, "the file has no server 'x'"),
        (&["server", "reconnect", "x"], 2, "only a running instance"),
        (
            &["server", "set", "x", "--command", "sh", "--url", "http://127.0.0.1:1"],
            2,
            "a program can be written into a configuration file only",
        ),
    ] {
        let outcome = home.run(arguments).expect(code);
        assert!(outcome.stderr.contains(said), "{arguments:?}: {}", outcome.all());
        assert_eq!(text(&home), commented(), "{arguments:?}");
    }
}

#[test]
fn a_read_only_file_and_a_missing_one_have_a_way_out() {
    let home = Home::new(commented());
    let mut permissions = std::fs::metadata(home.config()).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(home.config(), permissions).unwrap();
    let outcome = home.line("tool set t1 --disabled").expect(1);
    assert!(
        outcome.stderr.contains("the file is read-only\nhint: make it writable"),
        "{}",
        outcome.all()
    );
    assert_eq!(text(&home), commented());
    let empty = Home::empty();
    let outcome = empty.line("tool set t1 --disabled").expect(1);
    assert!(outcome.stderr.contains("switchboard"), "{}", outcome.all());
}

/// Every option about arguments, groups and states.
const SET_FIND: [&str; 30] = [
    "tool",
    "set",
    "one.find",
    "--argument",
    "unit:string:The unit",
    "--argument",
    "to:array:Whom",
    "--argument",
    "at:object:Where",
    "--argument",
    "n:integer:How many",
    "--enum",
    "unit=celsius",
    "--enum",
    "unit=kelvin",
    "--default",
    "unit=kelvin",
    "--items",
    r#"to={"type": "string"}"#,
    "--properties",
    r#"at={"zip": {"type": "string"}}"#,
    "--value",
    "n=7",
    "--validate-arguments",
    "false",
    "--no-group",
    "--applicable-state",
    "ready",
    "--state",
    "done",
];

/// Every option about prompt tools.
const SET_ASK: [&str; 23] = [
    "tool",
    "set",
    "ask",
    "--type",
    "prompt",
    "--id",
    "ask-tool",
    "--template",
    "Say {{ what }}",
    "--argument",
    "what:string:What",
    "--provider",
    "demo",
    "--model",
    "demo",
    "--instructions",
    "Be brief",
    "--tool",
    "one.*",
    "--tool",
    "local.*",
    "--max-depth",
    "2",
];

#[tokio::test]
async fn every_field_of_an_entry_can_be_set_in_the_file_and_at_a_running_instance() {
    let one = server([Tool::echo("find")]).await;
    let home = Home::new(format!(
        "switchboard:\n  toolbox:\n    tools: []\n    mcps:\n      - {{name: one, url: \"{}\", mode: dynamic, \
         default_tool_config: {{}}}}\n",
        one.url()
    ));
    let serve = home.serve().await;
    let mut written = Vec::new();
    for more in [&["--url", &*serve.url][..], &[]] {
        home.run(&[&SET_FIND[..], more].concat()).expect(0);
        home.run(&[&SET_ASK[..], more].concat()).expect(0);
        written.push(text(&home));
        if !more.is_empty() {
            home.line("tool delete ask").expect(0);
            home.line("tool delete one.find").expect(0);
        }
    }
    assert_eq!(written[0], written[1], "both ways write the same");
    for line in [
        "enum:\n              - celsius\n              - kelvin\n",
        "default: kelvin",
        "items:\n              type: string",
        "properties:\n              zip:\n                type: string",
        "value: 7",
        "validate_arguments: false",
        "group: []",
        "state: done",
        "type: prompt\n",
        "id: ask-tool",
        "template: \"Say {{ what }}\"",
        "instructions: \"Be brief\"",
        "tools:\n          - \"one.*\"\n          - \"local.*\"",
        "max_depth: 2",
    ] {
        assert!(written[0].contains(line), "{line}\n{}", written[0]);
    }
    let called = home.run(&["tool", "call", "one.find", r#"{"unit": "x"}"#]).expect(0).stdout;
    assert_eq!(called, "{\"n\":7,\"unit\":\"x\"}\n", "not checked, and with the fixed value");
    let asked = home.run(&["tool", "call", "local.ask", "--arg", "what=hello"]).expect(0).stdout;
    assert!(asked.contains("Say hello") && asked.contains("one__find"), "{asked}");
    let refused = home.run(&["tool", "set", "one.find", "--default", "unit=fahrenheit"]).expect(1);
    assert!(refused.stderr.contains("default"), "{}", refused.all());
    assert_eq!(text(&home), written[1]);
}

#[tokio::test]
async fn fixed_and_hidden_arguments_stay_unless_they_are_removed_by_name() {
    let one = server([Tool::echo("find")]).await;
    let home = Home::new(format!(
        "switchboard:\n  toolbox:\n    tools:\n      - name: one.find\n        arguments:\n          \
         - {{name: unit, type: string, enum: [c, k], default: c}}\n          \
         - {{name: tenant, value: \"${{TENANT}}\"}} # never the model's\n          \
         - {{name: debug, hidden: true, default: false}}\n    mcps:\n      \
         - {{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{}}}}\n",
        one.url()
    ))
    .with_variable("TENANT", "acme");
    let serve = home.serve().await;
    let shown = home.line("tool show one.find").expect(0).stdout;
    let row = r#"unit      string  no        "c", "k"         "c""#;
    assert!(shown.contains("ACCEPTED VALUES  DEFAULT") && shown.contains(row), "{shown}");
    let hidden = "fixed          tenant\nhidden         debug (its default is sent)\n";
    assert!(shown.contains(hidden) && !shown.contains("acme"), "{shown}");
    for more in [&[][..], &["--url", &*serve.url]] {
        let run =
            |line: &[&str]| home.run(&[&["tool", "set", "one.find"][..], line, more].concat());
        let set = run(&["--argument", "text:string:What"]).expect(0);
        for name in ["tenant", "debug"] {
            let kept = format!(
                "the argument '{name}' is fixed or hidden and stays; `--remove-argument {name}` removes it"
            );
            assert!(set.stderr.contains(&kept), "{}", set.all());
        }
        let call = home.run(&["tool", "call", "one.find", r#"{"text": "x"}"#]).expect(0).stdout;
        assert_eq!(call, "{\"tenant\":\"acme\",\"debug\":false,\"text\":\"x\"}\n");
        let shown = home.run(&[&["tool", "show", "one.find"][..], more].concat()).expect(0).stdout;
        assert!(shown.contains(hidden) && !shown.contains("acme"), "{shown}");
        let refused = run(&["--unset", "arguments"]).expect(2);
        let said = "--unset arguments would also remove what is fixed or hidden: tenant, debug";
        assert!(refused.stderr.contains(said), "{}", refused.all());
        assert!(text(&home).contains("value: \"${TENANT}\""), "{}", text(&home));
    }
    let dry = ["tool", "set", "one.find", "--argument", "n:integer", "--dry-run"];
    let dry = home.run(&dry).expect(0);
    assert!(dry.stderr.contains("'tenant' is fixed or hidden and stays"), "{}", dry.all());
    assert!(!dry.stdout.contains("-          - name: tenant"), "{}", dry.stdout);
    let dry = home.line("tool delete one.find --dry-run").expect(0);
    assert!(dry.stderr.contains("'tenant' was fixed or hidden by this entry"), "{}", dry.all());
    let remove = ["tool", "set", "one.find", "--remove-argument", "tenant"];
    let dry = home.run(&[&remove[..], &["--dry-run"]].concat()).expect(0);
    assert!(dry.stdout.contains("tenant"), "{}", dry.all());
    home.run(&[&remove[..], &["--url", &serve.url]].concat()).expect(0);
    assert!(!text(&home).contains("tenant") && text(&home).contains("debug"), "{}", text(&home));
    home.line("tool set one.find --unset arguments --remove-argument debug").expect(0);
    assert!(!text(&home).contains("arguments"), "{}", text(&home));
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_shown_with_its_entry_and_the_reason() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let one =
        server([Tool::echo("find"), Tool::echo("delete"), Tool::echo("odd").schema(schema)]).await;
    let home = Home::new(format!(
        "switchboard:\n  toolbox:\n    tools:\n      - {{name: one.find, enabled: false, timeout: 5s}}\n      \
         - {{name: one.missing, description: Gone}}\n      - {{name: down.find, max_instances: 2}}\n      \
         - {{name: one.odd, arguments: [{{name: a, value: text}}]}}\n      - {{name: nowhere}}\n    mcps:\n      \
         - {{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{}}, tool_denylist: [delete]}}\n      \
         - {{name: down, url: \"http://127.0.0.1:1/mcp\", mode: dynamic, default_tool_config: {{}}, required: false}}\n",
        one.url()
    ));
    let serve = home.serve().await;
    for more in [&[][..], &["--url", &*serve.url]] {
        let show =
            |name: &str| home.run(&[&["tool", "show", name], more].concat()).expect(0).stdout;
        let check = |name: &str, reason: &str, lines: &[&str]| {
            let shown = show(name);
            let expected = format!("{name}\nnot available: {reason}");
            assert!(shown.starts_with(&expected), "{shown}");
            for line in lines {
                assert!(shown.contains(line), "{line}\n{shown}");
            }
        };
        check(
            "one.find",
            "the entry 'one.find' in toolbox.tools says `enabled: false`\nhint: `switchboard tool set one.find --enabled`",
            &["in the file:\n  enabled: false  # ", "  timeout: 5s  # "],
        );
        let called = home.run(&[&["tool", "call", "one.find"], more].concat()).expect(2).stderr;
        let why = "error: there is no tool 'one.find': the entry 'one.find' in toolbox.tools says `enabled: false`\n\
                   hint: `switchboard tool set one.find --enabled` shows it again";
        assert!(called.contains(why), "{called}");
        check(
            "one.missing",
            "MCP server 'one' does not offer the tool\n",
            &["  description: Gone  # "],
        );
        check(
            "down.find",
            "MCP server 'down' is unavailable: cannot connect",
            &["  max_instances: 2"],
        );
        check("nowhere", "MCP server 'down' is unavailable", &[]);
        check(
            "one.odd",
            "MCP server 'one' has it, but its entry in the configuration is wrong",
            &["***"],
        );
        check(
            "one.delete",
            "`tool_allowlist` or `tool_denylist` of MCP server 'one' leaves it out",
            &[],
        );
        let json = home.run(&[&["tool", "show", "one.find", "--json"], more].concat()).expect(0);
        assert_eq!(json.json()["absent"]["reason"], "disabled");
        let unknown = home.run(&[&["tool", "show", "one.finds"], more].concat()).expect(2);
        assert!(unknown.stderr.contains("there is no tool 'one.finds'"), "{}", unknown.all());
    }
    let doctor = home.line("doctor").expect(0).stdout;
    assert!(
        doctor
            .contains("warn tool one.odd: quarantined: its entry in the configuration is wrong: "),
        "{doctor}"
    );
}

#[tokio::test]
async fn tools_and_servers_are_managed_at_a_running_instance() {
    let (one, two) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let home = Home::new(format!(
        "# mine\nswitchboard:\n  security: {{egress: {{allow: [127.0.0.1]}}}}\n  toolbox:\n    mcps:\n      - name: one # first\n        url: {}\n        \
         mode: dynamic\n        default_tool_config: {{max_instances: 10}}\n        headers: {{X-Key: s3cret}}\n",
        one.url()
    ));
    let serve = home.serve().await;
    let there = |arguments: &[&str]| home.run(&[arguments, &["--url", &serve.url]].concat());
    there(&["tool", "set", "one.a", "--max-instances", "4", "--argument", "n:integer:How many"])
        .expect(0);
    let shown = there(&["tool", "show", "one.a"]).expect(0).stdout;
    assert!(shown.contains("max_instances  4") && shown.contains("How many"), "{shown}");
    there(&["tool", "set", "one.a", "--required", "n"]).expect(0);
    assert!(text(&home).contains("required: true") && text(&home).contains("max_instances: 4"));
    there(&["server", "set", "two", "--tool-url", &two.url(), "--not-required"]).expect(0);
    assert_eq!(serve.tool_names().await, ["one.a", "two.b"]);
    let shown = there(&["server", "show", "one"]).expect(0);
    assert!(shown.stdout.contains("X-Key") && !shown.stdout.contains("s3cret"), "{}", shown.all());
    // Only the address is changed; the header stays in the file.
    there(&["server", "set", "one", "--deny", "zzz"]).expect(0);
    assert!(text(&home).contains("headers: {X-Key: s3cret}") && text(&home).contains("# first"));
    there(&[
        "toolset",
        "set",
        "both",
        "--description",
        "All",
        "--tool",
        "one.a",
        "--server",
        "two",
    ])
    .expect(0);
    there(&["toolset", "set", "both", "--unset", "tools"]).expect(0);
    let shown = there(&["toolset", "show", "both"]).expect(0).stdout;
    assert!(shown.contains("  two.b") && !shown.contains("one.a"), "{shown}");
    assert!(
        home.line("toolset set both --description Two --dry-run").expect(0).stdout.contains('+')
    );
    home.line("toolset set both --tool b").expect(0);
    assert!(
        text(&home).contains("description: All") && text(&home).contains("- b\n"),
        "{}",
        text(&home)
    );
    let new = home.line("toolset set other --tool b").expect(2);
    assert!(new.stderr.contains("--description"), "{}", new.all());
    there(&["toolset", "delete", "both"]).expect(0);
    home.line("toolset delete both").expect(2);
    let outcome = there(&["server", "reconnect", "two"]).expect(0);
    assert_eq!(outcome.stdout, "two: ready, 1 tools\n");
    there(&["server", "delete", "two"]).expect(0);
    there(&["tool", "delete", "one.a"]).expect(0);
    assert_eq!(serve.tool_names().await, ["one.a"]);
    let refused = there(&["tool", "set", "one.a", "--timeout", "never"]).expect(1);
    assert!(refused.stderr.contains("/limits/timeout"), "{}", refused.all());
    there(&["server", "delete", "two"]).expect(2);
    let embedded = home.line("server show one").expect(0);
    assert!(embedded.stdout.contains("state          ready"), "{}", embedded.all());
    let called = there(&["tool", "invoke", "one.a", "-P", "{\"n\": 1}"]).expect(0);
    assert!(called.stdout.contains('1'), "{}", called.all());
}

#[test]
fn tool_set_tells_only_of_the_warnings_that_it_adds() {
    let home = Home::new(
        "switchboard:\n  toolbox:\n    tools:\n      - {name: gone.a}\n      - {name: gone.b}\n    mcps:\n      \
         - {name: one, command: x, mode: dynamic, default_tool_config: {}}\n",
    );
    let before = home.line("check --json").expect(0).json();
    assert_eq!(before["warnings"].as_array().unwrap().len(), 2, "{before:#}");
    let outcome = home.line("tool set one.x --timeout 5s").expect(0);
    assert!(!outcome.all().contains("gone"), "{}", outcome.all());
    assert!(
        outcome.all().contains("2 other warnings: run `switchboard check`"),
        "{}",
        outcome.all()
    );
    let added = home.line("tool set gone.c --timeout 5s --json").expect(0).json();
    assert_eq!(added["other_warnings"], 2, "{added:#}");
    let warnings = added["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{added:#}");
    assert!(warnings[0]["path"].as_str().unwrap().contains("tools[3]"), "{added:#}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("gone"), "{added:#}");
    // The entries after it move up, and their warnings are no new ones.
    let removed = home.line("tool delete gone.a --json").expect(0).json();
    assert_eq!((&removed["warnings"], &removed["other_warnings"]), (&json!([]), &json!(2)));
}

#[tokio::test]
async fn a_change_at_a_running_instance_says_what_it_did_not_achieve() {
    let one = server([Tool::echo("a")]).await;
    let home = Home::new(format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{}}}}\n",
        one.url()
    ));
    let serve = home.serve().await;
    let there = |arguments: &[&str]| home.run(&[arguments, &["--url", &serve.url]].concat());
    let set = there(&["tool", "set", "one.a", "--timeout", "5s"]).expect(0);
    assert!(set.stdout.starts_with("one.a: in force at "), "{}", set.all());
    let again = there(&["tool", "set", "one.a", "--timeout", "5s"]).expect(0);
    assert!(again.stdout.starts_with("one.a: nothing to change at "), "{}", again.all());
    let absent = there(&["tool", "set", "one.gone", "--timeout", "5s"]).expect(0);
    assert!(absent.stderr.contains("the tool cannot be used: "), "{}", absent.all());
}
