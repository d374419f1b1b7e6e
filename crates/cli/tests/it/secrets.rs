//! No command, log line or API response contains a secret of the configuration.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool, peers};

use crate::support::{Home, Outcome, dynamic, stdio, with, yaml};

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
