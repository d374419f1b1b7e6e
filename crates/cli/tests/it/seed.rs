//! The chatagent format (root key `myai`) in the built program: examples, strict and dynamic mode, edge cases, log
//! lines.

use pretty_assertions::assert_eq;
use switchboard_test_support::{ScriptedServer, Tool, free_port};

use crate::support::{
    Home, Outcome, Serve, assert_says, dynamic, limits, names, server, strict, yaml, yaml_with,
};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../config/tests/fixtures/", $name, ".yaml"))
    };
}

/// The example with local servers in place of its addresses.
fn example(text: &str, servers: &[(&str, &ScriptedServer)]) -> Home {
    let at_home = |text: String, (url, server): &(&str, &ScriptedServer)| {
        assert!(text.contains(url), "{text}");
        text.replace(url, &server.url())
    };
    Home::new(servers.iter().fold(text.to_owned(), at_home))
}

const CUSTOMERS: &str = "http://localhost:8180/mcp/http/mcp";
const INTERNAL: &str = "http://localhost:8181/mcp/http/mcp";
const EXTERNAL: &str = "http://external.com/mcp";

/// It serves these tools, and `tool list` without a server says the same.
async fn starts(home: &Home, expected: &[&str]) -> Serve {
    let serve = home.serve().await;
    assert_eq!(serve.start["readiness"]["status"], "ready", "{}", serve.start);
    assert_eq!(limits(&serve.get("/api/v1/tools").await), expected);
    let list = home.line("tool list --json").expect(0);
    assert_eq!(limits(&list.json()), expected, "embedded");
    serve
}

fn refused(home: &Home) -> Outcome {
    let outcome = home.line("serve -q --listen 127.0.0.1:0").expect(1);
    assert_eq!(outcome.stdout, "", "nothing was served");
    outcome
}

/// The lines of standard error that have this level, without their time.
fn lines_of(stderr: &str, level: &str) -> Vec<String> {
    let marked = format!(" {level}: ");
    stderr.lines().filter_map(|line| Some(line.split_once(&marked)?.1.to_owned())).collect()
}

#[tokio::test]
async fn example_2_1_starts() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("list_customers")]).await;
    let internal = server([]).await;
    let servers = [(CUSTOMERS, &customers), (INTERNAL, &internal)];
    let home = example(fixture!("structure"), &servers);
    let expected = [
        "local.sum_numbers 20 30s explicit",
        "local.multiply_numbers 15 30s explicit",
        "customers.get_customer 10 30s merged",
        "customers.list_customers 10 30s default",
    ];
    let serve = starts(&home, &expected).await;
    let warnings = lines_of(&serve.stderr(), "WARNING");
    let url = internal.url();
    assert_eq!(warnings, [format!("MCP server 'internal-tools' at {url} returned no tools")]);
}

#[tokio::test]
async fn example_6_2_before_the_migration_is_refused_and_says_what_to_add() {
    let home = Home::new(fixture!("migration_before"));
    assert_says!(refused(&home).stderr, @"
    error: missing key `mode` in myai.toolbox.mcps[0]
      --> switchboard.yaml:4:9
       |
     4 |       - name: customers
       |         ^
       = help: add `mode: strict` (keeps the old behaviour: every tool must be in toolbox.tools), or `mode: dynamic` together with `default_tool_config`

    1 problem found
    ");
}

#[tokio::test]
async fn example_6_2_strict_starts() {
    let customers = server([]).await;
    let home = example(fixture!("migration_strict"), &[(CUSTOMERS, &customers)]);
    starts(&home, &[]).await;
}

#[tokio::test]
async fn example_6_2_dynamic_starts() {
    let customers = server([Tool::echo("get_customer")]).await;
    let home = example(fixture!("migration_dynamic"), &[(CUSTOMERS, &customers)]);
    starts(&home, &["customers.get_customer 10 30s default"]).await;
}

#[tokio::test]
async fn example_a_1_starts() {
    let customers = server([Tool::echo("get_customer")]).await;
    let home = example(fixture!("minimal_strict"), &[(CUSTOMERS, &customers)]);
    starts(&home, &["customers.get_customer 10 30s explicit"]).await;
}

#[tokio::test]
async fn example_a_2_starts() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("anything")]).await;
    let home = example(fixture!("minimal_dynamic"), &[(CUSTOMERS, &customers)]);
    let expected = ["customers.get_customer 10 30s default", "customers.anything 10 30s default"];
    starts(&home, &expected).await;
}

#[tokio::test]
async fn example_a_3_starts() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("more")]).await;
    let external = server([]).await;
    let servers = [(CUSTOMERS, &customers), (EXTERNAL, &external)];
    let home = example(fixture!("mixed"), &servers);
    let expected = [
        "local.sum_numbers 20 30s explicit",
        "customers.get_customer 50 1m merged",
        "customers.more 10 30s default",
    ];
    starts(&home, &expected).await;
}

#[tokio::test]
async fn only_strict_servers_start() {
    let (a, b) = (server([Tool::echo("one")]).await, server([Tool::echo("two")]).await);
    let servers = [strict("a", &a.url()), strict("b", &b.url())];
    let home = Home::new(yaml(&["{name: one}", "{name: b.two, timeout: 2s}"], &servers));
    starts(&home, &["a.one 5 30s explicit", "b.two 5 2s explicit"]).await;
}

#[tokio::test]
async fn only_dynamic_servers_start() {
    let (a, b) = (server([Tool::echo("one")]).await, server([Tool::echo("two")]).await);
    let home = Home::new(yaml(&[], &[dynamic("a", &a.url()), dynamic("b", &b.url())]));
    starts(&home, &["a.one 10 30s default", "b.two 10 30s default"]).await;
}

#[tokio::test]
async fn a_strict_server_ignores_its_default_tool_config() {
    let a = server([Tool::echo("one"), Tool::echo("two")]).await;
    let entry = format!(
        "{{name: a, url: \"{}\", mode: strict, default_tool_config: {{max_instances: 9}}}}",
        a.url()
    );
    let home = Home::new(yaml(&["{name: one}"], &[entry]));
    let message = refused(&home).stderr;
    assert!(message.contains("Tool 'two' from MCP server 'a' is not configured"), "{message}");
}

#[tokio::test]
async fn a_refused_connection_ends_the_start() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let home = Home::new(yaml(&[], &[dynamic("customers", &url)]));
    assert_says!(refused(&home).stderr, @"
    error: Failed to connect to MCP server 'customers' at http://HOST/mcp
    Error: cannot connect: Connection refused (os error 111)
    Hint: check host and port of `url`, and whether the server runs
    Hint: to start without it, add `required: false` to the server at switchboard.yaml:6

    The application cannot start without connecting to all configured MCP servers.
    ");
}

#[tokio::test]
async fn three_unconfigured_tools_on_two_strict_servers_are_all_reported() {
    let first = server([Tool::echo("a"), Tool::echo("known"), Tool::echo("b")]).await;
    let second = server([Tool::echo("c")]).await;
    let servers = [strict("first", &first.url()), strict("second", &second.url())];
    let home = Home::new(yaml(&["{name: known}"], &servers));
    assert_says!(refused(&home).stderr, @"
    error: Tool 'a' from MCP server 'first' is not configured in the toolbox.

    MCP Server: first
    Mode: strict
    Missing Tool: a

    Configured tools: ['known']

    To resolve:
    1. Add the tool to switchboard.toolbox.tools in your configuration, OR
    2. Change the MCP server mode to 'dynamic' and provide default_tool_config

    Tool 'b' from MCP server 'first' is not configured in the toolbox.

    MCP Server: first
    Mode: strict
    Missing Tool: b

    Configured tools: ['known']

    To resolve:
    1. Add the tool to switchboard.toolbox.tools in your configuration, OR
    2. Change the MCP server mode to 'dynamic' and provide default_tool_config

    Tool 'c' from MCP server 'second' is not configured in the toolbox.

    MCP Server: second
    Mode: strict
    Missing Tool: c

    Configured tools: ['known']

    To resolve:
    1. Add the tool to switchboard.toolbox.tools in your configuration, OR
    2. Change the MCP server mode to 'dynamic' and provide default_tool_config
    ");
    for command in
        ["check --connect --json", "tool list --json", "serve --listen 127.0.0.1:0 --json"]
    {
        let error = &home.line(command).expect(1).json()["error"];
        let missing: Vec<_> = error["details"]
            .as_array()
            .unwrap()
            .iter()
            .map(|reason| (reason["server"].as_str().unwrap(), reason["tool"].as_str().unwrap()))
            .collect();
        assert_eq!(missing, [("first", "a"), ("first", "b"), ("second", "c")], "{command}");
    }
}

#[test]
fn a_local_tool_that_is_registered_must_be_configured() {
    let home = Home::new(yaml_with("local_tools: all", &["{name: sum_numbers}"], &[]));
    assert_says!(refused(&home).stderr, @"
    error: Tool 'multiply_numbers' (local tool) is not configured in the toolbox.

    Local tools must always be explicitly configured in switchboard.toolbox.tools.

    Configured tools: ['sum_numbers']

    Tool 'current_time' (local tool) is not configured in the toolbox.

    Local tools must always be explicitly configured in switchboard.toolbox.tools.

    Configured tools: ['sum_numbers']
    ");
}

#[tokio::test]
async fn a_partial_entry_keeps_the_other_field_of_the_server_default() {
    let a = server([Tool::echo("few"), Tool::echo("long"), Tool::echo("plain")]).await;
    let entry = format!(
        "{{name: a, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 9, timeout: 99s}}}}",
        a.url()
    );
    let tools = ["{name: few, max_instances: 1}", "{name: long, timeout: 5m}"];
    let home = Home::new(yaml(&tools, &[entry]));
    let list = home.line("tool list --json").expect(0).json();
    let expected = ["a.few 1 1m39s merged", "a.long 9 5m merged", "a.plain 9 1m39s default"];
    assert_eq!(limits(&list), expected);
}

#[tokio::test]
async fn a_variable_switches_a_server_from_strict_to_dynamic() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("unconfigured")]).await;
    let entry = format!(
        "{{name: customers, url: \"{}\", mode: strict, default_tool_config: {{max_instances: 7}}}}",
        customers.url()
    );
    let text = yaml(&["{name: get_customer, max_instances: 2}"], &[entry]);
    refused(&Home::new(&text));
    for variable in ["APP_MYAI__TOOLBOX__MCPS__0__MODE", "SWITCHBOARD__TOOLBOX__MCPS__0__MODE"] {
        let home = Home::new(&text).with_variable(variable, "dynamic");
        let expected =
            ["customers.get_customer 2 30s merged", "customers.unconfigured 7 30s default"];
        starts(&home, &expected).await;
    }
}

#[tokio::test]
async fn a_server_switches_from_strict_to_dynamic_between_two_runs() {
    let customers = server([Tool::echo("get_customer")]).await;
    let home = Home::new(yaml(&["{name: get_customer}"], &[strict("customers", &customers.url())]));
    drop(starts(&home, &["customers.get_customer 5 30s explicit"]).await);
    customers.set_tools([Tool::echo("get_customer"), Tool::echo("fresh")]);
    refused(&home);
    home.rewrite(yaml(&["{name: get_customer}"], &[dynamic("customers", &customers.url())]));
    let expected = ["customers.get_customer 10 30s merged", "customers.fresh 10 30s default"];
    let serve = starts(&home, &expected).await;
    let news = lines_of(&serve.stderr(), "INFO");
    let new = "New tool 'fresh' discovered from MCP server 'customers', registering with default configuration";
    assert!(news.iter().any(|line| line == new), "{news:#?}");
}

#[tokio::test]
async fn a_hundred_tools_of_which_five_are_configured() {
    let many = server((0..100).map(|n| Tool::echo(format!("t{n}")))).await;
    let tools: Vec<_> = (0..5).map(|n| format!("{{name: t{n}, max_instances: 2}}")).collect();
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    let home = Home::new(yaml(&tools, &[dynamic("many", &many.url())]));
    let serve = home.serve().await;
    let list = limits(&serve.get("/api/v1/tools").await);
    let of = |end: &str| list.iter().filter(|line| line.ends_with(end)).count();
    assert_eq!((list.len(), of(" 2 30s merged"), of(" 10 30s default")), (100, 5, 95));
    let news = lines_of(&serve.stderr(), "INFO");
    let defaults = news.iter().filter(|line| line.ends_with("using default configuration"));
    assert_eq!(defaults.count(), 95);
}

#[tokio::test]
async fn no_tools_and_missing_tools_are_warnings_and_the_start_goes_on() {
    let empty = server([]).await;
    let other = server([Tool::echo("there")]).await;
    let servers = [dynamic("empty", &empty.url()), strict("other", &other.url())];
    let home = Home::new(yaml(&["{name: there}", "{name: other.gone}"], &servers));
    let serve = home.serve().await;
    assert_eq!(serve.tool_names().await, ["other.there"]);
    assert_eq!(
        lines_of(&serve.stderr(), "WARNING"),
        [
            format!("MCP server 'empty' at {} returned no tools", empty.url()),
            "Tool 'gone' is configured for MCP server 'other', which does not offer it".into(),
        ]
    );
}

#[tokio::test]
async fn a_name_of_two_servers_means_the_last_one() {
    let (one, two) = (server([Tool::echo("search")]).await, server([Tool::echo("search")]).await);
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url()), dynamic("two", &two.url())]));
    let outcome = home.run(&["tool", "call", "search", "{}"]).expect(0);
    assert_eq!((one.stats().total_calls(), two.stats().total_calls()), (0, 1));
    assert_eq!(
        lines_of(&outcome.stderr, "WARNING"),
        ["Tool name 'search' is used by 'one.search' and 'two.search': the bare name means \
          'two.search', 'one.search' is reached by its full name"]
    );
    home.run(&["tool", "call", "one.search", "{}"]).expect(0);
    assert_eq!((one.stats().total_calls(), two.stats().total_calls()), (1, 1));
    assert_eq!(names(&home.line("tool list --json").json()), ["one.search", "two.search"]);
}

#[tokio::test]
async fn a_name_of_a_local_tool_and_a_server_means_the_server() {
    let one = server([Tool::echo("sum_numbers")]).await;
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[dynamic("one", &one.url())]));
    let arguments = r#"{"a": 1, "b": 2}"#;
    let outcome = home.run(&["tool", "call", "sum_numbers", arguments]).expect(0);
    assert_eq!(outcome.stdout, "{\"a\":1,\"b\":2}\n");
    assert_eq!(lines_of(&outcome.stderr, "WARNING").len(), 1);
    let outcome = home.run(&["tool", "call", "local.sum_numbers", arguments]).expect(0);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("3\n", ""));
}

/// The whole log of a program that was started and stopped. Before its end, lines may still be on their way.
async fn whole_log(home: &Home, arguments: &[&str]) -> String {
    let mut serve = home.serve_with(arguments).await;
    serve.signal("TERM");
    serve.ended().await;
    serve.stderr()
}

#[tokio::test]
async fn log_lines_come_at_their_levels() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("more")]).await;
    let internal = server([Tool::echo("audit")]).await;
    let servers = [dynamic("customers", &customers.url()), strict("internal", &internal.url())];
    let tools =
        ["{name: get_customer, max_instances: 3}", "{name: audit}", "{name: internal.gone}"];
    let home = Home::new(yaml(&tools, &servers));

    let gone = "Tool 'gone' is configured for MCP server 'internal', which does not offer it";
    let default = whole_log(&home, &[]).await;
    let told =
        "Tool 'more' from MCP 'customers' not explicitly configured, using default configuration";
    assert!(lines_of(&default, "INFO").iter().any(|line| line == told), "{default}");
    assert_eq!(lines_of(&default, "WARNING"), [gone]);
    assert_eq!(lines_of(&default, "DEBUG"), [""; 0]);

    let details = lines_of(&whole_log(&home, &["-v"]).await, "DEBUG");
    for expected in [
        "Tool 'audit' registered with explicit configuration: \
         {max_instances=5, timeout=30s, max_timeout=10m, queue_timeout=30s, max_result_bytes=1048576}",
        "Tool 'get_customer' configuration merged: explicit={max_instances=3}, \
         default={max_instances=10, timeout=30s}, \
         final={max_instances=3, timeout=30s, max_timeout=10m, queue_timeout=30s, max_result_bytes=1048576}",
    ] {
        assert!(details.iter().any(|line| line == expected), "{details:#?}");
    }
    let quiet = whole_log(&home, &["-q"]).await;
    assert_eq!((lines_of(&quiet, "INFO").len(), lines_of(&quiet, "WARNING").len()), (0, 1));
    assert_eq!(whole_log(&home, &["-qq"]).await, "");
    let single = home.line("tool list").expect(0);
    assert_eq!(lines_of(&single.stderr, "INFO"), [""; 0], "a single command only warns");
    let json = whole_log(&home, &["--log-format", "json"]).await;
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["level"], "INFO", "{first}");
}
