//! Servers as the program shows them: `server list`, `server test`, and the table at the start of `serve`.

use pretty_assertions::assert_eq;
use serde_json::Value;
use switchboard_test_support::{ScriptedServer, Tool, peers};

use crate::support::{Home, assert_says, dynamic, server, stdio, with, yaml};

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
