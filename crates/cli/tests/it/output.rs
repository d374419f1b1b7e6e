//! Exit codes, the one JSON document of `--json`, and the use of standard output and standard error.

use std::path::Path;
use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, Reply, ScriptedServer, Stage, Tool, free_port, peers};

use crate::support::{Home, Outcome, assert_says, dynamic, server, stdio, with, yaml};

/// A healthy board: a local tool and a server with tools that answer, fail and break off.
async fn healthy() -> (ScriptedServer, Home) {
    let object = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let server = server([
        Tool::echo("echo").schema(object),
        Tool::new("fails").replies(Reply::ToolError("no luck".into())),
        Tool::new("breaks").replies(Reply::RpcError { code: -32603, message: "broken".into() }),
        Tool::new("slow").replies(Reply::Hang),
    ])
    .await;
    let tools = ["{name: sum_numbers}", "{name: slow, timeout: 200ms}"];
    let home = Home::new(yaml(&tools, &[dynamic("one", &server.url())]));
    (server, home)
}

fn split(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[tokio::test]
async fn every_command_that_works_exits_with_0_and_gives_one_document() {
    let (_server, home) = healthy().await;
    home.file("their.json", r#"{"mcpServers": {"x": {"url": "http://h/mcp"}}}"#);
    let serve = home.serve().await;
    let url = format!("--url {}", serve.url);
    for line in [
        "check".to_owned(),
        "check --connect".into(),
        "config show".into(),
        "config schema".into(),
        "import their.json".into(),
        "server list".into(),
        "server test one".into(),
        "tool list".into(),
        "tool show one.echo".into(),
        "tool call one.echo --arg n=1".into(),
        "calls".into(),
        "provider list".into(),
        "doctor".into(),
        "completions bash".into(),
        format!("server list {url}"),
        format!("tool list {url}"),
        format!("tool show echo {url}"),
        format!("tool call echo --arg n=1 {url}"),
        format!("calls {url}"),
    ] {
        let text = home.line(&line).expect(0);
        assert!(!text.stdout.is_empty(), "{line} says something");
        assert_eq!(text.stderr, "", "{line} has nothing to warn about");
        assert!(!text.all().contains('\x1b'), "{line} writes colours into a pipe");
        let json = home.line(&format!("{line} --json")).expect(0);
        assert!(json.json().is_object(), "{line}");
        assert_eq!(json.stderr, "", "{line} --json");
    }
    assert!(serde_json::from_str::<Value>(&serve.stdout()).is_ok(), "serve printed one document");
}

/// The kind in the JSON document; without `--json` the same failure is words on standard error.
#[track_caller]
fn fails(home: &Home, arguments: &[&str], code: i32) -> String {
    let text = home.run(arguments).expect(code);
    assert_eq!(text.stdout, "", "{arguments:?} has no data");
    assert!(text.stderr.contains("error: "), "{arguments:?}: {}", text.stderr);
    assert!(!text.stderr.contains('\x1b') && !text.stderr.contains("panicked"), "{}", text.stderr);
    let json = home.run(&[&["--json"], arguments].concat()).expect(code);
    let error = json.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    // Several problems of a file are told as they are drawn for people; each is in the details too.
    let is_drawn = error["details"].as_array().is_some_and(|each| each[0]["severity"] == "error");
    assert!(!message.is_empty() && (is_drawn || !message.starts_with("error:")), "{error}");
    assert!(!json.stderr.contains("error: "), "said twice: {}", json.stderr);
    error["kind"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_wrong_configuration_exits_with_1() {
    let bad = Home::new("switchboard:\n  toolbox:\n    max_concurent: 3\n");
    let none = Home::empty();
    let gone = ["--config", "nowhere.yaml"];
    for line in [
        "serve",
        "check",
        "check --connect",
        "config show",
        "server list",
        "server test x",
        "tool list",
        "tool show x",
        "tool call x {}",
    ] {
        assert_eq!(fails(&bad, &split(line), 1), "invalid_configuration", "{line}");
        assert_eq!(fails(&none, &split(line), 1), "no_configuration", "{line}");
        let line = [&gone[..], &split(line)].concat();
        assert_eq!(fails(&none, &line, 1), "no_configuration", "{line:?}");
    }
    let doctor = bad.line("doctor --json").expect(1).json();
    assert_eq!(doctor["is_well"], false);
    bad.line("doctor").expect(1);
}

#[tokio::test]
async fn a_failed_start_exits_with_1() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let home = Home::new(yaml(&[], &[dynamic("gone", &url)]));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for line in ["serve --listen 127.0.0.1:0", "check --connect", "tool list"] {
        assert_eq!(fails(&home, &split(line), 1), "start_failed", "{line}");
    }
    // Who looks at the servers wants to see the one that is away.
    let listed = home.line("server list --json").expect(0).json();
    assert_eq!(listed["servers"][0]["state"], "unavailable");
    assert_eq!(fails(&home, &["serve", "--listen", &taken], 1), "start_failed");
    assert_eq!(fails(&home, &["serve", "--listen", "0.0.0.0:0"], 1), "start_failed");
    assert_eq!(fails(&home, &["import", "nowhere.json"], 1), "start_failed");
    home.line("check").expect(0);
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    home.file("data", "a file where the directory should be");
    for line in ["calls", "tool list", "serve --listen 127.0.0.1:0"] {
        assert_eq!(fails(&home, &split(line), 1), "start_failed", "{line}");
    }
    home.line("doctor").expect(1);
}

#[tokio::test]
async fn a_mistake_on_the_command_line_exits_with_2() {
    let (_server, home) = healthy().await;
    let serve = home.serve().await;
    for line in [
        "",
        "serv",
        "serve --listen nowhere",
        "serve --drain -1",
        "tool call",
        "tool call x {} --arg a=1",
        "tool call one.echo --nope",
        "check --log-format xml",
        "check -q -v",
        "completions tcsh",
        "calls --limit many",
        "calls --outcome fine",
        "calls --since yesterday",
        "calls --result h --follow",
        "calls --result h --tool t",
        "import their.json --mode lax",
        "demo-server --stdio --listen 127.0.0.1:0",
        "server test two",
        "tool list --server two",
        "tool show one.eko",
        "tool call one.eko {}",
        "tool call one.echo {",
        "tool call one.echo [1]",
        "tool call one.echo --arg n",
        "tool call one.echo --arg n=x",
        "calls --result nothing",
        "tool list --url nowhere",
        "tool list --url ftp://127.0.0.1/",
    ] {
        fails(&home, &split(line), 2);
    }
    for line in [
        "tool list --server two",
        "tool show one.eko",
        "tool call one.eko {}",
        "tool call one.echo [1]",
        "tool call one.echo --arg n=x",
        "calls --result nothing",
    ] {
        fails(&home, &[&split(line)[..], &["--url", &serve.url]].concat(), 2);
    }
}

#[tokio::test]
async fn a_tool_that_answers_with_an_error_exits_with_3() {
    let (_server, home) = healthy().await;
    let serve = home.serve().await;
    for more in [&[][..], &["--url", &serve.url]] {
        let text = home.run(&[&["tool", "call", "one.fails", "{}"], more].concat()).expect(3);
        assert_eq!(text.stdout, "no luck\n");
        assert_eq!(text.stderr, "the tool one.fails answered with an error\n");
        let json = home.run(&[&["--json", "tool", "call", "one.fails", "{}"], more].concat());
        assert_eq!(json.expect(3).json()["outcome"], "tool_error");
        let line = [&["tool", "call", "one.breaks", "{}"], more].concat();
        assert_eq!(fails(&home, &line, 3), "upstream_error");
    }
}

#[tokio::test]
async fn unreachable_refused_and_timed_out_exit_with_4() {
    let (server, home) = healthy().await;
    let serve = home.serve().await;
    let nobody = format!("http://127.0.0.1:{}", free_port());
    for line in ["server list", "tool list", "tool show x", "tool call x {}", "calls"] {
        let line = [&split(line)[..], &["--url", &nobody]].concat();
        assert_eq!(fails(&home, &line, 4), "unreachable", "{line:?}");
    }
    let another = format!("{}/elsewhere", serve.url);
    assert_eq!(fails(&home, &["tool", "list", "--url", &another], 4), "not_found");
    assert_eq!(fails(&home, &["tool", "list", "--url", &server.url()], 4), "unreachable");
    for more in [&[][..], &["--url", &serve.url]] {
        let line = [&["tool", "call", "one.slow", "{}"], more].concat();
        assert_eq!(fails(&home, &line, 4), "timeout");
    }
    server.stop().await;
    let line = ["tool", "call", "one.echo", "{}", "--url", &serve.url];
    assert_eq!(fails(&home, &line, 4), "unavailable");
    assert_eq!(fails(&home, &["server", "test", "one"], 4), "unreachable");
}

#[tokio::test]
async fn a_server_that_may_be_away_is_no_failure() {
    let away = ScriptedServer::builder().fault(Fault::Status(Stage::Any, 500)).start().await;
    let home = Home::new(yaml(
        &["{name: sum_numbers}"],
        &[with(&dynamic("away", &away.url()), "required: false")],
    ));
    for line in ["check --connect", "server list", "tool list"] {
        let json = home.line(&format!("{line} --json")).expect(0);
        assert!(json.json().is_object(), "{line}");
    }
    let sum = home.run(&["tool", "call", "sum_numbers", r#"{"a": 1, "b": 2}"#]).expect(0);
    assert_eq!(sum.stdout, "3\n");
    home.line("doctor").expect(0);
}

#[tokio::test]
async fn a_closed_standard_output_is_no_crash() {
    let many = server((0..2000).map(|n| Tool::echo(format!("t{n}")))).await;
    let home = Home::new(yaml(&[], &[dynamic("many", &many.url())]));
    for line in ["tool list", "tool list --json", "completions bash", "config schema", "--help"] {
        let mut child = home.command(&split(line)).spawn().unwrap();
        drop(child.stdout.take());
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert!(!outcome.stderr.contains("panicked"), "{line}: {}", outcome.stderr);
        assert_eq!(outcome.code, Some(0), "{line}: {}", outcome.stderr);
    }
    // Nobody reads the errors either.
    let mut command = home.command(&["tool", "show", "nothing"]);
    let status = command.stdout(Stdio::null()).spawn().map(|mut child| {
        drop(child.stderr.take());
        child.wait().unwrap()
    });
    assert_eq!(status.unwrap().code(), Some(2));
}

/// Runs the program on a terminal, which `script` of util-linux makes.
fn on_a_terminal(home: &Home, line: &str, no_color: &str) -> String {
    let program = env!("CARGO_BIN_EXE_switchboard");
    let mut command = std::process::Command::new("script");
    command
        .args(["-qec", &format!("{program} {line}"), "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home.path())
        .env("SWITCHBOARD_DATA_DIR", home.path().join("data"))
        .env("TERM", "xterm-256color")
        .env("NO_COLOR", no_color)
        .current_dir(home.path())
        .stdin(Stdio::null());
    Outcome::of(command).all()
}

#[tokio::test]
async fn colours_are_for_terminals_and_only_when_wanted() {
    let (_server, home) = healthy().await;
    for (line, shown) in
        [("doctor", "ok"), ("server list", "ready"), ("tool show nothing", "error:")]
    {
        let coloured = on_a_terminal(&home, line, "");
        assert!(coloured.contains("\x1b[3") && coloured.contains(shown), "{line}: {coloured:?}");
        let plain = on_a_terminal(&home, line, "1");
        assert!(!plain.contains("\x1b[3") && plain.contains(shown), "{line}: {plain:?}");
    }
}

#[test]
fn every_command_explains_itself() {
    let home = Home::empty();
    for line in [
        "",
        "serve",
        "check",
        "config",
        "config show",
        "config schema",
        "import",
        "connect",
        "server",
        "server list",
        "server test",
        "tool",
        "tool list",
        "tool show",
        "tool call",
        "session",
        "session new",
        "session list",
        "session show",
        "session bind",
        "session enable",
        "session disable",
        "session delete",
        "render",
        "calls",
        "doctor",
        "completions",
        "demo-server",
    ] {
        let help = home.line(&format!("{line} --help")).expect(0);
        assert!(help.stdout.contains("Usage: switchboard"), "{line}: {}", help.stdout);
        assert_eq!(help.stderr, "");
    }
}

#[test]
fn the_help_names_every_command() {
    let home = Home::empty();
    assert!(home.line("--version").expect(0).stdout.starts_with("switchboard "));
    let help = home.line("--help").expect(0).stdout;
    assert!(!help.contains("guard"), "what is not for people is hidden");
    assert_says!(help, @"
    One board between models and tools

    Usage: switchboard [OPTIONS] <COMMAND>

    Commands:
      serve        Connect all servers and serve HTTP and MCP clients until stopped
      stdio        Serve one MCP client over standard input and output
      check        Check the configuration, and with --connect the servers too
      config       Show the configuration, or the schema of its file
      import       Convert the server list of another program to a Switchboard configuration
      connect      Print, or write, the entry that an MCP client needs to reach this Switchboard
      server       Show, configure and test servers
      discover     Show which servers the sources name, from where, and why some are left out
      tool         Show, declare and call tools
      toolset      Show toolsets, and propose new ones
      agent        Show the agents of the configuration, and the servers that they find here
      session      Create, show and change sessions: each has its own view of the tools
      chat         Chat with a model that has the tools of a session
      provider     Show the LLM providers
      render       Show the tools of a session in the format of a provider
      calls        Show recent calls, or a large result that was stored
      key          Create, list and revoke API keys for clients
      store        Back up, restore, copy and migrate the database
      auth         Sign in to MCP servers and LLM providers that use OAuth
      doctor       Check configuration, servers and credentials; with --url those of a running instance
      completions  Print a completion script for a shell
      demo-server  Run a small MCP server for trying things out
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
      -c, --config <FILE>              The configuration file [default: $SWITCHBOARD_CONFIG,
                                       ./switchboard.yaml, or the user's configuration directory]
          --data-dir <DIR>             Directory of the database: call records, stored results,
                                       sessions, API keys and tokens [env: SWITCHBOARD_DATA_DIR]
          --url <URL>                  Send the command to a running instance instead of starting one
                                       here [env: SWITCHBOARD_URL]
          --ca-file <FILE>             With an https URL: trust the authorities in this PEM file too
                                       [env: SWITCHBOARD_CA_FILE]
          --client-certificate <FILE>  With an https URL: the certificate of this client and its private
                                       key, in one PEM file [env: SWITCHBOARD_CLIENT_CERTIFICATE]
          --json                       Print one JSON document instead of text
      -v, --verbose...                 Log more; twice for details, three times for everything
      -q, --quiet...                   Log less
          --log-format <FORMAT>        The format of log lines [default: text] [possible values: text,
                                       json]

    Exit codes: 0 done; 1 configuration or start failed; 2 usage; 3 the tool answered with an error; 4
    unreachable, refused or timed out.
    ");
}

#[test]
fn completions_know_the_commands() {
    let home = Home::empty();
    for (shell, check) in [("bash", Some("bash")), ("zsh", None), ("fish", None)] {
        let script = home.line(&format!("completions {shell}")).expect(0).stdout;
        for word in ["demo-server", "server", "doctor", "--data-dir"] {
            let word = if shell == "fish" { word.trim_start_matches("--") } else { word };
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        if let Some(program) = check {
            let file = home.file("completions", &script);
            let status = std::process::Command::new(program).arg("-n").arg(file).status();
            assert!(status.unwrap().success(), "{shell} cannot read it");
        }
    }
}

#[test]
fn as_many_verbose_flags_as_one_likes() {
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    let flags = "-v ".repeat(130);
    home.line(&format!("check {flags}")).expect(0);
    let serve = home.line(&format!("serve --listen 0.0.0.0:0 {flags}")).expect(1);
    assert!(!serve.stderr.contains("panicked"), "{}", serve.stderr);
}

#[test]
fn own_options_come_before_those_of_every_command() {
    let help = Home::empty().line("calls --help").expect(0).stdout;
    let (own, global) = help.split_once("Global options:").unwrap();
    assert!(own.contains("--follow") && !own.contains("--data-dir"), "{help}");
    assert!(global.contains("--data-dir") && !global.contains("--follow"), "{help}");
}

#[test]
fn a_start_that_fails_is_a_line_of_a_json_log() {
    let home = Home::new("switchboard:\n  toolboxx: {}\n");
    let rows = [
        ("serve --listen 0", 1, "invalid_configuration"),
        ("stdio", 1, "invalid_configuration"),
        ("check", 1, "invalid_configuration"),
        ("check --connect", 1, "invalid_configuration"),
        ("tool list", 1, "invalid_configuration"),
        ("server test x", 1, "invalid_configuration"),
        ("tool list --url http://127.0.0.1:1", 4, "unreachable"),
        ("stdio --url localhost:1", 4, "unreachable"),
        ("stdio --no-such-option", 2, "usage"),
    ];
    for (line, code, kind) in rows {
        let failed = home.line(&format!("{line} --log-format json")).expect(code);
        assert_eq!(failed.stdout, "", "{line}");
        for line in failed.stderr.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
        }
        let last = failed.stderr.lines().last().unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!((&last["level"], &last["kind"]), (&"ERROR".into(), &kind.into()), "{line}");
    }
    let notes = home.line("key list --log-format json").expect(0).stderr;
    assert_eq!(serde_json::from_str::<Value>(&notes).unwrap()["level"], "INFO", "{notes}");
}

/// What servers say steers no terminal, and begins no line that could be taken for one of ours.
#[tokio::test]
async fn no_server_steers_a_terminal_or_forges_a_line() {
    let name = "turned\u{202e}tool";
    let block = json!({"type": "resource_link", "uri": "a://b", "name": "b\u{202e}"});
    let upstream = ScriptedServer::builder()
        .server_name("up\u{1b}[2J\nforged: line")
        .tools([
            Tool::echo(name).description("red \u{1b}[31m\u{202e}\u{9b}"),
            Tool::new("fails").replies(Reply::RpcError { code: 1, message: "a\u{1b}[31m".into() }),
            Tool::new("shows").replies(Reply::Result(json!({"content": [block]}))),
        ])
        .start()
        .await;
    let words = r"printf '\033[31mred\nforged: line\n\342\200\256turned\n' >&2";
    let child = |name: &str, then: &str| {
        let script = format!("{words}; {then}");
        with(&stdio(name, Path::new("sh"), &["-c", &script]), "required: false")
    };
    let alive = format!("exec {}", peers::stdio_peer().to_str().unwrap());
    let servers = [dynamic("up", &upstream.url()), child("alive", &alive), child("dead", "exit 1")];
    let home = Home::new(yaml(&[], &servers));
    let check = |what: &str, said: &str| {
        assert!(!said.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{what}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with("forged")), "{what}: {said}");
        assert!(said.contains(r"\u{1b}[") || said.contains(r"\u{202e}"), "{what}: {said}");
    };
    let tool = format!("up.{name}");
    for (command, code) in [
        (&["server", "list"][..], 0),
        (&["server", "test", "up"], 0),
        (&["server", "test", "alive"], 0),
        (&["server", "test", "dead"], 4),
        (&["check", "--connect"], 0),
        (&["doctor"], 0),
        (&["tool", "list"], 0),
        (&["tool", "show", &tool], 0),
        (&["tool", "call", "up.fails"], 3),
    ] {
        let said = home.run(&[command, &["-vvv"]].concat()).expect(code);
        check(&command.join(" "), &said.all());
    }
    let piped = home.run(&["tool", "call", "up.shows"]).expect(0);
    assert_eq!(piped.json(), block, "what a program reads stays JSON");
    // A start that fails.
    let dead = child("dead", "exit 1").replace("required: false", "required: true");
    let failing = Home::new(yaml(&[], &[dead]));
    check("serve", &failing.line("serve -vvv --listen 127.0.0.1:0").expect(1).all());
    let serve = home.serve_with(&["-vvv"]).await;
    serve.said("cannot be reached").await;
    check("the log", &serve.stderr());
}
