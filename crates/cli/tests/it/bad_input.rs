//! Invalid files and broken servers: one clear message, the documented exit code, and a board that keeps working.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{Fault, Reply, ScriptedServer, Stage, Tool, free_port, peers};

use crate::support::{Home, assert_says, dynamic, server, stdio, strict, with, yaml};

/// What `check` says about the file; `serve` and `check --connect` say the same.
#[track_caller]
fn refusal(home: &Home) -> String {
    let said = home.line("check").expect(1);
    assert_eq!(said.stdout, "");
    for line in ["check --connect", "serve -q --listen 127.0.0.1:0", "tool list"] {
        assert_eq!(home.line(line).expect(1).stderr, said.stderr, "{line}");
    }
    let doctor = home.line("doctor").expect(1);
    let first = said.stderr.lines().next().unwrap().trim_start_matches("error: ").to_owned();
    assert!(doctor.stdout.contains(&first), "{}", doctor.stdout);
    said.stderr
}

fn one_server(fields: &str) -> Home {
    Home::new(yaml(&[], &[format!("{{name: a, {fields}}}")]))
}

#[test]
fn a_wrong_type() {
    let home = Home::new(yaml(&["{name: a, max_instances: many}"], &[]));
    assert_says!(refusal(&home), @r#"
    error: switchboard.toolbox.tools[0].max_instances: expected an integer, found the string "many"
      --> switchboard.yaml:5:34
       |
     5 |       - {name: a, max_instances: many}
       |                                  ^^^^

    1 problem found
    "#);
}

#[test]
fn an_unknown_key() {
    let home = Home::new(yaml(&["{name: a, max_instance: 3}"], &[]));
    assert_says!(refusal(&home), @"
    error: unknown key `max_instance` in switchboard.toolbox.tools[0]
      --> switchboard.yaml:5:19
       |
     5 |       - {name: a, max_instance: 3}
       |                   ^^^^^^^^^^^^
       = help: did you mean `max_instances`?

    1 problem found
    ");
}

#[test]
fn an_unknown_mode() {
    assert_says!(refusal(&one_server("url: \"http://h\", mode: dynamik")), @r#"
    error: switchboard.toolbox.mcps[0].mode: the string "dynamik" is not one of `strict`, `dynamic`
      --> switchboard.yaml:6:42
       |
     6 |       - {name: a, url: "http://h", mode: dynamik}
       |                                          ^^^^^^^
       = help: did you mean `dynamic`?

    1 problem found
    "#);
}

#[test]
fn dynamic_without_defaults() {
    assert_says!(refusal(&one_server("url: \"http://h\", mode: dynamic")), @r#"
    error: MCP server 'a' is configured with mode='dynamic' but missing required field 'default_tool_config'
      --> switchboard.yaml:6:42
       |
     6 |       - {name: a, url: "http://h", mode: dynamic}
       |                                          ^^^^^^^
       = help: add `default_tool_config: {max_instances: 5, timeout: 30s}`, or use `mode: strict`

    1 problem found
    "#);
}

#[test]
fn zero_and_negative_limits() {
    let tools = ["{name: a, max_instances: 0}", "{name: b, timeout: 0s}", "{name: c, timeout: -1}"];
    assert_says!(refusal(&Home::new(yaml(&tools, &[]))), @r#"
    error: switchboard.toolbox.tools[0].max_instances: the integer 0 is below the minimum of 1
      --> switchboard.yaml:5:34
       |
     5 |       - {name: a, max_instances: 0}
       |                                  ^

    error: switchboard.toolbox.tools[1].timeout: the string "0s" is not above zero
      --> switchboard.yaml:6:28
       |
     6 |       - {name: b, timeout: 0s}
       |                            ^^
       = help: write a duration above zero, such as `30s`, `1m30s`, `MS`, `2h`, `PT30S`, `00:00:30` or `30` (seconds)

    error: switchboard.toolbox.tools[2].timeout: the integer -1 is not above zero
      --> switchboard.yaml:7:28
       |
     7 |       - {name: c, timeout: -1}
       |                            ^^
       = help: write a duration above zero, such as `30s`, `1m30s`, `MS`, `2h`, `PT30S`, `00:00:30` or `30` (seconds)

    3 problems found
    "#);
    assert_says!(refusal(&Home::new("switchboard: {toolbox: {max_concurrent: -1}}\n")), @"
    error: switchboard.toolbox.max_concurrent: the integer -1 is below the minimum of 1
      --> switchboard.yaml:1:41
       |
     1 | switchboard: {toolbox: {max_concurrent: -1}}
       |                                         ^^

    1 problem found
    ");
}

#[test]
fn two_servers_of_one_name() {
    let servers = [strict("a", "http://h"), strict("a", "http://i")];
    assert_says!(refusal(&Home::new(yaml(&[], &servers))), @r#"
    error: two servers are named `a`
      --> switchboard.yaml:7:16
       |
     7 |       - {name: a, url: "http://i", mode: strict}
       |                ^
       = note: the first is at switchboard.yaml:6:16
       = help: rename one of them, or remove it

    1 problem found
    "#);
}

#[test]
fn an_unresolved_variable() {
    let home = one_server("url: \"http://h\", mode: strict, auth: {bearer: \"${TOKEN}\"}");
    assert_says!(refusal(&home), @"
    error: switchboard.toolbox.mcps[0].auth.bearer needs the environment variable TOKEN, which is not set
      --> switchboard.yaml:6:65
       |
     6 | (not shown: this line may hold a secret)
       |
       = help: set TOKEN, or give a default: `${TOKEN:-...}`

    1 problem found
    ");
    let home = one_server("url: \"http://h\", mode: strict, auth: {bearer: \"file:token\"}");
    assert_says!(refusal(&home), @"
    error: cannot read the secret of switchboard.toolbox.mcps[0].auth.bearer from `file:token`: entity not found
      --> switchboard.yaml:6:65
       |
     6 | (not shown: this line may hold a secret)
       |
       = help: write `file:` and the path of a readable text file, relative to this file

    1 problem found
    ");
}

#[test]
fn a_bad_url_and_a_bad_transport() {
    assert_says!(refusal(&one_server("url: nowhere, mode: strict")), @"
    error: switchboard.toolbox.mcps[0].url: the address is not a valid URL: relative URL without a base
      --> switchboard.yaml:6:24
       |
     6 |       - {name: a, url: nowhere, mode: strict}
       |                        ^^^^^^^
       = help: write an address such as `http://localhost:8180/mcp`

    1 problem found
    ");
    assert_says!(refusal(&one_server("url: \"http://h\", mode: strict, transport: smoke")), @r#"
    error: switchboard.toolbox.mcps[0].transport: the string "smoke" is not one of `streamable_http`, `sse`, `stdio`
      --> switchboard.yaml:6:61
       |
     6 |       - {name: a, url: "http://h", mode: strict, transport: smoke}
       |                                                             ^^^^^

    1 problem found
    "#);
}

#[test]
fn text_that_is_no_yaml() {
    assert_says!(refusal(&Home::new("switchboard:\n  toolbox: [\n")), @"
    error: not valid YAML: while parsing a node, did not find expected node content
      --> switchboard.yaml:3:1

    1 problem found
    ");
    assert_says!(refusal(&Home::new("")), @"
    error: the file has neither `switchboard` nor `myai` as its root key
      --> switchboard.yaml:1:1
       = help: start the file with `switchboard:` and put `toolbox:` below it

    1 problem found
    ");
}

#[test]
fn bytes_that_are_no_text_and_a_directory() {
    let home = Home::empty();
    std::fs::write(home.config(), [0xff, 0xfe, 0x00, 0x80]).unwrap();
    assert_says!(home.line("check").expect(1).stderr, @"error: cannot read the configuration switchboard.yaml: stream did not contain valid UTF-8");
    let home = Home::empty();
    assert_says!(home.line("check --config .").expect(1).stderr, @"error: cannot read the configuration .: Is a directory (os error 21)");
}

#[test]
fn ten_thousand_levels_of_a_file() {
    let home = Home::new(format!("switchboard: {}", "[".repeat(10_000)));
    assert_says!(refusal(&home), @"
    error: not valid YAML: recursion limit exceeded
      --> switchboard.yaml:1:269
       |
     1 | switchboard: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
       |

    1 problem found
    ");
}

#[test]
fn a_variable_that_leads_nowhere() {
    let home = Home::new(yaml(&[], &[]))
        .with_variable("SWITCHBOARD__TOOLBOX__MAX_CONCURENT", "3")
        .with_variable("APP_MYAI__TOOLBOX__MCPS__7__MODE", "dynamic");
    assert_says!(refusal(&home), @"
    error: switchboard.toolbox.mcps has no element [7]
      --> environment variable APP_MYAI__TOOLBOX__MCPS__7__MODE
       = help: the next free one is 0

    error: environment variable SWITCHBOARD__TOOLBOX__MAX_CONCURENT sets an unknown key: there is no `max_concurent` in switchboard.toolbox
      --> environment variable SWITCHBOARD__TOOLBOX__MAX_CONCURENT
       = help: did you mean `MAX_CONCURRENT`?

    2 problems found
    ");
}

/// What a server is that cannot be used, and the cause that is named.
struct Faulty {
    name: &'static str,
    entry: String,
    cause: &'static str,
    _server: Option<ScriptedServer>,
}

async fn faulty(name: &'static str, fault: Fault, cause: &'static str) -> Faulty {
    let hangs = matches!(fault, Fault::Hang(_) | Fault::HangAtConnect);
    let timeout = if hangs { "connect_timeout: 1s" } else { "connect_timeout: 9s" };
    let server = ScriptedServer::builder().tools([Tool::echo("x")]).fault(fault).start().await;
    let entry = with(&dynamic(name, &server.url()), timeout);
    Faulty { name, entry, cause, _server: Some(server) }
}

fn faulty_child(name: &'static str, arguments: &[&str], cause: &'static str) -> Faulty {
    let entry = with(&stdio(name, &peers::stdio_peer(), arguments), "connect_timeout: 9s");
    Faulty { name, entry, cause, _server: None }
}

/// A hundred megabytes without an end of line.
const LONG_LINE: &str = "head -c 104857600 /dev/zero | tr '\\0' x; sleep 100";

async fn all_faulty() -> Vec<Faulty> {
    let nobody = format!("http://127.0.0.1:{}/mcp", free_port());
    let missing = stdio("missing-program", std::path::Path::new("/no/such/program"), &[]);
    let plain = |name, entry, cause| Faulty { name, entry, cause, _server: None };
    vec![
        plain("nobody", dynamic("nobody", &nobody), "Connection refused"),
        plain("no-host", dynamic("no-host", "http://no-such-host.invalid/mcp"), "cannot connect"),
        faulty("unauthorized", Fault::Status(Stage::Any, 401), "HTTP 401").await,
        faulty("not-found", Fault::Status(Stage::Any, 404), "HTTP 404").await,
        faulty("broken", Fault::Status(Stage::Any, 500), "HTTP 500").await,
        faulty("login", Fault::LoginPage(Stage::Any), "a web page").await,
        faulty("not-json", Fault::NotJson(Stage::Any), "not a JSON-RPC message").await,
        faulty("hangs-at-connect", Fault::HangAtConnect, "within 1s").await,
        faulty("hangs-at-start", Fault::Hang(Stage::Initialize), "initialize within 1s").await,
        faulty("hangs-at-list", Fault::Hang(Stage::List), "tools/list within 1s").await,
        faulty("half-an-answer", Fault::CloseMidBody(Stage::List), "the answer broke off").await,
        faulty("deep", Fault::DeepSchema(10_000), "nested deeper").await,
        faulty("loops", Fault::CursorLoop, "goes in circles").await,
        faulty("huge-list", Fault::HugeList(20 << 20), "larger than").await,
        plain("missing-program", missing, "cannot start `/no/such/program`"),
        faulty_child("ends-at-once", &["--exit-at-once"], "the process ended (exit status: 3)"),
        plain(
            "long-line",
            stdio("long-line", "sh".as_ref(), &["-c", LONG_LINE]),
            "a line longer than",
        ),
    ]
}

#[tokio::test]
async fn each_faulty_server_is_named_with_its_cause() {
    let all = all_faulty().await;
    let entries: Vec<_> = all.iter().map(|faulty| faulty.entry.clone()).collect();
    let home = Home::new(yaml(&[], &entries));
    let look = |faulty: &Faulty| {
        let tested = home.run(&["server", "test", faulty.name]).expect(4);
        let head = format!("error: Failed to connect to MCP server '{}' at ", faulty.name);
        assert!(tested.stderr.starts_with(&head), "{}", tested.stderr);
        assert!(tested.stderr.contains(faulty.cause), "{}: {}", faulty.cause, tested.stderr);
        assert_eq!(tested.stdout, "");
        let call = home.run(&["tool", "call", &format!("{}.x", faulty.name), "{}"]).expect(1);
        assert!(call.stderr.contains(faulty.cause), "{}: {}", faulty.cause, call.stderr);
    };
    for some in all.chunks(6) {
        std::thread::scope(|scope| {
            for faulty in some {
                scope.spawn(|| look(faulty));
            }
        });
    }
    // All of them at once, in one start: each is told once.
    for line in ["check --connect", "serve -q --listen 127.0.0.1:0"] {
        let said = home.line(line).expect(1).stderr;
        for faulty in &all {
            let head = format!("Failed to connect to MCP server '{}' at ", faulty.name);
            assert_eq!(said.matches(&head).count(), 1, "{head}: {said}");
            assert!(said.contains(faulty.cause), "{}: {said}", faulty.cause);
        }
    }
    let doctor = home.line("doctor --json").expect(1).json();
    let ill = doctor["findings"].as_array().unwrap().iter().filter(|f| f["is_well"] == false);
    assert_eq!(ill.count(), all.len());
}

#[tokio::test]
async fn the_words_for_the_commonest_faults() {
    let unauthorized = ScriptedServer::builder().requires_bearer("t").start().await;
    let login = ScriptedServer::builder().fault(Fault::LoginPage(Stage::Any)).start().await;
    let slow = ScriptedServer::builder().fault(Fault::Hang(Stage::List)).start().await;
    let home = Home::new(yaml(
        &[],
        &[
            dynamic("unauthorized", &unauthorized.url()),
            dynamic("login", &login.url()),
            with(&dynamic("slow", &slow.url()), "connect_timeout: 250ms"),
            stdio("dies", &peers::stdio_peer(), &["--exit-at-once"]),
        ],
    ));
    assert_says!(home.line("server test unauthorized").expect(4).stderr, @r#"
    error: Failed to connect to MCP server 'unauthorized' at http://HOST/mcp
    Error: HTTP 401 Unauthorized: {"error":"Unauthorized"}
    hint: give the server's credentials in `auth.bearer` or `headers`
    "#);
    assert_says!(home.line("server test login").expect(4).stderr, @"
    error: Failed to connect to MCP server 'login' at http://HOST/mcp
    Error: HTTP 200 OK: a web page instead of an MCP answer
    hint: this looks like a login or start page; check `url` and the credentials
    ");
    assert_says!(home.line("server test slow").expect(4).stderr, @"
    error: Failed to connect to MCP server 'slow' at http://HOST/mcp
    Error: no answer to tools/list within MS
    hint: raise `connect_timeout` for a server that needs longer to start
    ");
    assert_says!(home.line("server test dies").expect(4).stderr, @"
    error: Failed to connect to MCP server 'dies' at PEER --exit-at-once
    Error: the process ended (exit status: 3)
    hint: run the command by hand to see whether it starts and waits for input
    ");
}

#[tokio::test]
async fn a_board_with_every_faulty_server_serves_the_healthy_one() {
    let healthy = server([Tool::echo("echo")]).await;
    let all = all_faulty().await;
    let entries = all.iter().map(|faulty| with(&faulty.entry, "required: false"));
    let entries: Vec<_> = [dynamic("healthy", &healthy.url())].into_iter().chain(entries).collect();
    let home = Home::new(yaml(&[], &entries));
    let serve = home.serve().await;
    assert_eq!(serve.start["readiness"]["status"], "degraded");
    let away = serve.start["readiness"]["unavailable"].as_array().unwrap();
    assert_eq!(away.len(), all.len(), "{away:?}");
    for n in 0..200 {
        let answer = serve.answer("healthy.echo", json!({ "n": n })).await;
        assert_eq!(answer["result"]["structuredContent"]["n"], n);
    }
    let servers = serve.get("/api/v1/servers").await;
    for faulty in &all {
        let servers = servers["servers"].as_array().unwrap();
        let view = servers.iter().find(|view| view["name"] == faulty.name).unwrap();
        assert_eq!(view["state"], "unavailable", "{view}");
        assert!(view["error"].as_str().unwrap().contains(faulty.cause), "{view}");
    }
}

#[tokio::test]
async fn garbage_and_floods_of_a_child_do_no_harm() {
    let peer = peers::stdio_peer();
    let home = Home::new(yaml(
        &[],
        &[
            stdio("garbage", &peer, &["--garbage-stdout"]),
            stdio("flood", &peer, &["--flood-stderr", "20"]),
        ],
    ));
    let serve = home.serve().await;
    assert_eq!(serve.start["readiness"]["status"], "ready", "{}", serve.stderr());
    for tool in ["garbage.echo", "flood.echo"] {
        serve.answer(tool, json!({"n": 1})).await;
    }
    let tested = home.line("server test flood --json").expect(0).json();
    let kept = tested["stderr"].as_str().unwrap().len();
    assert!((1..=64 * 1024).contains(&kept), "{kept} bytes of 20 MB are kept");
}

#[tokio::test]
async fn calls_that_go_wrong_end_themselves_and_nothing_else() {
    let bad = server([
        Tool::new("hangs").replies(Reply::Hang),
        Tool::new("half").replies(Reply::CloseMidBody),
        Tool::new("huge").replies(Reply::Huge(40 << 20)),
        Tool::new("wrong-id").replies(Reply::WrongId),
        Tool::new("twice").replies(Reply::Twice),
        Tool::new("unknown").replies(Reply::UnknownContent),
        Tool::echo("echo"),
    ])
    .await;
    let peer = peers::stdio_peer();
    let limits = ["{name: hangs, timeout: 300ms}"];
    let child = stdio("child", &peer, &["--long-line", "40"]);
    let home = Home::new(yaml(&limits, &[dynamic("bad", &bad.url()), child]));
    let serve = home.serve().await;
    for (tool, status, says) in [
        ("bad.hangs", 504, "tool 'hangs' of MCP server 'bad' was running longer than"),
        ("bad.half", 503, "the answer broke off"),
        ("bad.huge", 502, "larger than"),
        ("bad.wrong-id", 502, "the response has the id of another request"),
        ("bad.twice", 200, ""),
        ("bad.unknown", 200, "hologram"),
        ("child.long_line", 503, "a line longer than"),
        ("child.crash", 503, "unavailable"),
    ] {
        let (code, body) = serve.call(tool, json!({})).await;
        assert_eq!(code.as_u16(), status, "{tool}: {body}");
        assert!(body.to_string().contains(says), "{tool}: {body}");
        serve.answer("bad.echo", json!({})).await;
        // A child that ended is started again.
        serve.until_status("ready").await;
        serve.answer("child.echo", json!({})).await;
    }
}

#[tokio::test]
async fn lists_that_go_wrong_later_keep_the_last_known_tools() {
    let fickle = server([Tool::echo("echo")]).await;
    let entry =
        with(&dynamic("fickle", &fickle.url()), "connect_timeout: 500ms, poll_interval: 1s");
    let home = Home::new(yaml(&[], &[entry]));
    let serve = home.serve().await;
    for fault in [
        Fault::SecondPageFails,
        Fault::CursorLoop,
        Fault::EndlessPages,
        Fault::DeepSchema(10_000),
        Fault::HugeList(40 << 20),
    ] {
        let before = fickle.stats().list_count;
        fickle.set_fault(fault.clone()).await;
        serve.signal("HUP");
        switchboard_test_support::wait_until(crate::support::PATIENCE, async || {
            (fickle.stats().list_count > before).then_some(())
        })
        .await;
        assert_eq!(serve.tool_names().await, ["fickle.echo"], "{fault:?}");
        serve.answer("fickle.echo", json!({})).await;
    }
    fickle.clear_fault().await;
    fickle.set_tools([Tool::echo("echo"), Tool::echo("more")]);
    serve.until_tools(&["fickle.echo", "fickle.more"]).await;
}

#[test]
fn arguments_ten_thousand_levels_deep_are_refused() {
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_says!(home.run(&["tool", "call", "sum_numbers", &deep]).expect(2).stderr, @r#"
    error: the arguments are not JSON: recursion limit exceeded at line 1 column 133
    hint: write them as '{"a": 1}', or use --arg a=1
    "#);
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(5 << 20));
    let said = home.run_with_input(&["tool", "call", "sum_numbers", "-"], long).expect(2);
    assert_says!(said.stderr, @"error: the arguments are larger than 4194304 bytes");
}
