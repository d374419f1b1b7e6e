//! `doctor`, on a configuration and on a running instance.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ThreatEndpoint, Tool, free_port};

use crate::support::{Home, assert_says, dynamic, server, strict, with, yaml};

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

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_whether_the_threat_protection_answers() {
    let endpoint = ThreatEndpoint::start().await;
    let dead = format!("http://127.0.0.1:{}/threats?key=s3cret", free_port());
    for (url, more, expected) in [
        (endpoint.url(), "", "ok   threat protection at http://HOST/threats: reachable\n"),
        (
            &dead,
            "",
            "warn threat protection at http://HOST/threats?key=***: away: cannot connect: Connection refused (os error 111)\n     hint: hooks that block stop all work meanwhile\n",
        ),
        (
            &dead,
            ", on_failure: open",
            "away: cannot connect: Connection refused (os error 111)\n     hint: nothing is checked meanwhile\n",
        ),
    ] {
        let section = format!("  threat_protection: {{endpoint: \"{url}\"{more}}}\n");
        let home = Home::new(format!("{}{section}", yaml(&[], &[])));
        let said = home.line("doctor").expect(0).stdout;
        let said = said.replace(url.split('/').nth(2).unwrap(), "HOST");
        assert!(said.contains(expected), "{said}");
    }
    assert!(endpoint.requests().is_empty(), "nothing is sent to be checked");
}
