//! `tool list`, `tool show` and `tool call`, embedded and at a running instance.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::support::{
    Home, Outcome, PATIENCE, assert_says, dynamic, server, signal, with, yaml, yaml_with,
};

async fn echo_board() -> (ScriptedServer, Home) {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "How many"},
            "name": {"type": "string"},
            "any": {"description": "Whatever it is"},
        },
        "required": ["n"],
        "additionalProperties": false,
    });
    let one =
        server([Tool::echo("echo").schema(schema).description("Says it again.\nTwice.")]).await;
    let tools = ["{name: sum_numbers, max_instances: 2}", "{name: echo, inactivity_timeout: 4s}"];
    let home = Home::new(yaml(&tools, &[dynamic("one", &one.url())]));
    (one, home)
}

#[tokio::test]
async fn tools_are_listed_shown_and_called_here_and_there() {
    let (_one, home) = echo_board().await;
    let serve = home.serve().await;
    assert_says!(home.line("tool list").expect(0).stdout, @"
    TOOL               LIMITS    CONFIGURED  DESCRIPTION
    local.sum_numbers  2 x 30s   explicit    Adds two numbers
    one.echo           10 x 30s  merged      Says it again.
    ");
    assert_says!(home.line("tool show echo").expect(0).stdout, @"
    one.echo
    Says it again.
    Twice.

    server         one (dynamic)
    toolset        one
    configured     merged
    max_instances  10
    timeout        30s (queue 30s)
    max_timeout    10m (with progress)
    inactivity     4s
    max_result     1048576 bytes

    ARGUMENT  TYPE     REQUIRED  DESCRIPTION
    n         integer  yes       How many
    name      string   no
    any       any      no        Whatever it is
    ");
    for more in [vec![], vec!["--url", &serve.url]] {
        let run = |line: &[&str]| home.run(&[line, &more].concat());
        let list = |line: &[&str]| run(&[line, &["--json"]].concat()).expect(0).json();
        assert_eq!(list(&["tool", "list"])["tools"].as_array().unwrap().len(), 2);
        assert_eq!(list(&["tool", "list", "--server", "one"])["tools"][0]["name"], "one.echo");
        assert_eq!(
            list(&["tool", "list", "--server", "local"])["tools"][0]["name"],
            "local.sum_numbers"
        );
        assert_eq!(list(&["tool", "show", "echo"])["limits"]["inactivity_timeout"], "4s");

        assert_eq!(run(&["tool", "call", "echo", r#"{"n": 1}"#]).expect(0).stdout, "{\"n\":1}\n");
        let pairs = ["--arg", "n=2", "--arg", "name=3", "--arg", "any=[true]"];
        let said = run(&[&["tool", "call", "one.echo"][..], &pairs].concat()).expect(0);
        assert_eq!(said.stdout, "{\"n\":2,\"name\":\"3\",\"any\":[true]}\n");
        let line = [&["tool", "call", "one.echo", "-", "--json"][..], &more].concat();
        let call = home.run_with_input(&line, r#"{"n": 7}"#).expect(0).json();
        assert_eq!(call["result"]["structuredContent"]["n"], 7);
        assert_eq!((&call["tool"], &call["outcome"]), (&json!("one.echo"), &json!("ok")));
        assert_eq!(
            run(&["tool", "call", "local.sum_numbers", "--arg", "a=1", "--arg", "b=2.5"]).stdout,
            "3.5\n"
        );
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_made_says_why() {
    let (_one, home) = echo_board().await;
    assert_says!(home.run(&["tool", "call", "echo", "{"]).expect(2).stderr, @r#"
    error: the arguments are not JSON: EOF while parsing an object at line 1 column 1
    hint: write them as '{"a": 1}', or use --arg a=1
    "#);
    assert_says!(home.run(&["tool", "call", "echo", r#"{"n": "x", "m": 1}"#]).expect(2).stderr, @r#"
    error: the arguments of tool 'echo' of MCP server 'one' do not fit: argument `n`: "x" is not of type "integer"; unknown argument `m`; this tool takes `n`, `name`, `any`
    hint: `switchboard tool show one.echo` shows its schema
    "#);
    assert_says!(home.run(&["tool", "call", "one.ecko"]).expect(2).stderr, @"
    error: there is no tool 'one.ecko'
    hint: did you mean 'one.echo'?
    ");
    assert_says!(home.run(&["tool", "show", "one.ecko"]).expect(2).stderr, @"
    error: there is no tool 'one.ecko'
    hint: did you mean 'one.echo'?
    ");
    assert_says!(home.run(&["tool", "call", "echo", "[]"]).expect(2).stderr, @"error: the arguments of tool 'echo' of MCP server 'one' must be a JSON object, not a list");
    assert_says!(home.run(&["tool", "list", "--server", "two"]).expect(2).stderr, @"error: no server 'two' is configured");
}

#[tokio::test]
async fn a_call_of_a_named_server_starts_only_that_one_and_warns_about_no_other() {
    let (one, two) = (server([Tool::echo("a")]).await, server([Tool::echo("b")]).await);
    let servers = [dynamic("one", &one.url()), dynamic("two", &two.url())];
    let home = Home::new(yaml(&["{name: b, max_instances: 1}"], &servers));
    let outcome = home.run(&["tool", "call", "one.a", "{}"]).expect(0);
    assert_eq!(outcome.stderr, "", "the entry `b` is of another server");
    assert_eq!((one.stats().initialize_count, two.stats().initialize_count), (1, 0));
    let outcome = home.run(&["tool", "call", "local.sum_numbers", "{}"]).expect(2);
    assert!(
        outcome.stderr.starts_with("error: there is no tool 'local.sum_numbers'"),
        "{}",
        outcome.stderr
    );
    assert_eq!((one.stats().initialize_count, two.stats().initialize_count), (1, 0));
}

#[tokio::test]
async fn an_interrupted_call_is_cancelled_at_its_server_and_leaves_its_record() {
    let slow = server([Tool::new("hangs").replies(Reply::Hang)]).await;
    let home = Home::new(yaml(&[], &[dynamic("slow", &slow.url())]));
    let child = home.command(&["tool", "call", "slow.hangs", "{}"]).spawn().unwrap();
    wait_until(PATIENCE, async || (slow.stats().running_calls == 1).then_some(())).await;
    signal(child.id(), "INT");
    Outcome::from(child.wait_with_output().unwrap()).expect(130);
    let calls = home.line("calls --json").expect(0).json();
    assert_eq!(calls["calls"][0]["outcome"], "cancelled");
    wait_until(PATIENCE, async || (!slow.stats().cancelled.is_empty()).then_some(())).await;
}

#[tokio::test]
async fn a_quarantined_tool_is_shown_with_its_reason_everywhere() {
    let odd = |name: &str, schema: Value| {
        Tool::listed_as(name, json!({"name": name, "description": "d", "inputSchema": schema}))
    };
    let tools = [
        Tool::echo("good").description("d"),
        odd("mended", json!({"type": "object", "properties": {"a": true}})),
        odd("broken", json!({"type": "object", "properties": {"a": "string"}})),
    ];
    let server = server(tools).await;
    let home = Home::new(yaml(&[], &[dynamic("odd", &server.url())]));
    let short = home.line("tool list").expect(0);
    assert!(!short.stdout.contains("broken"), "{}", short.stdout);
    assert!(short.stderr.contains("1 more are quarantined: `tool list --all` says why"));
    assert_says!(home.line("tool list --all").expect(0).stdout, @"
    TOOL        LIMITS    CONFIGURED  DESCRIPTION
    odd.good    10 x 30s  default     d
    odd.mended  10 x 30s  default     d
    QUARANTINED  REASON
    odd.broken   `properties.a` of its inputSchema is a string, not a schema
    ");
    let shown = home.line("tool show odd.mended").expect(0).stdout;
    assert!(
        shown.contains("repaired       inputSchema: `properties.a`: `true` became {}"),
        "{shown}"
    );
    let doctor = home.line("doctor").expect(0).stdout;
    let reason = "`properties.a` of its inputSchema is a string, not a schema";
    for line in [
        format!("warn tool odd.broken: quarantined: {reason}"),
        "warn tool odd.mended: listed in a repaired form: inputSchema: `properties.a`: `true` became {}".into(),
    ] {
        assert!(doctor.contains(&line), "{doctor}");
    }
    let serve = home.serve().await;
    let list = serve.get("/api/v1/tools").await;
    assert_eq!(list["tools"].as_array().unwrap().len(), 2);
    assert_eq!(list["quarantined"], json!([{"server": "odd", "tool": "broken", "reason": reason}]));
}

#[tokio::test]
async fn a_server_without_a_set_of_its_own_has_tools_without_one() {
    let one = server([Tool::echo("echo").description("d")]).await;
    let home = Home::new(yaml(&[], &[with(&dynamic("one", &one.url()), "toolset: none")]));
    let shown = home.line("tool show one.echo").expect(0).stdout;
    assert!(shown.contains("toolset        none (its server has `toolset: none`)\n"), "{shown}");
    let json = home.line("tool show one.echo --json").expect(0).json();
    assert_eq!(json["toolset"], Value::Null);
}

#[tokio::test]
async fn one_named_tool_is_found_although_other_local_tools_are_chosen() {
    let one = server([Tool::echo("echo").description("d")]).await;
    let local = "local_tools: [sum_numbers, current_time]";
    let tools = ["{name: sum_numbers}", "{name: current_time}"];
    let home = Home::new(yaml_with(local, &tools, &[dynamic("one", &one.url())]));
    for line in ["tool show one.echo", "tool call one.echo", "tool show local.sum_numbers"] {
        home.line(line).expect(0);
    }
}
