//! The output of single commands: `config`, `import`, `doctor`, `calls`, `server`, `tool`.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, Reply, ScriptedServer, Stage, Tool, peers, wait_until};

use crate::support::{
    Home, Outcome, PATIENCE, assert_says, dynamic, server, signal, stdio, strict, with, yaml,
    yaml_with,
};

const WITH_SECRETS: &str = "\
myai:
  toolbox:
    max_concurrent: 4
    tools:
      - name: sum_numbers
        timeout: PT1M30S
    mcps:
      - name: customers
        url: https://user:hunter2@example.com/mcp?token=hunter3&tenant=blue
        headers:
          X-Api-Key: ${API_KEY}
        auth:
          bearer: file:token
        mode: strict
      - name: files
        command: ${PROGRAM:-cat}
        args: [--key, \"${API_KEY}\"]
        env: {LEVEL: hunter4}
        mode: strict
";

#[test]
fn config_show_tells_every_value_and_its_origin() {
    let home = Home::new(WITH_SECRETS)
        .with_variable("API_KEY", "hunter5")
        .with_variable("APP_MYAI__TOOLBOX__MCPS__0__MODE", "dynamic")
        .with_variable("SWITCHBOARD__TOOLBOX__MCPS__0__DEFAULT_TOOL_CONFIG__MAX_INSTANCES", "7");
    home.file("token", "hunter6\n");
    let shown = home.line("config show").expect(0);
    assert_says!(shown.stdout, @r#"
    myai:
      toolbox:
        max_concurrent: 4  # switchboard.yaml:3:21
        tools:
          - name: sum_numbers  # switchboard.yaml:5:15
            enabled: true  # default
            timeout: 1m30s  # switchboard.yaml:6:18
        mcps:
          - name: customers  # switchboard.yaml:8:15
            transport: streamable_http  # default
            url: "https://***@example.com/mcp?token=***&tenant=***"  # switchboard.yaml:9:14
            headers:
              X-Api-Key: "***"  # switchboard.yaml:11:22
            auth:
              bearer: "***"  # switchboard.yaml:13:19
            mode: dynamic  # environment variable APP_MYAI__TOOLBOX__MCPS__0__MODE
            default_tool_config:
              max_instances: 7  # environment variable SWITCHBOARD__TOOLBOX__MCPS__0__DEFAULT_TOOL_CONFIG__MAX_INSTANCES
              timeout: 30s  # default
              max_timeout: 10m  # default
              max_result_bytes: 1048576  # default
            tool_denylist: []  # default
            required: true  # default
            toolset: customers  # default
            era: auto  # default
            connect_timeout: 30s  # default
          - name: files  # switchboard.yaml:15:15
            transport: stdio  # default
            command: ${PROGRAM:-cat}  # switchboard.yaml:16:18
            args:
              - "--key"  # switchboard.yaml:17:16
              - ${API_KEY}  # switchboard.yaml:17:23
            env:
              LEVEL: "***"  # switchboard.yaml:18:22
            mode: strict  # switchboard.yaml:19:15
            tool_denylist: []  # default
            required: true  # default
            toolset: files  # default
            era: auto  # default
            connect_timeout: 5m  # default
      toolsets: []  # default
      gateway:
        naming: prefixed  # default
        deny_toolsets: []  # default
        stateless_state: none  # default
        session_idle: 30m  # default
        max_sessions: 10000  # default
        max_sessions_per_principal: 1000  # default
        max_session_servers: 256  # default
        max_body_bytes: 4194304  # default
        startup_wait: 25s  # default
      security:
        allowed_hosts: []  # default
        allowed_origins: []  # default
      providers: []  # default
    "#);
    assert_says!(shown.stderr, @"");
    let json = home.line("config show --json").expect(0);
    assert!(!json.all().contains("hunter") && !shown.all().contains("hunter"));
}

#[test]
fn config_schema_is_the_committed_one() {
    let schema = Home::empty().line("config schema").expect(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema.to_string().contains("default_tool_config"));
}

/// A board with a secret in every place that takes one.
async fn board_with_secrets() -> (ScriptedServer, Home) {
    let server = ScriptedServer::builder()
        .tools([Tool::echo("echo")])
        .requires_bearer("s3cret-bearer")
        .start()
        .await;
    let remote = with(
        &dynamic("remote", &format!("{}?key=s3cret-query", server.url())),
        "auth: {bearer: \"${TOKEN}\"}, headers: {X-Key: \"file:key\"}",
    );
    // It says what it was started with.
    let script = "echo \"started with $1 and $API_KEY\" >&2; exec \"$0\"";
    let peer = peers::stdio_peer();
    let arguments = ["-c", script, peer.to_str().unwrap(), "--key=${ARG}"];
    let child = with(&stdio("child", Path::new("sh"), &arguments), "env: {API_KEY: \"${CHILD}\"}");
    let home = Home::new(yaml(&[], &[remote, child]))
        .with_variable("TOKEN", "s3cret-bearer")
        .with_variable("CHILD", "s3cret-child")
        .with_variable("ARG", "s3cret-argument");
    home.file("key", "s3cret-header");
    (server, home)
}

#[tokio::test]
async fn no_command_ever_prints_a_secret() {
    let (server, home) = board_with_secrets().await;
    let serve = home.serve_with(&["-vvv"]).await;
    assert_eq!(serve.start["readiness"]["status"], "ready", "{}", serve.stderr());
    serve.answer("remote.echo", json!({})).await;
    assert_eq!(server.stats().last_header("tools/call", "x-key"), Some("s3cret-header"));
    for path in ["/api/v1/servers", "/api/v1/tools", "/api/v1/calls", "/metrics", "/readyz"] {
        assert!(!serve.text(path).await.contains("s3cret"), "{path}");
    }
    let check = |outcome: &Outcome, line: &str| {
        assert!(!outcome.all().contains("s3cret"), "{line}: {}", outcome.all());
    };
    for line in [
        "check",
        "check --connect",
        "config show",
        "server list",
        "server test remote",
        "server test child",
        "tool list",
        "tool call remote.echo {}",
        "calls",
        "doctor",
    ] {
        for more in ["-vvv", "--json -vvv", "-vvv --log-format json"] {
            check(&home.line(&format!("{line} {more}")).expect(0), line);
        }
    }
    server.stop().await;
    let (status, problem) = serve.call("remote.echo", json!({})).await;
    assert_eq!(status, 503);
    assert!(!problem.to_string().contains("s3cret"), "{problem}");
    for line in ["check --connect -vvv", "server test remote -vvv", "doctor -vvv", "doctor --json"]
    {
        let outcome = home.line(line);
        assert_ne!(outcome.code, Some(0), "{line}");
        check(&outcome, line);
    }
    let script = "echo \"cannot use $(echo $1 | cut -d= -f2)\" >&2; exit 1";
    let ending = stdio("ending", Path::new("sh"), &["-c", script, "sh", "--key=${ARG}"]);
    let quoting = ScriptedServer::builder().start().await;
    quoting.set_fault(Fault::Reflect(Stage::Any)).await;
    let remote = dynamic("quoting", &quoting.url().replace("/mcp", "/${TOKEN}/mcp"));
    home.rewrite(yaml(&[], &[ending, remote]));
    serve.said("the old one keeps serving").await;
    for line in ["check --connect", "server list", "server test ending", "server test quoting"] {
        for more in ["-vvv", "--json -vvv", "-vvv --log-format json"] {
            let outcome = home.line(&format!("{line} {more}"));
            assert!(outcome.all().contains("***"), "{line}: {}", outcome.all());
            check(&outcome, line);
        }
    }
    home.rewrite(yaml(&[], &[dynamic("remote", "http://u:s3cret-url@127.0.0.1:1/mcp?key=s3cret")]));
    serve.said("the old one keeps serving").await;
    check(&home.line("check --connect -vvv").expect(1), "credentials in the URL");
    assert!(!serve.stderr().contains("s3cret"), "{}", serve.stderr());
}

const CLAUDE: &str = r#"{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "server-files", "/data"], "env": {"LEVEL": "debug"}},
    "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "old": {"type": "sse", "url": "https://example.com/sse"},
    "off": {"command": "x", "disabled": true}
  }
}"#;

const VS_CODE: &str = r#"{
  // comments are fine here
  "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
  "servers": {
    "hub": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${input:api-key}"}},
    "mine": {"type": "stdio", "command": "node", "args": ["server.js"], "env": {"A": "${env:B}"},},
  },
}"#;

#[test]
fn import_prints_a_configuration_that_is_valid() {
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    home.file("code.json", VS_CODE);
    for file in ["claude.json", "code.json"] {
        let imported = home.line(&format!("import {file}")).expect(0);
        home.rewrite(&imported.stdout);
        let checked = Home::new(&imported.stdout);
        let variables = [("TOKEN", "x"), ("API_KEY", "x"), ("B", "x")];
        let checked =
            variables.iter().fold(checked, |home, (name, value)| home.with_variable(name, *value));
        checked.line("check").expect(0);
    }
}

#[test]
fn import_says_what_it_made_of_it() {
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    let claude = home.line("import claude.json").expect(0);
    assert_says!(claude.stdout, @r#"
    switchboard:
      toolbox:
        mcps:
          - name: files
            transport: stdio
            command: npx
            args:
              - "-y"
              - server-files
              - /data
            env:
              LEVEL: debug
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
          - name: remote
            transport: streamable_http
            url: https://example.com/mcp
            auth:
              bearer: ${TOKEN}
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
          - name: old
            transport: sse
            url: https://example.com/sse
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
    "#);
    assert_says!(claude.stderr, @"
    note: off: left out: it is disabled there
    note: programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables of your environment have to be named there
    ");
    let json = home.line("import claude.json --json").expect(0).json();
    assert_eq!(json["servers"], json!(["files", "remote", "old"]));
    assert_eq!(json["yaml"].as_str().unwrap(), claude.stdout);
}

#[test]
fn import_takes_the_servers_of_an_editor_in_strict_mode() {
    let home = Home::empty();
    home.file("code.json", VS_CODE);
    let code = home.line("import code.json --mode strict").expect(0);
    assert_says!(code.stdout, @"
    switchboard:
      toolbox:
        mcps:
          - name: hub
            transport: streamable_http
            url: https://example.com/mcp
            auth:
              bearer: ${API_KEY}
            mode: strict
            required: false
          - name: mine
            transport: stdio
            command: node
            args:
              - server.js
            env:
              A: ${B}
            mode: strict
            required: false
    ");
    assert_says!(code.stderr, @"
    note: hub: set the variable API_KEY, which the editor used to ask for
    note: programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables of your environment have to be named there
    ");
}

#[test]
fn import_merges_into_a_file_and_keeps_its_comments() {
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    let target = home.file(
        "board.yaml",
        "# our board\nswitchboard:\n  toolbox:\n    # not too many\n    max_concurrent: 3  # three\n    mcps:\n      - name: files # the old one\n        command: cat\n        mode: strict\n",
    );
    let merged = home.line("import claude.json --merge board.yaml").expect(0);
    assert_says!(merged.stdout, @"board.yaml: 2 servers added");
    assert_says!(merged.stderr, @"
    note: off: left out: it is disabled there
    note: files: left out: a server of this name is already there
    ");
    let text = std::fs::read_to_string(&target).unwrap();
    assert_says!(text, @"
    # our board
    switchboard:
      toolbox:
        # not too many
        max_concurrent: 3  # three
        mcps:
          - name: files # the old one
            command: cat
            mode: strict
          - name: remote
            transport: streamable_http
            url: https://example.com/mcp
            auth:
              bearer: ${TOKEN}
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
          - name: old
            transport: sse
            url: https://example.com/sse
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
    ");
    let home = home.with_variable("TOKEN", "x");
    home.line("check --config board.yaml").expect(0);
    let again = home.line("import claude.json --merge board.yaml --json").expect(0).json();
    assert_eq!(again["servers"], json!([]), "all are there already");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn import_makes_a_new_file_for_its_owner_only_and_writes_through_a_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    home.line("import claude.json --merge new.yaml").expect(0);
    let mode = |name: &str| {
        std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("new.yaml"), 0o600);
    home.line("check --config new.yaml").expect(1);
    let real = home.file("real.yaml", "switchboard: {}\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.yaml", home.path().join("link.yaml")).unwrap();
    home.line("import claude.json --merge link.yaml").expect(0);
    assert!(home.path().join("link.yaml").is_symlink());
    assert!(std::fs::read_to_string(real).unwrap().contains("name: remote"));
    assert_eq!(mode("real.yaml"), 0o640);
}

#[test]
fn import_says_what_it_cannot_read() {
    let home = Home::empty();
    home.file("half.json", "{\"mcpServers\": {");
    home.file("other.json", "{\"a\": 1}");
    home.file("none.json", "{\"mcpServers\": {}}");
    home.file("claude.json", CLAUDE);
    let broken = home.file("broken.yaml", "switchboard: [\n");
    assert_says!(home.line("import half.json").expect(1).stderr, @r#"
    error: not valid JSON: EOF while parsing an object
      --> half.json:1:16
       |
     1 | {"mcpServers": {
       |                ^

    1 problem found
    "#);
    assert_says!(home.line("import other.json").expect(1).stderr, @r#"
    error: the file has no list of servers
      --> other.json:1:1
       = help: expected `{"mcpServers": {...}}` (Claude, Cursor, .mcp.json), `{"servers": {...}}` (VS Code), or a `.toml` file of Codex

    1 problem found
    "#);
    assert_says!(home.line("import missing.json").expect(1).stderr, @"error: cannot read missing.json: No such file or directory (os error 2)");
    assert_says!(home.line("import claude.json --merge broken.yaml").expect(1).stderr, @"
    error: not valid YAML: while parsing a node, did not find expected node content
      --> broken.yaml:2:1

    1 problem found
    ");
    assert_eq!(std::fs::read_to_string(broken).unwrap(), "switchboard: [\n");
    assert_says!(home.line("import claude.json --merge no/such/place.yaml").expect(1).stderr, @"
    note: off: left out: it is disabled there
    note: programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables of your environment have to be named there
    error: cannot write no/such/place.yaml: No such file or directory (os error 2)
    ");
    let none = home.line("import none.json").expect(0);
    assert_says!(none.stderr, @"note: none.json has no server that can be imported");
    assert_says!(none.stdout, @"
    switchboard:
      toolbox:
        mcps: []
    ");
}

#[tokio::test]
async fn doctor_looks_at_everything() {
    let good = server([Tool::echo("echo"), Tool::echo("more")]).await;
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[dynamic("good", &good.url())]));
    assert_says!(home.line("doctor").expect(0).stdout, @"
    ok   configuration switchboard.yaml: 1 servers, 1 tool entries
    ok   store HOME/data: opens
    ok   server good at http://HOST/mcp: 2 tools, legacy era, connected in MS
    ok   built-in providers: ready: demo
    ok   admission: 3 tools would be registered
    ");
    let bad = dynamic("bad", "http://127.0.0.1:1/mcp");
    home.rewrite(yaml(&[], &[dynamic("good", &good.url()), with(&bad, "required: false")]));
    assert_says!(home.line("doctor").expect(0).stdout, @"
    ok   configuration switchboard.yaml: 2 servers, 0 tool entries
    ok   store HOME/data: opens
    ok   server good at http://HOST/mcp: 2 tools, legacy era, connected in MS
    warn server bad at http://HOST/mcp: away: cannot connect: Connection refused (os error 111)
         hint: check host and port of `url`, and whether the server runs
    ok   built-in providers: ready: demo
    ok   admission: 2 tools would be registered
    ");
    home.rewrite(yaml(&["{name: echo}"], &[strict("good", &good.url()), bad]));
    let said = home.line("doctor").expect(1).stdout;
    assert!(said.contains("FAIL server bad at "), "{said}");
    let refused =
        "FAIL admission: Tool 'more' from MCP server 'good' is not configured in the toolbox.";
    assert!(said.contains(refused), "{said}");
    assert_says!(Home::empty().line("doctor").expect(1).stdout, @"
    FAIL configuration: no configuration found: give one with --config FILE or SWITCHBOARD_CONFIG, or put switchboard.yaml into this directory or into HOME/.config/switchboard
    ok   store HOME/data: opens
    ");
}

#[tokio::test]
async fn server_list_and_test_show_era_transport_and_place() {
    let legacy = server([Tool::echo("a")]).await;
    let modern = ScriptedServer::builder().modern().tools([Tool::echo("b")]).start().await;
    let sse = ScriptedServer::builder().sse_transport().tools([Tool::echo("c")]).start().await;
    let servers = [
        dynamic("legacy", &legacy.url()),
        dynamic("modern", &modern.url()),
        with(&dynamic("events", &sse.url()), "transport: sse"),
        stdio("child", &peers::stdio_peer(), &["--dual"]),
        with(&dynamic("away", "http://127.0.0.1:1/mcp"), "required: false"),
    ];
    let home = Home::new(yaml(&[], &servers));
    let embedded = home.line("server list").expect(0);
    let squeezed = |text: &str| {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_says!(squeezed(&embedded.stdout), @"
    SERVER STATE ERA TRANSPORT MODE TOOLS TIME PLACE
    legacy ready legacy streamable_http dynamic 1 MS http://HOST/mcp
    modern ready modern streamable_http dynamic 1 MS http://HOST/mcp
    events ready legacy sse dynamic 1 MS http://HOST/sse
    child ready legacy stdio dynamic 8 MS PEER --dual
    away unavailable - streamable_http dynamic 0 - http://HOST/mcp
    ");
    assert_says!(embedded.stderr, @"
    TIME WARNING: MCP server cannot be reached; going on without it server=away error=cannot connect: Connection refused (os error 111)
    away: cannot connect: Connection refused (os error 111)
    ");
    let serve = home.serve().await;
    let shown = |list: &Value| -> Vec<String> {
        let servers = list["servers"].as_array().unwrap();
        servers
            .iter()
            .map(|s| format!("{} {} {} {}", s["name"], s["state"], s["era"], s["tools"]))
            .collect()
    };
    let remote = home.run(&["server", "list", "--json", "--url", &serve.url]).expect(0).json();
    assert_eq!(shown(&remote), shown(&home.line("server list --json").json()));
    assert_eq!(shown(&remote), shown(&serve.start));
    assert_says!(home.line("server test modern").expect(0).stdout, @"
    server        modern
    place         http://HOST/mcp
    transport     streamable_http
    era           modern (2026-07-28)
    calls itself  scripted 1.0.0
    connected     in MS
    tools         1: b
    ");
    assert_says!(home.line("server test child").expect(0).stdout, @"
    server        child
    place         PEER --dual
    transport     stdio
    era           legacy (2025-11-25)
    calls itself  stdio-peer 1.0.0
    connected     in MS
    tools         8: echo, sleep, fails, long_line, environment, stats, crash, add_tool
    ");
    assert_says!(home.line("server test nobody").expect(2).stderr, @"
    error: no server 'nobody' is configured
    hint: configured are 'legacy', 'modern', 'events', 'child', 'away'
    ");
}

#[tokio::test]
async fn serve_ends_its_start_with_a_table() {
    let good = server([Tool::echo("echo")]).await;
    let away = with(&dynamic("away", "http://127.0.0.1:1/mcp"), "required: false");
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[dynamic("good", &good.url()), away]));
    let mut child = home.command(&["serve", "--listen", "127.0.0.1:0"]).spawn().unwrap();
    let mut text = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    while !text.contains("serving at") {
        assert_ne!(std::io::BufRead::read_line(&mut lines, &mut text).unwrap(), 0, "{text}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_says!(text, @"
    SERVER  ERA     TRANSPORT        MODE     TOOLS  TIME
    good    legacy  streamable_http  dynamic  1      MS
    away    -       streamable_http  dynamic  0      unavailable: cannot connect: Connection refused (os error 111)

    degraded: 2 tools (1 local) at revision 1, serving at http://HOST
    ");
}

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
async fn calls_tell_what_was_called_and_large_results_come_back_whole() {
    let text: Vec<_> = (0..300_000).map(|n| format!("{n:07}")).collect();
    let text = text.join(" ");
    let one = server([
        Tool::new("large").replies(Reply::Text(text.clone())),
        Tool::new("fails").replies(Reply::ToolError("no".into())),
    ])
    .await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    assert_says!(home.line("calls").expect(0).stderr, @"no calls are recorded");
    let serve = home.serve().await;
    let call = home.run(&["tool", "call", "one.large", "--json"]).expect(0).json();
    let preview = call["result"].to_string();
    assert!(preview.len() < 1 << 20, "{} bytes were answered inline", preview.len());
    let handle = call["result_handle"].as_str().unwrap();
    assert!(preview.contains(handle), "the preview says where the whole is");
    let there = serve.answer("one.large", json!({})).await["result_handle"].clone();
    for (handle, more) in [(handle, vec![]), (there.as_str().unwrap(), vec!["--url", &serve.url])] {
        let whole =
            home.run(&[&["calls", "--result", handle][..], &more].concat()).expect(0).json();
        assert_eq!(whole["content"][0]["text"].as_str().unwrap(), text, "every byte comes back");
    }
    home.run(&["tool", "call", "one.fails", "--url", &serve.url]).expect(3);
    serve.call("nothing", json!({})).await;
    let records = wait_until(PATIENCE, async || {
        let records =
            home.line("calls --json").expect(0).json()["calls"].as_array().unwrap().clone();
        (records.len() == 4).then_some(records)
    })
    .await;
    let shown: Vec<_> = records
        .iter()
        .map(|call| format!("{} {} {}", call["requested"], call["outcome"], call["face"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""nothing" "unknown_tool" "http""#,
            r#""one.fails" "tool_error" "http""#,
            r#""one.large" "ok" "http""#,
            r#""one.large" "ok" "cli""#,
        ]
    );
    for more in ["", &format!("--url {}", serve.url)] {
        let count = |line: &str| {
            let list = home.line(&format!("calls --json {line} {more}")).expect(0).json();
            list["calls"].as_array().unwrap().len()
        };
        assert_eq!(count("--limit 3"), 3);
        assert_eq!((count("--tool one.large"), count("--tool large")), (2, 2));
        assert_eq!(count("--outcome tool_error"), 1);
        assert_eq!(count("--outcome ok --tool one.fails"), 0);
        assert_eq!((count("--server one"), count("--server two")), (3, 0));
        assert_eq!((count("--since 1h"), count("--since 2100-01-01T00:00:00Z")), (4, 0));
        assert_eq!((count("--since 2024-02-29"), count("--since 2100-01-01")), (4, 0));
        let told = |line: &str| home.line(&format!("calls {line} {more}")).expect(0).stderr;
        let nearest = "no calls are recorded of a tool 'larg'; did you mean 'one.large'?\n";
        assert_eq!(told("--tool larg"), nearest);
        let nearest = "no calls are recorded of a server 'on'; did you mean 'one'?\n";
        assert_eq!(told("--server on"), nearest);
        assert_eq!(told("--tool large --outcome timeout"), "no recorded call matches\n");
        assert_eq!(count("--session none"), 0);
        let failed = home.line(&format!("calls --outcome tool_error {more}")).expect(0).stdout;
        assert!(failed.contains("ERROR") && failed.trim_end().ends_with(" no"), "{failed}");
    }
    let table = home.line("calls -n 1").expect(0).stdout;
    assert!(table.contains("nothing (unknown)") && table.contains("unknown_tool"), "{table}");
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_leaves_a_record_whoever_makes_it() {
    let (one, hidden) = (server([Tool::echo("echo")]).await, server([Tool::echo("secret")]).await);
    let servers = [dynamic("one", &one.url()), dynamic("hidden", &hidden.url())];
    let home = Home::new(yaml(&[], &servers) + "  gateway: {deny_toolsets: [hidden]}\n");
    home.line("tool call one.nope --arg a=1").expect(2);
    let [client, operator] = ["client", "operator"].map(|role| {
        let key = home.line(&format!("key add {role} --role {role}")).expect(0).stdout;
        Home::empty().with_variable("SWITCHBOARD_API_KEY", key.trim())
    });
    let serve = home.serve().await;
    let call = |who: &Home, tool: &str| {
        who.line(&format!("tool call {tool} --arg a=1 --url {}", serve.url))
    };
    // A list that changed without a word is read again before a call is refused.
    one.set_tools([Tool::echo("echo"), Tool::echo("fresh")]);
    call(&client, "one.fresh").expect(0);
    let refused = call(&client, "one.nope").expect(2).stderr;
    assert_eq!(
        call(&client, "hidden.secret").expect(2).stderr.replace("hidden.secret", "one.nope"),
        refused
    );
    call(&operator, "one.nope").expect(2);
    let list = operator.line(&format!("calls --json --url {}", serve.url)).expect(0).json();
    let shown = list["calls"].as_array().unwrap().iter().map(|call| {
        let words =
            ["requested", "tool", "outcome", "face"].map(|key| call[key].as_str().unwrap_or("-"));
        words.join(" ")
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(
        shown,
        [
            "one.nope - unknown_tool http",
            "hidden.secret - unknown_tool http",
            "one.nope - unknown_tool http",
            "one.fresh one.fresh ok http",
            "one.nope - unknown_tool cli",
        ]
    );
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
async fn toolsets_are_shown_and_drafted_embedded_and_at_an_instance() {
    let groups = json!({"toolsets": [{"key": "quotes", "tools": ["getQuote", "batchQuotes"],
                                      "definition": {"description": "Prices"}}]});
    let one = server([
        Tool::new("getQuote"),
        Tool::new("batchQuotes"),
        Tool::new("news_latest"),
        Tool::new("news_search"),
        Tool::new("list_toolsets").replies(Reply::Text(groups.to_string())),
    ])
    .await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    home.file("own.json", json!([{"name": "mine", "tools": ["getQuote"]}]).to_string());
    let serve = home.serve().await;
    for more in [String::new(), format!(" --url {}/mcp", serve.url)] {
        let list = home.line(&format!("toolset list --json{more}")).expect(0).json();
        assert_eq!(
            (&list["toolsets"][0]["name"], &list["toolsets"][0]["tools"]),
            (&json!("one"), &json!(5))
        );
        let shown = home.line(&format!("toolset show one{more}")).expect(0).stdout;
        assert!(shown.contains("  one.getQuote\n"), "{shown}");
        let unknown = home.line(&format!("toolset show onee{more}")).expect(2).stderr;
        assert!(unknown.contains("did you mean 'one'?"), "{unknown}");
        let draft = home.line(&format!("toolset draft --server one{more}")).expect(0);
        assert_eq!(
            draft.stdout,
            "switchboard:\n  toolsets:\n    - name: one-quotes\n      description: Prices\n      tools:\n        \
             - one.getQuote\n        - one.batchQuotes\n    - name: one-news\n      description: \"Tools of one \
             about news\"\n      tools:\n        - \"one.news_*\"\n"
        );
        let from = home.line(&format!("toolset draft --server one --from own.json --json{more}"));
        assert_eq!(from.expect(0).json()["toolsets"][0]["name"], "one-mine");
        home.line(&format!("toolset draft --server two{more}")).expect(2);
    }
    let pasted = home.line("toolset draft --server one").expect(0).stdout;
    let config = std::fs::read_to_string(home.path().join("switchboard.yaml")).unwrap();
    home.file("both.yaml", config.replacen("switchboard:", pasted.trim_end(), 1));
    home.line("check --config both.yaml").expect(0);
}

#[tokio::test]
async fn patterns_of_toolsets_that_match_nothing_are_named_with_their_place() {
    let one = server([Tool::echo("echo").description("d")]).await;
    let away = with(&dynamic("away", "http://127.0.0.1:1/mcp"), "required: false");
    let sets = "  toolsets:\n    - name: look\n      description: d\n      tools:\n        - one.eco\n        - one.e*\n        - away.x\n";
    let servers = [dynamic("one", &one.url()), away];
    let home = Home::new(format!("{}{sets}", yaml(&[], &servers)));
    let checked = home.line("check --connect").expect(0);
    let text = std::fs::read_to_string(home.path().join("switchboard.yaml")).unwrap();
    let line = text.lines().position(|line| line.contains("one.eco")).unwrap() + 1;
    let warning = format!(
        "warning: toolset 'look' names `one.eco`, and no tool is called so\n   --> switchboard.yaml:{line}:11\n    = help: \
         did you mean `one.echo`?\n"
    );
    assert!(checked.stderr.contains(&warning), "{}", checked.stderr);
    assert_eq!(checked.stderr.matches("no tool is called so").count(), 1, "{}", checked.stderr);
    let json = home.line("check --connect --json").expect(0).json();
    assert_eq!(
        (&json["warnings"][0]["line"], &json["warnings"][0]["path"]),
        (&json!(line), &json!("switchboard.toolsets[0].tools[0]")),
        "{json}"
    );
    let doctor = home.line("doctor").expect(0).stdout;
    let warning = format!(
        "warn toolsets: switchboard.yaml:{line}:11: toolset 'look' names `one.eco`, and no tool is called so\n     hint: \
         did you mean `one.echo`?\n"
    );
    assert!(doctor.contains(&warning), "{doctor}");
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
async fn doctor_asks_a_running_instance() {
    let good = server([Tool::echo("echo"), Tool::echo("more")]).await;
    let away = with(&dynamic("away", "http://127.0.0.1:1/mcp"), "required: false");
    let home = Home::new(yaml(&[], &[dynamic("good", &good.url()), away]));
    let serve = home.serve().await;
    let elsewhere = Home::empty();
    let address = serve.url.trim_start_matches("http://");
    assert_says!(elsewhere.line(&format!("doctor --url {address}")).expect(0).stdout, @"
    warn instance http://HOST/: degraded, 2 tools
    ok   server good at http://HOST/mcp: 2 tools, legacy era
    warn server away at http://HOST/mcp: unavailable: cannot connect: Connection refused (os error 111)
    ");
    let json = elsewhere.line(&format!("doctor --url {address} --json")).expect(0).json();
    assert_eq!((&json["is_well"], json["findings"].as_array().unwrap().len()), (&json!(true), 3));
    let narrow = format!("tool list --url {}/mcp/servers/good", serve.url);
    let refused = elsewhere.line(&narrow).expect(2).stderr;
    assert!(refused.contains("`tool list --server good`"), "{refused}");
    elsewhere.line("doctor --url http://127.0.0.1:1").expect(4);
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
